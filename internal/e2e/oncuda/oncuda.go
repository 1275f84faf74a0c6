// Package oncuda holds tests alone: models compiled for a GPU and trained on the CUDA device, the fake driver standing in for NVIDIA's. They are
// apart from package e2e because the tag cuda changes what that package's oracle, Gorgonia, is built from.
package oncuda
