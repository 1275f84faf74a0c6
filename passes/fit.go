package passes

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/plan"
)

// FitError says that no plan fits the budget; the plan that Compile returns beside it is the smallest one.
type FitError struct {
	BudgetBytes, MinimumBytes int64
	BoundBytes                int64         // certified: no plan of this order has a lower peak, at any cost
	At                        ir.Origin     // of the op at the device peak of the smallest plan
	AtOp                      string        // its name
	Alive                     []AliveTensor // at the peak, the five largest, largest first
	Advice                    []plan.Advice // what was tried and helps, what fits first
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
		s += ", where these are the largest that live:"
		for _, a := range e.Alive {
			s += fmt.Sprintf("\n  %12d  %-15s %s", a.Bytes, a.Category, a.Name)
		}
	}
	if e.BoundBytes > e.BudgetBytes {
		s += fmt.Sprintf("\n  no plan of this order fits: none has a peak below %d bytes, at any cost", e.BoundBytes)
	} else {
		s += fmt.Sprintf("\n  whether another plan fits is open: none has a peak below %d bytes, at any cost", e.BoundBytes)
	}
	s += fmt.Sprintf("\n  use --budget %d or more", e.MinimumBytes)
	for _, a := range e.Advice {
		s += "\n  tried: " + a.String()
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

// Smallest is the smallest arena that the planner can do for the programs of ctx by the means of o, and the host arena beside it, in bytes. The budgets of the
// device in o are not looked at.
func Smallest(ctx *Context, o MemoryOptions) (deviceBytes, hostBytes int64, err error) {
	c := &compiler{MemoryOptions: o, sources: ctx.Programs}
	if err := c.extremes(); err != nil {
		return 0, 0, err
	}
	return c.smallest.device(), c.smallest.host(), nil
}

// UnlimitedArena is the device arena of the programs of ctx without recompute and swap, in bytes.
func UnlimitedArena(ctx *Context, o MemoryOptions) (int64, error) {
	c := &compiler{MemoryOptions: o, sources: ctx.Programs}
	x, err := c.keepAll()
	if err != nil {
		return 0, err
	}
	return x.device(), nil
}
