package importer

import (
	"bytes"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// hostile is a model that no honest exporter writes. Most must be refused; a few are only odd, and must be harmless.
type hostile struct {
	name string
	odd  bool // may be accepted
	m    *onnxpb.ModelProto
}

func attrInts(name string, xs ...int64) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), Ints: xs, Type: onnxpb.AttributeProto_INTS.Enum()}
}

func attrString(name, s string) *onnxpb.AttributeProto {
	return &onnxpb.AttributeProto{Name: proto.String(name), S: []byte(s), Type: onnxpb.AttributeProto_STRING.Enum()}
}

// hostileNodes are single nodes over x f32[2,3,4,4], with attributes or constant operands that make no sense.
func hostileNodes() []hostile {
	var list []hostile
	x := []*onnxpb.ValueInfoProto{vi("x", float, 2, 3, 4, 4)}
	add := func(name string, opset int64, n *onnxpb.NodeProto, inits ...*onnxpb.TensorProto) {
		list = append(list, hostile{name: name, m: model(opset, x, inits, n)})
	}
	one := func(op string, attrs ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
		return node(op, "n", in("x"), in("y"), attrs...)
	}
	two := func(op string, attrs ...*onnxpb.AttributeProto) *onnxpb.NodeProto {
		return node(op, "n", in("x", "w"), in("y"), attrs...)
	}
	nan, inf := float32(math.NaN()), float32(math.Inf(1))

	add("perm too short", 13, one("Transpose", attrInts("perm", 0, 1)))
	add("perm beyond the rank", 13, one("Transpose", attrInts("perm", 0, 1, 2, 4)))
	add("perm twice", 13, one("Transpose", attrInts("perm", 0, 0, 1, 2)))
	add("perm negative", 13, one("Transpose", attrInts("perm", -1, 0, 1, 2)))
	add("axis is the rank", 13, node("Concat", "n", in("x", "x"), in("y"), attrInt("axis", 4)))
	add("axis far away", 13, node("Concat", "n", in("x", "x"), in("y"), attrInt("axis", math.MinInt64)))
	add("softmax axis", 13, one("Softmax", attrInt("axis", 1<<40)))
	add("flatten axis", 13, one("Flatten", attrInt("axis", 9)))
	add("axis as a float", 13, one("Softmax", attrFloat("axis", 1)))
	add("unknown attribute", 13, one("Relu", attrInt("sneaky", 1)))
	add("squeeze of a large axis", 13, two("Squeeze"), longs("w", 1))
	add("unsqueeze twice", 13, two("Unsqueeze"), longs("w", 0, 0))
	add("unsqueeze beyond", 13, two("Unsqueeze"), longs("w", 99))
	add("reshape with two unknowns", 13, two("Reshape"), longs("w", -1, -1))
	add("reshape to another size", 13, two("Reshape"), longs("w", 7))
	add("reshape with a negative size", 13, two("Reshape"), longs("w", -2, 4))
	add("expand to another size", 13, two("Expand"), longs("w", 5, 5))
	add("tile negative", 13, two("Tile"), longs("w", -1, 1, 1, 1))
	add("tile too short", 13, two("Tile"), longs("w", 2))
	add("slice without steps", 13, node("Slice", "n", in("x", "a", "b", "c", "d"), in("y")), longs("a", 0), longs("b", 1), longs("c", 0), longs("d", 0))
	add("slice axes twice", 13, node("Slice", "n", in("x", "a", "b", "c"), in("y")), longs("a", 0, 0), longs("b", 1, 1), longs("c", 0, 0))
	add("slice of other lengths", 13, node("Slice", "n", in("x", "a", "b"), in("y")), longs("a", 0, 0), longs("b", 1))
	add("split that does not add up", 13, two("Split", attrInt("axis", 0)), longs("w", 1, 2))
	add("split negative", 13, two("Split", attrInt("axis", 1)), longs("w", -1, 4))
	add("split into nothing", 18, one("Split", attrInt("num_outputs", 0)))
	add("split into everything", 18, one("Split", attrInt("num_outputs", 1<<60)))
	add("pad beyond everything", 13, two("Pad"), longs("w", 1<<61, 0, 0, 0, 1<<61, 0, 0, 0))
	add("pad too short", 13, two("Pad"), longs("w", 1))
	add("pad in no known mode", 13, two("Pad", attrString("mode", "teleport")), longs("w", 0, 0, 0, 0, 1, 1, 1, 1))
	add("gather beyond", 13, two("Gather"), longs("w", 2))
	add("gather far before", 13, two("Gather"), longs("w", math.MinInt64))
	add("gather elements beyond", 13, two("GatherElements"), longs("w", 7))
	add("gather nd too deep", 13, two("GatherND"), longs("w", 0, 0, 0, 0, 0))
	add("gather nd batch", 13, two("GatherND", attrInt("batch_dims", 9)), longs("w", 0))
	add("one hot of everything", 13, node("OneHot", "n", in("i", "w", "v"), in("y")), longs("i", 1), longs("w", 1<<50), floats("v", []int64{2}))
	add("one hot negative", 13, node("OneHot", "n", in("i", "w", "v"), in("y")), longs("i", 1), longs("w", -5), floats("v", []int64{2}))
	add("constant of everything", 13, node("ConstantOfShape", "n", in("w"), in("y")), longs("w", 1<<30, 1<<30))
	add("constant of negative shape", 13, node("ConstantOfShape", "n", in("w"), in("y")), longs("w", -3))
	add("range without steps", 13, node("Range", "n", in("a", "b", "c"), in("y")), longs("a", 0), longs("b", 9), longs("c", 0))
	add("range of everything", 13, node("Range", "n", in("a", "b", "c"), in("y")), &onnxpb.TensorProto{Name: proto.String("a"), DataType: proto.Int32(7), Int64Data: []int64{math.MinInt64}},
		&onnxpb.TensorProto{Name: proto.String("b"), DataType: proto.Int32(7), Int64Data: []int64{math.MaxInt64}}, &onnxpb.TensorProto{Name: proto.String("c"), DataType: proto.Int32(7), Int64Data: []int64{1}})
	add("cast to nothing", 13, one("Cast", attrInt("to", 0)))
	add("cast to 999", 13, one("Cast", attrInt("to", 999)))
	add("cast to text", 13, one("Cast", attrInt("to", 8)))
	add("cast without a type", 13, one("Cast"))
	add("product that does not fit", 13, two("MatMul"), floats("w", []int64{5, 5}))
	add("gemm of a vector", 13, two("Gemm"), floats("w", []int64{4}))
	add("sum that does not fit", 13, two("Add"), floats("w", []int64{5}))
	add("sum of other types", 13, two("Add"), longs("w", 1, 2, 3, 4))
	add("kernel of another rank", 13, two("Conv"), floats("w", []int64{1, 3, 1}))
	add("kernel of other channels", 13, two("Conv"), floats("w", []int64{1, 2, 1, 1}))
	add("kernel beyond the image", 13, two("Conv"), floats("w", []int64{1, 3, 9, 9}))
	add("stride 0", 13, two("Conv", attrInts("strides", 0, 1)), floats("w", []int64{1, 3, 1, 1}))
	add("stride of everything", 13, two("Conv", attrInts("strides", math.MaxInt64, 1)), floats("w", []int64{1, 3, 1, 1}))
	add("dilation overflow", 13, two("Conv", attrInts("dilations", math.MaxInt64, math.MaxInt64)), floats("w", []int64{1, 3, 2, 2}))
	add("pads overflow", 13, two("Conv", attrInts("pads", math.MaxInt64, math.MaxInt64, math.MaxInt64, math.MaxInt64)), floats("w", []int64{1, 3, 1, 1}))
	add("pads too short", 13, two("Conv", attrInts("pads", 1)), floats("w", []int64{1, 3, 1, 1}))
	add("group 0", 13, two("Conv", attrInt("group", 0)), floats("w", []int64{1, 3, 1, 1}))
	add("groups that do not divide", 13, two("Conv", attrInt("group", 2)), floats("w", []int64{2, 3, 1, 1}))
	add("auto pad in no known way", 13, two("Conv", attrString("auto_pad", "SOMEHOW")), floats("w", []int64{1, 3, 1, 1}))
	add("transposed stride 0", 13, two("ConvTranspose", attrInts("strides", 0, 0)), floats("w", []int64{3, 1, 1, 1}))
	add("transposed to everything", 13, two("ConvTranspose", attrInts("strides", 1<<31, 1<<31)), floats("w", []int64{3, 1, 1, 1}))
	add("transposed with negative padding", 13, two("ConvTranspose", attrInts("output_padding", -9, -9)), floats("w", []int64{3, 1, 1, 1}))
	add("pool without a kernel", 13, one("MaxPool"))
	add("pool of kernel 0", 13, one("MaxPool", attrInts("kernel_shape", 0, 0)))
	add("pool larger than the image", 13, one("AveragePool", attrInts("kernel_shape", 99, 99)))
	add("pool with pads beyond the kernel", 13, one("MaxPool", attrInts("kernel_shape", 2, 2), attrInts("pads", math.MaxInt64, 0, 0, 0)))
	add("blocks of 0", 13, one("DepthToSpace", attrInt("blocksize", 0)))
	add("blocks that do not divide", 13, one("DepthToSpace", attrInt("blocksize", 2)))
	add("blocks of everything", 13, one("SpaceToDepth", attrInt("blocksize", math.MaxInt64)))
	add("resize by 0", 13, node("Resize", "n", in("x", "", "w"), in("y")), floats("w", []int64{4}, 0))
	add("resize by NaN", 13, node("Resize", "n", in("x", "", "w"), in("y")), floats("w", []int64{4}, nan))
	add("resize to everything", 13, node("Resize", "n", in("x", "", "w"), in("y")), floats("w", []int64{4}, 3e38))
	add("resize to infinity", 13, node("Resize", "n", in("x", "", "w"), in("y")), floats("w", []int64{4}, inf))
	add("resize to negative sizes", 13, node("Resize", "n", in("x", "", "", "w"), in("y")), longs("w", 2, 3, -4, 4))
	add("topk beyond", 13, node("TopK", "n", in("x", "w"), in("y", "z")), longs("w", 99))
	add("topk negative", 13, node("TopK", "n", in("x", "w"), in("y", "z")), longs("w", -1))
	add("cumsum axis", 14, two("CumSum"), &onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(7), Int64Data: []int64{9}})
	add("trilu of a vector", 14, node("Trilu", "n", in("w"), in("y")), floats("w", []int64{4}))
	add("dropout of NaN", 13, node("Dropout", "n", in("x", "r", "t"), in("y")), floats("r", nil, nan),
		&onnxpb.TensorProto{Name: proto.String("t"), DataType: proto.Int32(9), Int32Data: []int32{1}})
	add("dropout of everything", 13, node("Dropout", "n", in("x", "r", "t"), in("y")), floats("r", nil, 1.5),
		&onnxpb.TensorProto{Name: proto.String("t"), DataType: proto.Int32(9), Int32Data: []int32{1}})
	add("batch norm of other channels", 15, node("BatchNormalization", "n", in("x", "w", "w", "w", "w"), in("y")), floats("w", []int64{2}))
	add("layer norm axis", 17, two("LayerNormalization", attrInt("axis", 7)), floats("w", []int64{4}))
	add("layer norm of another size", 17, two("LayerNormalization"), floats("w", []int64{5}))
	add("layer norm with negative epsilon", 17, two("LayerNormalization", attrFloat("epsilon", -1)), floats("w", []int64{4}))
	add("0 groups", 21, node("GroupNormalization", "n", in("x", "w", "w"), in("y"), attrInt("num_groups", 0)), floats("w", []int64{3}))
	add("groups that do not divide channels", 21, node("GroupNormalization", "n", in("x", "w", "w"), in("y"), attrInt("num_groups", 2)), floats("w", []int64{3}))
	add("reduce axis", 13, one("ReduceMean", attrInts("axes", 12)))
	add("reduce axis twice", 13, one("ReduceMean", attrInts("axes", 1, 1)))
	add("reduce over text", 13, one("ReduceMean", attrString("axes", "all")))
	add("where of a number", 13, node("Where", "n", in("x", "x", "x"), in("y")))
	add("scatter beyond", 13, node("ScatterND", "n", in("x", "i", "w"), in("y")), &onnxpb.TensorProto{Name: proto.String("i"), DataType: proto.Int32(7), Dims: []int64{1, 1}, Int64Data: []int64{9}}, floats("w", []int64{1, 3, 4, 4}))
	add("scatter of another shape", 13, node("ScatterND", "n", in("x", "i", "w"), in("y")), &onnxpb.TensorProto{Name: proto.String("i"), DataType: proto.Int32(7), Dims: []int64{1, 1}, Int64Data: []int64{0}}, floats("w", []int64{1}))
	add("einsum without letters", 13, two("Einsum", attrString("equation", "->->")), floats("w", []int64{4}))
	add("einsum of other ranks", 13, two("Einsum", attrString("equation", "ij,jk->ik")), floats("w", []int64{4}))
	add("einsum with an unknown result", 13, one("Einsum", attrString("equation", "abcd->z")))
	add("lstm without hidden size", 14, node("LSTM", "n", in("w", "w", "w"), in("y")), floats("w", []int64{1, 4, 2}))
	add("lstm in no direction", 14, node("LSTM", "n", in("w", "w", "w"), in("y"), attrInt("hidden_size", 1), attrString("direction", "up")), floats("w", []int64{1, 4, 2}))
	add("gru with hidden size of everything", 14, node("GRU", "n", in("w", "w", "w"), in("y"), attrInt("hidden_size", math.MaxInt64)), floats("w", []int64{1, 3, 2}))
	add("attention without heads", 23, node("Attention", "n", in("w", "w", "w"), in("y")), floats("w", []int64{1, 2, 8}))
	add("attention with heads that do not divide", 23, node("Attention", "n", in("w", "w", "w"), in("y"), attrInt("q_num_heads", 3), attrInt("kv_num_heads", 3)), floats("w", []int64{1, 2, 8}))
	add("dequantize axis", 13, node("DequantizeLinear", "n", in("q", "s"), in("y"), attrInt("axis", 9)), &onnxpb.TensorProto{Name: proto.String("q"), DataType: proto.Int32(3), Dims: []int64{2, 2}, Int32Data: []int32{1, 2, 3, 4}}, floats("s", []int64{2}))
	add("an operator nobody knows", 13, one("Frobnicate"))
	list = append(list, hostile{name: "a domain nobody knows", m: model(13, x, nil, &onnxpb.NodeProto{OpType: proto.String("Relu"), Domain: proto.String("evil.example"), Input: in("x"), Output: in("y")})})
	for i := range list { // as good as any axis from the end; found when it runs, which checks indices; legal, if nobody can run it
		list[i].odd = slices.Contains([]string{"perm negative", "scatter beyond", "one hot of everything"}, list[i].name)
	}
	return list
}

// hostileStructures are models that are wrong as a whole: functions, bodies, versions, tensors, names.
func hostileStructures() []hostile {
	x := []*onnxpb.ValueInfoProto{vi("x", float, 2)}
	relu := node("Relu", "n", in("x"), in("y"))
	function := func(name string, nodes ...*onnxpb.NodeProto) *onnxpb.FunctionProto {
		return &onnxpb.FunctionProto{Name: proto.String(name), Domain: proto.String("f"), Input: in("a"), Output: in("b"), Node: nodes,
			OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(13)}, {Domain: proto.String("f"), Version: proto.Int64(1)}}}
	}
	call := func(name, from, to string) *onnxpb.NodeProto {
		return &onnxpb.NodeProto{OpType: proto.String(name), Domain: proto.String("f"), Input: in(from), Output: in(to)}
	}
	withFunctions := func(fs ...*onnxpb.FunctionProto) *onnxpb.ModelProto {
		m := model(13, x, nil, call("f0", "x", "y"))
		m.Functions = fs
		return m
	}
	var doubling []*onnxpb.FunctionProto
	for i := range 60 {
		next := fmt.Sprintf("f%d", i+1)
		doubling = append(doubling, function(fmt.Sprintf("f%d", i), call(next, "a", "m"), call(next, "m", "b")))
	}
	doubling = append(doubling, function("f60", node("Relu", "n", in("a"), in("b"))))

	body := func(outs ...string) *onnxpb.GraphProto {
		g := &onnxpb.GraphProto{Name: proto.String("body"), Node: []*onnxpb.NodeProto{node("Identity", "i", in("x"), in("o"))}}
		for _, o := range outs {
			g.Output = append(g.Output, vi(o, float, 2))
		}
		return g
	}
	truth := func(x int32) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: proto.String("c"), DataType: proto.Int32(9), Int32Data: []int32{x}}
	}
	yes := truth(1)
	branch := func(then, other *onnxpb.GraphProto) *onnxpb.ModelProto {
		n := node("If", "n", in("c"), in("y"), attrGraph("then_branch", then))
		if other != nil {
			n.Attribute = append(n.Attribute, attrGraph("else_branch", other))
		}
		return model(13, x, []*onnxpb.TensorProto{yes}, n)
	}
	trips := &onnxpb.TensorProto{Name: proto.String("t"), DataType: proto.Int32(7), Int64Data: []int64{1 << 62}}
	loopBody := &onnxpb.GraphProto{Name: proto.String("loop"), Input: []*onnxpb.ValueInfoProto{vi("i", int64T), vi("go", onnxpb.TensorProto_BOOL), vi("s", float, 2)},
		Node:   []*onnxpb.NodeProto{node("Identity", "1", in("go"), in("go2")), node("Add", "2", in("s", "s"), in("s2"))},
		Output: []*onnxpb.ValueInfoProto{vi("go2", onnxpb.TensorProto_BOOL), vi("s2", float, 2)}}
	deep := body("o")
	for range 30 {
		n := node("If", "n", in("c"), in("o"), attrGraph("then_branch", deep), attrGraph("else_branch", body("o")))
		deep = &onnxpb.GraphProto{Name: proto.String("deep"), Node: []*onnxpb.NodeProto{n}, Output: []*onnxpb.ValueInfoProto{vi("o", float, 2)}}
	}
	version := func(v int64) *onnxpb.ModelProto { return model(v, x, nil, relu) }
	tensor := func(t *onnxpb.TensorProto) *onnxpb.ModelProto {
		t.Name = proto.String("w")
		return model(13, x, []*onnxpb.TensorProto{t}, node("Add", "a", in("x", "w"), in("y")))
	}
	typed := func(d int32, dims ...int64) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{DataType: proto.Int32(d), Dims: dims}
	}
	sparse := func(dims []int64, index ...int64) *onnxpb.ModelProto {
		m := model(13, x, nil, node("Add", "a", in("x", "w"), in("y")))
		values := floats("w", []int64{int64(len(index))})
		m.Graph.SparseInitializer = []*onnxpb.SparseTensorProto{{Values: values, Indices: longs("", index...), Dims: dims}}
		return m
	}
	external := func(kv ...string) *onnxpb.ModelProto {
		t := typed(1, 2)
		t.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
		for i := 0; i+1 < len(kv); i += 2 {
			t.ExternalData = append(t.ExternalData, &onnxpb.StringStringEntryProto{Key: proto.String(kv[i]), Value: proto.String(kv[i+1])})
		}
		return tensor(t)
	}
	odd := func(name string, m *onnxpb.ModelProto) hostile { return hostile{name, true, m} }
	bad := func(name string, m *onnxpb.ModelProto) hostile { return hostile{name, false, m} }
	named := func(name string) *onnxpb.ModelProto {
		m := model(13, []*onnxpb.ValueInfoProto{vi(name, float, 2)}, []*onnxpb.TensorProto{floats(name+"w", []int64{2})}, node("Add", name, in(name, name+"w"), in(name+"y")))
		m.Graph.Name, m.ProducerName = proto.String(name), proto.String(name)
		return m
	}
	noInput := model(13, []*onnxpb.ValueInfoProto{{Name: proto.String("x")}}, nil, relu)
	sequence := model(13, []*onnxpb.ValueInfoProto{{Name: proto.String("x"), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_SequenceType{SequenceType: &onnxpb.TypeProto_Sequence{}}}}}, nil, relu)
	long := floats("", []int64{2})
	long.RawData = append(long.RawData, 0)
	both := floats("", []int64{2})
	both.FloatData = []float32{1, 2}
	noVersion := version(13)
	noVersion.OpsetImport = nil
	return []hostile{
		bad("function that calls itself", withFunctions(function("f0", call("f0", "a", "b")))),
		bad("functions that call each other", withFunctions(function("f0", call("f1", "a", "b")), function("f1", call("f0", "a", "b")))),
		bad("functions that double", withFunctions(doubling...)),
		bad("function without its output", withFunctions(function("f0", node("Relu", "n", in("a"), in("c"))))),
		bad("function that is not there", withFunctions()),
		bad("if without else", func() *onnxpb.ModelProto {
			m := branch(body("o"), nil)
			m.Graph.Initializer[0] = truth(0)
			return m
		}()),
		bad("branch without the output", branch(body("nowhere"), body("o"))),
		bad("branch with too few outputs", branch(body(), body("o"))),
		bad("loop without end", model(13, x, []*onnxpb.TensorProto{trips}, node("Loop", "n", in("t", "", "x"), in("y"), attrGraph("body", loopBody)))),
		bad("loop without a body", model(13, x, []*onnxpb.TensorProto{trips}, node("Loop", "n", in("t", "", "x"), in("y")))),
		bad("loop with too many states", model(13, x, []*onnxpb.TensorProto{trips}, node("Loop", "n", in("t", "", "x", "x", "x"), in("y"), attrGraph("body", loopBody)))),
		bad("scan of nothing", model(13, x, nil, node("Scan", "n", in("x"), in("y"), attrGraph("body", loopBody), attrInt("num_scan_inputs", 1<<40)))),
		odd("bodies in bodies", model(13, x, []*onnxpb.TensorProto{yes}, node("If", "n", in("c"), in("y"), attrGraph("then_branch", deep), attrGraph("else_branch", deep)))),
		bad("no version", noVersion),
		bad("version 0", version(0)),
		bad("version -1", version(-1)),
		odd("version of the far future", version(1<<40)),
		bad("input without a type", noInput),
		bad("input that is a sequence", sequence),
		bad("text", tensor(&onnxpb.TensorProto{DataType: proto.Int32(8), Dims: []int64{2}, StringData: [][]byte{{1}, {2}}})),
		bad("complex numbers", tensor(typed(14, 2))),
		bad("element type 77", tensor(typed(77, 2))),
		bad("element type -1", tensor(typed(-1, 2))),
		bad("many axes that overflow", tensor(typed(1, 1<<31, 1<<31, 1<<31))),
		bad("a hundred thousand axes", tensor(typed(1, make([]int64, 100000)...))),
		bad("too much data", tensor(long)),
		odd("raw and typed data", tensor(both)),
		bad("4-bit integers without data", tensor(typed(22, 1<<40))),
		bad("sparse beyond its dims", sparse([]int64{2}, 5)),
		bad("sparse before its dims", sparse([]int64{2}, -1)),
		bad("sparse of everything", sparse([]int64{1 << 40, 1 << 40}, 1)),
		bad("sparse twice", sparse([]int64{2}, 1, 1)),
		bad("external without a place", external()),
		bad("external in a folder", external("location", ".")),
		bad("external above", external("location", "../secret")),
		bad("external far above", external("location", strings.Repeat("../", 50)+"etc/passwd")),
		bad("external absolute", external("location", "/etc/passwd")),
		bad("external device", external("location", "/dev/zero")),
		bad("external through a link", external("location", "link")),
		bad("external through a linked folder", external("location", "out/secret")),
		bad("external from far", external("location", "w.bin", "offset", strconv.FormatInt(math.MaxInt64, 10))),
		bad("external from before", external("location", "w.bin", "offset", "-8")),
		bad("external longer than the file", external("location", "w.bin", "length", "800")),
		bad("external with an offset that is no number", external("location", "w.bin", "offset", "0x10")),
		bad("external with a NUL", external("location", "w.bin\x00/../secret")),
		odd("names that act on a terminal", named("\x1b[2J\x07evil\r\n")),
		odd("names that are HTML", named("<script>alert(1)</script>\"'&")),
		odd("names of a megabyte", named(strings.Repeat("n", 1<<20))),
		odd("names that are no text", named("\xff\xfe\x00")),
		bad("a name that is reserved", named("$lr")),
	}
}

// TestHostileKinds: each kind gives a clear error (or, where it is only odd, a graph that verifies), quickly, in bounded memory, and nothing is read
// outside the model's folder.
func TestHostileKinds(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "model")
	canary := bytes.Repeat([]byte{0x43, 0x41, 0x4e, 0x3f}, 2) // as floats: a number that nothing else here holds
	for path, content := range map[string][]byte{filepath.Join(outer, "secret"): canary, filepath.Join(dir, "w.bin"): make([]byte, 8)} {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for to, name := range map[string]string{"../secret": "link", "..": "out"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	// A file system that keeps times of reading shows whether somebody looked.
	old := time.Now().Add(-48 * time.Hour)
	secret := filepath.Join(outer, "secret")
	if err := os.Chtimes(secret, old, old.Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	before := accessTime(t, secret)
	kinds := append(hostileNodes(), hostileStructures()...)
	if len(kinds) < 80 {
		t.Errorf("%d kinds, want 80 at least", len(kinds))
	}
	path := filepath.Join(dir, "m.onnx")
	worst, slowest := uint64(0), time.Duration(0)
	for _, k := range kinds {
		t.Run(k.name, func(t *testing.T) {
			raw, err := proto.MarshalOptions{AllowPartial: true}.Marshal(k.m)
			if err != nil {
				t.Skipf("the library does not write it: %v", err)
			}
			if err := os.WriteFile(path, raw, 0o600); err != nil {
				t.Fatal(err)
			}
			var a, b runtime.MemStats
			runtime.ReadMemStats(&a)
			start := time.Now()
			m, err := Import(path, Options{})
			_, lintErr := Lint(path, LintOptions{})
			exportErr := Export(path, filepath.Join(dir, "out.onnx"), ExportOptions{})
			slowest = max(slowest, time.Since(start))
			runtime.ReadMemStats(&b)
			worst = max(worst, b.TotalAlloc-a.TotalAlloc)
			switch {
			case lintErr != nil:
				t.Errorf("lint fails: %v", lintErr)
			case err == nil && !k.odd:
				t.Errorf("is accepted:\n%v", m.Graph)
			case err == nil:
				if err := ir.Verify(m.Graph); err != nil {
					t.Error(err)
				}
				if text := m.Graph.String(); strings.ContainsAny(text, "\x1b\x07\x00") {
					t.Errorf("control characters are printed: %q", text[:min(len(text), 200)])
				}
				for _, p := range m.Graph.Params {
					if p.Init.Kind == ir.InitFile && !strings.HasPrefix(p.Init.File.Path, dir) {
						t.Errorf("parameter %q lies in %s", p.Name, p.Init.File.Path)
					}
				}
			case strings.Contains(err.Error(), "runtime error") || strings.Contains(err.Error(), "%!") || !strings.Contains(err.Error(), "m.onnx"):
				t.Errorf("the error is not clear: %v", err)
			}
			if out, err := os.ReadFile(filepath.Join(dir, "out.onnx")); exportErr == nil && err == nil && bytes.Contains(out, canary) {
				t.Error("the export holds what lies outside")
			}
			if n := b.TotalAlloc - a.TotalAlloc; n > 64<<20+32*uint64(len(raw)) {
				t.Errorf("%d bytes were allocated", n)
			}
		})
	}
	if after := accessTime(t, secret); !after.Equal(before) {
		t.Errorf("somebody read the file outside the folder")
	}
	if _, err := os.ReadFile(secret); err != nil {
		t.Fatal(err)
	}
	if accessTime(t, secret).Equal(before) {
		t.Log("this file system does not tell who reads: the canary is its content alone")
	}
	t.Logf("%d kinds, at most %d bytes allocated in all and %v for one", len(kinds), worst, slowest)
}
