package check

import (
	"errors"
	"reflect"
	"slices"
	"strconv"

	"aitk/ir"
	"aitk/ir/plan"
)

// written is how a symbol, or a stretch of it, was computed the first time.
type written struct {
	pc  int32
	out int
	x   *plan.Exec
}

type stretch struct {
	sym           plan.SymbolID
	offset, bytes int64
}

// identity checks what the replay cannot see, because a symbol is only a name there: that whoever writes it again computes the same.
// A stretch written again needs the same op, attributes, operands and stretches of operands; another stretch of one symbol needs the
// same op on the same symbols (attributes may depend on the stretch).
func (c *checker) identity(prog int32) {
	pr := &c.p.Programs[prog]
	first := map[stretch]written{}
	whole := map[plan.SymbolID]written{}
	state := map[plan.SymbolID]int32{} // symbol that a stateful op turned into its next version -> pc
	inputs := map[plan.SymbolID]string{}
	for _, in := range pr.Inputs {
		inputs[c.p.Buffers[in.Ref.Buffer].Holds] = in.Name
	}
	for i := range pr.Instrs {
		pc := int32(i)
		if y, ok := pr.Instrs[i].(*plan.Copy); ok {
			c.copyIdentity(prog, pc, y)
		}
		x, ok := pr.Instrs[i].(*plan.Exec)
		if !ok {
			continue
		}
		stateful := isStateful(x.Op)
		if stateful {
			if x.Recompute {
				c.add(Identity, "%s: a stateful op must not be recomputed", c.at(prog, pc))
			}
			for _, a := range aliasesOf(x.Op) {
				if a.View || a.In < 0 || a.In >= len(x.In) {
					continue
				}
				s := c.p.Buffers[x.In[a.In].Buffer].Holds
				if before, twice := state[s]; twice && before != pc {
					c.add(Identity, "%s: updates %s, which %s updated already", c.at(prog, pc), c.sym(s), c.at(prog, before))
				}
				state[s] = pc
			}
		}
		for j, r := range x.Out {
			s := c.p.Buffers[r.Buffer].Holds
			c.mayCompute(prog, pc, s, inputs)
			for k, q := range x.In {
				if c.p.Buffers[q.Buffer].Holds == s {
					c.add(Identity, "%s: output %d in %s and operand %d in %s are both %s", c.at(prog, pc), j, c.buf(r.Buffer), k, c.buf(q.Buffer), c.sym(s))
				}
			}
			w := written{pc, j, x}
			key := stretch{s, r.Offset, r.Type.Bytes()}
			f, again := first[key]
			if !again {
				first[key] = w
				if f, again = whole[s]; !again {
					whole[s] = w
					continue
				}
				if why := c.differ(f, w, false); why != "" {
					c.add(Identity, "%s writes part of %s unlike %s: %s", c.at(prog, pc), c.sym(s), c.at(prog, f.pc), why)
				}
				continue
			}
			if stateful {
				c.add(Identity, "%s: a stateful op runs again; %s wrote %s already", c.at(prog, pc), c.at(prog, f.pc), c.sym(s))
			} else if why := c.differ(f, w, true); why != "" {
				c.add(Identity, "%s writes %s, but is no recompute of %s: %s", c.at(prog, pc), c.sym(s), c.at(prog, f.pc), why)
			}
		}
		if c.full() {
			return
		}
	}
}

// mayCompute checks that a symbol is one that instructions of this program may compute.
func (c *checker) mayCompute(prog, pc int32, s plan.SymbolID, inputs map[plan.SymbolID]string) {
	if o := c.owner[s]; o >= 0 {
		what := "the content with which it starts"
		if !c.p.Params[o].Mutable {
			what = "which is frozen"
		}
		c.add(Identity, "%s: computes %s, the content of %s, %s", c.at(prog, pc), c.sym(s), c.param(o), what)
		return
	}
	if name, ok := inputs[s]; ok {
		c.add(Identity, "%s: computes %s, which is input %q", c.at(prog, pc), c.sym(s), name)
	}
	if of := c.p.Symbols[s].Program; of != prog {
		name := "no program"
		if of >= 0 {
			name = c.p.Programs[of].Name
		}
		c.add(Identity, "%s: computes %s, which belongs to %s", c.at(prog, pc), c.sym(s), name)
	}
}

// differ tells how two writings of one symbol differ; "" if they do not. exact demands the same attributes and stretches as well.
func (c *checker) differ(f, w written, exact bool) string {
	switch {
	case reflect.TypeOf(f.x.Op) != reflect.TypeOf(w.x.Op):
		return "another op"
	case f.out != w.out:
		return "another output"
	case len(f.x.In) != len(w.x.In):
		return "another number of operands"
	case exact && !sameAttributes(f.x.Op, w.x.Op):
		return "other attributes"
	}
	for k := range f.x.In {
		a, b := f.x.In[k], w.x.In[k]
		sa, sb := c.p.Buffers[a.Buffer].Holds, c.p.Buffers[b.Buffer].Holds
		if sa != sb {
			return "operand " + strconv.Itoa(k) + " is " + c.sym(sb) + " in " + c.buf(b.Buffer) + " and was " + c.sym(sa)
		}
		if exact && (a.Offset != b.Offset || a.Type.DType != b.Type.DType || !a.Type.Shape.Equal(b.Type.Shape)) {
			return "operand " + strconv.Itoa(k) + " is another part of " + c.sym(sa)
		}
	}
	return ""
}

// sameAttributes compares by the text form, in which an empty list is an absent one.
func sameAttributes(a, b ir.Op) bool {
	return guard(func() error {
		if ir.FormatOp(a) != ir.FormatOp(b) {
			return errors.New("they differ")
		}
		return nil
	}) == nil
}

// copyIdentity checks that a copy keeps its symbol and leaves frozen content where it comes from.
func (c *checker) copyIdentity(prog, pc int32, x *plan.Copy) {
	src, dst := &c.p.Buffers[x.Src.Buffer], &c.p.Buffers[x.Dst.Buffer]
	if src.Holds != dst.Holds {
		c.add(Identity, "%s: copies %s in %s to %s, which is to hold %s", c.at(prog, pc), c.sym(src.Holds), c.buf(x.Src.Buffer),
			c.buf(x.Dst.Buffer), c.sym(dst.Holds))
		return
	}
	if o := c.owner[src.Holds]; o >= 0 && !c.p.Params[o].Mutable && farther(dst.Type.Space, src.Type.Space) {
		c.add(Identity, "%s: copies %s from %s out to %s, but it is frozen", c.at(prog, pc), c.param(o), c.buf(x.Src.Buffer), c.buf(x.Dst.Buffer))
	}
}

// farther tells whether a is farther from the device than b: frozen content flows only the other way.
func farther(a, b ir.Space) bool {
	order := []ir.Space{ir.Device, ir.Pinned, ir.Pageable, ir.Disk}
	return slices.Index(order, a) > slices.Index(order, b)
}
