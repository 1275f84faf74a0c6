package importer

import (
	"fmt"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime/ref"
)

func batchNorm(opset int64, outputs int, attrs ...*onnxpb.AttributeProto) *onnxpb.ModelProto {
	outs := []string{"y", "m2", "v2", "sm", "sv"}[:outputs]
	return model(opset, []*onnxpb.ValueInfoProto{vi("x", float, 4, 1)},
		[]*onnxpb.TensorProto{floats("s", []int64{1}, 1), floats("b", []int64{1}, 0), floats("m", []int64{1}, 10), floats("v", []int64{1}, 20)},
		node("BatchNormalization", "bn", in("x", "s", "b", "m", "v"), outs, append(attrs, attrFloat("momentum", 0.75))...))
}

// TestBatchNormModes: which meaning a node has, by option, opset and file; and how the statistics move.
func TestBatchNormModes(t *testing.T) {
	for _, c := range []struct {
		name  string
		m     *onnxpb.ModelProto
		opt   Options
		train bool
	}{
		{"opset 15, inference", batchNorm(15, 1), Options{}, false},
		{"opset 15, training", batchNorm(15, 3, attrInt("training_mode", 1)), Options{}, true},
		{"opset 15, training, frozen", batchNorm(15, 3, attrInt("training_mode", 1)), Options{BatchNorm: BatchNormFrozen}, false},
		{"opset 15, training, eval", batchNorm(15, 3, attrInt("training_mode", 1)), Options{BatchNorm: BatchNormTrain, Eval: true}, false},
		{"opset 15, inference, train", batchNorm(15, 1), Options{BatchNorm: BatchNormTrain}, true},
		{"opset 9, inference", batchNorm(9, 1), Options{}, false},
		{"opset 9, training", batchNorm(9, 5), Options{}, true},
		{"opset 7", batchNorm(7, 1, attrInt("spatial", 1)), Options{}, false},
	} {
		g := mustImport(t, save(t, c.m), c.opt).Graph
		m, v := g.Param("m"), g.Param("v")
		if m == nil || v == nil || m.Role != ir.Statistic || m.Trainable || (m.Next != nil) != c.train || (v.Next != nil) != c.train {
			t.Errorf("%s:\n%s", c.name, g)
			continue
		}
		x := ir.NewTensor(ir.T(ir.F32, 4, 1))
		copy(x.F, []float64{1, 2, 3, 6})
		_, next, err := ref.Run(g, map[string]ir.Tensor{"x": x}, contents(t, g))
		if err != nil {
			t.Fatal(err)
		}
		// The batch has mean 3 and population variance 3.5: new = 0.75*old + 0.25*batch.
		if c.train && (next["m"].F[0] != 0.75*10+0.25*3 || next["v"].F[0] != 0.75*20+0.25*3.5) {
			t.Errorf("%s: statistics become %v and %v", c.name, next["m"].F, next["v"].F)
		}
	}
}

// TestBatchNormShared: statistics that two nodes share move twice, once after the other.
func TestBatchNormShared(t *testing.T) {
	p := batchNorm(15, 1)
	p.Graph.Node = append(p.Graph.Node, node("BatchNormalization", "bn2", in("y", "s", "b", "m", "v"), in("z"), attrFloat("momentum", 0.5)))
	p.Graph.Output[0].Name = proto.String("z")
	g := mustImport(t, save(t, p), Options{BatchNorm: BatchNormTrain}).Graph
	if len(g.Params) != 4 || g.Param("m").Next.Def.In[0].Def == nil {
		t.Errorf("%s", g)
	}
}

func TestDropout(t *testing.T) {
	x := []*onnxpb.ValueInfoProto{vi("x", float, 4)}
	yes := &onnxpb.TensorProto{Name: proto.String("t"), DataType: proto.Int32(9), RawData: []byte{1}}
	trained := model(13, x, []*onnxpb.TensorProto{floats("r", nil, 0.25), yes},
		node("Dropout", "d1", in("x", "r", "t"), in("h")), node("Dropout", "d2", in("h", "r", "t"), in("y")))
	g := mustImport(t, save(t, trained), Options{}).Graph
	var names, ops []string
	for _, v := range g.Inputs {
		names = append(names, v.Name+" "+v.Type.String())
	}
	for _, n := range g.Nodes {
		ops = append(ops, ir.FormatOp(n.Op))
	}
	if got := fmt.Sprint(names, ops); got != "[x f32[4] $seed i64[] $step i64[] $micro i64[]] [Dropout{ratio=0.25,streamID=1} Dropout{ratio=0.25,streamID=2}]" {
		t.Errorf("%s", got)
	}
	if d, ok := g.Nodes[0].Op.(op.Dropout); !ok || d.Ratio != 0.25 {
		t.Errorf("%v", g.Nodes[0].Op)
	}
	for name, m := range map[string]*Model{
		"eval":      mustImport(t, save(t, trained), Options{Eval: true}),
		"opset 7":   mustImport(t, save(t, model(7, x, nil, node("Dropout", "d", in("x"), in("y"), attrFloat("ratio", 0.5)))), Options{}),
		"inference": mustImport(t, save(t, model(13, x, []*onnxpb.TensorProto{floats("r", nil, 0.25)}, node("Dropout", "d", in("x", "r"), in("y")))), Options{}),
		"ratio 0":   mustImport(t, save(t, model(13, x, []*onnxpb.TensorProto{floats("r", nil, 0), yes}, node("Dropout", "d", in("x", "r", "t"), in("y")))), Options{}),
	} {
		if len(m.Graph.Nodes) != 0 || len(m.Graph.Inputs) != 1 {
			t.Errorf("%s is not the identity:\n%s", name, m.Graph)
		}
	}
	if _, err := Import(save(t, model(13, []*onnxpb.ValueInfoProto{vi("$seed", float, 4)}, nil, node("Relu", "d", in("$seed"), in("y")))), Options{}); err == nil || !strings.Contains(err.Error(), "reserved") {
		t.Errorf("a reserved name was accepted: %v", err)
	}
}
