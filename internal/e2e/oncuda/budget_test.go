//go:build cuda && linux

package oncuda

import (
	"bytes"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime/cuda"
)

// same wants the bits of a training.
func same(t testing.TB, got, want outcome, format string, args ...any) {
	t.Helper()
	for name, raw := range want.final {
		if !bytes.Equal(raw, got.final[name]) {
			t.Errorf(format+": %s has other bits", append(args, name)...)
		}
	}
	for i, x := range want.losses {
		if got.losses[i] != x {
			t.Errorf(format+": loss %v of step %d, want %v", append(args, got.losses[i], i, x)...)
		}
	}
}

// TestBudgetLaw trains under smaller budgets, in other orders of the streams, over links of other speeds and without graphs: the bits are the same.
func TestBudgetLaw(t *testing.T) {
	for _, r := range lawful() {
		t.Run(r.String(), func(t *testing.T) {
			ctl := fake(t)
			m := open(t, r)
			const steps = 3 // the third one runs as a graph
			free := m.compile(t, -1)
			unlimited, least := free.Arena(ir.Device).Bytes, m.minimum(t)
			want := m.train(t, free, steps, cuda.Options{}, false, ctl)
			plans := []*plan.Plan{free}
			for _, budget := range []int64{max(least, unlimited*6/10), least} {
				plans = append(plans, m.compile(t, budget))
			}
			if ctl == nil { // a real device chooses its own order
				for _, p := range plans[1:] {
					same(t, m.train(t, p, steps, cuda.Options{}, false, ctl), want, "arena %d of %d", p.Arena(ir.Device).Bytes, unlimited)
				}
				return
			}
			ctl.Set("checkLevel", 1) // what threads of a launch do to each other, another order of launches does not change
			defer ctl.Set("checkLevel", 2)
			for i, p := range plans {
				for seed := range int64(seeds) {
					flat := (seed+int64(i))%2 == 1 // each plan both ways, each seed both ways
					ctl.Set("seed", seed+1)
					got := m.train(t, p, steps, cuda.Options{Flat: flat}, seed == 2, ctl)
					same(t, got, want, "arena %d of %d, seed %d, flat %v", p.Arena(ir.Device).Bytes, unlimited, seed+1, flat)
				}
			}
			ctl.Set("seed", 0)
			for _, factor := range []int64{1, 20} { // in tenths: plans for a slow link and for a fast one, on such links
				slow := profile(t)
				slow.H2DRate, slow.D2HRate = slow.H2DRate*factor/10, slow.D2HRate*factor/10
				ctl.Set("h2dBytesPerSecond", slow.H2DRate)
				ctl.Set("d2hBytesPerSecond", slow.D2HRate)
				p := m.compileFor(t, slow, max(least, unlimited*6/10))
				same(t, m.train(t, p, steps, cuda.Options{}, false, ctl), want, "a link of %d/10", factor)
			}
			ctl.Set("h2dBytesPerSecond", 25e9)
			ctl.Set("d2hBytesPerSecond", 25e9)
		})
	}
}

// TestTargets: the texts for compute capability 7.5 and 8.0 give the same bits.
func TestTargets(t *testing.T) {
	ctl := fake(t)
	if ctl == nil {
		t.Skip("a real device has one capability")
	}
	m := open(t, training{model: "mlp_digits", golden: "golden.json"})
	p := m.compile(t, -1)
	want := m.train(t, p, 2, cuda.Options{}, false, ctl)
	defer ctl.Set("sm", 80)
	ctl.Set("sm", 75)
	same(t, m.train(t, p, 2, cuda.Options{}, false, ctl), want, "compute capability 7.5")
}
