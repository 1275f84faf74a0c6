package check

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/plan"
)

// guard runs what calls into the vocabulary: an op from a damaged file may have attributes that its methods never expected, and a
// checker must not fall over what it is there to find.
func guard(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the op fails on its operands: %v", r)
		}
	}()
	return f()
}

func aliasesOf(op ir.Op) (pairs []ir.AliasPair) {
	if guard(func() error { pairs = ir.AliasesOf(op); return nil }) != nil {
		return nil
	}
	return pairs
}

func isStateful(op ir.Op) (yes bool) {
	if guard(func() error { yes = ir.IsStateful(op); return nil }) != nil {
		return true
	}
	return yes
}

// typesOf runs Op.Infer on the operands of every Exec and compares, and checks that copies move equal stretches.
func (c *checker) typesOf(prog int32) {
	for pc, i := range c.p.Programs[prog].Instrs {
		at := func() string { return c.at(prog, int32(pc)) }
		switch x := i.(type) {
		case *plan.Exec:
			in := make([]ir.Type, len(x.In))
			for k, r := range x.In {
				in[k] = r.Type
				in[k].Space = ir.Device // an op is the same op on the host lane
				c.elements(at, r)
			}
			var out []ir.Type
			if err := guard(func() (err error) { out, err = x.Op.Infer(in); return err }); err != nil {
				c.add(Types, "%s: %v", at(), err)
				continue
			}
			if len(out) != len(x.Out) {
				c.add(Types, "%s: writes %d results, the op has %d", at(), len(x.Out), len(out))
				continue
			}
			for k, r := range x.Out {
				c.elements(at, r)
				if r.Type.DType != out[k].DType || !r.Type.Shape.Equal(out[k].Shape) {
					c.add(Types, "%s: output %d goes to %s as %v, the op makes %v", at(), k, c.buf(r.Buffer), r.Type, out[k])
				}
			}
		case *plan.Copy:
			if x.Src.Type.Bytes() != x.Dst.Type.Bytes() {
				c.add(Types, "%s: copies %d bytes of %s over %d bytes of %s", at(),
					x.Src.Type.Bytes(), c.buf(x.Src.Buffer), x.Dst.Type.Bytes(), c.buf(x.Dst.Buffer))
			}
		}
	}
}

// elements checks that an op's operand has the element type that its buffer stores: no view changes it.
func (c *checker) elements(at func() string, r plan.Ref) {
	b := &c.p.Buffers[r.Buffer]
	if b.Category != plan.CatStaging && b.Type.DType != r.Type.DType {
		c.add(Types, "%s: takes %s, which stores %v, for %v", at(), c.buf(r.Buffer), b.Type, r.Type)
	}
}

// accesses checks lanes, spans, in-place pairs and scratch of every instruction, without regard to order.
func (c *checker) accesses(prog int32) {
	pr := &c.p.Programs[prog]
	for i := range pr.Instrs {
		pc := int32(i)
		switch x := pr.Instrs[i].(type) {
		case *plan.Exec:
			c.execLane(prog, pc, x)
			for k, r := range x.In {
				if c.within(r.Buffer, prog, pc) {
					continue
				}
				if why := c.handover(prog, pc, x, k); why != "" {
					c.add(Spans, "%s: reads %s, which is not live there%s", c.at(prog, pc), c.buf(r.Buffer), why)
				}
			}
			for k, r := range x.Out {
				if !c.within(r.Buffer, prog, pc) {
					c.add(Spans, "%s: writes %s, which is not live there", c.at(prog, pc), c.buf(r.Buffer))
				}
				for _, q := range x.Out[:k] {
					if c.share(r, q) {
						c.add(Spans, "%s: two outputs share bytes of %s and %s", c.at(prog, pc), c.buf(q.Buffer), c.buf(r.Buffer))
					}
				}
			}
			if x.Scratch != plan.NoBuffer {
				if !c.within(x.Scratch, prog, pc) {
					c.add(Spans, "%s: scratch %s is not live there", c.at(prog, pc), c.buf(x.Scratch))
				}
				if h := c.p.Buffers[x.Scratch].Holds; h != plan.NoSymbol {
					c.add(Spans, "%s: scratch %s holds %s", c.at(prog, pc), c.buf(x.Scratch), c.sym(h))
				}
			}
		case *plan.Copy:
			c.copyLane(prog, pc, x)
			for k, r := range [2]plan.Ref{x.Src, x.Dst} {
				if !c.within(r.Buffer, prog, pc) {
					c.add(Spans, "%s: %s %s, which is not live there", c.at(prog, pc), [2]string{"reads", "writes"}[k], c.buf(r.Buffer))
				}
			}
			if c.share(x.Src, x.Dst) {
				c.add(Spans, "%s: source and destination share bytes of %s", c.at(prog, pc), c.buf(x.Src.Buffer))
			}
		case *plan.Wait:
			on := pr.Instrs[x.On]
			switch {
			case x.Back == 0 && x.On >= pc:
				c.add(Waiting, "%s: waits for a later instruction, %s, and so may never end", c.at(prog, pc), c.at(prog, x.On))
			case x.Back == 1 && !pr.Repeat:
				c.add(Waiting, "%s: waits for the run before, but %s does not repeat", c.at(prog, pc), pr.Name)
			case plan.LaneOf(on) == x.Lane:
				c.add(Waiting, "%s: waits for its own lane, which ran %s before anyway", c.at(prog, pc), c.at(prog, x.On))
			}
		}
		if c.full() {
			return
		}
	}
}

// within tells whether a buffer may be touched at pc. Storage regions of their own are there all the time.
func (c *checker) within(b plan.BufferID, prog, pc int32) bool {
	return c.regionOf[b] >= int32(ir.NumSpaces) || liveAt(&c.p.Buffers[b], prog, pc)
}

// place is the stretch of a region that a reference names.
func (c *checker) place(r plan.Ref) (region int32, start, end int64) {
	start = c.p.Buffers[r.Buffer].Offset + r.Offset
	return c.regionOf[r.Buffer], start, start + r.Type.Bytes()
}

func (c *checker) share(a, b plan.Ref) bool {
	ra, sa, ea := c.place(a)
	rb, sb, eb := c.place(b)
	return ra == rb && max(sa, sb) < min(ea, eb)
}

func (c *checker) same(a, b plan.Ref) bool {
	ra, sa, ea := c.place(a)
	rb, sb, eb := c.place(b)
	return ra == rb && sa == sb && ea == eb
}

// handover tells why operand k, whose buffer is not live at pc, is not handed over to an output in place; "" if it is: its span ends
// here, an output's begins here on the same bytes, and the op allows that pair (or another operand is that very stretch).
func (c *checker) handover(prog, pc int32, x *plan.Exec, k int) string {
	r := x.In[k]
	b := &c.p.Buffers[r.Buffer]
	if !endsAt(b, prog, pc) && !(pc == 0 && c.enters(prog, r.Buffer)) {
		return c.where(b, prog)
	}
	for j, o := range x.Out {
		ob := &c.p.Buffers[o.Buffer]
		if !startsAt(ob, prog, pc) || !c.share(r, o) {
			continue
		}
		if !c.same(r, o) || ob.Offset != b.Offset {
			return fmt.Sprintf("; output %d, %s, takes over other bytes", j, c.buf(o.Buffer))
		}
		for _, a := range aliasesOf(x.Op) {
			if !a.View && a.Out == j && a.In >= 0 && a.In < len(x.In) && c.same(x.In[a.In], o) {
				return ""
			}
		}
		return fmt.Sprintf("; %s does not allow output %d, %s, over operand %d", ir.OpName(x.Op), j, c.buf(o.Buffer), k)
	}
	return "; its span ends here and no output takes its bytes over"
}

// enters tells whether a buffer holds a parameter when the program starts. Handed over by the first instruction, it is never live.
func (c *checker) enters(prog int32, b plan.BufferID) bool {
	for _, e := range c.p.Programs[prog].Entry {
		if e.Buffer == b {
			return true
		}
	}
	return false
}

// where lists a buffer's spans in a program, for messages.
func (c *checker) where(b *plan.Buffer, prog int32) string {
	s := "; live at"
	n := 0
	for _, l := range b.Live {
		if l.Program == prog && n < 4 {
			s += fmt.Sprintf(" %d..%d", l.Start, l.End)
			n++
		}
	}
	if n == 0 {
		return fmt.Sprintf("; never live in %s", c.p.Programs[prog].Name)
	}
	return s
}

// execLane checks that an op runs where its operands are.
func (c *checker) execLane(prog, pc int32, x *plan.Exec) {
	var ok func(ir.Space) bool
	switch x.Lane {
	case plan.Compute:
		ok = func(s ir.Space) bool { return s == ir.Device }
	case plan.Host:
		ok = func(s ir.Space) bool { return s == ir.Pinned || s == ir.Pageable }
	default:
		c.add(Malformed, "%s: an op on a lane that only copies", c.at(prog, pc))
		return
	}
	for _, list := range [2][]plan.Ref{x.In, x.Out} {
		for _, r := range list {
			if !ok(c.p.Buffers[r.Buffer].Type.Space) {
				c.add(Malformed, "%s: lane %s cannot reach %s", c.at(prog, pc), x.Lane, c.buf(r.Buffer))
			}
		}
	}
	if x.Scratch != plan.NoBuffer && !ok(c.p.Buffers[x.Scratch].Type.Space) {
		c.add(Malformed, "%s: lane %s cannot reach %s", c.at(prog, pc), x.Lane, c.buf(x.Scratch))
	}
}

// copyLane checks that a copy stands on a lane that moves bytes that way.
func (c *checker) copyLane(prog, pc int32, x *plan.Copy) {
	src, dst := c.p.Buffers[x.Src.Buffer].Type.Space, c.p.Buffers[x.Dst.Buffer].Type.Space
	host := func(s ir.Space) bool { return s == ir.Pinned || s == ir.Pageable }
	var ok bool
	switch x.Lane {
	case plan.H2D:
		ok = host(src) && dst == ir.Device
	case plan.D2H:
		ok = src == ir.Device && host(dst)
	case plan.Read:
		ok = src == ir.Disk && dst != ir.Disk
	case plan.Write:
		ok = src != ir.Disk && dst == ir.Disk
	case plan.Host:
		ok = host(src) && host(dst)
	case plan.Compute:
		ok = src == ir.Device && dst == ir.Device
	}
	if !ok {
		c.add(Malformed, "%s: lane %s does not copy from %s to %s", c.at(prog, pc), x.Lane, c.buf(x.Src.Buffer), c.buf(x.Dst.Buffer))
	}
}
