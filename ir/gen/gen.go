// Package gen makes random well-typed graphs for property tests and fuzzing of passes, planners and devices. The same options give the
// same graph. It knows the vocabulary, but nothing of passes, plans and devices.
//
// Invariants: every graph passes ir.Verify; with the content of Inputs and Params every value is finite (the generator carries an interval of
// each value along and refuses an op that would leave it); indices are in range; what nodes make is small, at most MaxElems elements each.
//
// What graphs hold on purpose: values that are used again much later (idle gaps), views, operands that die where an op may write over
// them, broadcasting, ops with several outputs, equal nodes (for cse), dead nodes (for dce), literals, integers and booleans, random ops,
// updates of state.
//
// What they do not hold: swaps and recomputes, which passes make; gradient ops, which autodiff makes; zero extents; NaN and infinity.
package gen

import (
	"fmt"
	"math"
	"math/rand/v2"

	"aitk/ir"
	"aitk/ir/op"
)

// Options say what graph is wanted. The zero value is a graph of 20 nodes of f32 without parameters.
type Options struct {
	Seed     uint64
	Nodes    int      // at least so many nodes, and a few more; 0: 20
	DType    ir.DType // of floats; Invalid: F32
	MaxElems int64    // of what a node makes, at least 64; 0: 256
	Batch    int64    // first extent of inputs; 0: 1 to 4. Only large values are worth swapping
	Params   bool     // trainable and frozen weights, statistics
	Updates  bool     // with Params: some weights are updated by SGD and Adam, statistics by MovingAverage
	Loss     bool     // a scalar result "loss" to which float values contribute; gradients can be built from it
	NoRandom bool     // no Dropout, no reserved inputs for it
}

// Graph makes a graph. Results are called r0, r1 ... and, with Options.Loss, loss.
func Graph(o Options) *ir.Graph {
	if o.Nodes == 0 {
		o.Nodes = 20
	}
	if o.DType == ir.Invalid {
		o.DType = ir.F32
	}
	if o.MaxElems == 0 {
		o.MaxElems = 256
	}
	o.MaxElems = max(o.MaxElems, 64)
	g := &generator{Options: o, rand: rand.New(rand.NewPCG(o.Seed, 0x61697467)), g: ir.NewGraph(fmt.Sprintf("gen%d", o.Seed))}
	g.b = &ir.Builder{G: g.g}
	g.leaves()
	all := makers()
	for len(g.g.Nodes) < o.Nodes {
		m := all[g.rand.IntN(len(all))]
		m(g)
	}
	g.results()
	if o.Params && o.Updates {
		g.updates()
	}
	g.g.Renumber()
	return g.g
}

// maker tries to add an op to operands that it finds, with what the op needs around it. It may find none and do nothing.
type maker func(g *generator)

// makers is the table of everything that the generator knows to make.
func makers() []maker {
	var all []maker
	for _, family := range [][]maker{elementwise(), shapes(), indexing(), reductions(), layers(), training()} {
		all = append(all, family...)
	}
	return all
}

// span bounds the elements of a value.
type span struct{ lo, hi float64 }

// size is the largest magnitude.
func (s span) size() float64 { return max(math.Abs(s.lo), math.Abs(s.hi)) }

func around(x float64) span { return span{-x, x} }

func join(a, b span) span { return span{min(a.lo, b.lo), max(a.hi, b.hi)} }

// most is the largest magnitude of a value: f16 holds its square nearly, and f32 the sum of many squares.
const most = 200

type generator struct {
	Options
	rand    *rand.Rand
	g       *ir.Graph
	b       *ir.Builder
	pool    []*ir.Value // what makers may use as operands
	spans   []span      // by value ID
	streams uint64
	ok      *ir.Value // flag of updates
}

// leaves are a matrix, an image, a batch of sequences, indices and a mask.
func (g *generator) leaves() {
	batch := 1 + g.extent()%4
	if g.Batch > 0 {
		batch = g.Batch
	}
	g.input("x", ir.T(g.DType, batch, 2+g.extent()))
	g.input("image", ir.T(g.DType, batch, 2, 3+g.extent()%3, 4))
	g.input("sequence", ir.T(g.DType, batch, 3, 4))
	g.input("index", ir.T(ir.I64, batch))
	g.input("mask", ir.T(ir.Bool, batch, 1))
}

// extent is a small random extent.
func (g *generator) extent() int64 { return 1 + g.rand.Int64N(5) }

func (g *generator) input(name string, t ir.Type) {
	g.keep(g.g.AddInput(name, t), contentSpan(t.DType))
}

// reserved is one of the reserved inputs, made at first use.
func (g *generator) reserved(name string, d ir.DType) *ir.Value {
	if v := g.g.Input(name); v != nil {
		return v
	}
	return g.g.AddInput(name, ir.T(d))
}

// keep puts a value into the pool.
func (g *generator) keep(v *ir.Value, s span) *ir.Value {
	for int(v.ID) >= len(g.spans) {
		g.spans = append(g.spans, span{})
	}
	g.spans[v.ID] = s
	g.pool = append(g.pool, v)
	return v
}

func (g *generator) span(v *ir.Value) span { return g.spans[v.ID] }

// add makes a node with one output if its elements stay small enough; nil otherwise.
func (g *generator) add(o ir.Op, s span, in ...*ir.Value) *ir.Value {
	types := make([]ir.Type, len(in))
	for i, v := range in {
		types[i] = v.Type
	}
	out, err := o.Infer(types)
	if err != nil {
		panic(ir.Bugf("generated %s: %v", ir.FormatOp(o), err))
	}
	if out[0].Elems() > g.MaxElems || !(s.size() <= most) {
		return nil
	}
	return g.keep(g.b.Add(o, in...), s)
}

// pick finds a value: half of the time a recent one, so that graphs are deep, else any, so that values live long.
func (g *generator) pick(want func(*ir.Value) bool) *ir.Value {
	recent := max(0, len(g.pool)-6)
	if g.rand.IntN(2) == 0 {
		recent = 0
	}
	for _, from := range [][]*ir.Value{g.pool[recent:], g.pool[:recent]} {
		start := 0
		if len(from) > 0 {
			start = g.rand.IntN(len(from))
		}
		for i := range from {
			if v := from[(start+i)%len(from)]; want(v) {
				return v
			}
		}
	}
	return nil
}

func (g *generator) isFloat(v *ir.Value) bool { return v.Type.DType == g.DType }

// float picks a float value of at least that rank.
func (g *generator) float(rank int) *ir.Value {
	return g.pick(func(v *ir.Value) bool { return g.isFloat(v) && len(v.Type.Shape) >= rank })
}

// of finds a value of a type or makes one: a parameter, a literal or a Fill.
func (g *generator) of(t ir.Type) *ir.Value {
	if g.rand.IntN(3) == 0 {
		if v := g.pick(func(v *ir.Value) bool { return v.Type.Equal(t) }); v != nil {
			return v
		}
	}
	switch {
	case g.Params && t.DType == g.DType && g.rand.IntN(3) > 0:
		return g.param(t).Value
	case g.rand.IntN(2) == 0:
		return g.keep(g.g.AddConst(t, content(g.rand, t).Encode()), contentSpan(t.DType))
	}
	x := float64(g.rand.IntN(2))
	return g.keep(g.b.Add(op.Fill{DType: t.DType, Shape: t.Shape.Clone(), Value: x}), span{x, x})
}

// param is a new weight, most often trainable.
func (g *generator) param(t ir.Type) *ir.Param {
	p := g.g.AddParam(fmt.Sprintf("w%d", len(g.g.Params)), t)
	p.Trainable = g.rand.IntN(4) > 0
	p.Init = ir.Init{Kind: ir.InitLiteral, Literal: content(g.rand, t).Encode()}
	g.keep(p.Value, contentSpan(t.DType))
	return p
}

// results names what leaves the graph: the last value, some others, and the loss. The rest of what nobody reads is dead.
func (g *generator) results() {
	last := g.pool[len(g.pool)-1]
	g.g.Results = append(g.g.Results, ir.Result{Name: "r0", Value: last})
	for i := range 1 + g.rand.IntN(3) {
		if v := g.pick(func(v *ir.Value) bool { return v.Def != nil }); v != nil {
			g.g.Results = append(g.g.Results, ir.Result{Name: fmt.Sprintf("r%d", i+1), Value: v})
		}
	}
	if g.Loss {
		g.g.Results = append(g.g.Results, ir.Result{Name: "loss", Value: g.loss()})
	}
}

// loss is the sum of the means of some float values that nodes made, the last one among them.
func (g *generator) loss() *ir.Value {
	var total *ir.Value
	left := 3
	for i := len(g.pool) - 1; i >= 0 && left > 0; i-- {
		v := g.pool[i]
		if !g.isFloat(v) || v.Def == nil || len(v.Def.In) == 0 || ir.IsStateful(v.Def.Op) || left < 3 && g.rand.IntN(3) > 0 {
			continue
		}
		left--
		axes := make([]int64, len(v.Type.Shape))
		for a := range axes {
			axes[a] = int64(a)
		}
		mean := g.b.Add(op.ReduceMean{Axes: axes}, v)
		if total == nil {
			total = mean
		} else {
			total = g.b.Add(op.Add{}, total, mean)
		}
	}
	if total == nil {
		total = g.b.Add(op.ReduceMean{Axes: []int64{0, 1}}, g.b.Add(op.Tanh{}, g.g.Inputs[0]))
	}
	return total
}
