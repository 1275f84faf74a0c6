package cpu

import (
	"context"
	"fmt"
	gort "runtime"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
)

// Options of Open. The zero value is the default.
type Options struct {
	Threads    int             // workers, the caller among them; 0: GOMAXPROCS
	HeapArenas bool            // tests: arenas on the Go heap, where the race detector sees them
	CopyDelay  func(plan.Lane) // tests: called on the lane before each copy
}

// Device is a processor. Results do not depend on Options.
type Device struct {
	opt    Options
	pool   *pool
	lanes  [plan.NumLanes]*lane // nil for the compute lane, which is the caller
	arenas []*arena
	events []event
}

// event is what Record marked: so many tasks of a lane.
type event struct {
	lane  plan.Lane
	tasks uint64
}

// Open starts the workers and the lanes.
func Open(opt Options) *Device {
	threads := opt.Threads
	if threads <= 0 {
		threads = gort.GOMAXPROCS(0)
	}
	d := &Device{opt: opt, pool: newPool(threads)}
	for l := range d.lanes {
		if l := plan.Lane(l); l != plan.Compute {
			d.lanes[l] = newLane(l, opt.CopyDelay)
		}
	}
	return d
}

// Name implements runtime.Device.
func (d *Device) Name() string { return "cpu" }

// Alloc implements runtime.Device. The bytes read as zero.
func (d *Device) Alloc(space ir.Space, bytes int64) (runtime.Arena, error) {
	if have := memoryBytes(); bytes < 0 || have > 0 && bytes > have {
		return nil, &ir.Error{Kind: ir.DoesNotFit, Cause: fmt.Errorf("an arena of %d bytes does not fit into the %d bytes of this machine's memory", bytes, have)}
	}
	a, err := newArena(bytes, d.opt.HeapArenas)
	if err != nil {
		return nil, fmt.Errorf("the %v arena: %w", space, err)
	}
	d.arenas = append(d.arenas, a)
	return a, nil
}

// Kernel implements runtime.Device.
func (d *Device) Kernel(x *plan.Exec, in, out []runtime.Slice, scratch runtime.Slice) (runtime.Kernel, error) {
	b := &builder{dev: d, x: x, in: in, out: out, scratch: scratch}
	for _, family := range families() {
		k, err := family(b)
		if k != nil || err != nil {
			return k, err
		}
	}
	return nil, fmt.Errorf("%s has no cpu kernel", ir.OpName(x.Op))
}

// Launch implements runtime.Device: on the compute lane the kernel has finished when it returns, and its error is returned at once.
func (d *Device) Launch(l plan.Lane, k runtime.Kernel) error {
	if l == plan.Compute {
		return k.Run()
	}
	d.lanes[l].put(task{kind: taskKernel, kernel: k})
	return nil
}

// Copy implements runtime.Device.
func (d *Device) Copy(l plan.Lane, dst, src runtime.Slice) error {
	if l == plan.Compute {
		return move(dst, src)
	}
	d.lanes[l].put(task{kind: taskCopy, dst: dst, src: src})
	return nil
}

// Events implements runtime.Device.
func (d *Device) Events(n int) error {
	d.events = make([]event, n)
	return nil
}

// Record implements runtime.Device. It is free: an event is a position in the lane's queue.
func (d *Device) Record(l plan.Lane, slot int32) error {
	e := event{lane: l}
	if l != plan.Compute {
		e.tasks = d.lanes[l].issued
	}
	d.events[slot] = e
	return nil
}

// Wait implements runtime.Device. What the compute lane recorded has finished by now.
func (d *Device) Wait(l plan.Lane, slot int32) error {
	e := d.events[slot]
	switch {
	case e.lane == plan.Compute || e.lane == l:
	case l == plan.Compute:
		d.lanes[e.lane].await(e.tasks)
	default:
		d.lanes[l].put(task{kind: taskWait, on: d.lanes[e.lane], tasks: e.tasks})
	}
	return nil
}

// Sync implements runtime.Device. A copy cannot be called back, so the context does not shorten the wait.
func (d *Device) Sync(context.Context) error {
	var first error
	for _, l := range d.lanes {
		if l == nil {
			continue
		}
		l.await(l.issued)
		if err := l.takeError(); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// Close implements runtime.Device.
func (d *Device) Close() error {
	err := d.Sync(context.Background())
	for _, l := range d.lanes {
		if l != nil {
			l.close()
		}
	}
	d.pool.close()
	for _, a := range d.arenas {
		if e := a.free(); err == nil {
			err = e
		}
	}
	d.arenas = nil
	return err
}
