package runtime

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/ir/plan/check"
)

// Options of Load.
type Options struct {
	Storage   Storage // where parameters come from and go to; nil is an error if a program loads or saves
	AnyDevice bool    // run a plan that was made for another device: the null device runs them all
	Apart     bool    // tests: every Exec has its own kernel, also where the device is a Fuser
	Poison    bool    // tests: memory starts as NaN, and bytes become NaN again when the plan says that they are free
}

// Load makes a plan executable on a device. It checks the plan, allocates one arena per space, exactly as large as the plan says, and
// resolves every kernel with its addresses, so that Run can fail only for data, files and the device's own breakdown. All missing kernels
// are listed at once. The device belongs to the Executable afterwards; if Load fails the caller still has to close it.
func Load(p *plan.Plan, dev Device, opt Options) (*Executable, error) {
	if err := check.Check(p); err != nil {
		return nil, err
	}
	if got, want := dev.Name(), p.Profile.Device; got != want && !opt.AnyDevice {
		return nil, &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("the plan was made for device %q, not for %q", want, got),
			Remedy: "compile it again for this device"}
	}
	l := &loader{e: &Executable{plan: p, dev: dev}, opt: opt}
	l.e.locator, _ = dev.(Locator)
	if err := l.arenas(); err != nil {
		return nil, err
	}
	l.places()
	l.e.programs = make([]program, len(p.Programs))
	for i := range p.Programs {
		l.program(&l.e.programs[i], &p.Programs[i], int32(i))
	}
	if err := l.problems(); err != nil {
		return nil, err
	}
	if err := dev.Events(int(l.slots)); err != nil {
		return nil, err
	}
	return l.e, nil
}

// loader carries what Load works out.
type loader struct {
	e       *Executable
	opt     Options
	home    []Slice // by buffer: where it lies
	slots   int32   // event slots given so far
	errs    []error
	missing []string // distinct complaints of Device.Kernel
	broken  []*ir.Error
}

// arenas allocates memory. The disk space has none: its buffers are parameters.
func (l *loader) arenas() error {
	if l.opt.Poison {
		l.e.poison = bytes.Repeat([]byte{0xff}, 1<<16) // NaN in every float type
	}
	for _, a := range l.e.plan.Arenas {
		if a.Space == ir.Disk {
			continue
		}
		arena, err := l.e.dev.Alloc(a.Space, a.Bytes)
		if err != nil {
			return fmt.Errorf("allocating the %v arena of %d bytes%s: %w", a.Space, a.Bytes, l.fullest(a), err)
		}
		l.e.arenas[a.Space] = arena
		if l.opt.Poison {
			if err := fill(Slice{Arena: arena, Space: a.Space, Bytes: a.Bytes}, l.e.poison); err != nil {
				return err
			}
		}
	}
	return nil
}

// fullest says which instruction first needs the last byte of an arena.
func (l *loader) fullest(a plan.Arena) string {
	for _, b := range l.e.plan.Buffers {
		if b.Type.Space != a.Space || b.Offset+b.Bytes != a.Bytes || len(b.Live) == 0 {
			continue
		}
		at := b.Live[0]
		prog := &l.e.plan.Programs[at.Program]
		if int(at.Start) >= len(prog.Instrs) {
			continue
		}
		text := fmt.Sprintf(", full at program %s, instruction %d", prog.Name, at.Start)
		if x, ok := prog.Instrs[at.Start].(*plan.Exec); ok {
			text += ", " + ir.OpName(x.Op)
			if x.Origin.Node != "" {
				text += fmt.Sprintf(" (node %q)", x.Origin.Node)
			}
		}
		return text
	}
	return ""
}

// places finds every buffer's memory.
func (l *loader) places() {
	p := l.e.plan
	l.home = make([]Slice, len(p.Buffers))
	for i, b := range p.Buffers {
		l.home[i] = Slice{Arena: l.e.arenas[b.Type.Space], Space: b.Type.Space, Offset: b.Offset, Bytes: b.Bytes}
		if b.Type.Space == ir.Disk {
			l.home[i] = Slice{Space: ir.Disk, Bytes: b.Bytes}
		}
	}
	for i := range p.Params {
		if id := p.Params[i].Storage; id != plan.NoBuffer && l.opt.Storage != nil {
			l.home[id].Arena = &paramArena{storage: l.opt.Storage, param: int32(i), name: p.Params[i].Name, bytes: l.home[id].Bytes}
		}
	}
}

// at is the memory of a Ref.
func (l *loader) at(r plan.Ref) (Slice, error) {
	s := l.home[r.Buffer]
	n := r.Type.Bytes()
	if r.Offset < 0 || r.Offset+n > s.Bytes {
		return s, fmt.Errorf("bytes %d to %d do not lie in buffer %q of %d bytes", r.Offset, r.Offset+n, l.e.plan.Buffers[r.Buffer].Name, s.Bytes)
	}
	s.Offset += r.Offset
	s.Bytes = n
	if s.Arena == nil {
		if s.Space == ir.Disk {
			return s, fmt.Errorf("buffer %q is in the disk space, and no storage was given", l.e.plan.Buffers[r.Buffer].Name)
		}
		return s, fmt.Errorf("buffer %q lies in the %v space, which has no arena", l.e.plan.Buffers[r.Buffer].Name, s.Space)
	}
	return s, nil
}

// program resolves one program.
func (l *loader) program(out *program, in *plan.Program, index int32) {
	out.name = in.Name
	out.actions = make([]action, len(in.Instrs))
	record, paired := l.events(in)
	for pc, instr := range in.Instrs {
		s := action{lane: plan.LaneOf(instr), record: record[pc], paired: paired[pc]}
		var err error
		switch x := instr.(type) {
		case *plan.Exec:
			l.e.at(in.Name, pc)
			err = l.exec(out, &s, x)
		case *plan.Copy:
			err = l.copy(out, &s, x)
		case *plan.Wait:
			s.kind, s.back = actWait, uint64(x.Back)
			if 0 <= x.On && int(x.On) < len(record) { // else events has complained
				s.wait, s.paired = record[x.On], paired[x.On]
			}
		}
		if err != nil {
			l.errs = append(l.errs, fmt.Errorf("program %s, instruction %d: %w", in.Name, pc, err))
		}
		out.actions[pc] = s
	}
	out.inputs = l.ports(in.Name, in.Inputs)
	out.results = l.ports(in.Name, in.Results)
	if l.opt.Poison {
		l.frees(out, in, index)
	}
	if !l.opt.Apart {
		l.fuse(out, in, index)
	}
}

// events gives a slot to each instruction that somebody waits for, and two where a wait reaches into the run before: its mark must outlive
// the one that this run makes.
func (l *loader) events(in *plan.Program) (record []int32, paired []bool) {
	record = slices.Repeat([]int32{-1}, len(in.Instrs))
	paired = make([]bool, len(in.Instrs))
	waited := make([]bool, len(in.Instrs))
	for pc, instr := range in.Instrs {
		w, ok := instr.(*plan.Wait)
		if !ok {
			continue
		}
		if w.On < 0 || int(w.On) >= len(in.Instrs) || w.Back < 0 || w.Back > 1 || w.Back == 0 && int(w.On) >= pc {
			l.errs = append(l.errs, fmt.Errorf("program %s, instruction %d waits for instruction %d of %d runs before, which can never have finished",
				in.Name, pc, w.On, w.Back))
			continue
		}
		if _, isWait := in.Instrs[w.On].(*plan.Wait); isWait {
			l.errs = append(l.errs, fmt.Errorf("program %s, instruction %d waits for instruction %d, which is a wait itself", in.Name, pc, w.On))
			continue
		}
		waited[w.On] = true
		paired[w.On] = paired[w.On] || w.Back == 1
	}
	for pc, w := range waited {
		if !w {
			continue
		}
		record[pc] = l.slots
		l.slots++
		if paired[pc] {
			l.slots++
		}
	}
	return record, paired
}

// exec resolves a kernel.
func (l *loader) exec(p *program, s *action, x *plan.Exec) error {
	s.kind, s.exec = actKernel, x
	in, err := l.refs(p, x.In)
	if err != nil {
		return err
	}
	if s.out, err = l.refs(p, x.Out); err != nil {
		return err
	}
	var scratch Slice
	if x.Scratch != plan.NoBuffer {
		scratch = l.e.hand(p, l.home[x.Scratch])
	}
	s.kernel, err = l.e.dev.Kernel(x, in, s.out, scratch)
	known, ok := errors.AsType[*ir.Error](err)
	switch {
	case err == nil:
	case !ok:
		l.missing = append(l.missing, err.Error())
	case !slices.Contains(l.broken, known): // one cause may stand in the way of many kernels
		l.broken, l.errs = append(l.broken, known), append(l.errs, err)
	}
	return nil
}

func (l *loader) refs(p *program, refs []plan.Ref) ([]Slice, error) {
	out := make([]Slice, len(refs))
	for i, r := range refs {
		s, err := l.at(r)
		if err != nil {
			return nil, err
		}
		if s.Space == ir.Disk {
			return nil, fmt.Errorf("a kernel cannot reach buffer %q in the disk space", l.e.plan.Buffers[r.Buffer].Name)
		}
		out[i] = l.e.hand(p, s)
	}
	return out, nil
}

// copy resolves a copy.
func (l *loader) copy(p *program, s *action, x *plan.Copy) error {
	s.kind, s.copyKind = actCopy, x.Kind
	var err error
	if s.src, err = l.at(x.Src); err != nil {
		return err
	}
	if s.dst, err = l.at(x.Dst); err != nil {
		return err
	}
	if s.src.Bytes != s.dst.Bytes {
		return fmt.Errorf("a copy of %d bytes into %d", s.src.Bytes, s.dst.Bytes)
	}
	if s.src.Space == ir.Disk && s.dst.Space == ir.Disk {
		return errors.New("a copy from disk to disk")
	}
	l.e.hand(p, s.src)
	l.e.hand(p, s.dst)
	return nil
}

func (l *loader) ports(program string, in []plan.Port) []port {
	out := make([]port, len(in))
	for i, x := range in {
		at, err := l.at(x.Ref)
		if err == nil && at.Space == ir.Disk {
			err = errors.New("inputs and results do not lie in the disk space")
		}
		if err != nil {
			l.errs = append(l.errs, fmt.Errorf("program %s, %q: %w", program, x.Name, err))
		}
		out[i] = port{x.Name, at}
	}
	return out
}

// frees notes after each instruction the buffers whose life ends there. An Exec at the end of an operand's life that still reads it writes
// over it: those bytes are not free.
func (l *loader) frees(out *program, in *plan.Program, index int32) {
	for id, b := range l.e.plan.Buffers {
		if b.Type.Space == ir.Disk || b.Bytes == 0 {
			continue
		}
		for _, span := range b.Live {
			if span.Program != index || span.End <= 0 || int(span.End) >= len(in.Instrs) || reads(in.Instrs[span.End], plan.BufferID(id)) {
				continue
			}
			s := &out.actions[span.End-1]
			s.freed = append(s.freed, l.home[id])
		}
	}
}

func reads(i plan.Instr, b plan.BufferID) bool {
	x, ok := i.(*plan.Exec)
	return ok && slices.ContainsFunc(x.In, func(r plan.Ref) bool { return r.Buffer == b })
}

// problems lists everything that stands against running the plan.
func (l *loader) problems() error {
	if len(l.missing) > 0 {
		slices.Sort(l.missing)
		l.missing = slices.Compact(l.missing)
		for _, m := range l.missing {
			l.errs = append(l.errs, &ir.Error{Kind: ir.Unsupported, Cause: errors.New(m)})
		}
	}
	return errors.Join(l.errs...)
}
