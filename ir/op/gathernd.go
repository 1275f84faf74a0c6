package op

import (
	"fmt"
	"slices"

	"aitk/ir"
)

// GatherND (data, indices) takes slices of data: the last axis of indices holds the coordinates of the axes after the first BatchDims,
// which both operands share. The result has the axes of indices but the last, then those of data that no coordinate names. Negative coordinates count from the end.
type GatherND struct {
	picker
	BatchDims int64
}

// ScatterND (data, indices, updates) is data with the slices that indices name, as in GatherND, replaced by those of updates. Reduce
// combines them with what is there instead: "add", "mul", "min" or "max", in row-major order of indices, each step rounded to the element type.
// Without Reduce the last update of a place wins, and where a place is named twice the gradient to the lost updates is not 0. It never writes
// over data, like ScatterElements.
type ScatterND struct{ Reduce string }

// GatherNDGrad (indices, dy) is the adjoint of GatherND: zeros of Shape to which the slices of dy are added in row-major order of indices.
// Floats accumulate in float64 and are rounded once; integers wrap.
type GatherNDGrad struct {
	BatchDims int64
	Shape     ir.Shape
}

// slicesShape is the shape of what GatherND takes from data.
func slicesShape(data, idx ir.Shape, batch int64) (ir.Shape, error) {
	if len(idx) == 0 {
		return nil, fmt.Errorf("indices have no axis of coordinates")
	}
	k, last := idx[len(idx)-1], int64(len(idx)-1)
	if batch < 0 || batch > last || k < 1 || k > int64(len(data))-batch || !data[:batch].Equal(idx[:batch]) {
		return nil, fmt.Errorf("indices %v with %d batch axes do not address data %v", idx, batch, data)
	}
	s := slices.Concat(idx[:last], data[batch+k:])
	return s, s.Check()
}

func (o GatherND) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantIndex(in, 1); err != nil {
		return nil, err
	}
	s, err := slicesShape(in[0].Shape, in[1].Shape, o.BatchDims)
	return one(in[0].DType, s), err
}

func (o ScatterND) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 3); err != nil {
		return nil, err
	}
	if err := wantIndex(in, 1); err != nil {
		return nil, err
	}
	if err := wantSame(in, 0, 2); err != nil {
		return nil, err
	}
	s, err := slicesShape(in[0].Shape, in[1].Shape, 0)
	if err != nil {
		return nil, err
	}
	if !s.Equal(in[2].Shape) {
		return nil, fmt.Errorf("updates are %v, the indices ask for %v", in[2].Shape, s)
	}
	if err := wantReduce(in, o.Reduce); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[0].Shape), nil
}

func (o GatherNDGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantIndex(in, 0); err != nil {
		return nil, err
	}
	if err := wantNumber(in, 1); err != nil {
		return nil, err
	}
	if err := o.Shape.Check(); err != nil {
		return nil, err
	}
	s, err := slicesShape(o.Shape, in[0].Shape, o.BatchDims)
	if err != nil {
		return nil, err
	}
	if !s.Equal(in[1].Shape) {
		return nil, fmt.Errorf("operand 1 is %v, the indices ask for %v", in[1].Shape, s)
	}
	return one(in[1].DType, o.Shape), nil
}

// sliceElems is how many elements a row of coordinates names.
func sliceElems(data, idx ir.Shape, batch int64) int64 { return data[batch+idx[len(idx)-1]:].Elems() }

// tuples visits the rows of coordinates with the first element of data that each one names.
func tuples(data ir.Shape, idx ir.Tensor, batch int64, f func(row, at int64)) {
	strides := rowMajor(data)
	last := len(idx.Type.Shape) - 1
	k := idx.Type.Shape[last]
	rows := idx.Type.Shape[:last]
	lead := make([]int64, last) // batch axes of the indices are those of data
	copy(lead, strides[:batch])
	walk(rows, func(row int64, at []int64) {
		start := at[0]
		for c := range k {
			a := batch + c
			start += entry(idx.I[row*k+c], data[a]) * strides[a]
		}
		f(row, start)
	}, lead)
}

// checkTuples checks every coordinate against the extent of its axis.
func checkTuples(data ir.Shape, idx ir.Tensor, batch int64) error {
	k := idx.Type.Shape[len(idx.Type.Shape)-1]
	for i, x := range idx.I {
		a := batch + int64(i)%k
		if err := checkIndices([]int64{x}, data[a], a); err != nil {
			return err
		}
	}
	return nil
}

func (o GatherND) checkData(in []ir.Tensor) error {
	return checkTuples(in[0].Type.Shape, in[1], o.BatchDims)
}

func (ScatterND) checkData(in []ir.Tensor) error { return checkTuples(in[0].Type.Shape, in[1], 0) }

func (o GatherNDGrad) checkData(in []ir.Tensor) error {
	return checkTuples(o.Shape, in[0], o.BatchDims)
}

func (o GatherND) Eval(in, out []ir.Tensor) {
	size := sliceElems(in[0].Type.Shape, in[1].Type.Shape, o.BatchDims)
	tuples(in[0].Type.Shape, in[1], o.BatchDims, func(row, at int64) {
		for i := range size {
			moveOne(out[0], row*size+i, in[0], at+i)
		}
	})
}

func (o ScatterND) Eval(in, out []ir.Tensor) {
	move(out[0], in[0], func(i int64) int64 { return i })
	size := sliceElems(in[0].Type.Shape, in[1].Type.Shape, 0)
	tuples(in[0].Type.Shape, in[1], 0, func(row, at int64) {
		for i := range size {
			combineOne(o.Reduce, out[0], at+i, in[2], row*size+i)
		}
	})
}

func (o GatherNDGrad) Eval(in, out []ir.Tensor) {
	size := sliceElems(o.Shape, in[0].Type.Shape, o.BatchDims)
	tuples(o.Shape, in[0], o.BatchDims, func(row, at int64) {
		for i := range size {
			addOne(out[0], at+i, in[1], row*size+i)
		}
	})
}

// Cost plans scratch for the rows of coordinates sorted by slice: one offset a slice and one more, one number a row, of 8 bytes each.
func (o GatherNDGrad) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	w.FLOPs = in[1].Elems()
	last := len(in[0].Shape) - 1
	k := in[0].Shape[last]
	w.ScratchBytes = 8 * (o.Shape[:o.BatchDims+k].Elems() + 1 + in[0].Shape[:last].Elems())
	return w
}

func (o GatherND) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	return []*ir.Value{b.Add(GatherNDGrad{BatchDims: o.BatchDims, Shape: n.In[0].Type.Shape}, n.In[1], dOut[0]), nil}
}

func (o GatherNDGrad) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(2)
	}
	return []*ir.Value{nil, b.Add(GatherND{BatchDims: o.BatchDims}, dOut[0], n.In[0])}
}

func (o ScatterND) Grad(b *ir.Builder, n *ir.Node, dOut []*ir.Value) []*ir.Value {
	if !differentiable(n) {
		return none(3)
	}
	return gradScatter(b, n, dOut[0], o.Reduce, scatterer{
		gather:  func(x *ir.Value) *ir.Value { return b.Add(GatherND{}, x, n.In[1]) },
		scatter: func(r string, x, u *ir.Value) *ir.Value { return b.Add(ScatterND{Reduce: r}, x, n.In[1], u) },
	})
}

func (GatherND) Samples() []ir.Sample {
	list := badOperands(GatherND{}, ir.T(ir.F32, 2), ir.T(ir.I64, 2, 1))
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.U8, ir.Bool} {
		list = append(list,
			good(GatherND{}, ramp(d, 0, -2, 2, 4), sampleInts(ir.I64, ir.Shape{1}, -1)),
			good(GatherND{}, ramp(d, 0, -2, 2, 2, 4), sampleInts(ir.I64, ir.Shape{3, 2}, 0, 3, -1, -4, 0, 3)),
			good(GatherND{}, ramp(d, 0, -2, 2, 2, 4, 3), sampleInts(ir.I32, ir.Shape{2, 2, 1}, 0, 1, -1, 0)),
			good(GatherND{BatchDims: 1}, ramp(d, 0, -2, 2, 2, 4, 3), sampleInts(ir.I64, ir.Shape{2, 2, 1}, 0, 1, -1, 0)),
			good(GatherND{BatchDims: 2}, ramp(d, 0, -2, 2, 2, 3, 4), sampleInts(ir.I64, ir.Shape{2, 3, 1}, 0, 1, -1, 0, 3, 2)),
			good(GatherND{BatchDims: 1}, ramp(d, 0, -2, 2, 2, 4), sampleInts(ir.I64, ir.Shape{2, 1}, 0, 1)),
			good(GatherND{}, ramp(d, 0, -2, 2, 2, 4), sampleInts(ir.I64, ir.Shape{0, 2})))
	}
	return append(append(list, bad(GatherND{BatchDims: -1}, "do not address data", ir.T(ir.F32, 2), ir.T(ir.I64, 2, 1)),
		bad(GatherND{BatchDims: 1}, "do not address data", ir.T(ir.F32, 2, 2), ir.T(ir.I64, 3, 1)),
		bad(GatherND{BatchDims: 1}, "do not address data", ir.T(ir.F32, 2, 2), ir.T(ir.I64, 1)),
		bad(GatherND{}, "negative or too large", ir.T(ir.F32, 2, 1<<50), ir.T(ir.I64, 1<<50, 1))), badTuples(GatherND{}, nil)...)
}

// badTuples are operands whose coordinates do not fit data. rest is what other operands there are.
func badTuples(o ir.Op, rest []ir.Type) []ir.Sample {
	with := func(data, idx ir.Type) []ir.Type { return append([]ir.Type{data, idx}, rest...) }
	return []ir.Sample{
		bad(o, "operand 1 is f32, want indices", with(ir.T(ir.F32, 2), ir.T(ir.F32, 2))...),
		bad(o, "indices have no axis of coordinates", with(ir.T(ir.F32, 2), ir.T(ir.I64))...),
		bad(o, "indices [2,2] with 0 batch axes do not address data [2]", with(ir.T(ir.F32, 2), ir.T(ir.I64, 2, 2))...),
		bad(o, "do not address data", with(ir.T(ir.F32, 2), ir.T(ir.I64, 2, 0))...),
	}
}

func (ScatterND) Samples() []ir.Sample {
	f, i := ir.T(ir.F32, 2), ir.T(ir.I64, 2, 1)
	list := append(badOperands(ScatterND{}, f, i, f), badTuples(ScatterND{}, []ir.Type{f})...)
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.U8} {
		for _, r := range []string{"", "add", "mul", "min", "max"} {
			o := ScatterND{Reduce: r}
			list = append(list,
				good(o, ramp(d, 0, -2, 2, 4), sampleInts(ir.I64, ir.Shape{1}, -1), ramp(d, 1, -2, 2)),
				good(o, ramp(d, 0, -2, 2, 4, 3), sampleInts(ir.I64, ir.Shape{2, 1}, -1, 0), ramp(d, 1, -2, 2, 2, 3)),
				good(o, ramp(d, 0, -2, 2, 2, 4), sampleInts(ir.I32, ir.Shape{0, 2}), ramp(d, 1, -2, 2, 0)))
			twice := good(o, ramp(d, 0, -2, 2, 2, 4), sampleInts(ir.I32, ir.Shape{1, 3, 2}, 0, 3, -1, -4, 0, 3), ramp(d, 1, -2, 2, 1, 3))
			if r == "" {
				twice.NoDiff = []int{2} // a place named twice
			}
			list = append(list, twice)
		}
	}
	return append(list,
		good(ScatterND{}, ramp(ir.Bool, 0, 0, 1, 4), sampleInts(ir.I64, ir.Shape{2, 1}, 0, 3), ramp(ir.Bool, 1, 0, 1, 2)),
		bad(ScatterND{}, "operands 0 and 2 are f32 and f64", f, i, ir.T(ir.F64, 2)),
		bad(ScatterND{}, "updates are [1], the indices ask for [2]", f, i, ir.T(ir.F32, 1)),
		bad(ScatterND{Reduce: "sub"}, "reduce \"sub\" is none of add, mul, min, max", f, i, f),
		bad(ScatterND{Reduce: "add"}, "operand 0 is bool, want numbers", ir.T(ir.Bool, 2), i, ir.T(ir.Bool, 2)))
}

func (GatherNDGrad) Samples() []ir.Sample {
	ok := GatherNDGrad{Shape: ir.Shape{4}}
	list := badOperands(ok, ir.T(ir.I64, 2, 1), ir.T(ir.F32, 2))
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.F16, ir.BF16, ir.I64, ir.I32, ir.U8} {
		list = append(list,
			good(ok, sampleInts(ir.I64, ir.Shape{1}, -1), ramp(d, 0, -2, 2)),
			good(GatherNDGrad{Shape: ir.Shape{2, 4}}, sampleInts(ir.I64, ir.Shape{3, 2}, 0, 3, -1, -4, 0, 3), ramp(d, 0, -2, 2, 3)),
			good(GatherNDGrad{Shape: ir.Shape{2, 4, 3}}, sampleInts(ir.I32, ir.Shape{2, 2, 1}, 0, 1, -1, 0), ramp(d, 0, -2, 2, 2, 2, 4, 3)),
			good(GatherNDGrad{BatchDims: 1, Shape: ir.Shape{2, 4, 3}}, sampleInts(ir.I64, ir.Shape{2, 2, 1}, 0, 0, -1, 0), ramp(d, 0, -2, 2, 2, 2, 3)),
			good(GatherNDGrad{Shape: ir.Shape{2, 4}}, sampleInts(ir.I64, ir.Shape{0, 2}), ramp(d, 0, -2, 2, 0)))
	}
	return append(list,
		bad(ok, "operand 0 is f32, want indices", ir.T(ir.F32, 2, 1), ir.T(ir.F32, 2)),
		bad(ok, "operand 1 is bool, want numbers", ir.T(ir.I64, 2, 1), ir.T(ir.Bool, 2)),
		bad(GatherNDGrad{Shape: ir.Shape{-1}}, "negative or too large", ir.T(ir.I64, 2, 1), ir.T(ir.F32, 2)),
		bad(ok, "indices have no axis of coordinates", ir.T(ir.I64), ir.T(ir.F32, 2)),
		bad(ok, "do not address data", ir.T(ir.I64, 2, 2), ir.T(ir.F32, 2)),
		bad(ok, "operand 1 is [3], the indices ask for [2]", ir.T(ir.I64, 2, 1), ir.T(ir.F32, 3)))
}
