//go:build cuda && linux

// Package drv stands between gorgonia.org/cu and the NVIDIA driver. It defines the driver's functions as trampolines that are bound by dlopen
// when cu's own init runs, so that a binary built with the cuda tag needs libc alone, starts on a machine without a driver, and learns from
// Status why there is none. It adds what cu lacks: pinned memory, function attributes, stream capture and graphs.
//
// The package is the one place besides cmd/aitk that reads the environment: AITK_LIBCUDA names another driver library. cu initialises before
// main, so nobody could hand it a setting in time. It knows no plan and no device of package runtime.
//
// Invariants: cuInit always succeeds, whatever the driver says (cu ends the process otherwise); before a driver was bound every function answers
// CUDA_ERROR_NO_DEVICE; the trampolines are hidden, so that libraries loaded later never bind to them. arm64 has trampolines that were never
// run; other systems have none.
package drv

/*
#cgo LDFLAGS: -L${SRCDIR} -Wl,--as-needed -ldl -lpthread
#include "fwd.h"
#include <stdlib.h>
*/
import "C"

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"
)

// Status is nil where a driver was found and has started, else the reason in words.
func Status() error {
	code := C.aitk_status()
	if code == C.CUDA_SUCCESS {
		return nil
	}
	return fmt.Errorf("no NVIDIA driver (%d): %s", int(code), C.GoString(C.aitk_text()))
}

// Library is the driver library that was asked for.
func Library() string {
	C.aitk_status()
	return C.GoString(C.aitk_library())
}

// Missing is the number of functions that the driver lacks; calls of them answer CUDA_ERROR_NOT_FOUND.
func Missing() int { return int(C.aitk_absentees()) }

// Error is what a driver function answered instead of success.
type Error int

// The results that callers tell apart.
const (
	OutOfMemory Error = C.CUDA_ERROR_OUT_OF_MEMORY
	NotFound    Error = C.CUDA_ERROR_NOT_FOUND
)

func (e Error) Error() string {
	var name, text *C.char
	if C.cuGetErrorName(C.CUresult(e), &name) != C.CUDA_SUCCESS || name == nil {
		return fmt.Sprintf("CUDA error %d", int(e))
	}
	if C.cuGetErrorString(C.CUresult(e), &text) != C.CUDA_SUCCESS || text == nil {
		return C.GoString(name)
	}
	return C.GoString(name) + " (" + C.GoString(text) + ")"
}

func result(r C.CUresult) error {
	if r == C.CUDA_SUCCESS {
		return nil
	}
	return Error(r)
}

// handle is the C handle inside one of cu's structs, each of which is one pointer and keeps it to itself.
func handle[T cu.Function | cu.Event](x T) unsafe.Pointer {
	if unsafe.Sizeof(x) != unsafe.Sizeof(uintptr(0)) {
		panic("cu's handles are no longer one pointer")
	}
	return *(*unsafe.Pointer)(unsafe.Pointer(&x))
}
