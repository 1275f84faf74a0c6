package op

import "aitk/ir"

// The arithmetic of two operands of one element type, floats or integers, which broadcast. Integers wrap. The gradient to a
// broadcast operand is summed over the axes along which it was stretched.
type (
	// Add is x + y.
	Add struct{ over01 }
	// Sub is x - y.
	Sub struct{ over01 }
	// Mul is x * y.
	Mul struct{ over01 }
	// Div is x / y. Integers: truncated, division by zero gives 0.
	Div struct{ over01 }
	// Pow is x to the power y, as C's pow; integers: repeated products, with a negative exponent truncated (0 unless x is 1 or -1).
	// The gradient to y is taken where x is above 0 and is 0 elsewhere; the gradient to x is 0 where y is 0.
	Pow struct{ over01 }
	// Max is the greater one; NaN where either is. At ties each operand gets half of the gradient.
	Max struct{ over01 }
	// Min is the smaller one; NaN where either is. At ties each operand gets half of the gradient.
	Min struct{ over01 }
	// Mod is the remainder of x/y with the sign of y, or with Fmod that of C's fmod, with the sign of x. Integers: 0 where y is 0.
	Mod struct {
		over01
		Fmod bool
	}
)

// inferArithmetic broadcasts two operands of one element type.
func inferArithmetic(in []ir.Type) ([]ir.Type, error) {
	if err := operands(in, 2); err != nil {
		return nil, err
	}
	if err := wantNumber(in, 0); err != nil {
		return nil, err
	}
	if err := wantSame(in, 0, 1); err != nil {
		return nil, err
	}
	s, err := ir.Broadcast(in[0].Shape, in[1].Shape)
	return one(in[0].DType, s), err
}

func (Add) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Sub) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Mul) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Div) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Pow) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Max) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Min) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
func (Mod) Infer(in []ir.Type) ([]ir.Type, error) { return inferArithmetic(in) }
