package passes

import (
	"aitk/ir"
	"aitk/passes/memory"
)

// checkTimes refuses a program that would run longer than times can be counted: some dimension was bound to a size that nobody can mean. It
// names the node where it shows, the longest one if no node alone is too long.
func (p *problem) checkTimes() error {
	var total, longest int64
	at := 0
	for i := range p.Ops {
		t := p.Ops[i].Picos
		if t > longest {
			longest, at = t, i
		}
		if total += min(t, memory.MaxTotalPicos); total > memory.MaxTotalPicos {
			n := p.ops[at]
			e := ir.Errorf(ir.Usage, n.Origin, "the step would take more than %d hours, longer than is planned for; above all %s of %v", int64(memory.MaxTotalPicos/3_600_000_000_000_000), ir.OpName(n.Op), n.Out[0].Type)
			e.Remedy = "bind smaller dimensions (--dim), the batch above all"
			return e
		}
	}
	return nil
}
