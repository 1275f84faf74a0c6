package check

import (
	"strconv"

	"aitk/ir"
	"aitk/ir/plan"
)

// clock says, lane by lane, up to which event everything has surely finished.
type clock [plan.NumLanes]int32

// join takes the later of both.
func (k *clock) join(o clock) {
	for l := range k {
		k[l] = max(k[l], o[l])
	}
}

// replay is the symbolic execution of one program, once or, if it repeats, twice in a row.
type replay struct {
	*checker
	prog   int32
	n      int32 // instructions
	run    int32 // 1, 2
	now    [plan.NumLanes]clock
	clocks []clock // by event: what its lane knew when it finished
	mem    map[int32]*region
}

func (c *checker) replay(prog int32) {
	pr := &c.p.Programs[prog]
	runs := int32(1)
	if pr.Repeat {
		runs = 2
	}
	r := &replay{checker: c, prog: prog, n: int32(len(pr.Instrs)), mem: map[int32]*region{}}
	r.clocks = make([]clock, 1+int(runs)*len(pr.Instrs))
	for r.run = 1; r.run <= runs; r.run++ {
		r.start(pr)
		for pc := range pr.Instrs {
			r.step(int32(pc), pr.Instrs[pc])
			if c.full() {
				return
			}
		}
		r.finish(pr)
	}
}

// start names what lies in memory when the program begins: storage that is still true, parameters, inputs. Everything else is left
// over from before and must not be read.
func (r *replay) start(pr *plan.Program) {
	for i := range r.p.Params {
		x := &r.p.Params[i]
		if x.Storage != plan.NoBuffer && (isInit(pr) || !x.Mutable) {
			r.label(x.Storage, x.Type.Bytes())
		}
	}
	for _, e := range pr.Entry {
		r.label(e.Buffer, r.p.Params[e.Param].Type.Bytes())
	}
	for _, in := range pr.Inputs {
		reg, start, end := r.place(in.Ref)
		r.region(reg).set(segment{start: start, end: end, part: in.Ref.Offset, sym: r.p.Buffers[in.Ref.Buffer].Holds, run: r.run})
	}
}

func (r *replay) label(b plan.BufferID, bytes int64) {
	x := &r.p.Buffers[b]
	r.region(r.regionOf[b]).relabel(x.Offset, x.Offset+min(bytes, x.Bytes), x.Holds, r.run)
}

func (r *replay) region(i int32) *region {
	if r.mem[i] == nil {
		r.mem[i] = newRegion()
	}
	return r.mem[i]
}

// event numbers an instruction of the run under way.
func (r *replay) event(pc int32) int32 { return (r.run-1)*r.n + pc + 1 }

// step runs one instruction: reads first, then writes, then the lane's clock goes on.
func (r *replay) step(pc int32, i plan.Instr) {
	ev, lane := r.event(pc), plan.LaneOf(i)
	r.now[lane][lane] = ev
	switch x := i.(type) {
	case *plan.Wait:
		if on := r.waited(x); on > 0 && on < ev {
			r.now[lane].join(r.clocks[on])
		}
	case *plan.Exec:
		for _, q := range x.In {
			r.read(ev, lane, q, r.position(q))
		}
		if x.Scratch != plan.NoBuffer {
			b := &r.p.Buffers[x.Scratch]
			r.write(ev, lane, r.regionOf[x.Scratch], segment{start: b.Offset, end: b.Offset + b.Bytes, sym: plan.NoSymbol}, x.Scratch)
		}
		for _, q := range x.Out {
			r.writeRef(ev, lane, q, q.Offset)
		}
	case *plan.Copy:
		part := r.position(x.Src)
		r.read(ev, lane, x.Src, part)
		if d := &r.p.Buffers[x.Dst.Buffer]; d.Category != plan.CatStaging && part != x.Dst.Offset {
			r.add(Content, "%s: puts bytes from %d on of %s at %d of %s", r.at(r.prog, pc), part, r.sym(d.Holds), x.Dst.Offset, r.buf(x.Dst.Buffer))
			part = x.Dst.Offset
		}
		r.writeRef(ev, lane, x.Dst, part)
	}
	r.clocks[ev] = r.now[lane]
}

// waited is the event that a Wait waits for; 0 in the first run if it is one of the run before.
func (r *replay) waited(x *plan.Wait) int32 {
	run := r.run - x.Back
	if run < 1 {
		return 0
	}
	return (run-1)*r.n + x.On + 1
}

// position tells from which byte of its symbol on a reference should hold it. A staging buffer holds what was put there last.
func (r *replay) position(q plan.Ref) int64 {
	if r.p.Buffers[q.Buffer].Category == plan.CatStaging {
		if segs := r.region(r.regionOf[q.Buffer]).stretch(r.bytesOf(q)); len(segs) > 0 {
			return segs[0].part
		}
	}
	return q.Offset
}

func (r *replay) bytesOf(q plan.Ref) (start, end int64) {
	_, start, end = r.place(q)
	return start, end
}

// read checks that q holds its symbol from byte part on, seen by lane, and notes the reader.
func (r *replay) read(ev int32, lane plan.Lane, q plan.Ref, part int64) {
	reg, start, end := r.place(q)
	want := r.p.Buffers[q.Buffer].Holds
	segs := r.region(reg).stretch(start, end)
	told := false
	for i := range segs {
		s := &segs[i]
		if !r.holds(s, want, part+s.start-start) {
			if !told {
				r.add(Content, "%s: reads %s of %s, but %s", r.name(ev), r.sym(want), r.buf(q.Buffer), r.history(s, start))
			}
			told = true
			s.sym, s.part, s.run = want, part+s.start-start, r.run // the consequences are no news
		} else if r.early(lane, s.write) && !told {
			r.add(Race, "%s: reads %s of %s, which %s writes: lane %s does not wait for it", r.name(ev), r.sym(want), r.buf(q.Buffer), r.name(s.write), lane)
			told = true
		}
		s.read[lane] = ev
	}
}

// holds tells whether a segment holds a symbol from byte part on, made or loaded in this run.
func (r *replay) holds(s *segment, sym plan.SymbolID, part int64) bool {
	return s.sym == sym && s.part == part && s.run == r.run
}

// early tells whether an event might not have finished when lane is where it is now.
func (r *replay) early(lane plan.Lane, ev int32) bool {
	return ev > 0 && r.now[lane][r.laneOf(ev)] < ev
}

func (r *replay) laneOf(ev int32) plan.Lane {
	return plan.LaneOf(r.p.Programs[r.prog].Instrs[(ev-1)%r.n])
}

func (r *replay) writeRef(ev int32, lane plan.Lane, q plan.Ref, part int64) {
	reg, start, end := r.place(q)
	r.write(ev, lane, reg, segment{start: start, end: end, part: part, sym: r.p.Buffers[q.Buffer].Holds}, q.Buffer)
}

// write checks that nobody can still be reading or writing the bytes, and kills what they held.
func (r *replay) write(ev int32, lane plan.Lane, reg int32, s segment, b plan.BufferID) {
	told := false
	for _, old := range r.region(reg).stretch(s.start, s.end) {
		if told {
			break
		}
		for l, reader := range old.read {
			if r.early(lane, reader) && !told {
				r.add(Race, "%s: writes %s while %s on lane %s may still read %s there: lane %s does not wait for it",
					r.name(ev), r.buf(b), r.name(reader), plan.Lane(l), r.sym(old.sym), lane)
				told = true
			}
		}
		if r.early(lane, old.write) && !told {
			r.add(Race, "%s: writes %s while %s may still write %s there: lane %s does not wait for it",
				r.name(ev), r.buf(b), r.name(old.write), r.sym(old.sym), lane)
			told = true
		}
	}
	s.run, s.write = r.run, ev
	r.region(reg).set(s)
}

// finish checks, with every lane at rest, that parameters and results are where the program promises them.
func (r *replay) finish(pr *plan.Program) {
	for _, e := range pr.Exit {
		b := &r.p.Buffers[e.Buffer]
		if s, bad := r.missing(e.Buffer, 0, min(r.p.Params[e.Param].Type.Bytes(), b.Bytes)); bad {
			r.add(Content, "%s ends with %s in %s, which should hold %s, but %s", pr.Name, r.param(e.Param), r.buf(e.Buffer), r.sym(b.Holds), r.history(&s, b.Offset))
		}
	}
	if pr.Name == "save" {
		for i := range r.p.Params {
			x := &r.p.Params[i]
			if x.Storage == plan.NoBuffer || !x.Mutable || x.Role == ir.Accumulator {
				continue
			}
			if s, bad := r.missing(x.Storage, 0, min(x.Type.Bytes(), r.p.Buffers[x.Storage].Bytes)); bad {
				r.add(Content, "save ends without %s in its storage %s: %s", r.param(int32(i)), r.buf(x.Storage), r.history(&s, r.p.Buffers[x.Storage].Offset))
			}
		}
	}
	for _, x := range pr.Results {
		b := &r.p.Buffers[x.Ref.Buffer]
		if s, bad := r.missing(x.Ref.Buffer, x.Ref.Offset, x.Ref.Type.Bytes()); bad {
			r.add(Content, "%s ends with result %q in %s, which should hold %s, but %s", pr.Name, x.Name, r.buf(x.Ref.Buffer), r.sym(b.Holds), r.history(&s, b.Offset+x.Ref.Offset))
		}
	}
}

// missing finds a part of a buffer's stretch that does not hold its symbol.
func (r *replay) missing(b plan.BufferID, offset, bytes int64) (segment, bool) {
	x := &r.p.Buffers[b]
	start := x.Offset + offset
	for _, s := range r.region(r.regionOf[b]).stretch(start, start+bytes) {
		if !r.holds(&s, x.Holds, offset+s.start-start) {
			return s, true
		}
	}
	return segment{}, false
}

// name tells an event; in the second run it says to which run it belongs.
func (r *replay) name(ev int32) string {
	s := r.at(r.prog, (ev-1)%r.n)
	if r.run == 2 && (ev-1)/r.n == 0 {
		s += " of the run before"
	}
	return s
}

// history tells what a segment holds instead, and who put it there.
func (r *replay) history(s *segment, from int64) string {
	where := "byte " + itoa(s.start-from) + " "
	switch {
	case s.sym == plan.NoSymbol && s.write == 0:
		return where + "was never written"
	case s.sym == plan.NoSymbol:
		return where + "was scratch of " + r.name(s.write)
	case s.run != r.run:
		return where + "is left over from the run before: " + r.sym(s.sym) + r.by(s)
	}
	return where + "holds byte " + itoa(s.part) + " of " + r.sym(s.sym) + r.by(s)
}

func (r *replay) by(s *segment) string {
	if s.write == 0 {
		return ", there from the start"
	}
	return ", written by " + r.name(s.write)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
