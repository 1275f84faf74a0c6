package memory

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// moccasin describes one public benchmark graph: its figures without recompute and the best overheads known for budgets of
// 90, 80, 70 % of its peak, in thousandths of a percent (-1: infeasible or none known).
type moccasin struct {
	file   string
	n, m   int
	peak   int64
	sum    int64
	degree int64 // op-degree bound over peak, permille
	best   [3]int64
}

var moccasins = []moccasin{
	{"RL1.json", 100, 236, 46319, 47769, 432, [3]int64{789, 2296, 6390}},
	{"RL2.json", 250, 944, 146840, 125569, 597, [3]int64{904, 4261, -1}},
	{"RL3.json", 500, 2461, 284439, 255302, 174, [3]int64{701, 3120, -1}},
	{"RL4.json", 1000, 5875, 608619, 497270, 80, [3]int64{689, 2722, 7230}},
	{"CM1_fcn8.json", 73, 149, 13484795520, 10275337746048, 615, [3]int64{29, 136, 891}},
	{"CM2_resnet50.json", 353, 751, 38059356160, 405670, 97, [3]int64{108, 279, 564}},
	{"MN_mobilenet.json", 185, 367, 34701056000, 162080, 191, [3]int64{163, 370, 626}},
	{"UN_unet.json", 71, 148, 20959461376, 31005, 395, [3]int64{1129, 1984, 2967}},
	{"SN_segnet.json", 77, 151, 19943884288, 4933130, 416, [3]int64{103, 207, 311}},
	{"V16_vgg16.json", 45, 87, 15825108992, 15500, 831, [3]int64{1968, -1, -1}},
	{"V19_vgg19.json", 51, 99, 17058234368, 9493135, 771, [3]int64{104, 2756, -1}},
}

// readMoccasin reads a graph in its fixed order; the test is skipped where the public files are not at hand. Durations become picoseconds.
func readMoccasin(t testing.TB, file string) *Problem {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("..", "..", "..", "shared", "bench", "moccasin", file))
	if err != nil {
		t.Skipf("the public graph %s is not at hand: %v", file, err)
	}
	var g struct {
		Graph struct{ Order []int }
		Nodes []struct {
			ID       *int
			Name     json.RawMessage // the number, where there is no ID
			OutCost  int64           `json:"out_cost"`
			Duration int64
			CostRAM  int64 `json:"cost_ram"`
			CostCPU  int64 `json:"cost_cpu"`
		}
		Links []map[string]json.RawMessage
	}
	if err := json.Unmarshal(data, &g); err != nil {
		t.Fatal(err)
	}
	index := map[int]int{}
	for i, n := range g.Nodes {
		id := i
		if n.ID != nil {
			id = *n.ID
		} else if err := json.Unmarshal(n.Name, &id); err != nil {
			t.Fatal(err)
		}
		index[id] = i
	}
	end := func(l map[string]json.RawMessage, keys ...string) int {
		for _, k := range keys {
			if raw, ok := l[k]; ok {
				var id int
				if err := json.Unmarshal(raw, &id); err != nil {
					t.Fatal(err)
				}
				return index[id]
			}
		}
		t.Fatalf("%s: link without end", file)
		return 0
	}
	next, waits := make([][]int, len(g.Nodes)), make([]int, len(g.Nodes))
	prev := make([][]int, len(g.Nodes))
	for _, l := range g.Links {
		a, b := end(l, "source", "0"), end(l, "target", "1")
		next[a] = append(next[a], b)
		prev[b] = append(prev[b], a)
		waits[b]++
	}
	order := make([]int, 0, len(g.Nodes))
	for _, id := range g.Graph.Order {
		order = append(order, index[id])
	}
	if len(order) == 0 { // first in, first out
		for i := range g.Nodes {
			if waits[i] == 0 {
				order = append(order, i)
			}
		}
		for k := 0; k < len(order); k++ {
			for _, b := range next[order[k]] {
				if waits[b]--; waits[b] == 0 {
					order = append(order, b)
				}
			}
		}
	}
	at := make([]int32, len(g.Nodes))
	for i, k := range order {
		at[k] = int32(i)
	}
	p := &Problem{BudgetBytes: -1, Recompute: true}
	for i, k := range order {
		n := g.Nodes[k]
		o := Op{Picos: max(n.Duration, n.CostCPU), Out: []int32{int32(i)}, LastRerun: int32(len(order))}
		for _, a := range prev[k] {
			if !contains(o.In, at[a]) {
				o.In = append(o.In, at[a])
			}
		}
		slices.Sort(o.In)
		p.Ops = append(p.Ops, o)
		p.Values = append(p.Values, Value{Bytes: max(n.OutCost, n.CostRAM), Def: int32(i), Becomes: -1})
	}
	return p
}

func TestMoccasinPeaks(t *testing.T) {
	for _, g := range moccasins {
		t.Run(g.file, func(t *testing.T) {
			p := readMoccasin(t, g.file)
			if err := Validate(p); err != nil {
				t.Fatal(err)
			}
			edges := 0
			for i := range p.Ops {
				edges += len(p.Ops[i].In)
			}
			got, err := Simulate(p, &Solution{})
			if err != nil {
				t.Fatal(err)
			}
			want := fmt.Sprint(g.n, g.m, g.peak, g.sum)
			if have := fmt.Sprint(len(p.Ops), edges, got.PeakBytes, got.StepPicos); have != want {
				t.Errorf("nodes, edges, peak, time are %s, want %s", have, want)
			}
			if s := newState(newModel(p)); s.tree.peak() != g.peak {
				t.Errorf("the state's peak is %d, want %d", s.tree.peak(), g.peak)
			}
		})
	}
}
