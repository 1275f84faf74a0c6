package moccasin

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"

	"aitk/passes/memory"
)

// Layers are the parameters of a random layered graph (Gagrani et al., 2022, appendix A), with the values of the public graphs as defaults where they are 0.
type Layers struct {
	Nodes     int     // with one source and one sink
	Width     float64 // 0.25 to 0.5: how wide the graph is for its length
	Variation float64 // of the layers' sizes; 0.75
	Density   float64 // of edges between neighbouring layers; 0.2
	Skips     float64 // share of edges that skip layers; 0.14
	Seed      uint64
}

// RandomLayered draws a graph: layers of random size, windows of edges between neighbours, skip edges, durations of 1 to 999, sizes of a mixture of
// normal distributions, and an order that draws from the two lowest open layers. The same parameters give the same graph.
func RandomLayered(l Layers) *Graph {
	d := drawing{Layers: l, r: rand.New(rand.NewPCG(l.Seed, 0x1a7e5))}
	set := func(x *float64, v float64) {
		if *x == 0 {
			*x = v
		}
	}
	set(&d.Width, 0.31)
	set(&d.Variation, 0.75)
	set(&d.Density, 0.2)
	set(&d.Skips, 0.14)
	d.Nodes = max(d.Nodes, 4)
	d.layers()
	d.neighbours()
	d.skip()
	d.repair()
	return d.graph()
}

type drawing struct {
	Layers
	r     *rand.Rand
	layer [][]int32 // nodes by inner layer; node 0 is the source, the last one the sink
	edges [][2]int32
	known map[[2]int32]bool
}

func (d *drawing) edge(a, b int32) bool {
	if d.known[[2]int32{a, b}] {
		return false
	}
	d.known[[2]int32{a, b}] = true
	d.edges = append(d.edges, [2]int32{a, b})
	return true
}

// layers draws the sizes of the inner layers.
func (d *drawing) layers() {
	d.known = map[[2]int32]bool{}
	inner := d.Nodes - 2
	count := math.Ceil(math.Sqrt(float64(d.Nodes) * (1/d.Width - 1)))
	mean := float64(d.Nodes) / count
	lo := max(1, int(math.Ceil(mean*(1-d.Variation))))
	hi := max(lo, int(math.Floor(mean*(1+d.Variation))))
	for k := int32(1); int(k) <= inner; {
		size := min(lo+d.r.IntN(hi-lo+1), inner-int(k)+1)
		var nodes []int32
		for range size {
			nodes = append(nodes, k)
			k++
		}
		d.layer = append(d.layer, nodes)
	}
}

// neighbours joins consecutive layers: every node of the wider one has a window of edges around the place opposite.
func (d *drawing) neighbours() {
	for i := 0; i+1 < len(d.layer); i++ {
		wide, narrow, forward := d.layer[i], d.layer[i+1], true
		if len(narrow) > len(wide) {
			wide, narrow, forward = narrow, wide, false
		}
		count := int(math.Round(d.Density*float64(len(wide)*len(narrow)) + (1-d.Density)*float64(len(wide))))
		each := make([]int, len(wide))
		for k := range each {
			each[k] = count / len(wide)
		}
		for _, k := range d.r.Perm(len(wide))[:count%len(wide)] {
			each[k]++
		}
		for k, s := range wide {
			c := min(each[k], len(narrow))
			centre := 0.0
			if len(wide) > 1 {
				centre = float64(k) * float64(len(narrow)-1) / float64(len(wide)-1)
			}
			first := min(max(0, int(math.Round(centre-float64(c-1)/2))), len(narrow)-c)
			for _, t := range narrow[first : first+c] {
				if forward {
					d.edge(s, t)
				} else {
					d.edge(t, s)
				}
			}
		}
	}
}

// skip adds edges that leave out layers.
func (d *drawing) skip() {
	layers := len(d.layer)
	if layers < 3 {
		return
	}
	want := int(math.Round(float64(len(d.edges)) * d.Skips / (1 - d.Skips)))
	for tries := 0; want > 0 && tries < 100*d.Nodes; tries++ {
		from := d.r.IntN(layers - 2)
		to := from + 2 + d.r.IntN(layers-from-2)
		x := d.r.Float64()
		y := min(x+0.2*d.r.Float64(), 0.999)
		if d.edge(d.layer[from][int(x*float64(len(d.layer[from])))], d.layer[to][int(y*float64(len(d.layer[to])))]) {
			want--
		}
	}
}

// repair joins what hangs free, and the source and the sink.
func (d *drawing) repair() {
	in, out := make([]bool, d.Nodes), make([]bool, d.Nodes)
	for _, e := range d.edges {
		out[e[0]], in[e[1]] = true, true
	}
	for i, nodes := range d.layer {
		for _, k := range nodes {
			if i == 0 {
				d.edge(0, k)
			} else if !in[k] {
				d.edge(d.layer[i-1][d.r.IntN(len(d.layer[i-1]))], k)
			}
			if i == len(d.layer)-1 {
				d.edge(k, int32(d.Nodes-1))
			} else if !out[k] {
				d.edge(k, d.layer[i+1][d.r.IntN(len(d.layer[i+1]))])
			}
		}
	}
}

// order draws a topological order that mixes neighbouring layers.
func (d *drawing) order() []int32 {
	waits, next := make([]int, d.Nodes), make([][]int32, d.Nodes)
	for _, e := range d.edges {
		waits[e[1]]++
		next[e[0]] = append(next[e[0]], e[1])
	}
	depth := make([]int, d.Nodes)
	for i, nodes := range d.layer {
		for _, k := range nodes {
			depth[k] = i + 1
		}
	}
	depth[d.Nodes-1] = len(d.layer) + 1
	ready, order := []int32{0}, []int32(nil)
	for len(ready) > 0 {
		lowest := depth[ready[0]]
		for _, k := range ready {
			lowest = min(lowest, depth[k])
		}
		var open []int
		for i, k := range ready {
			if depth[k] <= lowest+1 {
				open = append(open, i)
			}
		}
		i := open[d.r.IntN(len(open))]
		k := ready[i]
		ready = slices.Delete(ready, i, i+1)
		order = append(order, k)
		for _, b := range next[k] {
			if waits[b]--; waits[b] == 0 {
				ready = append(ready, b)
			}
		}
	}
	return order
}

// bytes draws a size: the absolute value of a mixture of normal distributions, in tens.
func (d *drawing) bytes() int64 {
	means, spreads := [4]float64{.5, 1, 2, 4}, [4]float64{.5, .5, 1, 1}
	k := d.r.IntN(4)
	return max(10, 10*int64(math.Round(100*math.Abs(means[k]+spreads[k]*d.r.NormFloat64()))))
}

func (d *drawing) graph() *Graph {
	order := d.order()
	at := make([]int32, d.Nodes)
	g := &Graph{Name: "layered-" + strconv.Itoa(d.Nodes), Problem: memory.Problem{BudgetBytes: -1, Recompute: true}}
	for i, k := range order {
		at[k] = int32(i)
		g.IDs = append(g.IDs, json.RawMessage(strconv.Itoa(int(k))))
		o := memory.Op{Picos: int64(1 + d.r.IntN(999)), Out: []int32{int32(i)}, LastRerun: int32(d.Nodes)}
		if k == 0 || int(k) == d.Nodes-1 {
			o.Picos = 0
		}
		g.Problem.Ops = append(g.Problem.Ops, o)
		g.Problem.Values = append(g.Problem.Values, memory.Value{Bytes: d.bytes(), Def: int32(i), Becomes: -1})
	}
	for _, e := range d.edges {
		o := &g.Problem.Ops[at[e[1]]]
		o.In = append(o.In, at[e[0]])
	}
	for i := range g.Problem.Ops {
		slices.Sort(g.Problem.Ops[i].In)
	}
	return g
}
