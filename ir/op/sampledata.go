package op

import "aitk/ir"

// sampleFloats is a tensor of numbers in [-1,1) that differ from each other, the same for the same seed and type, rounded to the dtype.
func sampleFloats(seed uint64, d ir.DType, shape ...int64) ir.Tensor {
	t := ir.NewTensor(ir.T(d, shape...))
	key := StepKey(int64(seed), 0, 0)
	for i := range t.F {
		t.F[i] = float64(StreamBits(key, 0, uint64(i/4))[i%4])/(1<<31) - 1
	}
	t.Round()
	return t
}

// samplePositives is sampleFloats moved to [0.5,1.5), for variances and second moments.
func samplePositives(seed uint64, d ir.DType, shape ...int64) ir.Tensor {
	t := sampleFloats(seed, d, shape...)
	for i := range t.F {
		t.F[i] = t.F[i]/2 + 1
	}
	t.Round()
	return t
}

// sampleInts is a tensor of the given elements.
func sampleInts(d ir.DType, shape ir.Shape, elems ...int64) ir.Tensor {
	t := ir.NewTensor(ir.Type{DType: d, Shape: shape})
	if copy(t.I, elems) != len(t.I) || len(elems) != len(t.I) {
		panic(ir.Bugf("sample of type %v given %d elements", t.Type, len(elems)))
	}
	return t
}

// sampleScalar is a tensor of rank 0.
func sampleScalar(d ir.DType, x float64) ir.Tensor {
	t := ir.NewTensor(ir.T(d))
	if d.IsFloat() {
		t.F[0] = x
		t.Round()
	} else {
		t.I[0] = int64(x)
	}
	return t
}

// good is a sample whose gradients finite differences may check at every float operand.
func good(o ir.Op, in ...ir.Tensor) ir.Sample { return ir.Sample{Op: o, In: in} }

// bad is a sample that Infer must refuse with a message that contains want.
func bad(o ir.Op, want string, types ...ir.Type) ir.Sample {
	return ir.Sample{Op: o, Types: types, Err: want}
}
