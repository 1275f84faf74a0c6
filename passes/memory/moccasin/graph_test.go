package moccasin

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"aitk/passes/memory"
)

// TestPublicGraphs compares nodes, edges, peak and sum of durations with those known of the public files.
func TestPublicGraphs(t *testing.T) {
	for _, c := range []struct{ file, want string }{
		{"RL1", "100 236 46319 47769"}, {"RL2", "250 944 146840 125569"}, {"RL3", "500 2461 284439 255302"}, {"RL4", "1000 5875 608619 497270"},
		{"CM1_fcn8", "73 149 13484795520 10275337746048"}, {"CM2_resnet50", "353 751 38059356160 405670"}, {"MN_mobilenet", "185 367 34701056000 162080"},
		{"UN_unet", "71 148 20959461376 31005"}, {"SN_segnet", "77 151 19943884288 4933130"}, {"V16_vgg16", "45 87 15825108992 15500"},
		{"V19_vgg19", "51 99 17058234368 9493135"},
	} {
		f, err := os.Open(filepath.Join("..", "..", "..", "..", "shared", "bench", "moccasin", c.file+".json"))
		if err != nil {
			t.Skipf("the public graph %s is not at hand: %v", c.file, err)
		}
		g, err := Read(c.file, f)
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		edges := 0
		for i := range g.Problem.Ops {
			edges += len(g.Problem.Ops[i].In)
		}
		r, err := memory.Simulate(&g.Problem, &memory.Solution{})
		if err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprint(len(g.IDs), edges, r.PeakBytes, r.StepPicos); got != c.want {
			t.Errorf("%s: nodes, edges, peak, time are %s, want %s", c.file, got, c.want)
		}
	}
}

const square = `{"graph": {"name": "square", "order": [7, 2, 3, 9]},
	"nodes": [{"name": 2, "out_cost": 20, "duration": 2}, {"name": 3, "out_cost": 30, "duration": 3}, {"name": 7, "out_cost": 70, "duration": 7},
		{"name": 9, "out_cost": 90, "duration": 9}],
	"links": [{"0": 7, "1": 2}, {"0": 7, "1": 3}, {"0": 2, "1": 9}, {"0": 3, "1": 9}, {"0": 3, "1": 9}]}`

func TestReadAndSchedule(t *testing.T) {
	g, err := Read("square.json", strings.NewReader(square))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := fmt.Sprintf("%s %s", g.Name, g.IDs), "square [7 2 3 9]"; got != want {
		t.Errorf("read %s, want %s", got, want)
	}
	s := &memory.Solution{Recomputes: []memory.Recompute{{Stage: 2, Op: 0}}}
	if got := fmt.Sprintf("%s", g.Schedule(nil, s)); got != "[7 2 7 3 9]" {
		t.Errorf("schedule is %s", got)
	}
	if got := fmt.Sprintf("%s", g.Schedule([]int32{0, 2, 1, 3}, s)); got != "[7 3 7 2 9]" {
		t.Errorf("schedule in another order is %s", got)
	}
	// Both ends included: op 2 (node 3) has 7, 2 and its own output.
	r, err := memory.Simulate(&g.Problem, &memory.Solution{})
	if err != nil || r.PeakBytes != 90+30+20 || r.PeakStage != 3 {
		t.Errorf("peak %d at %d, %v; want 140 at 3", r.PeakBytes, r.PeakStage, err)
	}
}

func TestReadRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{square, "[1]", "not a node-link graph"},
		{square, "{}", "no nodes"},
		{`"out_cost": 30`, `"out_cost": x`, "f.json:2:80: not a node-link graph"},
		{`"name": 3,`, `"name": 2,`, "listed twice"},
		{`"name": 3,`, `"name": [3],`, "neither an id nor a name"},
		{`"0": 2,`, `"0": 5,`, "link 2: source 5 is not a node"},
		{`{"0": 2,`, `{"zero": 2,`, "link 2 has no source"},
		{"[7, 2, 3, 9]", "[7, 2, 9, 3]", "runs node 9 before node 3"},
		{"[7, 2, 3, 9]", "[7, 2, 2, 9]", "graph.order leaves out node 3"},
		{"[7, 2, 3, 9]", "[7, 2, 3, 8]", "graph.order[3]: 8 is not a node"},
		{`, "order": [7, 2, 3, 9]`, `, "x": 1`, ""},
		{`"order": [7, 2, 3, 9]}`, `"x": 1}`, ""},
		{`"duration": 3`, `"duration": -3`, "duration is -3"},
		{`"duration": 3`, `"duration": 3.5`, "duration is 3.5"},
		{`"duration": 3`, `"length": 3`, "node 3 has neither duration nor cost_cpu"},
		{`"out_cost": 30`, `"out_cost": 9e18`, "want a whole number"},
		{`"out_cost": 30`, `"out_cost": 9000000000000000000`, "out of range"},
	} {
		_, err := Read("f.json", strings.NewReader(strings.ReplaceAll(square, c.old, c.new)))
		if c.want == "" {
			if err != nil {
				t.Errorf("%s: %v", c.new, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "f.json") {
			t.Errorf("%s: got %v, want an error with %q", c.new, err, c.want)
		}
	}
	cycle := strings.ReplaceAll(strings.Replace(square, `{"0": 7, "1": 2}`, `{"0": 9, "1": 7}`, 1), `"order": [7, 2, 3, 9]`, `"x": 1`)
	if _, err := Read("f.json", strings.NewReader(cycle)); err == nil || !strings.Contains(err.Error(), "cycle") {
		t.Errorf("a cycle gives %v", err)
	}
}

// FuzzRead: no file makes Read panic, and what it takes is a valid problem.
func FuzzRead(f *testing.F) {
	f.Add([]byte(square))
	f.Add([]byte(`{"nodes":[{"id":0,"cost_ram":1,"cost_cpu":1}],"links":[]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := Read("f", strings.NewReader(string(data)))
		if err != nil {
			return
		}
		if _, err := memory.Simulate(&g.Problem, &memory.Solution{}); err != nil {
			t.Error(err)
		}
	})
}

// TestRandomLayered: as many edges as the public graph of the same parameters has, and mean size and duration, within what chance allows.
func TestRandomLayered(t *testing.T) {
	var edges, bytes, picos float64
	const graphs = 8
	for seed := range uint64(graphs) {
		g := RandomLayered(Layers{Nodes: 1000, Width: 0.31, Seed: seed})
		if err := memory.Validate(&g.Problem); err != nil || len(g.IDs) != 1000 {
			t.Fatalf("seed %d: %d nodes, %v", seed, len(g.IDs), err)
		}
		for i := range g.Problem.Ops {
			edges += float64(len(g.Problem.Ops[i].In)) / graphs
			bytes += float64(g.Problem.Values[i].Bytes) / graphs / 1000
			picos += float64(g.Problem.Ops[i].Picos) / graphs / 998
		}
	}
	if math.Abs(edges-5875) > 600 || math.Abs(bytes-1990) > 200 || math.Abs(picos-500) > 30 {
		t.Errorf("means are %.0f edges, %.0f bytes, duration %.0f; the public graph has 5875, and 1990 and 500 are the means of its kind", edges, bytes, picos)
	}
}
