package memory

import (
	"cmp"
	"errors"
	"slices"
)

// Point is the plan for one budget of a sweep.
type Point struct {
	BudgetBytes int64
	Solution    *Solution        // nil: there is none
	Infeasible  *InfeasibleError // why not
}

// Sweep plans p for many budgets in one run. The points come in the order of budgets. A plan for a smaller budget is a candidate for every larger one,
// and the search for the larger one starts from it too, so no point is slower than one with a smaller budget; budgets below 0 (no limit) are the largest.
// Stop ends the search, not the sweep: the points that are left have what the plans before them and the seeds give. Improved is told of every point's plans.
func Sweep(p *Problem, budgets []int64, o Options) ([]Point, error) {
	points := make([]Point, len(budgets))
	ascending := make([]int, len(budgets))
	for i := range ascending {
		ascending[i] = i
	}
	size := func(b int64) uint64 { return uint64(b) } // below 0: the largest
	slices.SortStableFunc(ascending, func(a, b int) int { return cmp.Compare(size(budgets[a]), size(budgets[b])) })
	var before []snapshot
	q := *p
	for _, i := range ascending {
		q.BudgetBytes = budgets[i]
		points[i].BudgetBytes = budgets[i]
		sol, plan, err := solveFrom(&q, o, before)
		if errors.As(err, &points[i].Infeasible) {
			continue
		}
		if err != nil {
			return nil, err
		}
		points[i].Solution, before = sol, []snapshot{plan}
	}
	return points, nil
}
