//go:build cuda && linux

package cuda

import (
	"fmt"
	"unsafe"

	"gorgonia.org/cu"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime/cuda/drv"
)

type commandKind uint8

const (
	commandLaunch commandKind = iota
	commandHtoD
	commandDtoH
	commandDtoD
	commandRecord
	commandWait
)

// command is one entry for a stream. Equal commands do the same: lists of them are compared.
type command struct {
	kind     commandKind
	lane     plan.Lane
	at       place
	mark     int32 // number of an event
	launch   *launch
	kernel   *kernel
	to, from uintptr
	host     unsafe.Pointer // pinned memory
	bytes    int64
	hint     *drv.Hint // copies: for a driver that checks
}

// issueEvery is how many commands wait before they are issued together: enough that the switch of context costs nothing, few enough that the
// device starts at once.
const issueEvery = 16

// batch is what was queued since the last Sync.
type batch struct {
	list   []command
	issued int           // of list
	epoch  uint64        // number of the run: counts Syncs
	mixed  bool          // a goroutine lane took part, or something was issued early: not for a graph
	graphs bool          // graphs are wanted
	known  []*graph      // lists that were seen, newest last
	match  *graph        // whose list begins like this one; nothing was issued yet then
	live   [streams]bool // has commands that were issued and not waited for
}

// push queues a command.
func (d *Device) push(c command) {
	b := &d.batch
	b.list = append(b.list, c)
	n := len(b.list)
	if n == 1 && b.graphs {
		b.match = b.find()
	}
	if b.match != nil {
		if n <= len(b.match.list) && b.match.list[n-1] == c {
			return
		}
		if b.match = b.find(); b.match != nil {
			return
		}
		// another run after all: what was held back is issued
	}
	if n-b.issued >= issueEvery {
		d.issue()
	}
}

// flush issues what is queued: somebody outside the streams is about to wait for it.
func (d *Device) flush() {
	d.batch.mixed = true
	d.batch.match = nil
	d.issue()
}

// issue hands the rest of the list to the driver. After a failure the rest is dropped: the run is lost.
func (d *Device) issue() {
	b := &d.batch
	if d.err == nil && b.issued < len(b.list) {
		next := b.list[b.issued].at
		begun := false
		d.err = d.with(func() error {
			begun = true
			for ; b.issued < len(b.list); b.issued++ {
				if err := d.do(&b.list[b.issued], false); err != nil {
					return err
				}
			}
			return nil
		})
		if d.err != nil && !begun {
			d.err = fmt.Errorf("%v: %w", next, d.err)
		}
	}
	b.issued = len(b.list)
}

// do issues one command. Inside a capture nothing may be annotated.
func (d *Device) do(c *command, capture bool) error {
	s := d.streams[c.lane]
	if !capture {
		d.batch.live[c.lane] = true
	}
	switch c.kind {
	case commandLaunch:
		if err := announce(c.kernel.hint(c.launch), s); err != nil {
			return c.kernel.failed(err)
		}
		l := c.launch
		err := l.fn.Launch(l.grid[0], l.grid[1], l.grid[2], l.block, 1, 1, l.shared, s, l.params)
		if err != nil {
			return c.kernel.failed(fmt.Errorf("launching %s over %v blocks of %d threads: %w", l.name, l.grid, l.block, err))
		}
		return nil
	case commandHtoD, commandDtoH, commandDtoD:
		if err := announce(c.hint, s); err != nil {
			return c.failed(err)
		}
	}
	switch c.kind {
	case commandHtoD:
		return c.failed(cu.MemcpyHtoDAsync(cu.DevicePtr(c.to), c.host, c.bytes, s))
	case commandDtoH:
		return c.failed(cu.MemcpyDtoHAsync(c.host, cu.DevicePtr(c.from), c.bytes, s))
	case commandDtoD:
		return c.failed(cu.MemcpyDtoDAsync(cu.DevicePtr(c.to), cu.DevicePtr(c.from), c.bytes, s))
	case commandRecord:
		return c.failed(d.marks[c.mark].Record(s))
	case commandWait:
		return c.failed(s.Wait(d.marks[c.mark], 0))
	}
	panic(ir.Bugf("command %d", c.kind))
}

func (c *command) failed(err error) error {
	if err == nil {
		return nil
	}
	what := [...]string{commandHtoD: "copying to the device", commandDtoH: "copying to the host", commandDtoD: "copying on the device",
		commandRecord: "recording an event", commandWait: "waiting for an event"}[c.kind]
	return &ir.Error{Kind: ir.Failed, Cause: fmt.Errorf("%v: %s on the %v lane (%d bytes): %w", c.at, what, c.lane, c.bytes, err), Remedy: remedy(err)}
}

// finish issues what is left and waits until the streams are empty.
func (d *Device) finish() {
	b := &d.batch
	if b.match != nil && len(b.match.list) == len(b.list) && d.err == nil {
		d.err = d.with(func() error {
			if err := b.match.exec.Launch(d.streams[plan.Compute]); err != nil {
				return d.lost(plan.Compute, fmt.Errorf("launching the program as a graph: %w", err))
			}
			return nil
		})
		b.live[plan.Compute] = true
		b.issued = len(b.list)
	}
	d.issue()
	any := false
	for _, l := range b.live {
		any = any || l
	}
	if any {
		begun := false
		err := d.with(func() error {
			begun = true
			return d.drain()
		})
		if err != nil && !begun {
			err = d.lost(plan.Compute, err)
		}
		if d.err == nil {
			d.err = err
		}
	}
	if b.match == nil && d.err == nil {
		d.err = d.remember()
	}
	b.list, b.issued, b.match, b.mixed = b.list[:0], 0, nil, false
	b.epoch++
	d.marked = 0
}

// drain waits for the streams that have work.
func (d *Device) drain() error {
	var first error
	for l, busy := range d.batch.live {
		if !busy {
			continue
		}
		if err := d.streams[l].Synchronize(); err != nil && first == nil {
			first = d.lost(plan.Lane(l), err)
		}
		d.batch.live[l] = false
	}
	return first
}

// lost is the error of a stream that failed after its commands were issued: the driver does not say which one it was.
func (d *Device) lost(l plan.Lane, err error) error {
	var first, last fmt.Stringer
	for i := range d.batch.list {
		c := &d.batch.list[i]
		last = c.at
		if c.kernel != nil {
			last = c.kernel
		}
		if first == nil {
			first = last
		}
	}
	running := "nothing of a plan"
	switch {
	case first != nil && first == last:
		running = first.String()
	case first != nil:
		running = fmt.Sprintf("something between %v and %v", first, last)
	}
	return &ir.Error{Kind: ir.Failed, Cause: fmt.Errorf("the device failed on the %v lane, running %s: %w", l, running, err), Remedy: remedy(err)}
}

// transfer moves bytes between an arena and the host, with every lane drained first.
func (d *Device) transfer(a *arena, offset int64, raw []byte, up bool) error {
	if len(d.batch.list) > 0 {
		d.finish()
		if err := d.err; err != nil {
			return err // stays for Sync too
		}
	}
	if a.host != nil {
		if up {
			copy(a.host[offset:], raw)
		} else {
			copy(raw, a.host[offset:])
		}
		return nil
	}
	at, p, n := cu.DevicePtr(a.device+uintptr(offset)), unsafe.Pointer(unsafe.SliceData(raw)), int64(len(raw))
	err := d.with(func() error {
		if up {
			return cu.MemcpyHtoD(at, p, n)
		}
		return cu.MemcpyDtoH(p, at, n)
	})
	if err != nil {
		return fmt.Errorf("moving %d bytes between the host and byte %d of the device's arena: %w", n, offset, err)
	}
	return nil
}
