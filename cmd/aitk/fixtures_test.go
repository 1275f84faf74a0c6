package main

import (
	"encoding/binary"
	"math"
	"os"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"aitk/internal/safetensors"
	"aitk/ir"
)

// message is a protocol buffer under construction: enough of the wire format to write a small model by the public schema's field numbers.
type message []byte

func (m *message) num(field int, x uint64) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3)
	*m = binary.AppendUvarint(*m, x)
}

func (m *message) raw(field int, b []byte) {
	*m = binary.AppendUvarint(*m, uint64(field)<<3|2)
	*m = binary.AppendUvarint(*m, uint64(len(b)))
	*m = append(*m, b...)
}

func (m *message) text(field int, s string) { m.raw(field, []byte(s)) }

const onnxFloat = 1

// value is a ValueInfoProto: a float tensor whose first dimension is called batch.
func value(name string, extent uint64) message {
	var batch, fixed, shape, tensor, typ, v message
	batch.text(2, "batch")
	fixed.num(1, extent)
	shape.raw(1, batch)
	shape.raw(1, fixed)
	tensor.num(1, onnxFloat)
	tensor.raw(2, shape)
	typ.raw(1, tensor)
	v.text(1, name)
	v.raw(2, typ)
	return v
}

// initializer is a TensorProto of small floats.
func initializer(name string, dims ...uint64) message {
	var t message
	n := uint64(1)
	for _, d := range dims {
		t.num(1, d)
		n *= d
	}
	t.num(2, onnxFloat)
	t.text(8, name)
	var raw []byte
	for i := range n {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(float32(i%5)/8-0.2))
	}
	t.raw(9, raw)
	return t
}

func node(op, name, out string, in ...string) message {
	var n message
	for _, x := range in {
		n.text(1, x)
	}
	n.text(2, out)
	n.text(3, name)
	n.text(4, op)
	return n
}

// smallModel is x f32[batch,4] -> Gemm -> op -> logits f32[batch,3].
func smallModel(op string) []byte {
	var g, opset, m message
	g.raw(1, node("Gemm", "fc", "h", "x", "fc.weight", "fc.bias"))
	g.raw(1, node(op, "last", "logits", "h"))
	g.text(2, "small")
	g.raw(5, initializer("fc.weight", 4, 3))
	g.raw(5, initializer("fc.bias", 3))
	g.raw(11, value("x", 4))
	g.raw(12, value("logits", 3))
	opset.num(2, 17)
	m.num(1, 8)
	m.text(2, "test")
	m.raw(7, g)
	m.raw(8, opset)
	return m
}

func writeModel(ts *testscript.TestScript, _ bool, args []string) {
	op := "Relu"
	if len(args) > 1 {
		op = args[1]
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), smallModel(op), 0o644))
}

// writeTensors fills each tensor with a number, with "ramp" (small and spread), with "cycle" (0 1 2 0 1 2 ...), or with "nan" in its last element.
func writeTensors(ts *testscript.TestScript, _ bool, args []string) {
	var specs []safetensors.Spec
	fill := map[string]string{}
	for _, a := range args[1:] {
		name, rest, ok := strings.Cut(a, "=")
		typ, what, hasWhat := strings.Cut(rest, ":")
		dtype, dims, _ := strings.Cut(strings.TrimSuffix(typ, "]"), "[")
		d, known := ir.ParseDType(dtype)
		if !ok || !hasWhat || !known {
			ts.Fatalf("%q: want NAME=TYPE:WHAT", a)
		}
		t := ir.T(d)
		for _, n := range strings.Split(dims, ",") {
			extent, err := strconv.ParseInt(n, 10, 64)
			ts.Check(err)
			t.Shape = append(t.Shape, extent)
		}
		specs = append(specs, safetensors.Spec{Name: name, Type: t})
		fill[name] = what
	}
	ts.Check(safetensors.WriteFile(ts.MkAbs(args[0]), nil, specs, func(s safetensors.Spec) ([]byte, error) {
		x := ir.NewTensor(s.Type)
		set := func(i int, v float64) {
			if x.F != nil {
				x.F[i] = v
			} else {
				x.I[i] = int64(v)
			}
		}
		for i := range int(s.Type.Elems()) {
			switch what := fill[s.Name]; what {
			case "ramp":
				set(i, float64(i*7%11)/4)
			case "cycle":
				set(i, float64(i%3))
			case "nan":
				set(i, 0.5)
				if i == int(s.Type.Elems())-1 {
					set(i, math.NaN())
				}
			default:
				v, err := strconv.ParseFloat(what, 64)
				if err != nil {
					return nil, err
				}
				set(i, v)
			}
		}
		return x.Encode(), nil
	}))
}
