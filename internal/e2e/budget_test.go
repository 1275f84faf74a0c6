package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/cost"
	"aitk/runtime/cpu"
)

type mode struct {
	name            string
	recompute, swap bool
}

func modes() []mode {
	return []mode{{"recompute", true, false}, {"swap", false, true}, {"both", true, true}}
}

// The budget law: whatever the budget and the means, the same bits come out; the arena keeps the budget and is used to its last byte; one byte less than
// the minimum is refused with the figure, and the minimum itself is a budget like any other.
func TestBudgetLaw(t *testing.T) {
	for _, r := range append(goldens(t), cnnDigits()) {
		t.Run(r.String(), func(t *testing.T) { budgetLaw(t, r, 6) })
	}
	t.Run("collection", func(t *testing.T) {
		if testing.Short() {
			t.Skip("-short: the models of the collection take a minute")
		}
		for _, r := range planned(t) {
			t.Run(r.String(), func(t *testing.T) {
				t.Parallel() // the planner has one thread
				budgetLaw(t, r, 2)
			})
		}
	})
}

func budgetLaw(t *testing.T, r run, steps int) {
	r.plain = true
	x := open(t, r)
	if acc := int(x.g.Accumulate); acc > 1 {
		steps = 2 * acc
	}
	free := x.compile(t, passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1, Recompute: true, Swap: true})
	unlimited := free.Arena(ir.Device).Bytes
	want := digest(x.train(t, free, steps, cpu.Options{}))
	for i, m := range modes() {
		o := passes.MemoryOptions{HostBudgetBytes: -1, Recompute: m.recompute, Swap: m.swap}
		minimum := x.atMinimum(t, m, o)
		t.Logf("%s: unlimited %d, minimum %d (%.1f %%), bound %d", m.name, unlimited, minimum, 100*float64(minimum)/float64(unlimited), free.Report.BoundBytes)
		budgets := []int64{unlimited * 8 / 10, unlimited * 6 / 10, minimum}
		if i == 0 {
			budgets = append(budgets, unlimited)
		}
		for _, budget := range budgets {
			if budget < minimum {
				continue
			}
			o.BudgetBytes = budget
			p := x.within(t, m, o)
			if least := p.Report.MinimumBudgetBytes; least != minimum {
				t.Errorf("%s %d: the minimum depends on the budget: %d and %d", m.name, budget, least, minimum)
			}
			if budget == unlimited && (p.Report.RecomputedNodes != 0 || p.Report.SwapInBytes+p.Report.SwapOutBytes != 0) {
				t.Errorf("%s: the budget of the unlimited arena recomputes %d nodes, moves %d bytes", m.name, p.Report.RecomputedNodes, p.Report.SwapInBytes+p.Report.SwapOutBytes)
			}
			if got := digest(x.delayed(t, p, steps)); got != want {
				t.Errorf("%s %d: other bits than the unlimited plan", m.name, budget)
			}
			if host := p.Arena(ir.Pinned); budget == unlimited*6/10 && host != nil && host.Bytes > 0 {
				x.lessHost(t, m, o, host.Bytes/2, steps, want)
			}
		}
	}
}

// atMinimum finds the minimum of a mode: a budget of nothing and one of a byte less are refused, with the same figure and with what lives at the peak.
func (x *trainer) atMinimum(t *testing.T, m mode, o passes.MemoryOptions) int64 {
	o.BudgetBytes = 0
	least := x.minimum(t, o)
	if least.AtOp == "" || len(least.Alive) == 0 {
		t.Errorf("%s: the refusal does not say what lives at the peak: %v", m.name, least)
	}
	o.BudgetBytes = least.MinimumBytes - 1
	if again := x.minimum(t, o); again.MinimumBytes != least.MinimumBytes {
		t.Errorf("%s: the minimum depends on the budget: %d and %d", m.name, again.MinimumBytes, least.MinimumBytes)
	}
	return least.MinimumBytes
}

// within compiles for a budget and holds the plan to it.
func (x *trainer) within(t *testing.T, m mode, o passes.MemoryOptions) *plan.Plan {
	start := time.Now()
	p := x.compile(t, o)
	arena := p.Arena(ir.Device).Bytes
	if arena > o.BudgetBytes {
		t.Errorf("%s %d: arena %d", m.name, o.BudgetBytes, arena)
	}
	t.Logf("%s budget %d: arena %d peak %d overhead %.2f %% (bound %.2f) recomputed %d moved %d; compiled in %v", m.name, o.BudgetBytes, arena, p.Report.PeakBytes,
		100*p.Report.Overhead(), float64(p.Report.OverheadBoundPPM)/1e4, p.Report.RecomputedNodes, p.Report.SwapInBytes+p.Report.SwapOutBytes, time.Since(start).Round(time.Millisecond))
	return p
}

// lessHost plans the same with half of the host memory that the plan took. Where that fits at all, it is kept, and the bits are the same.
func (x *trainer) lessHost(t *testing.T, m mode, o passes.MemoryOptions, limit int64, steps int, want string) {
	o.Profile, o.HostBudgetBytes = cost.CPUGeneric(), limit
	p, err := passes.Compile(x.ctx, o)
	if _, ok := errors.AsType[*passes.FitError](err); ok {
		t.Logf("%s: %d bytes of host memory are too few", m.name, limit)
		return
	}
	check(t, err)
	if host := p.Arena(ir.Pinned); host != nil && host.Bytes > limit {
		t.Errorf("%s: the host arena has %d bytes, allowed are %d", m.name, host.Bytes, limit)
	}
	if arena := p.Arena(ir.Device).Bytes; arena > o.BudgetBytes {
		t.Errorf("%s %d, host %d: arena %d", m.name, o.BudgetBytes, limit, arena)
	}
	if got := digest(x.delayed(t, p, steps)); got != want {
		t.Errorf("%s %d, host %d: other bits than the unlimited plan", m.name, o.BudgetBytes, limit)
	}
}

// delayed trains with random delays in the copy lanes and another number of workers, and holds what the device saw against the arenas.
func (x *trainer) delayed(t *testing.T, p *plan.Plan, steps int) outcome {
	arena := p.Arena(ir.Device).Bytes
	out := x.train(t, p, steps, cpu.Options{Threads: 1 + int(arena/64%3), CopyDelay: delays(uint64(arena))})
	if out.high != arena {
		t.Errorf("highest device address %d, arena %d", out.high, arena)
	}
	if host := p.Arena(ir.Pinned); host != nil && out.hostHigh != host.Bytes {
		t.Errorf("highest host address %d, arena %d", out.hostHigh, host.Bytes)
	}
	return out
}

// delays holds each copy back for a random time below 0.3 ms.
func delays(seed uint64) func(plan.Lane) {
	var mu sync.Mutex // lanes run side by side
	rng := rand.New(rand.NewPCG(1, seed))
	return func(l plan.Lane) {
		if l != plan.D2H && l != plan.H2D {
			return
		}
		mu.Lock()
		d := rng.IntN(300)
		mu.Unlock()
		time.Sleep(time.Duration(d) * time.Microsecond)
	}
}

// minimum asks for a plan that cannot fit and returns the refusal.
func (x *trainer) minimum(t *testing.T, o passes.MemoryOptions) *passes.FitError {
	t.Helper()
	o.Profile = cost.CPUGeneric()
	p, err := passes.Compile(x.ctx, o)
	fit, ok := errors.AsType[*passes.FitError](err)
	if !ok {
		t.Fatalf("%v: a budget of %d bytes gave %v", x.run, o.BudgetBytes, err)
	}
	if p == nil || p.Report.Fits {
		t.Fatalf("%v: the refusal brings no plan", x.run)
	}
	return fit
}

// digest is the SHA-256 of losses and final parameters.
func digest(o outcome) string {
	h := sha256.New()
	for _, name := range sortedKeys(o.final) {
		h.Write([]byte(name))
		h.Write(o.final[name])
	}
	for _, l := range o.losses {
		h.Write(ir.Tensor{Type: ir.T(ir.F64), F: []float64{l}}.Encode())
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Two compiles give the same bytes.
func TestPlansAreDeterministic(t *testing.T) {
	x := open(t, goldens(t)[1])
	var first []byte
	for range 3 {
		p := x.compile(t, passes.MemoryOptions{BudgetPercent: 80, HostBudgetBytes: -1, Recompute: true, Swap: true})
		raw, err := plan.Marshal(p)
		check(t, err)
		if first == nil {
			first = raw
		} else if !bytes.Equal(first, raw) {
			t.Fatal("two compiles differ")
		}
	}
}
