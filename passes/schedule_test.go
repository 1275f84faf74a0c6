package passes_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"aitk/ir"
	"aitk/ir/gen"
	"aitk/ir/op"
	"aitk/passes"
)

func scheduled(t *testing.T, g *ir.Graph) {
	t.Helper()
	ctx := &passes.Context{Options: passes.Options{VerifyEach: true}}
	if err := passes.Run(ctx, g, pick(t, []string{"schedule"}), nil); err != nil {
		t.Fatal(err)
	}
}

// The order that comes out is valid, has the same nodes, is never worse than what came in, keeps updates in place, and does not depend on
// anything but the graph. (That results stay bit-equal is in TestContracts.)
func TestScheduleOfRandomGraphs(t *testing.T) {
	better := 0
	randomGraphs(t, 100, gen.Options{Params: true, Updates: true, Loss: true}, func(t *testing.T, seed uint64, g *ir.Graph) {
		before, placed := passes.Live(g, nil, nil).PeakBytes, inPlace(g)
		nodes := slices.Clone(g.Nodes)
		again := g.Clone()
		scheduled(t, g)
		scheduled(t, again)
		if g.String() != again.String() {
			t.Error("two runs differ")
		}
		l := passes.Live(g, nil, nil)
		if l.PeakBytes > before {
			t.Errorf("peak %d, was %d", l.PeakBytes, before)
		}
		if l.PeakBytes < before {
			better++
		}
		if n := inPlace(g); n < placed {
			t.Errorf("%d parameters updated in place, were %d", n, placed)
		}
		byID := func(a, b *ir.Node) int { return int(a.ID) - int(b.ID) }
		sorted := slices.Clone(g.Nodes)
		slices.SortFunc(sorted, byID)
		slices.SortFunc(nodes, byID)
		if !slices.Equal(sorted, nodes) {
			t.Error("nodes were lost or added")
		}
	})
	if better < 20 {
		t.Errorf("only %d graphs got a lower peak", better)
	}
}

// chain is a training step of depth layers, with gradients and updates.
func chain(t testing.TB, depth int) *ir.Graph {
	g := ir.NewGraph("m")
	b := &ir.Builder{G: g}
	x := g.AddInput("x", ir.T(ir.F32, 64, 16))
	for i := range depth {
		p := g.AddParam(fmt.Sprintf("w%d", i), ir.T(ir.F32, 16, 16))
		p.Trainable = true
		x = b.Add(op.Relu{}, b.Add(op.MatMul{}, x, p.Value))
	}
	g.Results = []ir.Result{{Name: "y", Value: x}}
	var o passes.Options
	if err := o.Set("loss", "mse"); err != nil {
		t.Fatal(err)
	}
	o.StopAfter = "late-dce"
	if err := passes.Run(&passes.Context{Options: o}, g, passes.Pipeline(), passes.Order()); err != nil {
		t.Fatal(err)
	}
	return g
}

// A training step of a deep chain needs its activations once and no gradient for long: parameters with two moments, one activation a layer,
// and a handful of tensors in flight.
func TestScheduleOfDeepChain(t *testing.T) {
	const depth = 100
	g := chain(t, depth)
	scheduled(t, g)
	const weight, activation = 16 * 16 * 4, 64 * 16 * 4
	least := int64(depth * (3*weight + activation))
	if peak := passes.Live(g, nil, nil).PeakBytes; peak > least+6*activation {
		t.Errorf("peak %d, want at most %d and a few tensors", peak, least)
	}
}

// Time grows like the graph: 100,000 nodes take seconds, not minutes.
func TestScheduleIsFast(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a graph of 50,000 nodes")
	}
	g := chain(t, 5000)
	begin := time.Now()
	scheduled(t, g)
	if d := time.Since(begin); d > 20*time.Second {
		t.Errorf("%d nodes took %v", len(g.Nodes), d)
	} else {
		t.Logf("%d nodes in %v", len(g.Nodes), d)
	}
}
