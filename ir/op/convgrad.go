package op

import (
	"fmt"

	"aitk/ir"
)

// ConvGradInput is the gradient of Conv to x, and the transposed convolution.
//
//	w [O, C/Group, kernel...], dy [N, O, out...] -> Shape [N, C, spatial...]
//
// The attributes are those of the Conv that maps Shape and w to dy's shape. Each cell sums its products over (output channel of its
// group, kernel position) in row-major order.
type ConvGradInput struct {
	Strides, Dilations, Pads []int64
	Group                    int64
	Shape                    ir.Shape
}

func (o ConvGradInput) conv() Conv { return Conv{o.Strides, o.Dilations, o.Pads, o.Group} }

// Infer gives Shape.
func (o ConvGradInput) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "w", "dy"); err != nil {
		return nil, err
	}
	return inferConvGrad(o.conv(), in, o.Shape, in[0].Shape, o.Shape)
}

// NoGradReason says why gradients stop here.
func (ConvGradInput) NoGradReason() string { return noSecond }

// ConvGradWeight is the gradient of Conv to w.
//
//	x [N, C, spatial...], dy [N, O, out...] -> Shape [O, C/Group, kernel...]
//
// The attributes are those of the Conv that maps x and Shape to dy's shape. Each element sums its products over (sample, output
// position) in row-major order.
type ConvGradWeight struct {
	Strides, Dilations, Pads []int64
	Group                    int64
	Shape                    ir.Shape
}

func (o ConvGradWeight) conv() Conv { return Conv{o.Strides, o.Dilations, o.Pads, o.Group} }

// Infer gives Shape.
func (o ConvGradWeight) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x", "dy"); err != nil {
		return nil, err
	}
	return inferConvGrad(o.conv(), in, in[0].Shape, o.Shape, o.Shape)
}

// NoGradReason says why gradients stop here.
func (ConvGradWeight) NoGradReason() string { return noSecond }

// noSecond is why gradient ops have no gradient of their own.
const noSecond = "second derivatives are not supported"

// inferConvGrad checks that c maps x and w to dy, operand 1, and gives a tensor of shape out.
func inferConvGrad(c Conv, in []ir.Type, x, w, out ir.Shape) ([]ir.Type, error) {
	if err := wantFloats(in, 0, 1); err != nil {
		return nil, err
	}
	if err := out.Check(); err != nil {
		return nil, err
	}
	y, err := c.shape(x, w)
	if err != nil {
		return nil, fmt.Errorf("the convolution whose gradient this is: %w", err)
	}
	if err := wantShape(in, 1, "dy", y); err != nil {
		return nil, err
	}
	return []ir.Type{{DType: in[0].DType, Shape: out}}, nil
}
