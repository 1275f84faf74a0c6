//go:build cuda && linux

package cuda

import "aitk/ir"

// variant names the text of a module that serves an element type, and the argument that its kernels take last: whether halves are bf16, or which
// integers they are. ok is false for types that are packed.
func variant(module string, d ir.DType) (name string, tail []any, ok bool) {
	switch {
	case d == ir.F32:
		return module + "_f32", nil, true
	case d == ir.F64:
		return module + "_f64", nil, true
	case d == ir.F16 || d == ir.BF16:
		return module + "_h16", []any{d == ir.BF16}, true
	case d == ir.I4 || d == ir.Invalid:
		return "", nil, false
	}
	return module + "_int", []any{int32(d)}, true
}

// floatVariant is variant for floats alone.
func floatVariant(module string, d ir.DType) (name string, tail []any, ok bool) {
	if !d.IsFloat() {
		return "", nil, false
	}
	return variant(module, d)
}

// number is a constant in the type that kernels of d compute in.
func number(d ir.DType, x float64) any {
	if d == ir.F64 {
		return x
	}
	return float32(x)
}

// width is the suffix of kernels that move elements of d by their width.
func width(d ir.DType) string {
	switch d.Bits() {
	case 8:
		return "1"
	case 16:
		return "2"
	case 32:
		return "4"
	}
	return "8"
}
