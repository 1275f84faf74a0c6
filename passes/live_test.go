package passes_test

import (
	"slices"
	"testing"

	"aitk/ir"
	"aitk/ir/gen"
	"aitk/ir/op"
	"aitk/passes"
)

func parse(t *testing.T, text string) *ir.Graph {
	t.Helper()
	g, err := ir.Parse(text, op.Vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestLive(t *testing.T) {
	for _, c := range []struct {
		name, text string
		live       []int64 // by node, in floats
	}{
		{"a chain in place", `graph @g
  %0 = input "x" : f32[10]
  %1 = Exp %0
  %2 = Sin %1
  %3 = Cos %2
  result "y" %3
`, []int64{20, 10, 10}},
		{"an input is not written over", `graph @g
  %0 = input "x" : f32[10]
  %1 = Exp %0
  result "y" %1
`, []int64{20}},
		{"a result is not written over", `graph @g
  %0 = input "x" : f32[10]
  %1 = Exp %0
  %2 = Sin %1
  result "y" %1
  result "z" %2
`, []int64{20, 20}},
		{"a view keeps its storage alive and costs nothing", `graph @g
  %0 = input "x" : f32[10]
  %1 = Exp %0
  %2 = Reshape{shape=[2,5]} %1
  %3 = ReduceSum{axes=[0,1]} %2
  %4 = ReduceSum{axes=[1]} %2
  result "y" %3
  result "z" %4
`, []int64{20, 10, 11, 13}},
		{"an operand read twice is not written over", `graph @g
  %0 = input "x" : f32[10]
  %1 = Exp %0
  %2 = Mul %1 %1
  %3 = Reshape{shape=[10]} %2
  %4 = Mul %2 %3
  result "y" %4
`, []int64{20, 20, 10, 20}},
		{"a broadcast operand is too small to be written over", `graph @g
  %0 = input "x" : f32[10]
  %1 = ReduceSum{axes=[0],keepDims=true} %0
  %2 = Exp %0
  %3 = Add %1 %2
  result "y" %3
`, []int64{11, 21, 11}},
		{"a parameter is updated in place where nothing reads it later", `graph @g
  %0 = input "x" : f32[10]
  %1 = param "w" trainable weight : f32[10]
  %2 = param "b" trainable weight : f32[10]
  %3 = Add %1 %0
  %4 = Mul %2 %0
  %5 = Mul %2 %4
  update %1 %3
  update %2 %4
  result "y" %5
`, []int64{30, 40, 40}},
		{"a zero fill takes the place of what it resets", `graph @g
  %0 = param "w.grad" accumulator : f32[10] of="w"
  %1 = Exp %0
  %2 = Fill{dType=f32,shape=[10]}
  update %0 %2
  result "y" %1
`, []int64{20, 20}},
		{"an old content that is a result cannot make room", `graph @g
  %0 = param "w" trainable weight : f32[10]
  %1 = Exp %0
  update %0 %1
  result "old" %0
`, []int64{20}},
		{"an unread output lives while its node runs", `graph @g
  %0 = input "x" : f32[2,5,1]
  %1 = param "s" frozen weight : f32[5]
  %2 %3 %4 = BatchNorm{eps=1e-05} %0 %1 %1
  %5 = Exp %2
  result "y" %5
`, []int64{35, 15}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := parse(t, c.text)
			l := passes.Live(g, nil, nil)
			got := slices.Clone(l.LiveBytes)
			for i := range got {
				got[i] /= 4
			}
			if !slices.Equal(got, c.live) {
				t.Errorf("live %v, want %v", got, c.live)
			}
			if l.PeakBytes != 4*slices.Max(c.live) || l.LiveBytes[l.PeakAt] != l.PeakBytes {
				t.Errorf("peak %d at %d", l.PeakBytes, l.PeakAt)
			}
		})
	}
}

// On random graphs live bytes equal what counting afresh at every position gives, and every handover obeys the rules.
func TestLiveOfRandomGraphs(t *testing.T) {
	randomGraphs(t, 60, gen.Options{Params: true, Updates: true, Loss: true}, func(t *testing.T, seed uint64, g *ir.Graph) {
		l := passes.Live(g, nil, nil)
		s := l.Storages
		last := make([]int, len(s.All)) // last reader by looking at every operand
		for i := range last {
			last[i] = -1
		}
		made := make([]int, len(s.All))
		for i := range made {
			made[i] = -1
		}
		for at, n := range g.Nodes {
			if ir.ViewOf(n) != nil {
				continue
			}
			for _, v := range n.In {
				last[s.Of[v.ID]] = at
			}
			for _, v := range n.Out {
				made[s.Of[v.ID]] = at
			}
		}
		kept := make([]bool, len(s.All))
		for id, k := range g.Kept() {
			if k {
				kept[s.Of[id]] = true
			}
		}
		shared := make([]int, len(s.All)) // position from which the bytes are another storage's
		forever := make([]bool, len(s.All))
		for i := range shared {
			shared[i] = len(g.Nodes)
			forever[i] = l.Place[i] >= 0
		}
		for at, over := range l.Over {
			for _, h := range over {
				in, out := &s.All[h.In], &s.All[h.Out]
				if last[h.In] != at || in.Bytes != out.Bytes || in.Kind == passes.InputStorage || in.Kind == passes.ConstStorage {
					t.Errorf("node %d writes over %v", at, in.Root)
				}
				if in.Kind == passes.ParamStorage {
					if in.Param.Next != out.Root {
						t.Errorf("node %d writes over parameter %s", at, in.Root.Name)
					}
					forever[h.Out] = true
				} else {
					if kept[h.In] {
						t.Errorf("node %d writes over a result", at)
					}
					shared[h.In] = at
				}
			}
		}
		for at := range g.Nodes {
			var want int64
			for i := range s.All {
				always := s.All[i].Kind == passes.ParamStorage || s.All[i].Kind == passes.ConstStorage
				alive := always || made[i] <= at && (kept[i] || last[i] >= at || made[i] == at || made[i] < 0 && at == 0)
				if alive && !forever[i] && at < shared[i] {
					want += s.All[i].Bytes
				}
			}
			if l.LiveBytes[at] != want {
				t.Errorf("position %d: %d live bytes, counted %d", at, l.LiveBytes[at], want)
				return
			}
		}
	})
}
