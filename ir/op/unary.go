package op

import "aitk/ir"

// The element-wise functions of one operand. All keep shape and element type, may write over their operand and let NaN through.
type (
	// Neg is -x. Integers wrap.
	Neg struct{ over0 }
	// Abs is |x|. Integers wrap at the least one. The gradient at 0 is 0.
	Abs struct{ over0 }
	// Sign is -1, 0 or 1 by the sign of x; 0 for both zeros.
	Sign struct {
		over0
		piecewiseConstant
	}
	// Floor is the greatest whole number not above x.
	Floor struct {
		over0
		piecewiseConstant
	}
	// Ceil is the least whole number not below x.
	Ceil struct {
		over0
		piecewiseConstant
	}
	// Round is the nearest whole number, halves to even.
	Round struct {
		over0
		piecewiseConstant
	}
	// Exp is e to the power x. The gradient is computed from the output.
	Exp struct{ over0 }
	// Log is the natural logarithm: NaN below 0, -Inf at 0.
	Log struct{ over0 }
	// Sqrt is the square root: NaN below 0. The gradient is computed from the output and infinite at 0, as IEEE division has it.
	Sqrt struct{ over0 }
	// Rsqrt is 1/sqrt(x). The gradient is computed from the output.
	Rsqrt struct{ over0 }
	// Reciprocal is 1/x. The gradient is computed from the output.
	Reciprocal struct{ over0 }
	// Sin is the sine of x in radians.
	Sin struct{ over0 }
	// Cos is the cosine of x in radians.
	Cos struct{ over0 }
)

// inferFloats keeps the type of the one operand, which holds floats.
func inferFloats(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if err := wantFloat(in, 0); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[0].Shape), nil
}

// inferNumbers keeps the type of the one operand, which holds floats or integers.
func inferNumbers(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 1); err != nil {
		return nil, err
	}
	if err := wantNumber(in, 0); err != nil {
		return nil, err
	}
	return one(in[0].DType, in[0].Shape), nil
}

func (Neg) Infer(in []ir.Type) ([]ir.Type, error)        { return inferNumbers(in) }
func (Abs) Infer(in []ir.Type) ([]ir.Type, error)        { return inferNumbers(in) }
func (Sign) Infer(in []ir.Type) ([]ir.Type, error)       { return inferNumbers(in) }
func (Floor) Infer(in []ir.Type) ([]ir.Type, error)      { return inferFloats(in) }
func (Ceil) Infer(in []ir.Type) ([]ir.Type, error)       { return inferFloats(in) }
func (Round) Infer(in []ir.Type) ([]ir.Type, error)      { return inferFloats(in) }
func (Exp) Infer(in []ir.Type) ([]ir.Type, error)        { return inferFloats(in) }
func (Log) Infer(in []ir.Type) ([]ir.Type, error)        { return inferFloats(in) }
func (Sqrt) Infer(in []ir.Type) ([]ir.Type, error)       { return inferFloats(in) }
func (Rsqrt) Infer(in []ir.Type) ([]ir.Type, error)      { return inferFloats(in) }
func (Reciprocal) Infer(in []ir.Type) ([]ir.Type, error) { return inferFloats(in) }
func (Sin) Infer(in []ir.Type) ([]ir.Type, error)        { return inferFloats(in) }
func (Cos) Infer(in []ir.Type) ([]ir.Type, error)        { return inferFloats(in) }
