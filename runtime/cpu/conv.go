package cpu

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// convKernel serves convolution and its gradients: three products (gemm.go) for each group, whose one operand is packed straight from
// the cells under the kernel (patches.go), so that no matrix of columns exists anywhere.
//
//	forward  y[o, r]  = sum over (c, cell) of w[o, (c, cell)] * x under r        lines r: output positions of all samples
//	input    dx[c, r] = sum over (o, cell) of w[(o, cell), c] * dy over r        lines r: input positions of all samples
//	weight   dw[o, (c, cell)] = sum over r of dy[o, r] * x under r               sum over output positions of all samples
//
// The sums run in the order that the ops state. Cells outside contribute a product with zero, so that an infinite weight makes NaN there.
func convKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.Conv:
		return convForward(b, conv{o.Strides, o.Dilations, o.Pads, int(o.Group), b.inType(0).Shape, b.inType(1).Shape, b.outType(0).Shape})
	case op.ConvGradInput:
		return convGradInput(b, conv{o.Strides, o.Dilations, o.Pads, int(o.Group), o.Shape, b.inType(0).Shape, b.inType(1).Shape})
	case op.ConvGradWeight:
		return convGradWeight(b, conv{o.Strides, o.Dilations, o.Pads, int(o.Group), b.inType(0).Shape, o.Shape, b.inType(1).Shape})
	}
	return nil, nil
}

// conv is the geometry that the three share: x [N,C,...], w [O,C/group,...], y [N,O,...].
type conv struct {
	strides, dilations, pads []int64
	group                    int
	x, w, y                  ir.Shape
}

func (c *conv) samples() int   { return int(c.x[0]) }
func (c *conv) channels() int  { return int(c.w[1]) } // input channels of a group
func (c *conv) filters() int   { return int(c.w[0]) / c.group }
func (c *conv) cells() int     { return int(c.w[2:].Elems()) }
func (c *conv) inputs() int    { return int(c.x[2:].Elems()) } // positions of one channel
func (c *conv) positions() int { return int(c.y[2:].Elems()) }

func (b *builder) convOperands() (p, q, out floats, err error) {
	if axes := len(b.outType(0).Shape) - 2; axes > maxAxes {
		return p, q, out, fmt.Errorf("%s over %d spatial axes has no cpu kernel, which serves %d", ir.OpName(b.x.Op), axes, maxAxes)
	}
	if p, err = b.floatIn(0); err != nil {
		return
	}
	if q, err = b.floatIn(1); err != nil {
		return
	}
	out, err = b.floatOut(0)
	return
}

func convForward(b *builder, c conv) (runtime.Kernel, error) {
	x, w, y, err := b.convOperands()
	if err != nil {
		return nil, err
	}
	k := c.channels() * c.cells()
	weights := &matrix{v: w, at: steps(c.group, c.filters()*k), lineStep: k, kStep: 1}
	return b.gemm(product{batch: c.group, m: c.filters(), n: c.samples() * c.positions(), k: k,
		a: weights.pack, b: c.under(x).packPositions, store: c.storeImages(y, c.filters(), c.positions())}), nil
}

// steps are the offsets of n groups of size elements each.
func steps(n, size int) []int {
	at := make([]int, n)
	for i := range at {
		at[i] = i * size
	}
	return at
}

// storeImages writes a tile whose rows are the channels of a group and whose columns are positions of all samples into a tensor
// [samples, group*channels, positions].
func (c *conv) storeImages(y floats, channels, positions int) func(p, i0, i1, j0, j1 int, t []float64, ld int) {
	all := c.group * channels
	return func(p, i0, i1, j0, j1 int, t []float64, ld int) {
		for i := i0; i < i1; i++ {
			row := t[(i-i0)*ld:]
			for j := j0; j < j1; {
				sample, at := j/positions, j%positions
				n := min(positions-at, j1-j)
				y.store((sample*all+p*channels+i)*positions+at, row[j-j0:j-j0+n])
				j += n
			}
		}
	}
}
