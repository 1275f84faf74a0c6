package moccasin

import (
	"encoding/json"
	"strings"
	"testing"

	"aitk/passes/memory"
)

func ids(text string) (list []json.RawMessage) {
	for _, s := range strings.Fields(text) {
		list = append(list, json.RawMessage(s))
	}
	return list
}

func TestReplay(t *testing.T) {
	g, err := Read("square.json", strings.NewReader(square))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		schedule, err string
		peak, time    int64
	}{
		{"7 2 3 9", "", 140, 21},
		{"7 2 7 3 9", "", 140, 28}, // 7 and 2 and 3; then 2, 3 and 9
		{"7 3 2 9", "", 140, 21},
		{"7 2 3 9 9", "", 140, 30}, // both 9s read the same 2 and 3
		{"7 2 3", "never computes node 9", 0, 0},
		{"7 2 9 3", "schedule[2] computes node 9 before node 3", 0, 0},
		{"7 2 3 8", "schedule[3]: 8 is not a node", 0, 0},
		{"", "never computes", 0, 0},
	} {
		peak, time, err := g.Replay(ids(c.schedule))
		switch {
		case c.err == "" && (err != nil || peak != c.peak || time != c.time):
			t.Errorf("%s: peak %d, time %d, %v; want %d and %d", c.schedule, peak, time, err, c.peak, c.time)
		case c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)):
			t.Errorf("%s: %v, want %q", c.schedule, err, c.err)
		}
	}
}

// TestReplayAgrees: what the solver's simulator says of plans of random graphs, Replay says of their schedules.
func TestReplayAgrees(t *testing.T) {
	for seed := range uint64(12) {
		g := RandomLayered(Layers{Nodes: 20 + 10*int(seed), Seed: seed})
		all, err := memory.Unlimited(&g.Problem)
		if err != nil {
			t.Fatal(err)
		}
		for _, permille := range []int64{1000, 900, 800} {
			p := g.Problem
			p.BudgetBytes = BudgetBytes(all.PeakBytes, permille)
			sol, err := memory.Solve(&p, memory.Options{Moves: 2000})
			if err != nil {
				continue // the smallest peak of some is above
			}
			peak, time, err := g.Replay(g.Schedule(nil, sol))
			if err != nil || peak != sol.PeakBytes || time != sol.StepPicos {
				t.Errorf("seed %d at %d permille: replay %d and %d, %v; simulator %d and %d", seed, permille, peak, time, err, sol.PeakBytes, sol.StepPicos)
			}
		}
	}
}
