package op

import (
	"fmt"

	"aitk/ir"
)

// GatherElements (data, indices) takes one element of data for each index: the one at the index's own place, with the coordinate of
// Axis replaced by the index. Both have one rank, and no extent of indices but that of Axis exceeds data's. Negative indices count from the end.
type GatherElements struct {
	picker
	Axis int64
}

// ScatterElements (data, indices, updates) is data with the element that each index names, as in GatherElements, replaced by the update.
// Reduce combines it with what is there instead: "add", "mul", "min" or "max", in row-major order of indices, each step rounded to the
// element type. Without Reduce the last update of a place wins, and where a place is named twice the gradient to the lost updates is not 0.
// It never writes over data: updates may be the same tensor, of which elements would be read after they were overwritten.
type ScatterElements struct {
	Axis   int64
	Reduce string
}

// wantReduce checks how updates combine with what is there.
func wantReduce(in []ir.Type, reduce string) error {
	switch reduce {
	case "":
		return nil
	case "add", "mul", "min", "max":
		return wantNumber(in, 0)
	}
	return fmt.Errorf("reduce %q is none of add, mul, min, max", reduce)
}

// wantElements checks indices that name single elements of data.
func wantElements(in []ir.Type, axis int64) error {
	if err := wantIndex(in, 1); err != nil {
		return err
	}
	data, idx := in[0].Shape, in[1].Shape
	if err := wantAxis(axis, len(data)); err != nil {
		return err
	}
	ok := len(idx) == len(data)
	for a := 0; ok && a < len(data); a++ {
		ok = int64(a) == axis || idx[a] <= data[a]
	}
	if !ok {
		return fmt.Errorf("indices %v do not fit data %v beside axis %d", idx, data, axis)
	}
	return nil
}

func (o GatherElements) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantElements(in, o.Axis); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[1].Shape), nil
}

func (o ScatterElements) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 3); err != nil {
		return nil, err
	}
	if err := wantElements(in, o.Axis); err != nil {
		return nil, err
	}
	if err := wantSame(in, 0, 2); err != nil {
		return nil, err
	}
	if !in[1].Shape.Equal(in[2].Shape) {
		return nil, fmt.Errorf("indices %v and updates %v have different shapes", in[1].Shape, in[2].Shape)
	}
	if err := wantReduce(in, o.Reduce); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[0].Shape), nil
}

func (o GatherElements) checkData(in []ir.Tensor) error {
	return checkIndices(in[1].I, in[0].Type.Shape[o.Axis], o.Axis)
}

func (o ScatterElements) checkData(in []ir.Tensor) error {
	return checkIndices(in[1].I, in[0].Type.Shape[o.Axis], o.Axis)
}

// named visits the indices in row-major order with the element of data that each one names.
func named(data ir.Shape, idx ir.Tensor, axis int64, f func(i, at int64)) {
	strides := rowMajor(data)
	along := strides[axis]
	strides[axis] = 0
	walk(idx.Type.Shape, func(i int64, at []int64) {
		f(i, at[0]+entry(idx.I[i], data[axis])*along)
	}, strides)
}

func (o GatherElements) Eval(in, out []ir.Tensor) {
	named(in[0].Type.Shape, in[1], o.Axis, func(i, at int64) { moveOne(out[0], i, in[0], at) })
}

func (o ScatterElements) Eval(in, out []ir.Tensor) {
	move(out[0], in[0], func(i int64) int64 { return i })
	named(in[0].Type.Shape, in[1], o.Axis, func(i, at int64) { combineOne(o.Reduce, out[0], at, in[2], i) })
}

// combineOne combines an element of in with one of out.
func combineOne(reduce string, out ir.Tensor, to int64, in ir.Tensor, from int64) {
	if !out.Type.DType.IsFloat() {
		x, y := &out.I[to], in.I[from]
		switch reduce {
		case "":
			*x = y
		case "add":
			*x += y
		case "mul":
			*x *= y
		case "min":
			*x = min(*x, y)
		case "max":
			*x = max(*x, y)
		}
		return
	}
	x, y := &out.F[to], in.F[from]
	switch reduce {
	case "":
		*x = y
	case "add":
		*x += y
	case "mul":
		*x *= y
	case "min":
		*x = min(*x, y)
	case "max":
		*x = max(*x, y)
	}
}

func (o GatherElements) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	t := n.In[0].Type
	zeros := b.Add(Fill{DType: t.DType, Shape: t.Shape})
	return []*ir.Value{b.Add(ScatterElements{Axis: o.Axis, Reduce: "add"}, zeros, n.In[1], dOut[0]), nil}
}

func (o ScatterElements) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(3)
	}
	return gradScatter(b, n, dOut[0], o.Reduce, scatterer{
		gather: func(x *ir.Value) *ir.Value { return b.Add(GatherElements{Axis: o.Axis}, x, n.In[1]) },
		scatter: func(r string, x, u *ir.Value) *ir.Value {
			return b.Add(ScatterElements{Axis: o.Axis, Reduce: r}, x, n.In[1], u)
		},
	})
}

// scatterer applies the indices of a scatter to other tensors.
type scatterer struct {
	gather  func(x *ir.Value) *ir.Value
	scatter func(reduce string, x, updates *ir.Value) *ir.Value
}

// gradScatter is the gradient of scattering updates (operand 2) into data (operand 0). With y the result:
//
//	""       dy where nothing was written, and dy there
//	add      dy, and dy there
//	mul      dy times the other factors, exact where factors are 0
//	min max  dy shared among the operands that equal y
func gradScatter(b *ir.Builder, n *ir.Node, dy *ir.Value, reduce string, by scatterer) []*ir.Value {
	data, updates, d := n.In[0], n.In[2], dy.Type.DType
	zero, unit := b.Scalar(d, 0), b.Scalar(d, 1)
	switch reduce {
	case "":
		return []*ir.Value{by.scatter("", dy, b.Add(Fill{DType: d, Shape: updates.Type.Shape})), nil, by.gather(dy)}
	case "add":
		return []*ir.Value{dy, nil, by.gather(dy)}
	case "mul":
		// A product of everything but zeros, and how many zeros there are: the others' product is the first divided by the own
		// factor where no other is 0, else 0.
		isZero := func(x *ir.Value) *ir.Value { return b.Add(Equal{}, x, zero) }
		factor := func(x *ir.Value) *ir.Value { return b.Add(Where{}, isZero(x), unit, x) }
		count := func(x *ir.Value) *ir.Value { return b.Add(Where{}, isZero(x), unit, zero) }
		product := by.scatter("mul", factor(data), factor(updates))
		zeros := by.scatter("add", count(data), count(updates))
		share := func(x, dy, product, zeros *ir.Value) *ir.Value {
			others := b.Add(Div{}, b.Add(Mul{}, dy, product), factor(x))
			return b.Add(Where{}, b.Add(Equal{}, zeros, count(x)), others, zero)
		}
		return []*ir.Value{share(data, dy, product, zeros), nil, share(updates, by.gather(dy), by.gather(product), by.gather(zeros))}
	}
	y := n.Out[0]
	wins := func(x, y *ir.Value) *ir.Value { return b.Add(Where{}, b.Add(Equal{}, x, y), unit, zero) }
	first, there := wins(data, y), wins(updates, by.gather(y))
	share := b.Add(Div{}, dy, by.scatter("add", first, there)) // never empty: y equals one of them, or is NaN
	return []*ir.Value{b.Add(Mul{}, first, share), nil, b.Add(Mul{}, there, by.gather(share))}
}

func (GatherElements) Samples() []ir.Sample {
	list := badOperands(GatherElements{}, ir.T(ir.F32, 2), ir.T(ir.I64, 2))
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.U8, ir.Bool} {
		list = append(list,
			good(GatherElements{}, ramp(d, 0, -2, 2, 4), sampleInts(ir.I64, ir.Shape{6}, 0, 3, -1, 3, -4, 1)),
			good(GatherElements{}, ramp(d, 0, -2, 2, 4, 3), sampleInts(ir.I64, ir.Shape{3, 2}, 0, 3, -1, 3, -4, 1)),
			good(GatherElements{Axis: 1}, ramp(d, 0, -2, 2, 2, 4, 3), sampleInts(ir.I32, ir.Shape{1, 2, 3}, 0, 3, -1, 3, -4, 1)),
			good(GatherElements{Axis: 1}, ramp(d, 0, -2, 2, 2, 4), sampleInts(ir.I64, ir.Shape{2, 0})))
	}
	return append(list, badElements(GatherElements{}, GatherElements{Axis: 2}, nil)...)
}

// badElements are operands whose indices do not fit data. rest is what other operands there are.
func badElements(o, outside ir.Op, rest []ir.Type) []ir.Sample {
	with := func(data, idx ir.Type) []ir.Type { return append([]ir.Type{data, idx}, rest...) }
	return []ir.Sample{
		bad(o, "operand 1 is f32, want indices", with(ir.T(ir.F32, 2), ir.T(ir.F32, 2))...),
		bad(outside, "axis 2 is outside rank 1", with(ir.T(ir.F32, 2), ir.T(ir.I64, 2))...),
		bad(o, "indices [2] do not fit data [2,2]", with(ir.T(ir.F32, 2, 2), ir.T(ir.I64, 2))...),
		bad(o, "indices [2,3] do not fit data [2,2] beside axis 0", with(ir.T(ir.F32, 2, 2), ir.T(ir.I64, 2, 3))...),
	}
}

func (ScatterElements) Samples() []ir.Sample {
	f, i := ir.T(ir.F32, 2), ir.T(ir.I64, 2)
	list := append(badOperands(ScatterElements{}, f, i, f), badElements(ScatterElements{}, ScatterElements{Axis: 2}, []ir.Type{f})...)
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.U8} {
		for _, r := range []string{"", "add", "mul", "min", "max"} {
			o, along := ScatterElements{Reduce: r}, ScatterElements{Axis: 1, Reduce: r}
			list = append(list,
				good(o, ramp(d, 0, -2, 2, 4), sampleInts(ir.I64, ir.Shape{3}, 0, 3, -2), ramp(d, 1, -2, 2, 3)),
				good(o, ramp(d, 0, -2, 2, 4, 3), sampleInts(ir.I64, ir.Shape{3, 2}, 0, 3, -1, 2, -3, 1), ramp(d, 1, -2, 2, 3, 2)),
				good(along, ramp(d, 0, -2, 2, 2, 4), sampleInts(ir.I64, ir.Shape{2, 0}), ramp(d, 1, -2, 2, 2, 0)))
			twice := good(along, ramp(d, 0, -2, 2, 2, 4, 3), sampleInts(ir.I32, ir.Shape{1, 2, 3}, 0, 3, -1, -4, -1, 3), ramp(d, 1, -2, 2, 1, 2, 3))
			if r == "" {
				twice.NoDiff = []int{2} // places named twice
			}
			list = append(list, twice)
		}
	}
	zeros := listed(ir.F64, 0, 2, 0, 3)
	return append(list,
		good(ScatterElements{}, ramp(ir.Bool, 0, 0, 1, 4), sampleInts(ir.I64, ir.Shape{2}, 0, 3), ramp(ir.Bool, 1, 0, 1, 2)),
		good(ScatterElements{Reduce: "mul"}, zeros, sampleInts(ir.I64, ir.Shape{5}, 0, 1, 1, 2, 2), listed(ir.F64, 5, 0, 3, 2, 0)),
		kinked(ScatterElements{Reduce: "max"}, listed(ir.F32, 1, 2), sampleInts(ir.I64, ir.Shape{3}, 0, 0, 1), listed(ir.F32, 1, 1, 2)),
		bad(ScatterElements{}, "operands 0 and 2 are f32 and f64", f, i, ir.T(ir.F64, 2)),
		bad(ScatterElements{}, "indices [2] and updates [1] have different shapes", f, i, ir.T(ir.F32, 1)),
		bad(ScatterElements{Reduce: "sub"}, "reduce \"sub\" is none of add, mul, min, max", f, i, f),
		bad(ScatterElements{Reduce: "add"}, "operand 0 is bool, want numbers", ir.T(ir.Bool, 2), i, ir.T(ir.Bool, 2)))
}
