package adapter

import (
	"fmt"

	"aitk/ir"
)

// Delta is what an adapter adds to its weight.
type Delta struct {
	A, B          []float32 // [rank, in] and [out, rank], kernels flattened into in
	Out, In, Rank int64
	Scale         float64
	InOut         bool // the weight is stored [in, out]
}

// NewDelta checks that A, B and the weight fit.
func NewDelta(weight ir.Type, a, b Content, scale float64, inOut bool) (*Delta, error) {
	d := &Delta{Scale: scale, InOut: inOut}
	if len(a.Shape) < 2 || len(b.Shape) != len(a.Shape) || b.Shape[1] != a.Shape[0] || b.Shape[2:].Elems() != 1 {
		return nil, fmt.Errorf("factors A %v and B %v do not multiply", a.Shape, b.Shape)
	}
	d.Rank, d.In, d.Out = a.Shape[0], a.Shape[1:].Elems(), b.Shape[0]
	want := ir.Shape{d.Out, d.In}
	if inOut {
		want = ir.Shape{d.In, d.Out}
	}
	if len(weight.Shape) < 2 || weight.Shape[0] != want[0] || weight.Shape[1:].Elems() != want[1] {
		return nil, fmt.Errorf("factors A %v and B %v do not fit weight %v", a.Shape, b.Shape, weight)
	}
	for _, x := range []struct {
		c   Content
		dst *[]float32
	}{{a, &d.A}, {b, &d.B}} {
		t, err := ir.DecodeTensor(ir.T(ir.F32, x.c.Shape...), x.c.Raw)
		if err != nil {
			return nil, err
		}
		for _, v := range t.F {
			*x.dst = append(*x.dst, float32(v))
		}
	}
	return d, nil
}

// Apply adds the adapter to a whole weight: little-endian elements of a float type. Products are summed along the rank in order, in float64, and
// rounded once with the weight.
func (d *Delta) Apply(t ir.Type, raw []byte) error {
	x, err := ir.DecodeTensor(t, raw)
	if err != nil {
		return err
	}
	if x.F == nil || t.Elems() != d.Out*d.In {
		return fmt.Errorf("an adapter of %d by %d does not fit %v", d.Out, d.In, t)
	}
	cols := d.In
	if d.InOut {
		cols = d.Out
	}
	for i := range x.F {
		r, c := int64(i)/cols, int64(i)%cols
		if d.InOut {
			r, c = c, r
		}
		sum := 0.0
		for k := range d.Rank {
			sum += float64(d.B[r*d.Rank+k]) * float64(d.A[k*d.In+c])
		}
		x.F[i] += float64(d.Scale * sum)
	}
	copy(raw, x.Encode())
	return nil
}
