package op

import (
	"fmt"

	"aitk/ir"
)

// SwapOut copies x to another space; the copy is issued here and complete at the latest at the SwapWait that reads it.
//
//	x [...] -> the same type in space To
//
// The memory pass alone makes SwapOut, SwapWait and SwapIn; a lowered plan holds copies and waits in their place, so devices have no
// kernel for them. For evaluation a copy is a copy, whatever its space.
type SwapOut struct{ To ir.Space }

// Infer gives x's type in space To.
func (o SwapOut) Infer(in []ir.Type) ([]ir.Type, error) {
	if len(in) != 1 {
		return nil, fmt.Errorf("takes 1 operand (x), got %d", len(in))
	}
	if in[0].Space != ir.Device {
		return nil, fmt.Errorf("x must lie on the device, got %v", in[0])
	}
	if o.To == ir.Device || o.To >= ir.NumSpaces {
		return nil, fmt.Errorf("cannot swap out to space %v", o.To)
	}
	t := in[0]
	t.Space = o.To
	return []ir.Type{t}, nil
}

// SwapWait holds the compute lane until host, the SwapOut of x, has been copied; from here on x's bytes are free.
//
//	x [...], host like x in another space -> nothing
type SwapWait struct{}

// Infer gives no output.
func (SwapWait) Infer(in []ir.Type) ([]ir.Type, error) {
	if len(in) != 2 {
		return nil, fmt.Errorf("takes 2 operands (x, host), got %d", len(in))
	}
	back := in[1]
	back.Space = ir.Device
	if in[0].Space != ir.Device || in[1].Space == ir.Device || !back.Equal(in[0]) {
		return nil, fmt.Errorf("host must be a copy of x in another space, got %v and %v", in[0], in[1])
	}
	return []ir.Type{}, nil
}

// SwapIn copies back to the device; the copy is issued here and waited for before the first reader.
//
//	host [...] in another space -> the same type on the device
type SwapIn struct{}

// Infer gives the device type.
func (SwapIn) Infer(in []ir.Type) ([]ir.Type, error) {
	if len(in) != 1 {
		return nil, fmt.Errorf("takes 1 operand (host), got %d", len(in))
	}
	t := in[0]
	if t.Space == ir.Device {
		return nil, fmt.Errorf("host must lie in another space than the device, got %v", t)
	}
	t.Space = ir.Device
	return []ir.Type{t}, nil
}

const noSwapGrad = "memory passes run after autodiff"

// NoGradReason says why gradients stop here.
func (SwapOut) NoGradReason() string { return noSwapGrad }

// NoGradReason says why gradients stop here.
func (SwapWait) NoGradReason() string { return noSwapGrad }

// NoGradReason says why gradients stop here.
func (SwapIn) NoGradReason() string { return noSwapGrad }
