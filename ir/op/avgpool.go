package op

import "aitk/ir"

// AvgPool is the mean under a sliding window.
//
//	x [N, C, spatial...] -> [N, C, out...]
//
// out as for Conv. The divisor is the number of cells of the window inside x or, with CountPad, the kernel's size (cells outside x
// count as zeros). A window that covers none of x gives 0. Cells are summed in row-major order.
type AvgPool struct {
	Kernel, Strides, Dilations, Pads []int64
	CountPad                         bool
}

func (o AvgPool) window() window { return window{o.Kernel, o.Strides, o.Dilations, o.Pads} }

// Infer gives [N, C, out...].
func (o AvgPool) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0); err != nil {
		return nil, err
	}
	out, err := o.window().poolShape(in[0].Shape)
	if err != nil {
		return nil, err
	}
	return []ir.Type{{DType: in[0].DType, Shape: out}}, nil
}

// AvgPoolGrad is the gradient of AvgPool, which is linear: it spreads each dy evenly over the cells that it is the mean of.
//
//	dy [N, C, out...] -> Shape [N, C, spatial...]
//
// Cells under several windows sum in row-major order of the windows.
type AvgPoolGrad struct {
	Kernel, Strides, Dilations, Pads []int64
	CountPad                         bool
	Shape                            ir.Shape
}

func (o AvgPoolGrad) window() window { return window{o.Kernel, o.Strides, o.Dilations, o.Pads} }

// Infer gives Shape.
func (o AvgPoolGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "dy"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0); err != nil {
		return nil, err
	}
	if err := o.Shape.Check(); err != nil {
		return nil, err
	}
	y, err := o.window().poolShape(o.Shape)
	if err != nil {
		return nil, err
	}
	if err := wantShape(in, 0, "dy", y); err != nil {
		return nil, err
	}
	return []ir.Type{{DType: in[0].DType, Shape: o.Shape.Clone()}}, nil
}
