// Package devicetest is the conformance suite of runtime.Device: a device passes Run or it is none. It tries every op of op.All on every good sample of its
// own, in the float dtypes that the device serves, plainly and with outputs written over operands where the op allows it; shapes larger than a
// tile; bad data; and the lanes: copies that wait and are waited for, in one run and from one run to the next.
//
// The oracle is Op.Eval, through runtime/ref. The package must not know any device, pass or importer.
package devicetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/ref"
)

// Options say what is tested.
type Options struct {
	Open   func() (runtime.Device, error) // a fresh device
	DTypes []ir.DType                     // float dtypes in which f32 samples are tried besides f32
}

// Run tests a device. Ops without a kernel are listed in one message.
func Run(t *testing.T, opt Options) {
	s := &suite{opt: opt}
	t.Run("ops", s.ops)
	t.Run("large", s.large)
	t.Run("fuse", s.fuse)
	t.Run("data", s.data)
	t.Run("lanes", s.lanes)
	t.Run("load", s.load)
}

// Lanes tests the lanes alone, for devices that are opened in several ways.
func Lanes(t *testing.T, opt Options) { (&suite{opt: opt}).lanes(t) }

// Products tests products of matrices, convolutions and attention alone, large ones, for devices that have several kernels for them.
func Products(t *testing.T, opt Options) {
	s := &suite{opt: opt, products: true}
	t.Run("large", s.large)
	t.Run("fuse", s.fuse)
}

type suite struct {
	opt      Options
	products bool // of what is large, try these alone
}

// testCase is one op on given operands. want holds what Eval says, f32 unrounded.
type testCase struct {
	name string
	op   ir.Op
	in   []ir.Tensor
	want []ir.Tensor
	over []int // by output: the operand to write over, -1 for none; nil: none at all
}

func (s *suite) open(t *testing.T) runtime.Device {
	t.Helper()
	dev, err := s.opt.Open()
	if err != nil {
		t.Fatal(err)
	}
	return dev
}

// ops tries every op on its samples.
func (s *suite) ops(t *testing.T) {
	var missing []string
	for _, o := range op.All() {
		if !computes(o) {
			continue
		}
		t.Run(ir.OpName(o), func(t *testing.T) {
			cases := s.samples(t, o)
			if len(cases) == 0 {
				t.Fatal("the op has no good sample")
			}
			if err := s.try(t, cases); ir.KindOf(err) == ir.Unsupported {
				missing = append(missing, err.Error())
			} else if err != nil {
				t.Fatal(err)
			}
		})
	}
	if len(missing) > 0 {
		t.Errorf("kernels are missing for %d ops:\n%s", len(missing), strings.Join(missing, "\n"))
	}
}

// computes tells whether plans hold Execs of the op: views emit none and swaps become copies.
func computes(o ir.Op) bool {
	switch o.(type) {
	case op.SwapOut, op.SwapWait, op.SwapIn:
		return false
	}
	return !slices.ContainsFunc(ir.AliasesOf(o), func(a ir.AliasPair) bool { return a.View })
}

// samples makes the cases of an op.
func (s *suite) samples(t *testing.T, o ir.Op) []testCase {
	var all []testCase
	sampler, ok := o.(ir.Sampler)
	if !ok {
		return nil
	}
	for i, sample := range sampler.Samples() {
		if sample.Err != "" {
			continue
		}
		name := fmt.Sprintf("%d %s", i, ir.FormatOp(sample.Op))
		all = append(all, variants(t, name, sample.Op, sample.In)...)
		for _, d := range s.opt.DTypes {
			if in, ok := retype(sample.Op, sample.In, d); ok {
				all = append(all, variants(t, name+" "+d.String(), sample.Op, in)...)
			}
		}
	}
	return all
}

// retype turns f32 operands into another float dtype; ok is false where there are none or the op does not take them so.
func retype(o ir.Op, in []ir.Tensor, d ir.DType) (out []ir.Tensor, ok bool) {
	var types []ir.Type
	for _, x := range in {
		if x.Type.DType == ir.F32 {
			x = ir.Tensor{Type: ir.Type{DType: d, Shape: x.Type.Shape}, F: slices.Clone(x.F)}
			x.Round()
			ok = true
		}
		out = append(out, x)
		types = append(types, x.Type)
	}
	if _, err := o.Infer(types); err != nil {
		return nil, false
	}
	return out, ok && op.CheckData(o, out) == nil
}

// variants is a case by itself and, where the op allows it, once more with outputs over operands.
func variants(t *testing.T, name string, o ir.Op, in []ir.Tensor) []testCase {
	t.Helper()
	c := testCase{name: name, op: o, in: in}
	var err error
	if c.want, err = eval(o, in); err != nil {
		t.Errorf("%s: the sample itself: %v", name, err)
		return nil
	}
	all := []testCase{c}
	over := slices.Repeat([]int{-1}, len(c.want))
	used := map[int]bool{}
	for _, a := range ir.AliasesOf(o) {
		if !a.View && a.In < len(in) && in[a.In].Type.Bytes() > 0 && over[a.Out] < 0 && !used[a.In] && in[a.In].Type.Bytes() == c.want[a.Out].Type.Bytes() {
			over[a.Out] = a.In
			used[a.In] = true
		}
	}
	if len(used) > 0 {
		c.name += " in place"
		c.over = over
		all = append(all, c)
	}
	return all
}

// eval asks the oracle.
func eval(o ir.Op, in []ir.Tensor) ([]ir.Tensor, error) {
	g := ir.NewGraph("case")
	b := &ir.Builder{G: g}
	inputs := map[string]ir.Tensor{}
	var vs []*ir.Value
	for i, x := range in {
		name := fmt.Sprint(i)
		vs = append(vs, g.AddInput(name, x.Type))
		inputs[name] = x
	}
	outs, err := b.Try(o, vs...)
	if err != nil {
		return nil, err
	}
	for i, v := range outs {
		g.Results = append(g.Results, ir.Result{Name: fmt.Sprint(i), Value: v})
	}
	results, _, err := ref.Run(g, inputs, nil)
	if err != nil {
		return nil, err
	}
	want := make([]ir.Tensor, len(outs))
	for i := range want {
		want[i] = results[fmt.Sprint(i)]
	}
	return want, nil
}

// try runs cases as programs of one plan. What Load says is returned, the rest is reported.
func (s *suite) try(t *testing.T, cases []testCase) error {
	t.Helper()
	dev := s.open(t)
	m := newMaker(dev.Name())
	for i, c := range cases {
		if err := m.single(fmt.Sprint(i), c); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
	}
	p := m.plan()
	e, err := runtime.Load(p, dev, runtime.Options{Poison: true})
	if err != nil {
		dev.Close()
		return err
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	for i, c := range cases {
		if err := runCase(e, fmt.Sprint(i), c); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if a := p.Arena(ir.Device); a != nil && e.HighWaterBytes(ir.Device) != a.Bytes {
		t.Errorf("the device saw %d bytes of an arena of %d", e.HighWaterBytes(ir.Device), a.Bytes)
	}
	return nil
}

// single is the program of one case. Operands that are written over are copied first, so that the program can run again.
func (m *maker) single(name string, c testCase) error {
	m.program(name)
	in := make([]plan.Ref, len(c.in))
	for i, x := range c.in {
		in[i] = m.input(fmt.Sprint(i), x.Type)
	}
	for _, i := range c.over {
		if i >= 0 {
			in[i], _ = m.copy(plan.Compute, plan.CopySwapIn, ir.Device, in[i])
		}
	}
	out, err := m.exec(c.op, c.over, in...)
	if err != nil {
		return err
	}
	for i, r := range out {
		m.result(fmt.Sprint(i), r)
	}
	return nil
}

// runCase runs a program for its results, and again for what it allocates and whether it gives the same bits.
func runCase(e *runtime.Executable, program string, c testCase) error {
	for i, x := range c.in {
		if err := e.SetInput(program, fmt.Sprint(i), x.Encode()); err != nil {
			return err
		}
	}
	ctx := context.Background()
	if err := e.Run(ctx, program); err != nil {
		return err
	}
	first := make([][]byte, len(c.want))
	for i, want := range c.want {
		first[i] = make([]byte, want.Type.Bytes())
		if err := e.Result(program, fmt.Sprint(i), first[i]); err != nil {
			return err
		}
		got, err := ir.DecodeTensor(want.Type, first[i])
		if err != nil {
			return err
		}
		if err := compare(c.op, got, want); err != nil {
			return fmt.Errorf("output %d: %w", i, err)
		}
	}
	var err error
	n := 1.0 // what Go's runtime itself allocates meanwhile is counted too, but not every time
	for try := 0; try < 3 && n != 0 && err == nil; try++ {
		n = testing.AllocsPerRun(1, func() { err = e.Run(ctx, program) })
	}
	if n != 0 || err != nil {
		return fmt.Errorf("a run allocates %v times, error %v", n, err)
	}
	for i := range first {
		again := make([]byte, len(first[i]))
		if err := e.Result(program, fmt.Sprint(i), again); err != nil {
			return err
		}
		if !slices.Equal(first[i], again) {
			return fmt.Errorf("output %d: another run gives other bits", i)
		}
	}
	return nil
}
