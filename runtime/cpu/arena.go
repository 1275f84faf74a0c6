package cpu

import (
	"fmt"
	"unsafe"

	"aitk/ir"
)

// alignBytes is the alignment of an arena's first byte: a cache line, and the widest vector register.
const alignBytes = 64

// arena is memory of this process. It lies outside the Go heap, whose collector would keep up to twice as much, unless a test wants it there.
type arena struct {
	bytes   []byte
	release func() error // nil: the garbage collector's business
}

func newArena(bytes int64, heap bool) (*arena, error) {
	if bytes == 0 {
		return &arena{bytes: []byte{}}, nil
	}
	if heap {
		return &arena{bytes: heapBytes(bytes)}, nil
	}
	return mapArena(bytes)
}

// heapBytes is aligned memory of the Go heap.
func heapBytes(n int64) []byte {
	raw := make([]byte, n+alignBytes)
	skip := -uintptr(unsafe.Pointer(unsafe.SliceData(raw))) % alignBytes
	return raw[skip : skip+uintptr(n) : skip+uintptr(n)]
}

func (a *arena) free() error {
	release := a.release
	a.bytes, a.release = nil, nil
	if release == nil {
		return nil
	}
	return release()
}

// Bytes implements runtime.Arena.
func (a *arena) Bytes() int64 { return int64(len(a.bytes)) }

// Host implements runtime.Arena.
func (a *arena) Host() []byte { return a.bytes }

// Upload implements runtime.Arena.
func (a *arena) Upload(offset int64, src []byte) error {
	if err := a.contains(offset, len(src)); err != nil {
		return err
	}
	copy(a.bytes[offset:], src)
	return nil
}

// Download implements runtime.Arena.
func (a *arena) Download(dst []byte, offset int64) error {
	if err := a.contains(offset, len(dst)); err != nil {
		return err
	}
	copy(dst, a.bytes[offset:])
	return nil
}

func (a *arena) contains(offset int64, n int) error {
	if offset < 0 || offset+int64(n) > a.Bytes() {
		return ir.Bugf("bytes %d to %d of an arena of %d", offset, offset+int64(n), a.Bytes())
	}
	return nil
}

// tooLarge is the refusal of an arena that the address space has no room for.
func tooLarge(bytes int64) error { return fmt.Errorf("%d bytes exceed the address space", bytes) }
