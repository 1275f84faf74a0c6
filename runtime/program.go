package runtime

import (
	"context"
	"fmt"

	"aitk/ir"
	"aitk/ir/plan"
)

// Executable is a plan on a device: arenas allocated, kernels resolved, nothing left that could fail but data, files and the device itself.
// It is used by one goroutine.
type Executable struct {
	plan     *plan.Plan
	dev      Device
	arenas   [ir.NumSpaces]Arena
	programs []program
	high     [ir.NumSpaces]int64 // highest end of a Slice handed to the device so far
	moved    [plan.NumCopyKinds]int64
	poison   []byte // what freed bytes are filled with; nil: nothing
	locator  Locator
}

// at tells the device, if it wants to know, which instruction comes next.
func (e *Executable) at(program string, pc int) {
	if e.locator != nil {
		e.locator.At(program, int32(pc))
	}
}

// program is one instruction list, resolved.
type program struct {
	name            string
	actions         []action
	inputs, results []port
	high            [ir.NumSpaces]int64
	runs            uint64
}

type port struct {
	name string
	at   Slice
}

type actionKind uint8

const (
	actKernel actionKind = iota
	actCopy
	actWait
)

// action is one instruction, resolved. Slots come in pairs where a wait reaches into the run before: even runs record the first of the
// pair, odd runs the second.
type action struct {
	kind     actionKind
	lane     plan.Lane
	kernel   Kernel
	fused    Kernel // runs this Exec and those after it that are within; nil: none does
	within   bool   // part of a fused kernel: this Exec's own one runs in Replay alone
	dst, src Slice
	copyKind plan.CopyKind
	record   int32 // slot to record after the instruction, -1: nobody waits for it
	wait     int32 // actWait: slot waited for
	paired   bool  // record: the slot is the first of a pair; wait: it waits for a paired slot
	back     uint64
	exec     *plan.Exec
	out      []Slice // of exec, for Replay
	freed    []Slice // bytes that nobody owns after this instruction, where freed bytes are poisoned
}

// Run runs a program to its end: all lanes are empty when it returns. It allocates nothing. A cancelled context is noticed before the
// first instruction only, so that a program never stops half-way; a step is short. After an error the content of the arenas is undefined.
func (e *Executable) Run(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := e.program(name)
	if err != nil {
		return err
	}
	return e.run(p, nil)
}

// Visit sees an Exec that has just finished. read copies output i, as its Ref's type has it, into dst of exactly its size. An error
// ends the run and is returned as it is.
type Visit func(pc int, x *plan.Exec, read func(i int, dst []byte) error) error

// Replay runs a program like Run, but one instruction at a time, with all lanes drained before visit is called after each Exec. It
// finds the node that made the first NaN; the results are those of Run, bit for bit.
func (e *Executable) Replay(ctx context.Context, name string, visit Visit) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	p, err := e.program(name)
	if err != nil {
		return err
	}
	return e.run(p, visit)
}

// run is the dull loop.
func (e *Executable) run(p *program, visit Visit) error {
	parity := p.runs & 1
	for pc := range p.actions {
		s := &p.actions[pc]
		e.at(p.name, pc)
		if err := e.issue(p, s, parity, visit != nil); err != nil {
			return e.abandon(s, err)
		}
		if visit != nil || s.freed != nil {
			if err := e.inspect(pc, s, visit); err != nil {
				return err
			}
		}
	}
	p.runs++
	return e.dev.Sync(context.Background())
}

// issue hands one instruction to the device; apart keeps it from running others with it.
func (e *Executable) issue(p *program, s *action, parity uint64, apart bool) error {
	var err error
	switch s.kind {
	case actKernel:
		switch {
		case apart || !s.within:
			err = e.dev.Launch(s.lane, s.kernel)
		case s.fused != nil:
			err = e.dev.Launch(s.lane, s.fused)
		}
	case actCopy:
		e.moved[s.copyKind] += s.src.Bytes
		err = e.dev.Copy(s.lane, s.dst, s.src)
	case actWait:
		switch {
		case !s.paired:
			err = e.dev.Wait(s.lane, s.wait)
		case p.runs >= s.back: // in the first run there is nothing behind to wait for
			err = e.dev.Wait(s.lane, s.wait+int32((parity+s.back)&1))
		}
	}
	if err != nil || s.record < 0 {
		return err
	}
	slot := s.record
	if s.paired {
		slot += int32(parity)
	}
	return e.dev.Record(s.lane, slot)
}

// abandon drains the device after an instruction failed and names the node.
func (e *Executable) abandon(s *action, err error) error {
	_ = e.dev.Sync(context.Background()) // err came first and says more
	if s.exec == nil {
		return err
	}
	return &ir.Error{Origin: s.exec.Origin, Kind: ir.KindOf(err), Cause: fmt.Errorf("%s: %w", ir.OpName(s.exec.Op), err)}
}

// inspect drains the device, shows the instruction to visit and poisons what became free.
func (e *Executable) inspect(pc int, s *action, visit Visit) error {
	if err := e.dev.Sync(context.Background()); err != nil {
		return err
	}
	if visit != nil && s.exec != nil {
		read := func(i int, dst []byte) error {
			if i < 0 || i >= len(s.out) {
				return fmt.Errorf("%s has %d outputs", ir.OpName(s.exec.Op), len(s.out))
			}
			return download(dst, s.out[i])
		}
		if err := visit(pc, s.exec, read); err != nil {
			return err
		}
	}
	for _, at := range s.freed {
		if err := fill(at, e.poison); err != nil {
			return err
		}
	}
	return nil
}

// SetInput writes an input of a program: little-endian elements, exactly the size of its type.
func (e *Executable) SetInput(program, name string, raw []byte) error {
	p, err := e.program(program)
	if err != nil {
		return err
	}
	at, err := find(p.inputs, program, "input", name)
	if err != nil {
		return err
	}
	if int64(len(raw)) != at.Bytes {
		return fmt.Errorf("input %q of program %s has %d bytes, got %d", name, program, at.Bytes, len(raw))
	}
	e.hand(p, at)
	return at.Arena.Upload(at.Offset, raw)
}

// Result reads a result of a program that has just run into dst, which has exactly the size of its type.
func (e *Executable) Result(program, name string, dst []byte) error {
	p, err := e.program(program)
	if err != nil {
		return err
	}
	at, err := find(p.results, program, "result", name)
	if err != nil {
		return err
	}
	if int64(len(dst)) != at.Bytes {
		return fmt.Errorf("result %q of program %s has %d bytes, the room for it %d", name, program, at.Bytes, len(dst))
	}
	e.hand(p, at)
	return download(dst, at)
}

// Plan is what was loaded.
func (e *Executable) Plan() *plan.Plan { return e.plan }

// HighWaterBytes is measured: the highest offset + length of any Slice of the space that the device was handed since Load began,
// with those that Load resolved. The peak law says that it is the arena's size.
func (e *Executable) HighWaterBytes(space ir.Space) int64 { return e.high[space] }

// ProgramHighWaterBytes is HighWaterBytes of one program's Slices; 0 for a program that the plan does not have.
func (e *Executable) ProgramHighWaterBytes(name string, space ir.Space) int64 {
	for i := range e.programs {
		if e.programs[i].name == name {
			return e.programs[i].high[space]
		}
	}
	return 0
}

// MovedBytes is what copies of a kind have moved since Load.
func (e *Executable) MovedBytes(k plan.CopyKind) int64 { return e.moved[k] }

// Close frees the device.
func (e *Executable) Close() error { return e.dev.Close() }

// program finds a program without allocating.
func (e *Executable) program(name string) (*program, error) {
	for i := range e.programs {
		if e.programs[i].name == name {
			return &e.programs[i], nil
		}
	}
	return nil, fmt.Errorf("the plan has no program %q", name)
}

func find(ports []port, program, what, name string) (Slice, error) {
	for i := range ports {
		if ports[i].name == name {
			return ports[i].at, nil
		}
	}
	return Slice{}, fmt.Errorf("program %s has no %s %q", program, what, name)
}

// hand counts a Slice that the device is about to be given.
func (e *Executable) hand(p *program, s Slice) Slice {
	if s.Space != ir.Disk { // the disk space is a numbering of parameters, not memory
		end := s.Offset + s.Bytes
		p.high[s.Space] = max(p.high[s.Space], end)
		e.high[s.Space] = max(e.high[s.Space], end)
	}
	return s
}

func download(dst []byte, at Slice) error {
	if int64(len(dst)) != at.Bytes {
		return fmt.Errorf("%d bytes wanted of a value of %d", len(dst), at.Bytes)
	}
	return at.Arena.Download(dst, at.Offset)
}

// fill repeats pattern over a stretch of an arena.
func fill(at Slice, pattern []byte) error {
	for done := int64(0); done < at.Bytes; {
		n := min(at.Bytes-done, int64(len(pattern)))
		if err := at.Arena.Upload(at.Offset+done, pattern[:n]); err != nil {
			return err
		}
		done += n
	}
	return nil
}
