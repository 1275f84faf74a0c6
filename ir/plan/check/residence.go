package check

import (
	"slices"

	"aitk/ir"
	"aitk/ir/plan"
)

// parameters finds the symbol that names each parameter's content between programs, and checks the residencies, inputs and results of
// every program by themselves: types, spans, frozen content.
func (c *checker) parameters() {
	c.content = make([]plan.SymbolID, len(c.p.Params))
	c.owner = make([]int32, len(c.p.Symbols))
	for i := range c.content {
		c.content[i] = plan.NoSymbol
	}
	for i := range c.owner {
		c.owner[i] = -1
	}
	for i := range c.p.Params {
		if s := c.p.Params[i].Storage; s != plan.NoBuffer {
			if c.p.Buffers[s].Holds == plan.NoSymbol {
				c.add(Residence, "storage %s of %s holds no symbol", c.buf(s), c.param(int32(i)))
				continue
			}
			c.claim(int32(i), s, "storage")
		}
	}
	for i := range c.p.Programs {
		for _, e := range c.p.Programs[i].Entry {
			c.claim(e.Param, e.Buffer, "entry of "+c.p.Programs[i].Name)
		}
	}
	for i := range c.p.Programs {
		pr := &c.p.Programs[i]
		c.ends(int32(i), pr)
		c.oneContent(pr)
		for _, e := range pr.Exit {
			x, b := &c.p.Params[e.Param], &c.p.Buffers[e.Buffer]
			c.sized(e, "exit of "+pr.Name)
			c.becomes(int32(i), pr, e)
			if x.Mutable || b.Holds == c.content[e.Param] {
				continue
			}
			for _, in := range pr.Entry {
				if in.Param == e.Param {
					c.add(Identity, "%s ends with %s of %s as content of frozen %s, which was %s", pr.Name, c.sym(b.Holds), c.buf(e.Buffer), c.param(e.Param), c.sym(c.content[e.Param]))
				}
			}
		}
	}
}

// oneContent checks that a parameter that a program leaves in several buffers has the same content in all of them: a copy on the host of what the program
// replaced on the device is stale.
func (c *checker) oneContent(pr *plan.Program) {
	first := map[int32]plan.BufferID{}
	for _, e := range pr.Exit {
		a, ok := first[e.Param]
		if !ok {
			first[e.Param] = e.Buffer
			continue
		}
		if x, y := c.p.Buffers[a].Holds, c.p.Buffers[e.Buffer].Holds; x != y {
			c.add(Residence, "%s ends with %s in %s as %s and in %s as %s: one of them is stale", pr.Name, c.param(e.Param), c.buf(a), c.sym(x), c.buf(e.Buffer), c.sym(y))
		}
	}
}

// becomes checks that what a parameter holds at the end is its own content or a value that the program computed.
func (c *checker) becomes(prog int32, pr *plan.Program, e plan.Residency) {
	s := c.p.Buffers[e.Buffer].Holds
	switch o := c.owner[s]; {
	case o == e.Param:
	case o >= 0:
		c.add(Residence, "%s ends with %s in %s, which is to hold %s, the content of %s", pr.Name, c.param(e.Param), c.buf(e.Buffer), c.sym(s), c.param(o))
	case c.p.Symbols[s].Program != prog:
		c.add(Residence, "%s ends with %s in %s, which is to hold %s, no value of that program", pr.Name, c.param(e.Param), c.buf(e.Buffer), c.sym(s))
	default:
		for _, in := range pr.Inputs {
			if c.p.Buffers[in.Ref.Buffer].Holds == s {
				c.add(Residence, "%s ends with %s in %s, which is to hold %s, the input %q", pr.Name, c.param(e.Param), c.buf(e.Buffer), c.sym(s), in.Name)
			}
		}
	}
}

// claim notes that a buffer holds a parameter's content between programs, under one symbol that is its own.
func (c *checker) claim(param int32, b plan.BufferID, where string) {
	s := c.p.Buffers[b].Holds
	c.sized(plan.Residency{Param: param, Buffer: b}, where)
	switch {
	case c.content[param] == s:
	case c.p.Symbols[s].Program != -1:
		c.add(Residence, "%s: %s in %s is %s, a value of program %s", where, c.param(param), c.buf(b), c.sym(s), c.p.Programs[c.p.Symbols[s].Program].Name)
	case c.content[param] != plan.NoSymbol:
		c.add(Residence, "%s: %s in %s is %s, elsewhere it is %s", where, c.param(param), c.buf(b), c.sym(s), c.sym(c.content[param]))
	case c.owner[s] >= 0:
		c.add(Residence, "%s: %s and %s are both %s (%s)", where, c.param(c.owner[s]), c.param(param), c.sym(s), c.buf(b))
	default:
		c.content[param], c.owner[s] = s, param
	}
}

func (c *checker) sized(r plan.Residency, where string) {
	t, b := c.p.Params[r.Param].Type, &c.p.Buffers[r.Buffer]
	if t.DType != b.Type.DType || t.Bytes() != b.Type.Bytes() {
		c.add(Types, "%s: %s of type %v lies in %s of type %v", where, c.param(r.Param), t, c.buf(r.Buffer), b.Type)
	}
}

// ends checks that what is there when a program starts or ends is live there.
func (c *checker) ends(prog int32, pr *plan.Program) {
	last := int32(len(pr.Instrs)) - 1
	if last < 0 {
		return // no instruction, no span; contents are checked by the replay all the same
	}
	need := func(b plan.BufferID, pc int32, what, when string) {
		if !c.within(b, prog, pc) {
			c.add(Spans, "%s: %s in %s is not live at the %s, %s%s", pr.Name, what, c.buf(b), when, c.at(prog, pc), c.where(&c.p.Buffers[b], prog))
		}
	}
	for _, e := range pr.Entry {
		// What the first instruction reads has been checked as its operand; it may be handed over there and never be live.
		x, ok := pr.Instrs[0].(*plan.Exec)
		if !ok || !slices.ContainsFunc(x.In, func(q plan.Ref) bool { return q.Buffer == e.Buffer }) {
			need(e.Buffer, 0, c.param(e.Param), "start")
		}
	}
	for _, x := range pr.Inputs {
		need(x.Ref.Buffer, 0, "input "+x.Name, "start")
	}
	for _, e := range pr.Exit {
		need(e.Buffer, last, c.param(e.Param), "end")
	}
	for _, x := range pr.Results {
		need(x.Ref.Buffer, last, "result "+x.Name, "end")
	}
}

// passages checks that parameters lie, when a program ends, where each program that may follow expects them.
func (c *checker) passages() {
	for i := range c.p.Programs {
		for j := range c.p.Programs {
			from, to := &c.p.Programs[i], &c.p.Programs[j]
			if !mayFollow(from, to) {
				continue
			}
			left := map[int32][]plan.BufferID{}
			for _, e := range from.Exit {
				left[e.Param] = append(left[e.Param], e.Buffer)
			}
			for _, e := range to.Entry {
				if !c.arrives(e, left[e.Param]) {
					where := "nowhere"
					if l := left[e.Param]; len(l) > 0 {
						where = "in " + c.buf(l[0])
					}
					c.add(Residence, "%s expects %s in %s, but %s leaves it %s", to.Name, c.param(e.Param), c.buf(e.Buffer), from.Name, where)
				}
			}
		}
	}
}

// arrives tells whether one of the buffers lies exactly where the entry's buffer does.
func (c *checker) arrives(e plan.Residency, left []plan.BufferID) bool {
	for _, b := range left {
		if b == e.Buffer || c.regionOf[b] == c.regionOf[e.Buffer] && c.regionOf[b] < int32(ir.NumSpaces) &&
			c.p.Buffers[b].Offset == c.p.Buffers[e.Buffer].Offset {
			return true
		}
	}
	return false
}

// mayFollow tells which programs may run after which: init comes first and once, a program follows itself if it repeats, update follows
// step alone, everything else may follow everything.
func mayFollow(from, to *plan.Program) bool {
	switch {
	case isInit(to):
		return false
	case from == to:
		return from.Repeat
	case to.Name == "update":
		return from.Name == "step"
	}
	return true
}
