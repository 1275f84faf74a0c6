//go:build !cuda || !linux

// Package drv stands between gorgonia.org/cu and the NVIDIA driver. It is empty in a build without the cuda tag.
package drv
