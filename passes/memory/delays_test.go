package memory_test

import (
	"math/rand/v2"
	"testing"

	"aitk/passes/memory"
	"aitk/passes/memory/networks"
)

// TestDelays executes plans of recomputes and swaps, with state whose home the plan chooses, at speeds other than those that they were made for: ops and lanes are slower or faster at
// random. Whatever waits for what, every step ends, with the same bytes on the device and on the host.
func TestDelays(t *testing.T) {
	small := networks.TransformerConfig{Blocks: 3, Batch: 8, Tokens: 1024, Width: 768, Heads: 12}
	for _, c := range []struct {
		name    string
		state   networks.State
		percent int64
		host    int64
		rerun   bool
	}{
		{"activations", networks.Excluded, 50, -1, true}, {"state", networks.Trained, 45, -1, true}, {"state, little host", networks.Trained, 60, 600 << 20, true},
		{"frozen", networks.Frozen, 50, -1, true}, {"streamed", networks.Frozen, 60, -1, false},
	} {
		p := networks.Transformer(small, networks.Options{State: c.state})
		p.Lanes = networks.Lanes(25, 800, c.host)
		p.Recompute = c.rerun
		all, err := memory.Unlimited(p)
		if err != nil {
			t.Fatal(err)
		}
		p.BudgetBytes = all.PeakBytes * c.percent / 100
		sol, err := memory.Solve(p, memory.Options{Moves: 3000})
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if len(sol.Swaps) == 0 || sol.PeakBytes > p.BudgetBytes || c.host >= 0 && sol.HostPeakBytes > c.host {
			t.Errorf("%s: %d swaps, %d of %d bytes, %d on the host", c.name, len(sol.Swaps), sol.PeakBytes, p.BudgetBytes, sol.HostPeakBytes)
		}
		var ideal int64
		for i := range p.Ops {
			ideal += p.Ops[i].Picos
		}
		if over := sol.StepPicos - ideal; over < sol.Bound.OverheadPicos {
			t.Errorf("%s: overhead %d is below the bound %d (%s)", c.name, over, sol.Bound.OverheadPicos, sol.Bound.Name)
		}
		for seed := range uint64(50) {
			r := rand.New(rand.NewPCG(seed, 9))
			q, lanes := *p, *p.Lanes
			q.Lanes, q.Ops = &lanes, append([]memory.Op(nil), p.Ops...)
			for i := range q.Ops {
				q.Ops[i].Picos = q.Ops[i].Picos * int64(r.IntN(40)) / 10
			}
			lanes.D2HBytesPerSec = 1 + int64(r.IntN(100))*lanes.D2HBytesPerSec/30
			lanes.H2DBytesPerSec = 1 + int64(r.IntN(100))*lanes.H2DBytesPerSec/30
			lanes.LatencyPicos = int64(r.IntN(100)) * 1e6
			got, err := memory.Simulate(&q, sol)
			if err != nil {
				t.Fatalf("%s, seed %d: %v", c.name, seed, err)
			}
			if got.PeakBytes != sol.PeakBytes || got.HostPeakBytes != sol.HostPeakBytes {
				t.Fatalf("%s, seed %d: %d bytes, %d on the host; planned %d, %d", c.name, seed, got.PeakBytes, got.HostPeakBytes, sol.PeakBytes, sol.HostPeakBytes)
			}
		}
	}
}

// TestJointGaps holds the plans of twelve blocks of GPT-2 to their certified bounds: the bounds leave little open, with lanes and without.
func TestJointGaps(t *testing.T) {
	for _, c := range []struct {
		explicit    bool
		percent, gb int64
		permille    int64 // of total time, with room to spare over what is measured
	}{{false, 50, 0, 10}, {true, 50, 0, 10}, {false, 30, 0, 10}, {true, 70, 25, 10}, {false, 70, 12, 10}, {true, 50, 25, 15}, {false, 50, 50, 15}} {
		p := networks.Transformer(networks.TransformerConfig{Blocks: 12, Batch: 8, Tokens: 1024, Width: 768, Heads: 12}, networks.Options{Explicit: c.explicit})
		if c.gb > 0 {
			p.Lanes = networks.Lanes(c.gb, 1000, -1)
		}
		all, err := memory.Unlimited(p)
		if err != nil {
			t.Fatal(err)
		}
		p.BudgetBytes = all.PeakBytes * c.percent / 100
		sol, err := memory.Solve(p, memory.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if least := all.StepPicos + sol.Bound.OverheadPicos; sol.StepPicos < least || (sol.StepPicos-least)*1000 > c.permille*least {
			t.Errorf("explicit %v, %d %%, %d GB/s: step of %d ps, bound %d (%s)", c.explicit, c.percent, c.gb, sol.StepPicos, least, sol.Bound.Name)
		}
	}
}
