//go:build cuda && linux

package cuda

import (
	"context"
	"fmt"
	"testing"

	"gorgonia.org/cu"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/devicetest"
)

// TestOverlap times the three lanes by the device's own events: what is queued on one runs while the others do. On the fake driver the events are the
// simulated clock's.
func TestOverlap(t *testing.T) {
	ctl := fake(t)
	side, bytes, rounds := int64(2048), int64(64<<20), 4
	if ctl != nil { // it computes at the speed of a CPU
		side, bytes, rounds = 64, 1<<16, 3
	}
	dev, err := Open(Options{Flat: true})
	if err != nil {
		t.Fatal(err)
	}
	d := dev.(*Device)
	defer d.Close()
	matrix := ir.T(ir.F32, side, side)
	device, err := d.Alloc(ir.Device, 3*matrix.Bytes()+2*bytes)
	if err != nil {
		t.Fatal(err)
	}
	pinned, err := d.Alloc(ir.Pinned, 2*bytes)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range []runtime.Arena{device, pinned} {
		if err := a.Upload(0, make([]byte, a.Bytes())); err != nil {
			t.Fatal(err)
		}
	}
	var places []runtime.Slice
	for i := range int64(3) {
		places = append(places, runtime.Slice{Arena: device, Space: ir.Device, Offset: i * matrix.Bytes(), Bytes: matrix.Bytes()})
	}
	ref := plan.Ref{Type: matrix}
	x := &plan.Exec{Op: op.MatMul{}, In: []plan.Ref{ref, ref}, Out: []plan.Ref{ref}, Scratch: plan.NoBuffer, Picos: 3e6}
	k, err := d.Kernel(x, places[:2], places[2:], runtime.Slice{})
	if err != nil {
		t.Fatal(err)
	}
	far := 3 * matrix.Bytes()
	work := [streams]func() error{
		plan.Compute: func() error { return d.Launch(plan.Compute, k) },
		plan.D2H: func() error {
			return d.Copy(plan.D2H, runtime.Slice{Arena: pinned, Space: ir.Pinned, Bytes: bytes}, runtime.Slice{Arena: device, Space: ir.Device, Offset: far, Bytes: bytes})
		},
		plan.H2D: func() error {
			return d.Copy(plan.H2D, runtime.Slice{Arena: device, Space: ir.Device, Offset: far + bytes, Bytes: bytes}, runtime.Slice{Arena: pinned, Space: ir.Pinned, Offset: bytes, Bytes: bytes})
		},
	}
	event := func() cu.Event {
		e, err := cu.MakeEvent(cu.DefaultEvent)
		if err != nil {
			t.Fatal(err)
		}
		return e
	}
	// spans gives each lane's begin and end in milliseconds after a common origin.
	spans := func(lanes ...plan.Lane) (at [streams][2]float64) {
		var marks [streams][2]cu.Event
		var origin cu.Event
		err := d.with(func() error {
			origin = event()
			if err := origin.Record(d.streams[plan.Compute]); err != nil {
				return err
			}
			for _, l := range lanes {
				marks[l] = [2]cu.Event{event(), event()}
				if err := d.streams[l].Wait(origin, 0); err != nil {
					return err
				}
				if err := marks[l][0].Record(d.streams[l]); err != nil {
					return err
				}
			}
			return nil
		})
		for range rounds {
			for _, l := range lanes {
				if err == nil {
					err = work[l]()
				}
			}
		}
		d.issue()
		if err == nil {
			err = d.with(func() error {
				for _, l := range lanes {
					if err := marks[l][1].Record(d.streams[l]); err != nil {
						return err
					}
				}
				return nil
			})
		}
		if err == nil {
			err = d.Sync(context.Background())
		}
		if err == nil {
			err = d.with(func() error {
				for _, l := range lanes {
					for i := range 2 {
						ms, err := origin.Elapsed(marks[l][i])
						if err != nil {
							return err
						}
						at[l][i] = ms
					}
				}
				return nil
			})
		}
		if err != nil {
			t.Fatal(err)
		}
		return at
	}
	spans(plan.Compute, plan.D2H, plan.H2D) // warms up
	var alone [streams]float64
	sum := 0.0
	for l := range plan.Lane(streams) {
		at := spans(l)
		alone[l] = at[l][1] - at[l][0]
		sum += alone[l]
	}
	at := spans(plan.Compute, plan.D2H, plan.H2D)
	end := max(at[0][1], at[1][1], at[2][1])
	text := fmt.Sprintf("alone %.3f ms compute, %.3f out, %.3f in; together %v, %.3f in all", alone[plan.Compute], alone[plan.D2H], alone[plan.H2D], at, end)
	t.Log(text)
	if end > 0.85*sum {
		t.Errorf("the lanes do not overlap: %s", text)
	}
	clean(t, ctl)
}

// TestGraphsAndTheRunBefore: a program that waits for its run before has two sets of events, and is one graph from its third run on all the same. The waits
// themselves are none: Sync has ended the run before.
func TestGraphsAndTheRunBefore(t *testing.T) {
	ctl := fake(t)
	const n = 300
	e := load(t, devicetest.Shuttle("cuda", n), Options{})
	defer e.Close()
	for run := range 7 {
		x := ir.NewTensor(ir.T(ir.F32, n))
		for i := range x.F {
			x.F[i] = float64((i + run) % 5)
		}
		if err := e.SetInput("step", "x", x.Encode()); err != nil {
			t.Fatal(err)
		}
		if err := e.Run(context.Background(), "step"); err != nil {
			t.Fatal(err)
		}
		raw := make([]byte, 4*n)
		if err := e.Result("step", "sum", raw); err != nil {
			t.Fatal(err)
		}
		got, _ := ir.DecodeTensor(x.Type, raw)
		for i, v := range got.F {
			if v != 12*13*x.F[i] {
				t.Fatalf("run %d: element %d is %v, want %v", run, i, v, 12*13*x.F[i])
			}
		}
	}
	if ctl != nil && ctl.Get("graphLaunches") != 5 {
		t.Errorf("%d of 7 runs were graphs", ctl.Get("graphLaunches"))
	}
	clean(t, ctl)
}
