//go:build cuda && linux

package cuda

import (
	"errors"

	"gorgonia.org/cu"

	"aitk/ir"
	"aitk/runtime/cuda/drv"
)

// remedy says what a user can do about a driver's answer in the middle of a run.
func remedy(err error) string {
	switch {
	case errors.Is(err, cu.OutOfMemory), errors.Is(err, drv.OutOfMemory):
		return "the driver wants device memory of its own: plan with a --budget below what is free (--budget auto), or end what else uses the device"
	case errors.Is(err, cu.InvalidValue), errors.Is(err, cu.LaunchOutOfResources), errors.Is(err, cu.InvalidHandle):
		return "the device refuses what others take: please report it with what `aitk doctor` says; --device cpu runs meanwhile"
	}
	return "checkpoints written so far are intact (--resume latest goes on from the newest); `nvidia-smi -q` tells of errors of the card, `aitk doctor` whether it answers"
}

// advised adds the remedy to an answer of the driver that has none.
func advised(err error) error {
	if _, ok := errors.AsType[*ir.Error](err); ok || err == nil {
		return err
	}
	return &ir.Error{Kind: ir.Failed, Cause: err, Remedy: remedy(err)}
}

// compileRemedy says what to do where the driver does not take the kernels' texts.
func compileRemedy(err error) string {
	switch {
	case errors.Is(err, cu.OutOfMemory):
		return remedy(err)
	case errors.Is(err, cu.JitCompilerNotFound):
		return "the driver's compiler, libnvidia-ptxjitcompiler, is not installed: it belongs to the driver's packages"
	}
	return "a driver of CUDA 11.0 or newer compiles the texts for compute capability 8.0, one of CUDA 10.2 those for 7.5: update it"
}
