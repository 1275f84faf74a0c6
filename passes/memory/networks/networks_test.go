package networks

import (
	"testing"

	"aitk/passes/memory"
)

// TestSizes compares the GPT-2 rows with the figures that the cost model was stated with: nodes and edges exactly, time and peak to half a percent.
func TestSizes(t *testing.T) {
	for _, c := range []struct {
		blocks       int64
		explicit     bool
		nodes, edges int
		ms, gib      float64
	}{
		{12, true, 437, 713, 69.0, 8.10}, {48, true, 1733, 2837, 0, 0}, {200, true, 7205, 11805, 0, 0}, {1000, true, 36005, 59005, 0, 0},
		{12, false, 353, 569, 43.9, 2.45}, {48, false, 1397, 2261, 0, 0}, {200, false, 5805, 9405, 0, 0}, {1000, false, 29005, 47005, 0, 0},
	} {
		p := Transformer(TransformerConfig{Blocks: c.blocks, Batch: 8, Tokens: 1024, Width: 768, Heads: 12}, Options{Explicit: c.explicit})
		edges := 0
		for i := range p.Ops {
			edges += len(p.Ops[i].In)
		}
		if len(p.Ops) != c.nodes || edges != c.edges {
			t.Errorf("%d blocks, explicit %v: %d nodes, %d edges; want %d, %d", c.blocks, c.explicit, len(p.Ops), edges, c.nodes, c.edges)
		}
		r, err := memory.Simulate(p, &memory.Solution{})
		if err != nil {
			t.Fatal(err)
		}
		ms, gib := float64(r.StepPicos)/1e9, float64(r.PeakBytes)/(1<<30)
		near := func(a, b float64) bool { return a > b*0.995 && a < b*1.005 }
		if c.ms > 0 && (!near(ms, c.ms) || !near(gib, c.gib)) {
			t.Errorf("%d blocks, explicit %v: %.2f ms, %.3f GiB; want %.1f, %.2f", c.blocks, c.explicit, ms, gib, c.ms, c.gib)
		}
	}
}

// TestAll makes every network with every state and looks whether it is a valid step; the sizes are logged.
func TestAll(t *testing.T) {
	for _, n := range All() {
		for state, name := range []string{"", "+state", "+frozen"} {
			p := n.Make(Options{State: State(state)})
			if err := memory.Validate(p); err != nil {
				t.Errorf("%s%s: %v", n.Name, name, err)
				continue
			}
			r, err := memory.Simulate(p, &memory.Solution{})
			if err != nil {
				t.Errorf("%s%s: %v", n.Name, name, err)
				continue
			}
			t.Logf("%s%s: %d ops, %d values, %.1f ms, %.2f GiB", n.Name, name, len(p.Ops), len(p.Values), float64(r.StepPicos)/1e9, float64(r.PeakBytes)/(1<<30))
		}
	}
}
