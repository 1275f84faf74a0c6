//go:build cuda && linux

package drv

/*
#include "fwd.h"
#include <stdlib.h>
*/
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"
)

// Checks tells whether the driver is one that checks accesses and listens to hints: the fake one of the tests.
func Checks() bool { return C.aitk_checks() != 0 }

// Access is what an operation may do with a stretch of memory.
type Access uint32

// The kinds of access, to be combined.
const (
	MayRead  Access = 1
	MayWrite Access = 2
)

// Hint is what a checking driver is told about an operation. It lies in C memory and lives as long as the process.
type Hint struct {
	position *C.char
	picos    int64
	ranges   []C.struct_aitk_range
}

// NewHint names an operation and says how long it is predicted to take.
func NewHint(position string, picos int64) *Hint {
	return &Hint{position: C.CString(position), picos: picos}
}

// Allow adds a stretch of memory that the operation may touch.
func (h *Hint) Allow(at uintptr, bytes int64, access Access, name string) {
	if bytes == 0 {
		return
	}
	h.ranges = append(h.ranges, C.struct_aitk_range{ptr: C.uint64_t(at), bytes: C.uint64_t(bytes), access: C.uint32_t(access), name: C.CString(name)})
}

// Announce says it of the next operation queued on a stream.
func (h *Hint) Announce(s cu.Stream) error {
	var first *C.struct_aitk_range
	if len(h.ranges) > 0 {
		first = &h.ranges[0]
	}
	return result(C.aitk_expect(C.CUstream(unsafe.Pointer(s.C())), h.position, C.int64_t(h.picos), C.int(len(h.ranges)), first))
}
