package importer

import (
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/runtime/ref"
)

// Numbers from 2^63 on are greater than those below.
func TestUnsignedOrder(t *testing.T) {
	const u64 = onnxpb.TensorProto_UINT64
	x := ir.Tensor{Type: ir.T(ir.U64, 3), I: []int64{-1, 5, -1 << 63}} // 2^64-1, 5, 2^63
	y := ir.Tensor{Type: ir.T(ir.U64, 3), I: []int64{1, 6, 7}}
	for _, c := range []struct {
		op   string
		attr []*onnxpb.AttributeProto
		want []int64
	}{
		{"Greater", nil, []int64{1, 0, 1}}, {"LessOrEqual", nil, []int64{0, 1, 0}}, {"Max", nil, []int64{-1, 6, -1 << 63}}, {"Min", nil, []int64{1, 5, 7}},
		{"ReduceMax", nil, []int64{-1}}, {"ReduceMin", nil, []int64{5}}, {"ArgMin", nil, []int64{1}},
	} {
		operands := in("x", "y")
		if len(c.want) == 1 {
			operands = in("x")
		}
		m := model(18, []*onnxpb.ValueInfoProto{vi("x", u64, 3), vi("y", u64, 3)}, nil, node(c.op, "", operands, in("z"), c.attr...))
		m.Graph.Output[0].Type.GetTensorType().ElemType = proto.Int32(int32(u64))
		g := mustImport(t, save(t, m), Options{}).Graph
		out, _, err := ref.Run(g, map[string]ir.Tensor{"x": x, "y": y}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := out["z"].I; !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", c.op, got, c.want)
		}
	}
}

// Quotients, remainders, absolute values and signs of numbers on both sides of 2^63.
func TestUnsignedDivision(t *testing.T) {
	const u64 = onnxpb.TensorProto_UINT64
	edges := []uint64{0, 1, 2, 3, 7, 1<<31 - 1, 1 << 32, 1<<53 + 1, 1<<63 - 1, 1 << 63, 1<<63 + 1, 1<<64 - 2, 1<<64 - 1}
	var xs, ys []uint64
	for _, x := range edges {
		for _, y := range edges[1:] {
			xs, ys = append(xs, x), append(ys, y)
		}
	}
	tensor := func(list []uint64) ir.Tensor {
		x := ir.Tensor{Type: ir.T(ir.U64, int64(len(list)))}
		for _, v := range list {
			x.I = append(x.I, int64(v))
		}
		return x
	}
	sign := func(x uint64) uint64 { return min(x, 1) }
	for _, c := range []struct {
		op       string
		operands int
		want     func(x, y uint64) uint64
	}{
		{"Div", 2, func(x, y uint64) uint64 { return x / y }}, {"Mod", 2, func(x, y uint64) uint64 { return x % y }},
		{"Abs", 1, func(x, _ uint64) uint64 { return x }}, {"Sign", 1, func(x, _ uint64) uint64 { return sign(x) }},
	} {
		operands := in("x", "y")[:c.operands]
		m := model(18, []*onnxpb.ValueInfoProto{vi("x", u64, len(xs)), vi("y", u64, len(ys))}, nil, node(c.op, "", operands, in("z")))
		m.Graph.Output[0].Type.GetTensorType().ElemType = proto.Int32(int32(u64))
		g := mustImport(t, save(t, m), Options{}).Graph
		out, _, err := ref.Run(g, map[string]ir.Tensor{"x": tensor(xs), "y": tensor(ys)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for i, got := range out["z"].I {
			if want := c.want(xs[i], ys[i]); uint64(got) != want {
				t.Errorf("%s %d %d: %d, want %d", c.op, xs[i], ys[i], uint64(got), want)
			}
		}
	}
}
