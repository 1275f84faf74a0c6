package cpu

import (
	"context"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/devicetest"
)

// TestDelays runs the conformance suite's lanes with copies that take random time, on arenas that the race detector sees.
func TestDelays(t *testing.T) {
	devicetest.Lanes(t, devicetest.Options{Open: func() (runtime.Device, error) {
		var mu sync.Mutex
		r := rand.New(rand.NewPCG(3, 4))
		return Open(Options{Threads: 2, HeapArenas: true, CopyDelay: func(plan.Lane) {
			mu.Lock()
			d := time.Duration(r.IntN(200)) * time.Microsecond
			mu.Unlock()
			time.Sleep(d)
		}}), nil
	}})
}

// slices of two arenas of n bytes.
func twoArenas(t *testing.T, d *Device, n int64) (a, b runtime.Slice) {
	t.Helper()
	x, err := d.Alloc(ir.Device, n)
	if err != nil {
		t.Fatal(err)
	}
	y, err := d.Alloc(ir.Pinned, n)
	if err != nil {
		t.Fatal(err)
	}
	return runtime.Slice{Arena: x, Space: ir.Device, Bytes: n}, runtime.Slice{Arena: y, Space: ir.Pinned, Bytes: n}
}

// TestCopyOverlapsCompute holds a copy back until compute has gone on, which a lane that copies at once could not stand.
func TestCopyOverlapsCompute(t *testing.T) {
	passed := make(chan bool)
	d := openTest(t, Options{Threads: 1, CopyDelay: func(plan.Lane) { <-passed }})
	if err := d.Events(1); err != nil {
		t.Fatal(err)
	}
	dev, host := twoArenas(t, d, 3*chunkBytes+5)
	for i := range dev.Arena.Host() {
		dev.Arena.Host()[i] = byte(i * 7)
	}
	if err := d.Copy(plan.D2H, host, dev); err != nil {
		t.Fatal(err)
	}
	if err := d.Record(plan.D2H, 0); err != nil {
		t.Fatal(err)
	}
	b := &builder{dev: d}
	ran := false
	if err := d.Launch(plan.Compute, b.serial(func(*worker) error { ran = true; return nil })); err != nil || !ran {
		t.Fatal("compute did not run beside the copy", err)
	}
	close(passed)
	if err := d.Wait(plan.Compute, 0); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(dev.Arena.Host(), host.Arena.Host()) {
		t.Error("the copy is not complete after the wait")
	}
}

// TestQueueFull queues more copies than a lane holds, behind one that is held back.
func TestQueueFull(t *testing.T) {
	hold := make(chan bool)
	d := openTest(t, Options{Threads: 1, CopyDelay: func(plan.Lane) { <-hold }})
	dev, host := twoArenas(t, d, 64)
	time.AfterFunc(5*time.Millisecond, func() { close(hold) })
	for range 3 * queueTasks {
		if err := d.Copy(plan.H2D, dev, host); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Sync(context.Background()); err != nil {
		t.Fatal(err)
	}
	if got := d.lanes[plan.H2D].done.Load(); got != 3*queueTasks {
		t.Errorf("%d copies ran, want %d", got, 3*queueTasks)
	}
}

// TestWorkersDoNotShow: results do not depend on the number of workers, bit for bit.
func TestWorkersDoNotShow(t *testing.T) {
	conv := op.Conv{Strides: []int64{1, 1}, Dilations: []int64{1, 1}, Pads: []int64{1, 1, 1, 1}, Group: 1}
	for _, c := range []struct {
		o  ir.Op
		in []ir.Type
	}{
		{op.MatMul{}, []ir.Type{ir.T(ir.F64, 300, 301), ir.T(ir.F64, 301, 130)}},
		{conv, []ir.Type{ir.T(ir.F64, 4, 16, 28, 28), ir.T(ir.F64, 32, 16, 3, 3)}},
		{op.ConvGradWeight{Strides: conv.Strides, Dilations: conv.Dilations, Pads: conv.Pads, Group: 1, Shape: ir.Shape{32, 16, 3, 3}},
			[]ir.Type{ir.T(ir.F64, 4, 16, 28, 28), ir.T(ir.F64, 4, 32, 28, 28)}},
		{op.Relu{}, []ir.Type{ir.T(ir.F64, 100003)}},
	} {
		var first ir.Tensor
		for _, threads := range []int{1, 2, 5} {
			s := newSingle(t, openTest(t, Options{Threads: threads, HeapArenas: true}), c.o, c.in...)
			s.set(t, 9)
			for range 3 {
				if err := s.kernel.Run(); err != nil {
					t.Fatal(err)
				}
			}
			got := s.result(t, 0)
			if first.F == nil {
				first = got
			}
			if !slices.Equal(first.F, got.F) {
				t.Errorf("%s: %d workers give other bits", ir.OpName(c.o), threads)
			}
		}
	}
}

// TestPoolStress runs tiny jobs back to back, with pauses long enough to park, and counts tiles.
func TestPoolStress(t *testing.T) {
	d := openTest(t, Options{Threads: 4})
	b := &builder{dev: d}
	counts := make([]int, 9)
	k := b.tiles(len(counts), func(_ *worker, tile int) error { counts[tile]++; return nil })
	const runs = 3000
	for i := range runs {
		if err := k.Run(); err != nil {
			t.Fatal(err)
		}
		if i%500 == 0 {
			time.Sleep(2 * spinFor)
		}
	}
	for tile, n := range counts {
		if n != runs {
			t.Errorf("tile %d ran %d times in %d runs", tile, n, runs)
		}
	}
}

// TestFirstErrorWins: the error of the lowest tile, whoever finishes first.
func TestFirstErrorWins(t *testing.T) {
	d := openTest(t, Options{Threads: 3})
	b := &builder{dev: d}
	k := b.tiles(20, func(_ *worker, tile int) error {
		if tile >= 3 {
			return ir.Errorf(ir.Failed, ir.Origin{}, "tile %d", tile)
		}
		time.Sleep(10 * time.Microsecond)
		return nil
	})
	for range 50 {
		if err := k.Run(); err == nil || err.Error() != "tile 3" {
			t.Fatalf("got %v, want tile 3", err)
		}
	}
}

func BenchmarkPool(b *testing.B) {
	d := openTest(b, Options{})
	k := (&builder{dev: d}).tiles(2, func(*worker, int) error { return nil })
	for b.Loop() {
		if err := k.Run(); err != nil {
			b.Fatal(err)
		}
	}
}
