package check

import (
	"fmt"
	"math"

	"aitk/ir"
	"aitk/ir/plan"
)

// structure finds what would make the later stages index out of range or overflow: it alone may meet arbitrary numbers.
func (c *checker) structure() {
	p := c.p
	names := map[string]bool{}
	for i := range p.Programs {
		pr := &p.Programs[i]
		if pr.Name == "" || names[pr.Name] {
			c.add(Malformed, "program %d: name %q is empty or taken", i, pr.Name)
		}
		names[pr.Name] = true
		if len(pr.Instrs) > math.MaxInt32/4 {
			c.add(Malformed, "program %q has %d instructions", pr.Name, len(pr.Instrs))
		}
	}
	spaces := [ir.NumSpaces]bool{}
	for i := range p.Arenas {
		a := &p.Arenas[i]
		switch {
		case a.Space >= ir.NumSpaces:
			c.add(Malformed, "arena %d is in unknown %s", i, a.Space)
		case spaces[a.Space]:
			c.add(Malformed, "two arenas in space %s", a.Space)
		default:
			spaces[a.Space] = true
		}
		if a.Bytes < 0 || a.Align < 1 || a.BudgetBytes < -1 {
			c.add(Malformed, "arena of space %s: %d bytes, budget %d, alignment %d", a.Space, a.Bytes, a.BudgetBytes, a.Align)
		}
	}
	for i := range p.Symbols {
		s := &p.Symbols[i]
		if s.Program < -1 || int(s.Program) >= len(p.Programs) || s.Bytes < 0 {
			c.add(Malformed, "symbol s%d %q: program %d, %d bytes", i, s.Name, s.Program, s.Bytes)
		}
	}
	for i := range p.Buffers {
		c.bufferStructure(plan.BufferID(i), &p.Buffers[i])
	}
	params := map[string]bool{}
	for i := range p.Params {
		x := &p.Params[i]
		if x.Name == "" || params[x.Name] {
			c.add(Malformed, "parameter %d: name %q is empty or taken", i, x.Name)
		}
		params[x.Name] = true
		if err := goodType(x.Type); err != nil {
			c.add(Malformed, "parameter %q: %v", x.Name, err)
		}
		if x.Storage != plan.NoBuffer && !c.isBuffer(x.Storage) {
			c.add(Malformed, "parameter %q: storage b%d does not exist", x.Name, x.Storage)
		}
	}
	for i := range p.Programs {
		c.programStructure(int32(i), &p.Programs[i])
	}
}

func (c *checker) bufferStructure(id plan.BufferID, b *plan.Buffer) {
	at := fmt.Sprintf("buffer b%d %q", id, b.Name)
	if b.Holds != plan.NoSymbol && (b.Holds < 0 || int(b.Holds) >= len(c.p.Symbols)) {
		c.add(Malformed, "%s: holds symbol %d, which does not exist", at, b.Holds)
	}
	if err := goodType(b.Type); err != nil {
		c.add(Malformed, "%s: %v", at, err)
		return
	}
	if b.Offset < 0 || b.Bytes < 0 || b.Offset > math.MaxInt64-b.Bytes {
		c.add(Malformed, "%s: offset %d, %d bytes", at, b.Offset, b.Bytes)
	}
	if b.Category >= plan.NumCategories {
		c.add(Malformed, "%s: category %s", at, b.Category)
	}
	prev := plan.Span{Program: -1}
	for _, s := range b.Live {
		switch {
		case s.Program < 0 || int(s.Program) >= len(c.p.Programs):
			c.add(Malformed, "%s: span in program %d, which does not exist", at, s.Program)
		case s.Start < 0 || s.Start > s.End || int(s.End) > len(c.p.Programs[s.Program].Instrs):
			c.add(Malformed, "%s: span %d..%d in a program %q of %d instructions", at, s.Start, s.End,
				c.p.Programs[s.Program].Name, len(c.p.Programs[s.Program].Instrs))
		case s.Program < prev.Program || s.Program == prev.Program && s.Start < prev.End:
			c.add(Malformed, "%s: spans %v and %v are out of order", at, prev, s)
		}
		prev = s
	}
}

func (c *checker) programStructure(id int32, pr *plan.Program) {
	for pc, i := range pr.Instrs {
		at := fmt.Sprintf("%s pc %d", pr.Name, pc)
		switch x := i.(type) {
		case *plan.Exec:
			if x == nil || x.Op == nil {
				c.add(Malformed, "%s: no op", at)
				continue
			}
			if x.Lane >= plan.NumLanes || x.Phase >= ir.NumPhases || x.Picos < 0 {
				c.add(Malformed, "%s: lane %s, phase %d, %d ps", at, x.Lane, x.Phase, x.Picos)
			}
			for k, r := range x.In {
				c.refStructure(fmt.Sprintf("%s operand %d", at, k), r)
			}
			for k, r := range x.Out {
				c.refStructure(fmt.Sprintf("%s output %d", at, k), r)
			}
			if x.Scratch != plan.NoBuffer && !c.isBuffer(x.Scratch) {
				c.add(Malformed, "%s: scratch b%d does not exist", at, x.Scratch)
			}
		case *plan.Copy:
			if x == nil {
				c.add(Malformed, "%s: no instruction", at)
				continue
			}
			if x.Lane >= plan.NumLanes || x.Kind >= plan.NumCopyKinds || x.Picos < 0 {
				c.add(Malformed, "%s: lane %s, kind %s, %d ps", at, x.Lane, x.Kind, x.Picos)
			}
			c.refStructure(at+" source", x.Src)
			c.refStructure(at+" destination", x.Dst)
		case *plan.Wait:
			if x == nil {
				c.add(Malformed, "%s: no instruction", at)
				continue
			}
			if x.Lane >= plan.NumLanes {
				c.add(Malformed, "%s: lane %s", at, x.Lane)
			}
			if x.On < 0 || int(x.On) >= len(pr.Instrs) || x.Back < 0 || x.Back > 1 {
				c.add(Waiting, "%s: wait for pc %d, %d runs back: there is no such instruction", at, x.On, x.Back)
			}
		default:
			c.add(Malformed, "%s: unknown instruction %T", at, i)
		}
	}
	for _, x := range pr.Inputs {
		c.refStructure(fmt.Sprintf("%s input %q", pr.Name, x.Name), x.Ref)
	}
	for _, x := range pr.Results {
		c.refStructure(fmt.Sprintf("%s result %q", pr.Name, x.Name), x.Ref)
	}
	for _, list := range [2][]plan.Residency{pr.Entry, pr.Exit} {
		for _, r := range list {
			if r.Param < 0 || int(r.Param) >= len(c.p.Params) || !c.isBuffer(r.Buffer) {
				c.add(Malformed, "%s: residency of parameter %d in b%d: no such parameter or buffer", pr.Name, r.Param, r.Buffer)
			} else if c.p.Buffers[r.Buffer].Holds == plan.NoSymbol {
				c.add(Malformed, "%s: residency of parameter %q in b%d, which holds no symbol", pr.Name, c.p.Params[r.Param].Name, r.Buffer)
			}
		}
	}
}

func (c *checker) isBuffer(b plan.BufferID) bool { return b >= 0 && int(b) < len(c.p.Buffers) }

// refStructure checks that a reference names a stretch of a buffer that holds a symbol.
func (c *checker) refStructure(at string, r plan.Ref) {
	if !c.isBuffer(r.Buffer) {
		c.add(Malformed, "%s: b%d does not exist", at, r.Buffer)
		return
	}
	if err := goodType(r.Type); err != nil {
		c.add(Malformed, "%s: %v", at, err)
		return
	}
	b := &c.p.Buffers[r.Buffer]
	if b.Holds == plan.NoSymbol {
		c.add(Malformed, "%s: b%d %q holds no symbol", at, r.Buffer, b.Name)
	}
	if n := r.Type.Bytes(); r.Offset < 0 || n > b.Bytes || r.Offset > b.Bytes-n {
		c.add(Bounds, "%s: bytes %d+%d of %v lie outside b%d %q of %d bytes", at, r.Offset, n, r.Type, r.Buffer, b.Name, b.Bytes)
	}
}

func goodType(t ir.Type) error {
	if t.DType.Bits() == 0 {
		return fmt.Errorf("element type %s", t.DType)
	}
	if t.Space >= ir.NumSpaces {
		return fmt.Errorf("unknown %s", t.Space)
	}
	return t.Shape.Check()
}
