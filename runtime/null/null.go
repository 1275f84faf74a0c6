// Package null is a device that moves nothing and computes nothing: it counts what it is asked to do and refuses what no device could do. It runs
// any plan of any size, so plans of models that fit no machine at hand can still be loaded and stepped through.
//
// It must not know any op. Invariant: whatever it accepts, every address handed to it lay inside the arena that it belongs to, every wait was
// for an event that had been recorded, and the figures in Stats are counted from calls, not taken from a plan.
package null

import (
	"context"
	"fmt"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
)

// Stats are the calls since Open.
type Stats struct {
	Lanes     [plan.NumLanes]LaneStats
	HighWater [ir.NumSpaces]int64 // highest end of a Slice, in bytes
	Arenas    [ir.NumSpaces]int64 // bytes allocated
	Kernels   int64               // resolved in Load
	Syncs     int64
}

// LaneStats are the calls on one lane.
type LaneStats struct {
	Launches, Copies, Waits, Records int64
	CopiedBytes                      int64
}

// Device implements runtime.Device. Load needs runtime.Options.AnyDevice for plans of other devices.
type Device struct {
	stats    Stats
	arenas   [ir.NumSpaces]*arena
	recorded []bool // by event slot
}

// Open returns a device without arenas.
func Open() *Device { return &Device{} }

// Stats are the counts so far.
func (d *Device) Stats() Stats { return d.stats }

// Name implements runtime.Device.
func (d *Device) Name() string { return "null" }

// Alloc implements runtime.Device: it notes the size.
func (d *Device) Alloc(space ir.Space, bytes int64) (runtime.Arena, error) {
	switch {
	case space >= ir.NumSpaces || space == ir.Disk:
		return nil, fmt.Errorf("no arena can lie in space %v", space)
	case bytes < 0:
		return nil, fmt.Errorf("an arena of %d bytes", bytes)
	case d.arenas[space] != nil:
		return nil, fmt.Errorf("a second arena in space %v", space)
	}
	d.arenas[space] = &arena{d: d, space: space, bytes: bytes}
	d.stats.Arenas[space] = bytes
	return d.arenas[space], nil
}

// Kernel implements runtime.Device: every op has a kernel, if its operands lie where they may.
func (d *Device) Kernel(x *plan.Exec, in, out []runtime.Slice, scratch runtime.Slice) (runtime.Kernel, error) {
	for _, list := range [2][]runtime.Slice{in, out} {
		for _, s := range list {
			if err := d.inside(s); err != nil {
				return nil, fmt.Errorf("%s: %w", ir.OpName(x.Op), err)
			}
		}
	}
	if scratch.Arena != nil {
		if err := d.inside(scratch); err != nil {
			return nil, fmt.Errorf("%s: scratch: %w", ir.OpName(x.Op), err)
		}
	}
	d.stats.Kernels++
	return kernel{}, nil
}

// inside checks that a slice lies in this device's arena of its space, and counts it.
func (d *Device) inside(s runtime.Slice) error {
	a, ok := s.Arena.(*arena)
	switch {
	case !ok || a.d != d || a.space != s.Space:
		return fmt.Errorf("bytes %d to %d are of no %v arena of this device", s.Offset, s.Offset+s.Bytes, s.Space)
	case s.Offset < 0 || s.Bytes < 0 || s.Offset+s.Bytes > a.bytes:
		return fmt.Errorf("bytes %d to %d lie outside the %v arena of %d", s.Offset, s.Offset+s.Bytes, s.Space, a.bytes)
	}
	d.stats.HighWater[s.Space] = max(d.stats.HighWater[s.Space], s.Offset+s.Bytes)
	return nil
}

// Launch implements runtime.Device.
func (d *Device) Launch(l plan.Lane, k runtime.Kernel) error {
	if _, ok := k.(kernel); !ok {
		return fmt.Errorf("a kernel of another device: %T", k)
	}
	d.stats.Lanes[l].Launches++
	return nil
}

// Copy implements runtime.Device. Bytes from the disk space are not read.
func (d *Device) Copy(l plan.Lane, dst, src runtime.Slice) error {
	if dst.Bytes != src.Bytes {
		return fmt.Errorf("a copy of %d bytes into %d", src.Bytes, dst.Bytes)
	}
	for _, s := range [2]runtime.Slice{dst, src} {
		if s.Space == ir.Disk {
			continue
		}
		if err := d.inside(s); err != nil {
			return err
		}
	}
	d.stats.Lanes[l].Copies++
	d.stats.Lanes[l].CopiedBytes += src.Bytes
	return nil
}

// Events implements runtime.Device.
func (d *Device) Events(n int) error {
	d.recorded = make([]bool, n)
	return nil
}

// Record implements runtime.Device.
func (d *Device) Record(l plan.Lane, slot int32) error {
	if slot < 0 || int(slot) >= len(d.recorded) {
		return fmt.Errorf("event slot %d of %d", slot, len(d.recorded))
	}
	d.recorded[slot] = true
	d.stats.Lanes[l].Records++
	return nil
}

// Wait implements runtime.Device.
func (d *Device) Wait(l plan.Lane, slot int32) error {
	if slot < 0 || int(slot) >= len(d.recorded) || !d.recorded[slot] {
		return fmt.Errorf("lane %v waits for event slot %d, which nobody recorded", l, slot)
	}
	d.stats.Lanes[l].Waits++
	return nil
}

// Sync implements runtime.Device.
func (d *Device) Sync(context.Context) error {
	d.stats.Syncs++
	return nil
}

// Close implements runtime.Device.
func (d *Device) Close() error { return nil }

type kernel struct{}

func (kernel) Run() error { return nil }

// arena is a size.
type arena struct {
	d     *Device
	space ir.Space
	bytes int64
}

func (a *arena) Bytes() int64 { return a.bytes }
func (a *arena) Host() []byte { return nil }

func (a *arena) Upload(offset int64, src []byte) error {
	return a.d.inside(runtime.Slice{Arena: a, Space: a.space, Offset: offset, Bytes: int64(len(src))})
}

// Download gives zeros.
func (a *arena) Download(dst []byte, offset int64) error {
	clear(dst)
	return a.d.inside(runtime.Slice{Arena: a, Space: a.space, Offset: offset, Bytes: int64(len(dst))})
}
