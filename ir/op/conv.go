package op

import (
	"fmt"

	"aitk/ir"
)

// Conv is the cross-correlation that deep learning calls convolution, over one or more spatial axes.
//
//	x [N, C, spatial...], w [O, C/Group, kernel...] -> [N, O, out...]
//
// out = (in + begin + end - Dilation*(kernel-1) - 1)/Stride + 1, rounded down; cells outside x count as zero. Strides and Dilations
// have one entry a spatial axis, Pads all begins, then all ends; Group is at least 1 and divides C and O. There is no bias operand:
// the importer adds it. Products are summed over (channel, kernel position) in row-major order, in float32 or wider, and rounded once.
type Conv struct {
	Strides, Dilations, Pads []int64
	Group                    int64
}

// shape is the output shape, or what is wrong.
func (o Conv) shape(x, w ir.Shape) (ir.Shape, error) {
	if len(x) < 3 || len(w) != len(x) {
		return nil, fmt.Errorf("needs x [N,C,spatial...] and w [O,C/group,kernel...] of one rank of 3 or more, got shapes %v and %v", x, w)
	}
	if o.Group < 1 {
		return nil, fmt.Errorf("group must be at least 1, got %d", o.Group)
	}
	if x[1]%o.Group != 0 || w[0]%o.Group != 0 {
		return nil, fmt.Errorf("group %d does not divide %d input and %d output channels", o.Group, x[1], w[0])
	}
	if w[1] != x[1]/o.Group {
		return nil, fmt.Errorf("w must have %d input channels (%d in %d groups), got %d", x[1]/o.Group, x[1], o.Group, w[1])
	}
	spatial, err := o.window(w).out(x[2:])
	if err != nil {
		return nil, err
	}
	out := append(ir.Shape{x[0], w[0]}, spatial...)
	return out, out.Check()
}

func (o Conv) window(w ir.Shape) window { return window{w[2:], o.Strides, o.Dilations, o.Pads} }

// Infer gives [N, O, out...].
func (o Conv) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x", "w"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0, 1); err != nil {
		return nil, err
	}
	out, err := o.shape(in[0].Shape, in[1].Shape)
	if err != nil {
		return nil, err
	}
	return []ir.Type{{DType: in[0].DType, Shape: out}}, nil
}
