package passes

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/plan"
)

// FitError says that no plan fits the budget; the plan that Compile returns beside it is the smallest one.
type FitError struct {
	BudgetBytes, MinimumBytes int64
	At                        ir.Origin     // of the op at the device peak of the smallest plan
	AtOp                      string        // its name
	Alive                     []AliveTensor // at the peak, the five largest, largest first
	Advice                    []string      // what would help, the surest first
}

// AliveTensor is a tensor that takes bytes at the peak.
type AliveTensor struct {
	Name     string
	Bytes    int64
	Category plan.Category
}

func (e *FitError) Error() string {
	s := fmt.Sprintf("does not fit: the budget is %d bytes, the smallest arena the planner can do is %d bytes", e.BudgetBytes, e.MinimumBytes)
	if at := e.At.String(); at != "" || e.AtOp != "" {
		s += fmt.Sprintf("; the peak is at %s %s", e.AtOp, at)
	}
	if len(e.Alive) > 0 {
		s += ", where these live:"
		for _, a := range e.Alive {
			s += fmt.Sprintf("\n  %12d  %-15s %s", a.Bytes, a.Category, a.Name)
		}
	}
	for _, a := range e.Advice {
		s += "\n  " + a
	}
	return s
}

// listAlive is how many tensors a FitError names.
const listAlive = 5

// describePeak names the op at the device peak and the largest tensors that live there.
func describePeak(e *FitError, p *plan.Plan) {
	peak := plan.PeakOf(p, ir.Device)
	if peak.Program < 0 {
		return
	}
	for pc := peak.At; int(pc) < len(p.Programs[peak.Program].Instrs); pc++ {
		if x, ok := p.Programs[peak.Program].Instrs[pc].(*plan.Exec); ok {
			e.At, e.AtOp = x.Origin, ir.OpName(x.Op)
			break
		}
	}
	for i, b := range plan.Alive(p, peak.Program, peak.At, ir.Device) {
		if i == listAlive {
			break
		}
		x := &p.Buffers[b]
		e.Alive = append(e.Alive, AliveTensor{Name: x.Name, Bytes: x.Bytes, Category: x.Category})
	}
}

// advise says what would help, from what was not allowed.
func (c *compiler) advise(fit *FitError) {
	fit.Advice = append(fit.Advice, fmt.Sprintf("use --budget %d or more", fit.MinimumBytes))
	if !c.Recompute {
		fit.Advice = append(fit.Advice, "allow recomputing (--recompute auto)")
	}
	if !c.Swap {
		fit.Advice = append(fit.Advice, "allow swapping to host memory (--host-budget SIZE)")
	} else if c.HostBudgetBytes >= 0 {
		fit.Advice = append(fit.Advice, fmt.Sprintf("give more than %d bytes of host memory (--host-budget)", c.HostBudgetBytes))
	}
	fit.Advice = append(fit.Advice, "or bind a smaller batch (--dim)")
}
