//go:build cuda && linux

package cuda

import (
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
)

// HasKernel is what the device answers for each op with the types of its good samples.
func TestHasKernel(t *testing.T) {
	fake(t)
	dev, err := Open(Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	const room = 1 << 20 // of the operands of a sample
	arena, err := dev.Alloc(ir.Device, room)
	if err != nil {
		t.Fatal(err)
	}
	for _, o := range op.All() {
		for _, s := range o.(ir.Sampler).Samples() {
			if s.Err != "" {
				continue
			}
			var in []ir.Type
			for _, x := range s.In {
				in = append(in, x.Type)
			}
			out, err := s.Op.Infer(in)
			if err != nil {
				t.Fatal(err)
			}
			at := int64(0)
			take := func(bytes int64) runtime.Slice {
				x := runtime.Slice{Arena: arena, Space: ir.Device, Offset: at, Bytes: bytes}
				if at += (bytes + 255) / 256 * 256; at > room {
					t.Fatalf("the operands of %s take more than %d bytes", ir.FormatOp(s.Op), room)
				}
				return x
			}
			places := func(types []ir.Type) (refs []plan.Ref, slices []runtime.Slice) {
				for i, x := range types {
					refs = append(refs, plan.Ref{Buffer: plan.BufferID(i), Type: x})
					slices = append(slices, take(x.Bytes()))
				}
				return refs, slices
			}
			x := &plan.Exec{Op: s.Op, Scratch: plan.NoBuffer}
			var inAt, outAt []runtime.Slice
			x.In, inAt = places(in)
			x.Out, outAt = places(out)
			w := ir.WorkOf(s.Op, in, out)
			_, err = dev.Kernel(x, inAt, outAt, take(w.ScratchBytes+w.PartialBytes))
			if has := HasKernel(s.Op); has != (err == nil) {
				t.Errorf("%s of %v: HasKernel says %v, the device %v", ir.FormatOp(s.Op), in, has, err)
			}
		}
	}
}
