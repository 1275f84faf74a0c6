//go:build cuda && linux

package cuda

import (
	"encoding/binary"

	"aitk/ir"
)

// Each kernel that may meet bad data has a record of two numbers in pinned memory: the bad value, and the number of its element plus one. A
// thread writes both in one store of 16 bytes; which of several failing threads is heard does not matter. The host reads when all have finished.
const (
	faultBytes  = 1 << 16
	recordBytes = 16
	maxFaults   = faultBytes / recordBytes
)

// faults are the records of a device.
type faults struct {
	page    []byte
	device  uintptr
	kernels []func(value, element int64) error
}

// faultRecord gives a kernel a record; say makes the error. Kernels beyond maxFaults share the last record.
func (b *builder) faultRecord(say func(value, element int64) error) (uint64, error) {
	if err := b.dev.faultPage(); err != nil {
		return 0, err
	}
	f := &b.dev.faults
	if len(f.kernels) < maxFaults {
		f.kernels = append(f.kernels, say)
	}
	at := f.device + uintptr(len(f.kernels)-1)*recordBytes
	b.k.own = append(b.k.own, stretch{at, recordBytes, "fault record"})
	return uint64(at), nil
}

// take returns the first record that was written and clears all.
func (f *faults) take() (err error) {
	for i, say := range f.kernels {
		r := f.page[i*recordBytes:][:recordBytes]
		element := binary.LittleEndian.Uint64(r[8:])
		if element == 0 {
			continue
		}
		if err == nil {
			err = say(int64(binary.LittleEndian.Uint64(r)), int64(element)-1)
		}
		clear(r)
	}
	return err
}

// outside is the error of an index that selects nothing.
func (b *builder) outside(index int64, extent, axis int64) error {
	return ir.Errorf(ir.Failed, b.k.x.Origin, "%s: index %d is outside extent %d of axis %d", ir.OpName(b.k.x.Op), index, extent, axis)
}
