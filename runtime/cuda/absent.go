//go:build !cuda || !linux

package cuda

import (
	"aitk/ir"
	"aitk/runtime"
	"errors"
)

const absent = "this binary has no CUDA device: build it on Linux with a C compiler, `make build-cuda`"

// Open says how to build a binary that has the device.
func Open(Options) (runtime.Device, error) {
	return nil, &ir.Error{Kind: ir.Usage, Cause: errors.New(absent), Remedy: "or run with --device cpu"}
}

// Describe says the same.
func Describe() Description { return Description{Reason: absent} }

// Measure says the same.
func Measure(Options) (Bandwidth, error) { return Bandwidth{}, errors.New(absent) }
