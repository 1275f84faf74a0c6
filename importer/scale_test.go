package importer

import (
	"fmt"
	"testing"
	"time"

	"aitk/importer/onnxpb"
)

// chainOf is n nodes one behind the other; every tenth adds a weight of its own.
func chainOf(n int) *onnxpb.ModelProto {
	var nodes []*onnxpb.NodeProto
	var inits []*onnxpb.TensorProto
	last := "x"
	for i := range n {
		name := fmt.Sprint("h", i)
		if i == n-1 {
			name = "y"
		}
		if i%10 == 0 {
			w := fmt.Sprintf("layers.%d.weight", i)
			inits = append(inits, floats(w, []int64{4}))
			nodes = append(nodes, node("Add", fmt.Sprintf("/layers.%d/Add", i), in(last, w), in(name)))
		} else {
			nodes = append(nodes, node("Relu", fmt.Sprintf("/layers.%d/Relu", i), in(last), in(name)))
		}
		last = name
	}
	return model(17, []*onnxpb.ValueInfoProto{vi("x", float, 4)}, inits, nodes...)
}

// wideOf is n nodes side by side, joined by one node.
func wideOf(n int) *onnxpb.ModelProto {
	var nodes []*onnxpb.NodeProto
	var all []string
	for i := range n {
		name := fmt.Sprint("h", i)
		nodes = append(nodes, node([]string{"Relu", "Sigmoid", "Tanh"}[i%3], name, in("x"), in(name)))
		all = append(all, name)
	}
	nodes = append(nodes, node("Concat", "join", all, in("y"), attrInt("axis", 0)))
	return model(17, []*onnxpb.ValueInfoProto{vi("x", float, 4)}, nil, nodes...)
}

// callsOf is n calls of one function, the body of which has a loop of two turns.
func callsOf(n int) *onnxpb.ModelProto {
	turn := body("turn", []*onnxpb.ValueInfoProto{vi("i", int64T), vi("go", onnxpb.TensorProto_BOOL), vi("s", float, 4)}, in("go", "h"), node("Relu", "relu", in("s"), in("h")))
	two := &onnxpb.TensorProto{DataType: int64Proto(), Int64Data: []int64{2}}
	f := function("f", in("x"), in("z"),
		node("Constant", "", nil, in("n"), attrTensor("value", two)),
		node("Loop", "loop", in("n", "", "x"), in("z"), attrGraph("body", turn)))
	var nodes []*onnxpb.NodeProto
	last := "x"
	for i := range n {
		name := fmt.Sprint("h", i)
		if i == n-1 {
			name = "y"
		}
		nodes = append(nodes, inDomain(node("f", fmt.Sprint("call", i), in(last), in(name)), "local"))
		last = name
	}
	return withFunctions(model(18, []*onnxpb.ValueInfoProto{vi("x", float, 4)}, nil, nodes...), f)
}

func int64Proto() *int32 {
	d := int32(int64T)
	return &d
}

// TestImportIsLinear: eight times the nodes take about eight times as long, whatever the shape of the graph. The bound leaves room for a busy machine; what
// is quadratic takes 64 times as long.
func TestImportIsLinear(t *testing.T) {
	for _, shape := range []struct {
		name string
		make func(int) *onnxpb.ModelProto
	}{{"chain", chainOf}, {"wide", wideOf}, {"calls", callsOf}} {
		t.Run(shape.name, func(t *testing.T) {
			took := func(n int) time.Duration {
				path := save(t, shape.make(n))
				best := time.Hour
				for range 2 {
					start := time.Now()
					if _, err := Import(path, Options{}); err != nil {
						t.Fatal(err)
					}
					best = min(best, time.Since(start))
				}
				return best
			}
			small, large := took(1000), took(8000)
			if large > 40*small+200*time.Millisecond {
				t.Errorf("1000 nodes took %v, 8000 took %v", small, large)
			}
		})
	}
}

// BenchmarkImport measures graphs of 1000 to 100,000 nodes: go test -bench Import ./importer.
func BenchmarkImport(b *testing.B) {
	for _, shape := range []struct {
		name string
		make func(int) *onnxpb.ModelProto
	}{{"chain", chainOf}, {"wide", wideOf}, {"calls", callsOf}} {
		for _, n := range []int{1000, 10000, 100000} {
			if shape.name == "calls" && n > 10000 {
				continue // half a million nodes after expansion
			}
			b.Run(fmt.Sprintf("%s/%d", shape.name, n), func(b *testing.B) {
				path := save(b, shape.make(n))
				for b.Loop() {
					if _, err := Import(path, Options{}); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(n), "ns/node")
			})
		}
	}
}
