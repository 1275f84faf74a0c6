package op

import "aitk/ir"

// MaxPool is the largest value under a sliding window.
//
//	x [N, C, spatial...] -> [N, C, out...]
//
// out as for Conv. Cells outside x never win; a window that covers none of x gives -inf. A NaN under the window is the result.
// ceil_mode and auto_pad are resolved by the importer into Pads.
type MaxPool struct{ Kernel, Strides, Dilations, Pads []int64 }

func (o MaxPool) window() window { return window{o.Kernel, o.Strides, o.Dilations, o.Pads} }

// Infer gives [N, C, out...].
func (o MaxPool) Infer(in []ir.Type) ([]ir.Type, error) {
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

// MaxPoolGrad gives the whole of each dy to the first maximum of its window in row-major order (of NaNs, the first).
//
//	x [N, C, spatial...], dy [N, C, out...] -> dx like x
//
// Cells that win several windows sum in row-major order of the windows.
type MaxPoolGrad struct{ Kernel, Strides, Dilations, Pads []int64 }

func (o MaxPoolGrad) window() window { return window{o.Kernel, o.Strides, o.Dilations, o.Pads} }

// Infer gives x's type.
func (o MaxPoolGrad) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x", "dy"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0, 1); err != nil {
		return nil, err
	}
	y, err := o.window().poolShape(in[0].Shape)
	if err != nil {
		return nil, err
	}
	if err := wantShape(in, 1, "dy", y); err != nil {
		return nil, err
	}
	return []ir.Type{in[0]}, nil
}

// NoGradReason says why gradients stop here.
func (MaxPoolGrad) NoGradReason() string { return noSecond }
