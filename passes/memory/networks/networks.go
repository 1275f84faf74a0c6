// Package networks makes planning problems of training steps without any weights or model files: transformers, convolutional networks, U-Nets and
// diffusion transformers of the sizes that people train, on one cost model. Benchmarks and tests measure the planner on them.
//
// # Cost model
//
// An op takes 3 us + max(FLOPs / 150e12, bytes / 1.3e12) seconds, where bytes are those of its operands and outputs; activations have 2 bytes per element,
// dropout masks one. Weights are left out (their gradients are values of no bytes) unless State says otherwise; the update of a group of weights moves 26 bytes
// per parameter (AdamW on a float32 master: three float32 states read and written, and the gradient). Nothing is written in place. With these, twelve blocks of GPT-2 at
// batch 8 and 1024 tokens are a step of 69.0 ms with a peak of 8.10 GiB with explicit attention, 43.9 ms and 2.45 GiB with fused attention.
//
// # Order
//
// The forward half in the order of the layers, then the gradients in the opposite order; the gradient of the operand comes before that of the weight; weights of a block are
// updated together as soon as all their gradients are there.
package networks

import "aitk/passes/memory"

// State says what of a network's weights is part of the problem.
type State int

const (
	Excluded State = iota // nothing: weights and gradients of weights have no bytes
	Trained               // weights (2 bytes per parameter), float32 masters and moments, all persistent; gradients of weights
	Frozen                // weights (2 bytes per parameter) that are only read, persistent; there are no gradients of weights
)

// Options are what all networks have in common.
type Options struct {
	State    State
	Explicit bool // attention scores are values; otherwise attention is one op
}

// Lanes are two copy lanes of so many GB/s (1e9 bytes) each, with 10 us per copy, each at duplexPermille of 1000 of its rate while both are busy, and a budget of host bytes
// (< 0: none).
func Lanes(gbPerSec, duplexPermille, hostBytes int64) *memory.Lanes {
	return &memory.Lanes{D2HBytesPerSec: gbPerSec * 1e9, H2DBytesPerSec: gbPerSec * 1e9, LatencyPicos: 10e6, DuplexPermille: duplexPermille, HostBudgetBytes: hostBytes}
}

// Network is a named problem, made when it is asked for.
type Network struct {
	Name string
	Make func(o Options) *memory.Problem
}

// All lists the networks from small to large. Those of a thousand blocks and more are for stress.
func All() []Network {
	gpt := func(blocks, width, heads int64) func(Options) *memory.Problem {
		return func(o Options) *memory.Problem {
			return Transformer(TransformerConfig{Blocks: blocks, Batch: 8, Tokens: 1024, Width: width, Heads: heads}, o)
		}
	}
	return []Network{
		{"resnet18", func(o Options) *memory.Problem { return ResNet(18, 64, o) }},
		{"resnet50", func(o Options) *memory.Problem { return ResNet(50, 64, o) }},
		{"gpt2", gpt(12, 768, 12)},
		{"gpt2-xl", gpt(48, 1600, 25)},
		{"llama-7b", func(o Options) *memory.Problem { return Llama(LlamaConfig{32, 1, 2048, 4096, 11008, 32}, o) }},
		{"moe", func(o Options) *memory.Problem {
			return MixtureOfExperts(MixtureConfig{LlamaConfig{24, 2, 2048, 2048, 1408, 16}, 8, 2}, o)
		}},
		{"unet", func(o Options) *memory.Problem { return UNet(UNetConfig{Batch: 4, Size: 64, Width: 320}, o) }},
		{"flux", func(o Options) *memory.Problem { return Flux(FluxConfig{19, 38, 1, 4096, 512, 3072, 24}, o) }},
		{"gpt-200", gpt(200, 768, 12)},
		{"gpt-1000", gpt(1000, 768, 12)},
		{"gpt-2800", gpt(2800, 768, 12)},
	}
}
