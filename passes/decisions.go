package passes

import (
	"cmp"
	"fmt"
	"slices"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes/memory"
)

// recordDecisions tells of every content that program step reads or makes whether it is kept, recomputed or swapped, where, and why; and at which op
// device bytes are dearest, with what a GiB more would save. The reasons are the solver's (memory.Explain): prices of bytes within the budget.
func (c *compiler) recordDecisions(p *plan.Plan) {
	step, at := p.Program("step")
	if step == nil {
		return
	}
	e, q := c.explanation()
	if e != nil {
		c.binding(&p.Report, step, e, len(q.ops))
	}
	exits := make([]bool, len(p.Symbols)) // what a parameter holds when the step ends
	for _, x := range step.Exit {
		if h := p.Buffers[x.Buffer].Holds; h >= 0 {
			exits[h] = true
		}
	}
	for i, f := range fatesOf(p, step) {
		s := &p.Symbols[i]
		if f.made < 0 && f.first < 0 || s.Program != at && s.Program != -1 {
			continue
		}
		d := plan.Decision{Symbol: plan.SymbolID(i), At: -1, What: "kept"}
		var why *memory.Fate
		if e != nil && int(s.Value) < len(q.st.Of) && s.Value >= 0 && q.st.Of[s.Value] >= 0 {
			why = &e.Fates[q.st.Of[s.Value]]
		}
		switch {
		case f.brought >= 0 && s.Program == -1 && f.left < 0:
			d.What, d.At = "swapped", f.brought
			d.Why = fmt.Sprintf("the host has it; %d bytes are free until instruction %d and behind instruction %d", s.Bytes, f.brought, f.last)
		case f.brought >= 0:
			d.What, d.At = "swapped", f.brought
			d.Why = fmt.Sprintf("leaves for the host after instruction %d; %d bytes are free until instruction %d", max(f.lastRead, f.made), s.Bytes, f.brought)
			if f.again >= 0 {
				d.Why += fmt.Sprintf("; and it is computed again at instruction %d", f.again)
			}
		case f.again >= 0:
			x := step.Instrs[f.again].(*plan.Exec)
			d.What, d.At = "recomputed", f.again
			d.Why = fmt.Sprintf("running it again costs %s and frees %d bytes from instruction %d on", plan.FormatPicos(x.Picos), s.Bytes, max(f.lastRead, f.made))
		case s.Program == -1:
			d.Why = "lies there between steps"
		case exits[i] && f.left >= 0:
			d.What, d.At, d.Why = "swapped", f.left, "a new content, whose place is on the host"
		case exits[i]:
			d.Why = "the next step begins with it"
		case f.made >= 0 && f.next >= 0:
			d.Why = fmt.Sprintf("read again at instruction %d", f.next)
		case f.last >= 0:
			d.Why = fmt.Sprintf("last read at instruction %d", f.last)
		default:
			d.Why = "a result"
		}
		if why != nil && e.TotalPrice > 0 {
			d.Why += reason(d.What, why, s.Program == -1 || exits[i])
		}
		p.Report.Decisions = append(p.Report.Decisions, d)
	}
	slices.SortStableFunc(p.Report.Decisions, func(a, b plan.Decision) int {
		return cmp.Compare(p.Symbols[b.Symbol].Bytes, p.Symbols[a.Symbol].Bytes)
	})
}

// explanation is the solver's of the step; nil where there is nothing to say: no budget, or one that does not bind.
func (c *compiler) explanation() (*memory.Explanation, *problem) {
	if c.budget < 0 || c.fit != nil || c.chosen == c.unlimited || c.chosen.step == nil {
		return nil, nil
	}
	q := c.chosen.step
	m := q.Problem
	m.BudgetBytes = c.budget
	e, err := memory.Explain(&m, c.chosen.decision)
	if err != nil {
		panic(ir.Bugf("a plan that was carried out cannot be explained: %v", err))
	}
	return e, q
}

// binding finds the instruction of the stage whose bytes cost most: the ops of the step that are no recomputes are the solver's, in its order.
func (c *compiler) binding(r *plan.Report, step *plan.Program, e *memory.Explanation, ops int) {
	var pcs []int32
	for pc, in := range step.Instrs {
		if x, ok := in.(*plan.Exec); ok && !x.Recompute {
			pcs = append(pcs, int32(pc))
		}
	}
	if e.BindingPrice > 0 && len(pcs) == ops {
		r.BindingAt, r.BindingPicosPerGiB, r.BudgetPicosPerGiB = int64(pcs[e.BindingStage]), int64(e.BindingPrice), int64(e.TotalPrice)
	}
}

// reason is why, in the solver's words, where they say more than the decision does.
func reason(what string, f *memory.Fate, persists bool) string {
	idle, again := plan.FormatPicos(f.IdlePicos), plan.FormatPicos(f.RerunPicos)
	switch f.Reason {
	case memory.KeptFree:
		return "; it is never idle where bytes are short"
	case memory.KeptCheap:
		return fmt.Sprintf("; its bytes are worth %s there, running its op again takes %s", idle, again)
	case memory.KeptOperands:
		return fmt.Sprintf("; its bytes are worth %s and running its op again takes %s, but what that reads would have to be there too", idle, again)
	case memory.KeptFixed:
		if persists {
			return "; it is not swapped"
		}
		return "; its op cannot run again there, and it is not swapped"
	}
	if f.IdlePicos > 0 && what != "kept" {
		return "; its bytes are worth " + idle + " there"
	}
	return ""
}

// fate is what program step does with a content, in instructions; -1: none.
type fate struct {
	made, lastRead int32 // in the forward half: first write, last read
	first, last    int32 // reads at all
	next           int32 // first read behind the forward half
	again          int32 // last recompute
	left, brought  int32 // last swap-out, last swap-in
}

// fatesOf follows every symbol through program step.
func fatesOf(p *plan.Plan, step *plan.Program) []fate {
	fates := make([]fate, len(p.Symbols))
	for i := range fates {
		fates[i] = fate{-1, -1, -1, -1, -1, -1, -1, -1}
	}
	of := func(r plan.Ref) *fate {
		if h := p.Buffers[r.Buffer].Holds; h != plan.NoSymbol {
			return &fates[h]
		}
		return &fate{}
	}
	for pc, in := range step.Instrs {
		at := int32(pc)
		switch x := in.(type) {
		case *plan.Exec:
			for _, r := range x.In {
				f := of(r)
				if f.first < 0 {
					f.first = at
				}
				f.last = at
				if x.Phase == ir.Forward && !x.Recompute {
					f.lastRead = at
				} else if f.next < 0 {
					f.next = at
				}
			}
			for _, r := range x.Out {
				switch f := of(r); {
				case x.Recompute:
					f.again = at
				case f.made < 0:
					f.made = at
				}
			}
		case *plan.Copy:
			switch x.Kind {
			case plan.CopySwapOut:
				of(x.Src).left = at
			case plan.CopySwapIn:
				of(x.Dst).brought = at
			}
		}
	}
	return fates
}
