// Package calibrate measures the rates of a device that the planner's cost model is made of: arithmetic by element type, memory, launches,
// and copies in both directions, alone and together. It asks the device for kernels and copies as a plan would, grows each piece of work until it
// takes long enough for the clock, and takes the best of several runs, since other work on the machine only ever slows down.
//
// The package must not know any device, pass or file. It reads the clock, so its results differ from run to run: they become a profile file, and
// only the file's content enters plans.
package calibrate

import (
	"context"
	"fmt"
	"time"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
)

// Rates are what was measured, in FLOP/s (a multiply-add is two), bytes/s and seconds. Half is 0 where the device has no products of halves.
type Rates struct {
	F64, F32, Half         float64
	Memory                 float64 // bytes read plus written
	LaunchSeconds          float64 // of an op that does next to nothing
	D2H, H2D               float64 // a lane alone
	BothD2H, BothH2D       float64 // while the other lane copies as well
	CopySeconds            float64 // of a copy of next to nothing
	ArenaBytes             int64   // what was measured in
	ProductSide, MoveBytes int64   // largest f32 product and largest copy that were timed
}

// Options of Measure.
type Options struct {
	ArenaBytes int64         // room in device memory and as much in host memory; at least 1 MiB
	Least      time.Duration // a piece of work grows until it takes this long or fills the arena
}

const (
	alignBytes = 256
	runs       = 4   // timed, of which the best counts; one more warms up
	small      = 100 // pieces of next to nothing in one run
)

// Measure fills both arenas of a fresh device. The device stays the caller's to close.
func Measure(dev runtime.Device, opt Options) (*Rates, error) {
	if opt.ArenaBytes < 1<<20 {
		return nil, fmt.Errorf("%d bytes are too few to measure anything", opt.ArenaBytes)
	}
	m := &meter{dev: dev, least: opt.Least.Seconds(), bytes: opt.ArenaBytes / alignBytes * alignBytes}
	for _, space := range []ir.Space{ir.Device, ir.Pinned} {
		arena, err := dev.Alloc(space, m.bytes)
		if err != nil {
			return nil, fmt.Errorf("a %v arena of %s to measure in: %w", space, plan.FormatBytes(m.bytes), err)
		}
		m.arenas[space] = arena
		if err := zero(arena); err != nil {
			return nil, err
		}
	}
	r := &Rates{ArenaBytes: m.bytes}
	var err error
	for _, step := range []func(*Rates) error{m.launches, m.products, m.memory, m.copies} {
		if err = step(r); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// meter carries the device and its memory.
type meter struct {
	dev    runtime.Device
	arenas [ir.NumSpaces]runtime.Arena
	bytes  int64
	least  float64
}

// zero fills an arena, so that nothing is computed on what happens to lie there.
func zero(a runtime.Arena) error {
	block := make([]byte, min(a.Bytes(), 1<<22))
	for at := int64(0); at < a.Bytes(); at += int64(len(block)) {
		if err := a.Upload(at, block[:min(int64(len(block)), a.Bytes()-at)]); err != nil {
			return err
		}
	}
	return nil
}

// seconds is the least time that issue and the wait for it took, after one run that did not count.
func (m *meter) seconds(issue func() error) (float64, error) {
	best := 0.0
	for run := range runs + 1 {
		begin := time.Now()
		if err := issue(); err != nil {
			return 0, err
		}
		if err := m.dev.Sync(context.Background()); err != nil {
			return 0, err
		}
		if s := time.Since(begin).Seconds(); run > 0 && (best == 0 || s < best) {
			best = s
		}
	}
	return max(best, 1e-9), nil
}

// kernel asks for an op whose operands and results lie one behind the other. fits is false where the arena is too small.
func (m *meter) kernel(o ir.Op, in ...ir.Type) (k runtime.Kernel, fits bool, err error) {
	out, err := o.Infer(in)
	if err != nil {
		return nil, false, err
	}
	x := &plan.Exec{Op: o, Scratch: plan.NoBuffer}
	at := int64(0)
	take := func(bytes int64) runtime.Slice {
		s := runtime.Slice{Arena: m.arenas[ir.Device], Space: ir.Device, Offset: at, Bytes: bytes}
		at += (bytes + alignBytes - 1) / alignBytes * alignBytes
		return s
	}
	var ins, outs []runtime.Slice
	for i, t := range in {
		x.In, ins = append(x.In, plan.Ref{Buffer: plan.BufferID(i), Type: t}), append(ins, take(t.Bytes()))
	}
	for i, t := range out {
		x.Out, outs = append(x.Out, plan.Ref{Buffer: plan.BufferID(len(in) + i), Type: t}), append(outs, take(t.Bytes()))
	}
	scratch := take(ir.WorkOf(o, in, out).ScratchBytes)
	if at > m.bytes {
		return nil, false, nil
	}
	k, err = m.dev.Kernel(x, ins, outs, scratch)
	return k, true, err
}

// times runs a kernel n times in a row.
func (m *meter) times(k runtime.Kernel, n int) (float64, error) {
	s, err := m.seconds(func() error {
		for range n {
			if err := m.dev.Launch(plan.Compute, k); err != nil {
				return err
			}
		}
		return nil
	})
	return s / float64(n), err
}

// launches times additions of one element.
func (m *meter) launches(r *Rates) error {
	t := ir.T(ir.F32, 1)
	k, _, err := m.kernel(op.Add{}, t, t)
	if err != nil {
		return err
	}
	r.LaunchSeconds, err = m.times(k, small)
	return err
}

// products times square matrix products, larger and larger.
func (m *meter) products(r *Rates) error {
	for _, p := range []struct {
		d    ir.DType
		rate *float64
	}{{ir.F32, &r.F32}, {ir.F64, &r.F64}, {ir.BF16, &r.Half}} {
		for n := int64(64); ; n *= 2 {
			k, fits, err := m.kernel(op.MatMul{}, ir.T(p.d, n, n), ir.T(p.d, n, n))
			if err != nil && p.d == ir.BF16 {
				break // not every device has halves
			}
			if err != nil {
				return err
			}
			if !fits {
				break
			}
			s, err := m.times(k, 1)
			if err != nil {
				return err
			}
			*p.rate = 2 * float64(n) * float64(n) * float64(n) / s
			if p.d == ir.F32 {
				r.ProductSide = n
			}
			if s >= m.least {
				break
			}
		}
	}
	return nil
}

// memory times additions of long vectors.
func (m *meter) memory(r *Rates) error {
	for n := int64(1 << 14); ; n *= 2 {
		t := ir.T(ir.F32, n)
		k, fits, err := m.kernel(op.Add{}, t, t)
		if err != nil || !fits {
			return err
		}
		s, err := m.times(k, 1)
		if err != nil {
			return err
		}
		r.Memory = 3 * float64(t.Bytes()) / s
		if s >= m.least {
			return nil
		}
	}
}

// copies times each copy lane with copies of next to nothing, then with longer and longer ones, at last both lanes at once.
func (m *meter) copies(r *Rates) error {
	lanes := func(bytes int64, n int, list ...plan.Lane) (float64, error) {
		s, err := m.seconds(func() error {
			for range n {
				for _, l := range list {
					at := int64(0) // each lane has half of both arenas
					if l == plan.H2D {
						at = m.bytes / 2 / alignBytes * alignBytes
					}
					dst := runtime.Slice{Arena: m.arenas[ir.Pinned], Space: ir.Pinned, Offset: at, Bytes: bytes}
					src := runtime.Slice{Arena: m.arenas[ir.Device], Space: ir.Device, Offset: at, Bytes: bytes}
					if l == plan.H2D {
						dst, src = src, dst
					}
					if err := m.dev.Copy(l, dst, src); err != nil {
						return err
					}
				}
			}
			return nil
		})
		return s / float64(n), err
	}
	out, err := lanes(4, small, plan.D2H)
	if err != nil {
		return err
	}
	in, err := lanes(4, small, plan.H2D)
	if err != nil {
		return err
	}
	r.CopySeconds = max(out, in)
	for bytes := int64(1 << 16); bytes <= m.bytes/2; bytes *= 2 {
		if out, err = lanes(bytes, 1, plan.D2H); err != nil {
			return err
		}
		if in, err = lanes(bytes, 1, plan.H2D); err != nil {
			return err
		}
		r.D2H, r.H2D, r.MoveBytes = float64(bytes)/out, float64(bytes)/in, bytes
		if min(out, in) >= m.least {
			break
		}
	}
	// The lane that is done first waits for the other one, so the slower of the two gives the rate of both.
	both, err := lanes(r.MoveBytes, runs, plan.D2H, plan.H2D)
	if err != nil {
		return err
	}
	r.BothD2H, r.BothH2D = float64(r.MoveBytes)/both, float64(r.MoveBytes)/both
	return nil
}
