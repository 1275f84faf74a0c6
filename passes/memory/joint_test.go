package memory_test

import (
	"fmt"
	"testing"

	"aitk/passes/memory"
	"aitk/passes/memory/networks"
)

// report solves p within percent of the unlimited peak and reports overhead, bound and gap in percent of the step's time without either, the share of stalls, user seconds
// and the process's memory.
func report(b *testing.B, p *memory.Problem, percent int64) {
	all, err := memory.Unlimited(p)
	if err != nil {
		b.Fatal(err)
	}
	var ideal int64
	for i := range p.Ops {
		ideal += p.Ops[i].Picos
	}
	p.BudgetBytes = (all.PeakBytes*percent + 99) / 100
	for b.Loop() {
		start := cpuSeconds()
		sol, err := memory.Solve(p, memory.Options{})
		if err != nil {
			b.Skip(err)
		}
		used := cpuSeconds() - start
		r, err := memory.Simulate(p, sol)
		if err != nil {
			b.Fatal(err)
		}
		if r.PeakBytes > p.BudgetBytes {
			b.Fatalf("peak of %d bytes, budget %d", r.PeakBytes, p.BudgetBytes)
		}
		of := func(a int64) float64 { return 100 * float64(a) / float64(ideal) }
		b.ReportMetric(of(r.StepPicos-ideal), "overhead%")
		b.ReportMetric(of(sol.Bound.OverheadPicos), "bound%")
		b.ReportMetric(100*float64(r.StepPicos-ideal-sol.Bound.OverheadPicos)/float64(ideal+sol.Bound.OverheadPicos), "gap%")
		b.ReportMetric(100*float64(r.StallPicos)/float64(r.StepPicos), "stall%")
		b.ReportMetric(used, "cpu-s")
		b.ReportMetric(residentMiB(), "MiB")
		b.ReportMetric(0, "ns/op")
	}
}

// BenchmarkNetworks plans every network by recomputation alone.
func BenchmarkNetworks(b *testing.B) {
	for _, n := range networks.All() {
		for _, explicit := range []bool{false, true} {
			for _, percent := range []int64{90, 70, 50, 30} {
				name := n.Name
				if explicit {
					name += "-explicit"
				}
				b.Run(fmt.Sprintf("%s/%d", name, percent), func(b *testing.B) {
					report(b, n.Make(networks.Options{Explicit: explicit}), percent)
				})
			}
		}
	}
}

// BenchmarkJoint plans by recomputation and swaps: GPT-2 without weights, as its bounds were published, then networks with all their state.
func BenchmarkJoint(b *testing.B) {
	for _, n := range networks.All() {
		for _, o := range []struct {
			name string
			networks.Options
		}{{"fused", networks.Options{}}, {"explicit", networks.Options{Explicit: true}}, {"state", networks.Options{State: networks.Trained}},
			{"frozen", networks.Options{State: networks.Frozen}}} {
			for _, percent := range []int64{70, 50, 30} {
				for _, gb := range []int64{12, 25, 50} {
					b.Run(fmt.Sprintf("%s-%s/%d/%dGBs", n.Name, o.name, percent, gb), func(b *testing.B) {
						p := n.Make(o.Options)
						p.Lanes = networks.Lanes(gb, 1000, -1)
						report(b, p, percent)
					})
				}
			}
		}
	}
}

// BenchmarkStreamed streams the frozen weights of a 12-billion-parameter diffusion transformer (22 GiB at two bytes) through cards of some GiB: nothing but the lanes can help.
func BenchmarkStreamed(b *testing.B) {
	for _, recompute := range []bool{true, false} {
		for _, percent := range []int64{80, 50, 35} {
			for _, gb := range []int64{12, 25, 50} {
				b.Run(fmt.Sprintf("recompute=%v/%d/%dGBs", recompute, percent, gb), func(b *testing.B) {
					p := networks.Flux(networks.FluxConfig{Double: 19, Single: 38, Batch: 1, ImageTokens: 1024, TextTokens: 512, Width: 3072, Heads: 24},
						networks.Options{State: networks.Frozen})
					p.Lanes = networks.Lanes(gb, 1000, -1)
					p.Recompute = recompute
					report(b, p, percent)
				})
			}
		}
	}
}
