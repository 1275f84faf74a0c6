package e2e

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
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
// the minimum is refused with the figure.
func TestBudgetLaw(t *testing.T) {
	for _, r := range goldens(t) {
		t.Run(r.String(), func(t *testing.T) { budgetLaw(t, r, 6) })
	}
	t.Run("collection", func(t *testing.T) {
		for _, r := range append(outside(t), batchNormTraining(t)) {
			t.Run(r.String(), func(t *testing.T) { budgetLaw(t, r, 2) })
		}
	})
}

func budgetLaw(t *testing.T, r run, steps int) {
	x := open(t, run{dir: r.dir, file: r.file, golden: r.golden, batchNorm: r.batchNorm, plain: true})
	if acc := int(x.g.Accumulate); acc > 1 {
		steps = 2 * acc
	}
	free := x.compile(t, passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1, Recompute: true, Swap: true})
	unlimited := free.Arena(ir.Device).Bytes
	want := digest(x.train(t, free, steps, cpu.Options{}))
	for _, m := range modes() {
		o := passes.MemoryOptions{HostBudgetBytes: -1, Recompute: m.recompute, Swap: m.swap}
		o.BudgetBytes = 0
		least := x.minimum(t, o)
		t.Logf("%s: unlimited %d, minimum %d (%.1f %%), bound %d", m.name, unlimited, least.MinimumBytes, 100*float64(least.MinimumBytes)/float64(unlimited), free.Report.BoundBytes)
		o.BudgetBytes = least.MinimumBytes - 1
		if again := x.minimum(t, o); again.MinimumBytes != least.MinimumBytes {
			t.Errorf("%s: the minimum depends on the budget: %d and %d", m.name, again.MinimumBytes, least.MinimumBytes)
		}
		for _, budget := range []int64{unlimited, unlimited * 8 / 10, unlimited * 6 / 10, least.MinimumBytes} {
			if budget < least.MinimumBytes {
				continue
			}
			o.BudgetBytes = budget
			start := time.Now()
			p := x.compile(t, o)
			took := time.Since(start)
			arena := p.Arena(ir.Device).Bytes
			if arena > budget {
				t.Errorf("%s %d: arena %d", m.name, budget, arena)
			}
			t.Logf("%s budget %d: arena %d peak %d overhead %.2f %% (bound %.2f) recomputed %d moved %d; compiled in %v", m.name, budget, arena, p.Report.PeakBytes,
				100*p.Report.Overhead(), float64(p.Report.OverheadBoundPPM)/1e4, p.Report.RecomputedNodes, p.Report.SwapInBytes+p.Report.SwapOutBytes, took.Round(time.Millisecond))
			rng := rand.New(rand.NewPCG(1, uint64(budget)))
			out := x.train(t, p, steps, cpu.Options{CopyDelay: func(l plan.Lane) {
				if l == plan.D2H || l == plan.H2D {
					time.Sleep(time.Duration(rng.IntN(300)) * time.Microsecond)
				}
			}})
			if out.high != arena {
				t.Errorf("%s %d: highest address %d, arena %d", m.name, budget, out.high, arena)
			}
			if got := digest(out); got != want {
				t.Errorf("%s %d: other bits than the unlimited plan", m.name, budget)
			}
		}
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
