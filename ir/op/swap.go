package op

import (
	"fmt"
	"strings"

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
	if err := wantStored(in, "x"); err != nil {
		return nil, err
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
	if err := wantStored(in, "x", "host"); err != nil {
		return nil, err
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
	if err := wantStored(in, "host"); err != nil {
		return nil, err
	}
	t := in[0]
	if t.Space == ir.Device {
		return nil, fmt.Errorf("host must lie in another space than the device, got %v", t)
	}
	t.Space = ir.Device
	return []ir.Type{t}, nil
}

// wantStored is wantOperands for ops that move bytes: any space and any dtype, packed ones too.
func wantStored(in []ir.Type, names ...string) error {
	if len(in) != len(names) {
		return fmt.Errorf("takes %s (%s), got %d", plural(len(names), "operand"), strings.Join(names, ", "), len(in))
	}
	for i, t := range in {
		if t.DType.Bits() == 0 || t.Space >= ir.NumSpaces {
			return fmt.Errorf("%s has no storage, got %v", names[i], t)
		}
		if err := t.Shape.Check(); err != nil {
			return fmt.Errorf("%s: %w", names[i], err)
		}
	}
	return nil
}

const noSwapGrad = "memory passes run after autodiff"

// NoGradReason says why gradients stop here.
func (SwapOut) NoGradReason() string { return noSwapGrad }

// NoGradReason says why gradients stop here.
func (SwapWait) NoGradReason() string { return noSwapGrad }

// NoGradReason says why gradients stop here.
func (SwapIn) NoGradReason() string { return noSwapGrad }

// Eval copies.
func (SwapOut) Eval(in, out []ir.Tensor) { copyTensor(out[0], in[0]) }

// Eval has nothing to do: waiting is no matter of values.
func (SwapWait) Eval(in, out []ir.Tensor) {}

// Eval copies.
func (SwapIn) Eval(in, out []ir.Tensor) { copyTensor(out[0], in[0]) }

func copyTensor(dst, src ir.Tensor) {
	copy(dst.F, src.F)
	copy(dst.I, src.I)
}

// Cost is the copy.
func (SwapOut) Cost(in, out []ir.Type) ir.Work { return moved(in, out) }

// Cost is nothing: the wait's length is the schedule's to say.
func (SwapWait) Cost(in, out []ir.Type) ir.Work { return ir.Work{} }

// Cost is the copy.
func (SwapIn) Cost(in, out []ir.Type) ir.Work { return moved(in, out) }

// inSpace is a tensor in another space.
func inSpace(t ir.Tensor, s ir.Space) ir.Tensor {
	t.Type.Space = s
	return t
}

// Samples are copies to each space, and from the wrong side.
func (SwapOut) Samples() []ir.Sample {
	host := ir.T(ir.F32, 3)
	host.Space = ir.Pinned
	return []ir.Sample{
		good(SwapOut{ir.Pinned}, sampleFloats(1, ir.F32, 3, 4)),
		good(SwapOut{ir.Pageable}, sampleFloats(2, ir.BF16, 3)),
		good(SwapOut{ir.Pinned}, sampleInts(ir.I64, ir.Shape{2}, 1, 2)),
		bad(SwapOut{ir.Device}, "cannot swap out to space device", ir.T(ir.F32, 3)),
		bad(SwapOut{ir.NumSpaces}, "cannot swap out to space", ir.T(ir.F32, 3)),
		bad(SwapOut{ir.Pinned}, "x must lie on the device", host),
		bad(SwapOut{ir.Pinned}, "takes 1 operand (x)"),
	}
}

// Samples are a copy and the ways in which it is none.
func (SwapWait) Samples() []ir.Sample {
	x, host, other := ir.T(ir.F32, 3), ir.T(ir.F32, 3), ir.T(ir.F32, 4)
	host.Space, other.Space = ir.Pinned, ir.Pinned
	return []ir.Sample{
		good(SwapWait{}, sampleFloats(1, ir.F32, 3), inSpace(sampleFloats(1, ir.F32, 3), ir.Pinned)),
		bad(SwapWait{}, "host must be a copy of x in another space", x, x),
		bad(SwapWait{}, "host must be a copy of x in another space", x, other),
		bad(SwapWait{}, "host must be a copy of x in another space", host, host),
		bad(SwapWait{}, "takes 2 operands (x, host)", x),
	}
}

// Samples are copies from each space, and from the device.
func (SwapIn) Samples() []ir.Sample {
	return []ir.Sample{
		good(SwapIn{}, inSpace(sampleFloats(1, ir.F32, 3, 4), ir.Pinned)),
		good(SwapIn{}, inSpace(sampleInts(ir.I64, ir.Shape{2}, 1, 2), ir.Pageable)),
		bad(SwapIn{}, "host must lie in another space", ir.T(ir.F32, 3)),
		bad(SwapIn{}, "takes 1 operand (host)"),
	}
}
