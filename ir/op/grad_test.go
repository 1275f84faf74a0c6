package op_test

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

// TestGradients compares each op's gradient with central differences in float64, for every float operand of every good sample that is
// not listed in NoDiff, once for each float result.
func TestGradients(t *testing.T) {
	forEach(t, func(t *testing.T, o ir.Op) {
		if _, ok := o.(ir.Differentiable); !ok {
			t.Skip("no gradient: " + o.(ir.NoGrad).NoGradReason())
		}
		good, _ := samples(t, o)
		checked := 0
		for _, s := range good {
			in := widened(s)
			for k, out := range run(s.Op, in) {
				if out.Type.DType.IsFloat() && carriesGradient(s.Op, k) {
					checked += checkGradient(t, s, in, k)
				}
			}
		}
		if checked == 0 {
			t.Error("no sample lets a gradient be checked")
		}
	})
}

// TestIntegersCarryNoGradient: ops that take integers too answer with nothing where they were given some.
func TestIntegersCarryNoGradient(t *testing.T) {
	forEach(t, func(t *testing.T, o ir.Op) {
		if _, ok := o.(ir.Differentiable); !ok {
			t.Skip("no gradient")
		}
		good, _ := samples(t, o)
		for _, s := range good {
			g := ir.NewGraph("integers")
			b := &ir.Builder{G: g}
			var operands []*ir.Value
			for i, x := range s.In {
				operands = append(operands, g.AddInput(fmt.Sprint(i), x.Type))
			}
			outs := b.Multi(s.Op, operands...)
			if outs[0].Type.DType.IsFloat() {
				continue
			}
			for i, v := range s.Op.(ir.Differentiable).Grad(b, g.Nodes[0], []*ir.Value{g.AddInput("d", outs[0].Type)}) {
				if v != nil {
					t.Errorf("%s: a gradient flows to operand %d", describe(s), i)
				}
			}
		}
	})
}

// carriesGradient tells whether gradients arrive at a result: batch statistics feed the running ones alone.
func carriesGradient(o ir.Op, result int) bool {
	_, norm := o.(op.BatchNorm)
	return !norm || result == 0
}

// widened gives floats the type f64 where the op accepts that.
func widened(s ir.Sample) []ir.Tensor {
	in := cloneTensors(s.In)
	for i := range in {
		if in[i].Type.DType.IsFloat() {
			in[i].Type.DType = ir.F64
		}
	}
	if _, err := s.Op.Infer(typesOf(in)); err != nil {
		return cloneTensors(s.In)
	}
	return in
}

// weight is the gradient that arrives at element i of a result: any numbers that differ.
func weight(i int) float64 { return math.Sin(float64(3*i + 1)) }

// checkGradient compares the gradients of sum(weight * result k), and returns how many operands it could check.
func checkGradient(t *testing.T, s ir.Sample, in []ir.Tensor, k int) int {
	t.Helper()
	g := ir.NewGraph("gradient")
	values := make(map[*ir.Value]ir.Tensor)
	var operands []*ir.Value
	for i, x := range in {
		v := g.AddInput(fmt.Sprint(i), x.Type)
		values[v] = x
		operands = append(operands, v)
	}
	b := &ir.Builder{G: g}
	outs := b.Multi(s.Op, operands...)
	n := g.Nodes[0]
	dOut := make([]*ir.Value, len(outs))
	dOut[k] = g.AddInput("d", outs[k].Type)
	seed := ir.NewTensor(outs[k].Type)
	for i := range seed.F {
		seed.F[i] = weight(i)
	}
	values[dOut[k]] = seed
	grads := s.Op.(ir.Differentiable).Grad(b, n, dOut)
	if len(grads) != len(in) {
		t.Errorf("%s: %d gradients for %d operands", describe(s), len(grads), len(in))
		return 0
	}
	runGraph(g, values)
	checked := 0
	for i, d := range grads {
		switch {
		case d == nil:
			continue
		case !in[i].Type.DType.IsFloat():
			t.Errorf("%s: a gradient flows to operand %d", describe(s), i)
			continue
		case !d.Type.Equal(in[i].Type):
			t.Errorf("%s: the gradient to operand %d is %v", describe(s), i, d.Type)
			continue
		case slices.Contains(s.NoDiff, i):
			continue
		}
		checked++
		compareDifferences(t, s, in, k, i, values[d])
	}
	return checked
}

// compareDifferences compares one gradient with central differences, at no more than 24 elements.
func compareDifferences(t *testing.T, s ir.Sample, in []ir.Tensor, k, operand int, got ir.Tensor) {
	t.Helper()
	loss := func(at int, x float64) float64 {
		moved := slices.Clone(in)
		moved[operand].F = slices.Clone(in[operand].F)
		moved[operand].F[at] = x
		sum := 0.0
		for i, y := range run(s.Op, moved)[k].F {
			sum += weight(i) * y
		}
		return sum
	}
	n := len(in[operand].F)
	for at := 0; at < n; at += 1 + n/24 {
		x := in[operand].F[at]
		h := 1e-5 * max(1, math.Abs(x))
		// Richardson's two steps cancel the error of third order.
		wide := (loss(at, x+2*h) - loss(at, x-2*h)) / (4 * h)
		want := (4*(loss(at, x+h)-loss(at, x-h))/(2*h) - wide) / 3
		if g := got.F[at]; !(math.Abs(g-want) <= 2e-6*max(1, math.Abs(want))) {
			t.Errorf("%s: gradient of result %d to element %d of operand %d is %v, differences say %v", describe(s), k, at, operand, g, want)
			return
		}
	}
}
