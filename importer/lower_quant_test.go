package importer

import (
	"math"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime/ref"
)

// stored is an initializer of raw bytes.
func stored(name string, elem onnxpb.TensorProto_DataType, shape []int64, raw []byte) *onnxpb.TensorProto {
	return &onnxpb.TensorProto{Name: proto.String(name), DataType: proto.Int32(int32(elem)), Dims: shape, RawData: raw}
}

// pattern is n bytes, none of which is a NaN of e4m3.
func pattern(n int) []byte {
	raw := make([]byte, n)
	for i := range raw {
		raw[i] = byte(i*37 + i/7)
		if raw[i]&127 == 127 {
			raw[i]--
		}
	}
	return raw
}

// nibble is element i of packed 4-bit numbers.
func nibble(raw []byte, i int) int { return int(raw[i/2]>>(4*(i%2))) & 15 }

// fromE4M3 says again what an 8-bit float is.
func fromE4M3(b byte) float64 {
	sign, e, m := 1.0, int(b>>3&15), float64(b&7)
	if b&128 != 0 {
		sign = -1
	}
	if e == 0 {
		return sign * math.Ldexp(m, -9)
	}
	return sign * math.Ldexp(8+m, e-10)
}

// A quantized weight keeps the file's bytes: no float copy of it is a parameter or a literal, and what the graph computes is the formula of the op.
func TestQuantizedWeights(t *testing.T) {
	const n, k = 16, 96
	u8, i8, i4, u4, f8 := onnxpb.TensorProto_UINT8, onnxpb.TensorProto_INT8, onnxpb.TensorProto_INT4, onnxpb.TensorProto_UINT4, onnxpb.TensorProto_FLOAT8E4M3FN
	linear := func(elem onnxpb.TensorProto_DataType, raw []byte, scale *onnxpb.TensorProto, zero *onnxpb.TensorProto, attrs ...*onnxpb.AttributeProto) *onnxpb.ModelProto {
		inits, inputs := []*onnxpb.TensorProto{stored("fc.weight_quantized", elem, []int64{n, k}, raw), scale}, in("fc.weight_quantized", "scale")
		if zero != nil {
			inits, inputs = append(inits, zero), append(inputs, "zero")
		}
		return model(21, []*onnxpb.ValueInfoProto{vi("x", float, 2, k)}, inits,
			node("DequantizeLinear", "dq", inputs, in("w"), attrs...),
			node("Transpose", "turn", in("w"), in("wt")),
			node("MatMul", "fc", in("x", "wt"), in("y")))
	}
	nbits := func(raw []byte, cols int64, zero *onnxpb.TensorProto, bits int64) *onnxpb.ModelProto {
		blocks := (cols + 31) / 32
		inits, inputs := []*onnxpb.TensorProto{stored("fc.weight_Q4", u8, []int64{n, blocks, 32 * bits / 8}, raw), floats("scale", []int64{n * blocks})}, in("x", "fc.weight_Q4", "scale")
		if zero != nil {
			inits, inputs = append(inits, zero), append(inputs, "zero")
		}
		call := node("MatMulNBits", "fc", inputs, in("y"), attrInt("N", n), attrInt("K", cols), attrInt("bits", bits), attrInt("block_size", 32))
		call.Domain = proto.String("com.microsoft")
		m := model(21, []*onnxpb.ValueInfoProto{vi("x", float, 2, int(cols))}, inits, call)
		m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String("com.microsoft"), Version: proto.Int64(1)})
		return m
	}
	full, half, zeros := pattern(n*k), pattern(n*k/2), pattern(n*2)
	at := func(i int) float64 { return float64(float32(i) / 8) } // what floats gives
	cases := []struct {
		name   string
		m      *onnxpb.ModelProto
		dtype  ir.DType
		cols   int64
		weight func(r, c int) float64
	}{
		{"int8 per tensor", linear(i8, full, floats("scale", []int64{}, 0.5), nil), ir.I8, k, func(r, c int) float64 { return float64(int8(full[r*k+c])) * 0.5 }},
		{"uint8 per row", linear(u8, full, floats("scale", []int64{n}), stored("zero", u8, []int64{n}, zeros[:n]), attrInt("axis", 0)), ir.U8, k,
			func(r, c int) float64 { return (float64(full[r*k+c]) - float64(zeros[r])) * at(r) }},
		{"int8 per column, zeros", linear(i8, full, floats("scale", []int64{k}), stored("zero", i8, []int64{k}, make([]byte, k))), ir.I8, k,
			func(r, c int) float64 { return float64(int8(full[r*k+c])) * at(c) }},
		{"int4 in blocks", linear(i4, half, floats("scale", []int64{n, 3}), nil, attrInt("axis", 1), attrInt("block_size", 32)), ir.I4, k,
			func(r, c int) float64 { return float64((nibble(half, r*k+c)^8)-8) * at(r*3+c/32) }},
		{"uint4 in blocks", linear(u4, half, floats("scale", []int64{n, 3}), stored("zero", u4, []int64{n, 3}, zeros[:n*3/2]), attrInt("axis", 1), attrInt("block_size", 32)), ir.I4, k,
			func(r, c int) float64 {
				return float64(nibble(half, r*k+c)-nibble(zeros, r*3+c/32)) * at(r*3+c/32)
			}},
		{"fp8 per row", linear(f8, full, floats("scale", []int64{n}), nil, attrInt("axis", 0)), ir.U8, k, func(r, c int) float64 { return fromE4M3(full[r*k+c]) * at(r) }},
		{"MatMulNBits", nbits(half, k, nil, 4), ir.I4, k, func(r, c int) float64 { return float64(nibble(half, r*k+c)-8) * at(r*3+c/32) }},
		{"MatMulNBits with zero points, K odd", nbits(half, 85, stored("zero", u8, []int64{n * 2}, zeros), 4), ir.I4, 85,
			func(r, c int) float64 {
				return float64(nibble(half, r*k+c)-nibble(zeros[r*2:], c/32)) * at(r*3+c/32)
			}},
		{"MatMulNBits in 8 bits", nbits(full, k, nil, 8), ir.U8, k, func(r, c int) float64 { return (float64(full[r*k+c]) - 128) * at(r*3+c/32) }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			m := mustImport(t, save(t, c.m), Options{})
			p := m.Graph.Param("fc.weight")
			if p == nil || p.Type.DType != c.dtype || p.Trainable || p.Role != ir.Weight || p.Init.Kind != ir.InitFile {
				t.Fatalf("the weight is %+v in\n%v", p, m.Graph)
			}
			for _, q := range m.Graph.Params {
				if q.Type.DType.IsFloat() && q.Type.Elems() >= n*k/2 {
					t.Errorf("%q is %v", q.Name, q.Type)
				}
			}
			for _, k := range m.Graph.Consts {
				if k.Type.Elems() > 512 {
					t.Errorf("a literal of %v", k.Type)
				}
			}
			if !slices.ContainsFunc(m.Graph.Nodes, func(n *ir.Node) bool { _, ok := n.Op.(op.Dequantize); return ok }) {
				t.Errorf("nothing dequantizes in\n%v", m.Graph)
			}
			x := ir.NewTensor(ir.T(ir.F32, 2, c.cols))
			for i := range x.F {
				x.F[i] = math.Sin(float64(i))
			}
			x.Round()
			got, _, err := ref.Run(m.Graph, map[string]ir.Tensor{"x": x}, contents(t, m.Graph))
			if err != nil {
				t.Fatal(err)
			}
			for i := range int64(2) {
				for r := range n {
					sum, size := 0.0, 0.0
					for j := range c.cols {
						v := x.F[i*c.cols+j] * c.weight(r, int(j))
						sum, size = sum+v, size+math.Abs(v)
					}
					if y := got["y"].F[int(i)*n+r]; !(math.Abs(y-sum) <= 1e-6*size) {
						t.Fatalf("y[%d,%d] is %v, want %v", i, r, y, sum)
					}
				}
			}
		})
	}
}

func TestQuantizedWeightsAreRefused(t *testing.T) {
	raw := pattern(16 * 48)
	base := func(change func(n *onnxpb.NodeProto)) *onnxpb.ModelProto {
		n := node("MatMulNBits", "fc", in("x", "w", "scale"), in("y"), attrInt("N", 16), attrInt("K", 96), attrInt("bits", 4), attrInt("block_size", 32))
		n.Domain = proto.String("com.microsoft")
		change(n)
		m := model(21, []*onnxpb.ValueInfoProto{vi("x", float, 2, 96)}, []*onnxpb.TensorProto{stored("w", onnxpb.TensorProto_UINT8, []int64{16, 3, 16}, raw), floats("scale", []int64{48}), floats("zero", []int64{48})}, n)
		m.OpsetImport = append(m.OpsetImport, &onnxpb.OperatorSetIdProto{Domain: proto.String("com.microsoft"), Version: proto.Int64(1)})
		return m
	}
	for want, change := range map[string]func(n *onnxpb.NodeProto){
		"3 bits":                    func(n *onnxpb.NodeProto) { n.Attribute[2].I = proto.Int64(3) },
		"for N=16, K=200":           func(n *onnxpb.NodeProto) { n.Attribute[1].I = proto.Int64(200) },
		"N=9223372036854775807":     func(n *onnxpb.NodeProto) { n.Attribute[0].I = proto.Int64(math.MaxInt64) },
		"block_size=0":              func(n *onnxpb.NodeProto) { n.Attribute[3].I = proto.Int64(0) },
		"zero points of type f32":   func(n *onnxpb.NodeProto) { n.Input = append(n.Input, "zero") },
		"a weight that is computed": func(n *onnxpb.NodeProto) { n.Input[1] = "scale" },
		"g_idx":                     func(n *onnxpb.NodeProto) { n.Input = append(n.Input, "", "scale") },
	} {
		_, err := Import(save(t, base(change)), Options{})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
