package op

import (
	"fmt"
	"math"

	"aitk/ir"
)

// operands checks what every op asks of its operands: their number, known element types, legal shapes, device space. Packed i4 is
// storage only: nothing but Reshape and the ops of quantization accept it.
func operands(in []ir.Type, n int) error {
	if len(in) != n {
		return fmt.Errorf("takes %s, got %d", plural(n, "operand"), len(in))
	}
	return anyOperands(in)
}

// anyOperands is operands without the number.
func anyOperands(in []ir.Type) error {
	for i, t := range in {
		switch {
		case t.DType == ir.I4:
			return fmt.Errorf("operand %d is i4, which is a storage type: cast it first", i)
		case !t.DType.IsFloat() && !t.DType.IsInt() && t.DType != ir.Bool:
			return fmt.Errorf("operand %d has no element type", i)
		case t.Space != ir.Device:
			return fmt.Errorf("operand %d is in %v memory", i, t.Space)
		}
		if err := t.Shape.Check(); err != nil {
			return fmt.Errorf("operand %d: %w", i, err)
		}
	}
	return nil
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// isNumber tells whether arithmetic is defined: floats and integers, not booleans.
func isNumber(d ir.DType) bool { return d.IsFloat() || d.IsInt() }

// wantFloat checks that operand i holds floats.
func wantFloat(in []ir.Type, i int) error {
	if !in[i].DType.IsFloat() {
		return fmt.Errorf("operand %d is %v, want floats", i, in[i].DType)
	}
	return nil
}

// wantNumber checks that operand i holds floats or integers.
func wantNumber(in []ir.Type, i int) error {
	if !isNumber(in[i].DType) {
		return fmt.Errorf("operand %d is %v, want numbers", i, in[i].DType)
	}
	return nil
}

// wantIndex checks that operand i holds indices: i64 or i32.
func wantIndex(in []ir.Type, i int) error {
	if d := in[i].DType; d != ir.I64 && d != ir.I32 {
		return fmt.Errorf("operand %d is %v, want indices of i64 or i32", i, d)
	}
	return nil
}

// wantSame checks that operands i and j have one element type.
func wantSame(in []ir.Type, i, j int) error {
	if in[i].DType != in[j].DType {
		return fmt.Errorf("operands %d and %d are %v and %v, want one element type", i, j, in[i].DType, in[j].DType)
	}
	return nil
}

// wantSameType checks that operands i and j have one element type and one shape.
func wantSameType(in []ir.Type, i, j int) error {
	if err := wantSame(in, i, j); err != nil {
		return err
	}
	if !in[i].Shape.Equal(in[j].Shape) {
		return fmt.Errorf("operands %d and %d have shapes %v and %v, want one shape", i, j, in[i].Shape, in[j].Shape)
	}
	return nil
}

// wantValue checks that an attribute fits the element type: integers must be whole and in range.
func wantValue(d ir.DType, x float64) error {
	if d.IsFloat() {
		return nil
	}
	least, most := d.IntRange()
	lo, hi := float64(least), float64(most)
	if (d == ir.I64 || d == ir.U64) && x == hi { // MaxInt64 rounds up to 2^63, which does not fit; the upper half of u64 is written as literals
		return fmt.Errorf("value %v is outside %v", x, d)
	}
	if x != math.Trunc(x) || x < lo || x > hi { // NaN differs from itself
		return fmt.Errorf("value %v is outside %v", x, d)
	}
	return nil
}

// one is the result of an op with a single output.
func one(d ir.DType, s ir.Shape) []ir.Type { return []ir.Type{{DType: d, Shape: s}} }
