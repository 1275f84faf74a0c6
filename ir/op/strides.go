package op

import "aitk/ir"

// rowMajor is, for each axis, how many elements lie between neighbours along it.
func rowMajor(s ir.Shape) []int64 {
	strides := make([]int64, len(s))
	step := int64(1)
	for a := len(s) - 1; a >= 0; a-- {
		strides[a] = step
		step *= s[a]
	}
	return strides
}

// stretched is rowMajor of s as seen from the shape out to which it broadcasts: 0 along axes that are new or stretched.
func stretched(s, out ir.Shape) []int64 {
	own := rowMajor(s)
	strides := make([]int64, len(out))
	lead := len(out) - len(s)
	for a := range s {
		if s[a] == out[lead+a] {
			strides[lead+a] = own[a]
		}
	}
	return strides
}

// walk visits every index of s in row-major order: f gets its number and, for each list of strides, the element that the index
// selects there. The slice that f gets is reused.
func walk(s ir.Shape, f func(i int64, at []int64), strides ...[]int64) {
	if s.Elems() == 0 {
		return
	}
	rank := len(s)
	index := make([]int64, rank)
	at := make([]int64, len(strides))
	step := make([]int64, len(strides)) // along the last axis
	n := int64(1)
	if rank > 0 {
		n = s[rank-1]
		for k, st := range strides {
			step[k] = st[rank-1]
		}
	}
	for i := int64(0); ; {
		for range n {
			f(i, at)
			i++
			for k := range at {
				at[k] += step[k]
			}
		}
		for k := range at {
			at[k] -= n * step[k]
		}
		a := rank - 2
		for ; a >= 0; a-- {
			index[a]++
			for k, st := range strides {
				at[k] += st[a]
			}
			if index[a] < s[a] {
				break
			}
			for k, st := range strides {
				at[k] -= st[a] * s[a]
			}
			index[a] = 0
		}
		if a < 0 {
			return
		}
	}
}

// around splits a shape at an axis: the element with index j along it in block o at place i is (o*n+j)*inner + i.
func around(s ir.Shape, axis int64) (outer, n, inner int64) {
	outer, inner = 1, 1
	for a, d := range s {
		switch {
		case int64(a) < axis:
			outer *= d
		case int64(a) > axis:
			inner *= d
		}
	}
	return outer, s[axis], inner
}

// move makes element i of out element from(i) of in, whatever their type is. A negative from leaves the element.
func move(out, in ir.Tensor, from func(i int64) int64) {
	for i := range out.F {
		if k := from(int64(i)); k >= 0 {
			out.F[i] = in.F[k]
		}
	}
	for i := range out.I {
		if k := from(int64(i)); k >= 0 {
			out.I[i] = in.I[k]
		}
	}
}

// moveOne is move for one element.
func moveOne(out ir.Tensor, to int64, in ir.Tensor, from int64) {
	if out.Type.DType.IsFloat() {
		out.F[to] = in.F[from]
	} else {
		out.I[to] = in.I[from]
	}
}

// addOne adds an element of in to one of out.
func addOne(out ir.Tensor, to int64, in ir.Tensor, from int64) {
	if out.Type.DType.IsFloat() {
		out.F[to] += in.F[from]
	} else {
		out.I[to] += in.I[from]
	}
}
