//go:build cuda && linux

package cuda

import (
	"context"
	"errors"
	"fmt"
	gort "runtime"
	"unsafe"

	"gorgonia.org/cu"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/cuda/drv"
)

// streams are the lanes that a CUDA stream carries.
const streams = 3

// Device is one GPU with a context of its own.
type Device struct {
	opt     Options
	dev     cu.Device
	ctx     cu.CUContext
	arch    int // compute capability: 80 for 8.0
	cores   int // streaming multiprocessors
	streams [streams]cu.Stream
	fork    cu.Event // captures: where the copy lanes leave the compute lane
	joins   [streams]cu.Event

	device, pinned *arena
	tail           *arena // pinned memory of a plan that has no pinned arena: the faults' page alone
	faults         faults
	modules        map[string]cu.Module
	functions      map[string]cu.Function
	globals        map[string][]stretch // by module, where the driver checks accesses
	failed         map[string]error     // modules that the driver did not compile
	copies         map[copied]*drv.Hint // what a driver that checks is told of a copy

	events []event
	marks  []cu.Event               // as many as there are slots; a run marks each slot once
	marked int32                    // in this run
	hosts  [plan.NumLanes]*hostLane // started when first used
	batch  batch
	place  place // of what comes next
	err    error // first failure since the last Sync
	closed bool
}

var _ runtime.Device = (*Device)(nil)

// event is a slot of the plan: marked in a stream or in a goroutine lane. Slots that two runs mark in turn get the same of the driver's events, in the order
// of marking, so that all runs of a program are one list.
type event struct {
	mark  int32 // stream lanes: number of the driver's event
	lane  plan.Lane
	tasks uint64 // goroutine lane: how many tasks
	epoch uint64 // run in which it was marked; waits for an earlier run's are over by then
}

// Open starts a device. The error says why there is none.
func Open(opt Options) (runtime.Device, error) {
	d, err := open(opt)
	if err != nil {
		return nil, &ir.Error{Kind: ir.Failed, Cause: fmt.Errorf("no cuda device to run on: %w", err), Remedy: "`aitk doctor` says what was found; --device cpu runs without a GPU"}
	}
	return d, nil
}

func open(opt Options) (*Device, error) {
	if err := drv.Status(); err != nil {
		return nil, err
	}
	n, err := cu.NumDevices()
	if err != nil {
		return nil, fmt.Errorf("counting devices: %w", err)
	}
	if opt.Ordinal < 0 || opt.Ordinal >= n {
		return nil, fmt.Errorf("device %d of the %d that the driver has", opt.Ordinal, n)
	}
	d := &Device{opt: opt, modules: map[string]cu.Module{}, functions: map[string]cu.Function{}, globals: map[string][]stretch{},
		failed: map[string]error{}, copies: map[copied]*drv.Hint{}}
	if d.dev, err = cu.GetDevice(opt.Ordinal); err != nil {
		return nil, err
	}
	major, err := d.dev.Attribute(cu.ComputeCapabilityMajor)
	if err != nil {
		return nil, err
	}
	minor, err := d.dev.Attribute(cu.ComputeCapabilityMinor)
	if err != nil {
		return nil, err
	}
	d.arch = 10*major + minor
	if d.arch < 75 {
		return nil, fmt.Errorf("device %d has compute capability %d.%d, and the kernels need 7.5", opt.Ordinal, major, minor)
	}
	if d.cores, err = d.dev.Attribute(cu.MultiprocessorCount); err != nil {
		return nil, err
	}
	gort.LockOSThread()
	defer gort.UnlockOSThread()
	if d.ctx, err = d.dev.MakeContext(cu.SchedAuto); err != nil {
		return nil, fmt.Errorf("making a context: %w", err)
	}
	for i := range d.streams {
		if d.streams[i], err = cu.MakeStream(cu.NonBlocking); err == nil {
			d.joins[i], err = cu.MakeEvent(cu.DisableTiming)
		}
		if err != nil {
			return nil, errors.Join(fmt.Errorf("making a stream: %w", err), d.ctx.Destroy())
		}
	}
	if d.fork, err = cu.MakeEvent(cu.DisableTiming); err != nil {
		return nil, errors.Join(err, d.ctx.Destroy())
	}
	d.batch.graphs = !opt.Flat
	return d, nil
}

// with runs f on a thread that has the context. What comes back says what to do about it.
func (d *Device) with(f func() error) error {
	gort.LockOSThread()
	defer gort.UnlockOSThread()
	if err := cu.SetCurrentContext(d.ctx); err != nil {
		return advised(fmt.Errorf("making the context current: %w", err))
	}
	return advised(f())
}

// place is an instruction of the plan.
type place struct {
	program string
	pc      int32
}

func (p place) String() string { return fmt.Sprintf("program %s, instruction %d", p.program, p.pc) }

// At implements runtime.Locator.
func (d *Device) At(program string, pc int32) { d.place = place{program, pc} }

// Name implements runtime.Device.
func (d *Device) Name() string { return "cuda" }

// Kernel implements runtime.Device.
func (d *Device) Kernel(x *plan.Exec, in, out []runtime.Slice, scratch runtime.Slice) (runtime.Kernel, error) {
	b := &builder{dev: d, x: x, in: in, out: out, scratch: scratch, k: &kernel{dev: d, x: x, at: d.place}}
	if x.Lane != plan.Compute {
		return nil, fmt.Errorf("%s stands on the %v lane, and the cuda device computes on its compute lane alone", ir.OpName(x.Op), x.Lane)
	}
	for _, family := range families() {
		k, err := family(b)
		if err != nil {
			return nil, err
		}
		if k != nil {
			k.note(in, out, scratch)
			return k, nil
		}
	}
	return nil, fmt.Errorf("%s has no cuda kernel", ir.OpName(x.Op))
}

// Launch implements runtime.Device.
func (d *Device) Launch(l plan.Lane, k runtime.Kernel) error {
	kk, ok := k.(*kernel)
	if !ok || l != plan.Compute {
		return ir.Bugf("a %T on the %v lane", k, l)
	}
	for i := range kk.launches {
		d.push(command{kind: commandLaunch, lane: l, at: d.place, launch: &kk.launches[i], kernel: kk})
	}
	return nil
}

// Copy implements runtime.Device.
func (d *Device) Copy(l plan.Lane, dst, src runtime.Slice) error {
	if l >= streams {
		return d.hostCopy(l, dst, src)
	}
	if src.Bytes == 0 {
		return nil
	}
	c := command{lane: l, at: d.place, bytes: src.Bytes, hint: d.copyHint(dst, src)}
	switch {
	case dst.Space == ir.Device && src.Space == ir.Device:
		c.kind, c.to, c.from = commandDtoD, addressOf(dst), addressOf(src)
	case dst.Space == ir.Device && src.Space == ir.Pinned:
		c.kind, c.to, c.host = commandHtoD, addressOf(dst), hostOf(src)
	case dst.Space == ir.Pinned && src.Space == ir.Device:
		c.kind, c.host, c.from = commandDtoH, hostOf(dst), addressOf(src)
	default:
		return fmt.Errorf("the %v lane of the cuda device cannot copy from %v to %v memory", l, src.Space, dst.Space)
	}
	d.push(c)
	return nil
}

// Events implements runtime.Device.
func (d *Device) Events(n int) error {
	d.events, d.marks = make([]event, n), make([]cu.Event, n)
	return d.with(func() error {
		for i := range d.marks {
			var err error
			if d.marks[i], err = cu.MakeEvent(cu.DisableTiming); err != nil {
				return fmt.Errorf("making event %d of %d: %w", i, n, err)
			}
		}
		return nil
	})
}

// Record implements runtime.Device.
func (d *Device) Record(l plan.Lane, slot int32) error {
	e := &d.events[slot]
	e.lane, e.epoch = l, d.batch.epoch
	if l >= streams {
		e.tasks = d.host(l).issued
		return nil
	}
	if int(d.marked) == len(d.marks) {
		return ir.Bugf("%v: a run marks more than the plan's %d events", d.place, len(d.marks))
	}
	e.mark = d.marked
	d.marked++
	d.push(command{kind: commandRecord, lane: l, at: d.place, mark: e.mark})
	return nil
}

// Wait implements runtime.Device. What an earlier run marked has finished: Sync came in between.
func (d *Device) Wait(l plan.Lane, slot int32) error {
	e := &d.events[slot]
	switch {
	case e.epoch != d.batch.epoch || e.lane == l:
	case l >= streams && e.lane >= streams:
		d.host(l).put(task{kind: taskAwait, on: d.host(e.lane), tasks: e.tasks})
	case l >= streams:
		d.flush() // the event must be recorded before a goroutine waits for it
		d.host(l).put(task{kind: taskEvent, event: d.marks[e.mark]})
	case e.lane >= streams:
		d.flush()
		d.host(e.lane).await(e.tasks)
	default:
		d.push(command{kind: commandWait, lane: l, at: d.place, mark: e.mark})
	}
	return nil
}

// Sync implements runtime.Device. Neither a kernel nor a copy can be called back, so the context does not shorten the wait.
func (d *Device) Sync(context.Context) error {
	d.finish()
	err := d.err
	d.err = nil
	for _, h := range d.hosts {
		if h == nil {
			continue
		}
		h.await(h.issued)
		if e := h.takeError(); err == nil {
			err = e
		}
	}
	if e := d.faults.take(); err == nil {
		err = e
	}
	return err
}

// Close implements runtime.Device.
func (d *Device) Close() error {
	if d.closed {
		return nil
	}
	d.closed = true
	err := d.Sync(context.Background())
	for _, h := range d.hosts {
		if h != nil {
			h.close()
		}
	}
	e := d.with(func() error {
		var err error
		keep := func(e error) {
			if err == nil {
				err = e
			}
		}
		keep(d.batch.close())
		for _, a := range []*arena{d.device, d.pinned, d.tail} {
			if a != nil {
				keep(a.free())
			}
		}
		for i := range d.marks {
			keep(cu.DestroyEvent(&d.marks[i]))
		}
		for i := range d.streams {
			keep(d.streams[i].Destroy())
			keep(cu.DestroyEvent(&d.joins[i]))
		}
		keep(cu.DestroyEvent(&d.fork))
		return err
	})
	if err == nil {
		err = e
	}
	if e := d.ctx.Destroy(); err == nil && e != nil { // takes the modules along
		err = advised(e)
	}
	if err != nil {
		return fmt.Errorf("closing the device: %w", err)
	}
	return nil
}

// addressOf is where the device sees a slice, hostOf where the host does.
func addressOf(s runtime.Slice) uintptr { return s.Arena.(*arena).device + uintptr(s.Offset) }

func hostOf(s runtime.Slice) unsafe.Pointer { return unsafe.Pointer(&s.Arena.(*arena).host[s.Offset]) }
