//go:build cuda && linux

package drv

/*
#include "fwd.h"
*/
import "C"

import (
	"unsafe"

	"gorgonia.org/cu"
)

// HostAlloc pins memory that the device can reach as well. It is C memory: the collector does not know it. FreeHost gives it back.
func HostAlloc(bytes int64) (unsafe.Pointer, error) {
	var p unsafe.Pointer
	err := result(C.cuMemHostAlloc(&p, C.size_t(bytes), C.CU_MEMHOSTALLOC_PORTABLE|C.CU_MEMHOSTALLOC_DEVICEMAP))
	return p, err
}

// FreeHost frees what HostAlloc gave.
func FreeHost(p unsafe.Pointer) error { return result(C.cuMemFreeHost(p)) }

// DevicePointer is the address at which kernels see pinned memory.
func DevicePointer(p unsafe.Pointer) (uintptr, error) {
	var d C.CUdeviceptr
	err := result(C.cuMemHostGetDevicePointer(&d, p, 0))
	return uintptr(d), err
}

// SetDynamicShared lets a kernel be launched with as many bytes of dynamic shared memory; above 48 KiB this must be asked for.
func SetDynamicShared(f cu.Function, bytes int) error {
	return result(C.cuFuncSetAttribute(C.CUfunction(handle(f)), C.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, C.int(bytes)))
}

// Graph is a captured sequence of launches and copies that is launched as one.
type Graph struct{ exec C.CUgraphExec }

// BeginCapture makes a stream record what it is given instead of doing it. Streams that wait for its events join.
func BeginCapture(s cu.Stream) error {
	return result(C.cuStreamBeginCapture(C.CUstream(unsafe.Pointer(s.C())), C.CU_STREAM_CAPTURE_MODE_THREAD_LOCAL))
}

// EndCapture ends what BeginCapture began, once the other streams have joined, and makes the record executable.
func EndCapture(s cu.Stream) (*Graph, error) {
	var g C.CUgraph
	if err := result(C.cuStreamEndCapture(C.CUstream(unsafe.Pointer(s.C())), &g)); err != nil {
		return nil, err
	}
	out := &Graph{}
	err := result(C.cuGraphInstantiateWithFlags(&out.exec, g, 0))
	if e := result(C.cuGraphDestroy(g)); err == nil {
		err = e
	}
	return out, err
}

// Launch queues the whole graph on a stream.
func (g *Graph) Launch(s cu.Stream) error {
	return result(C.cuGraphLaunch(g.exec, C.CUstream(unsafe.Pointer(s.C()))))
}

// Destroy frees the graph.
func (g *Graph) Destroy() error { return result(C.cuGraphExecDestroy(g.exec)) }
