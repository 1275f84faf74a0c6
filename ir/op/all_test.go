package op_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

// samples splits what an op brings into good and bad ones.
func samples(t *testing.T, o ir.Op) (good, bad []ir.Sample) {
	t.Helper()
	s, ok := o.(ir.Sampler)
	if !ok {
		t.Fatalf("%s brings no samples", ir.OpName(o))
	}
	for _, x := range s.Samples() {
		if x.Err == "" {
			good = append(good, x)
		} else {
			bad = append(bad, x)
		}
	}
	return good, bad
}

// forEach runs a test on every op.
func forEach(t *testing.T, f func(t *testing.T, o ir.Op)) {
	for _, o := range op.All() {
		t.Run(ir.OpName(o), func(t *testing.T) { f(t, o) })
	}
}

// describe names a sample in messages.
func describe(s ir.Sample) string {
	if s.Err != "" {
		return fmt.Sprintf("%s%+v%v", ir.OpName(s.Op), s.Op, s.Types)
	}
	return fmt.Sprintf("%s%+v%v", ir.OpName(s.Op), s.Op, typesOf(s.In))
}

func TestNamesAreUnique(t *testing.T) {
	if n, m := len(op.All()), len(op.Vocabulary()); n != m {
		t.Errorf("%d ops have %d names", n, m)
	}
}

func TestFactsAreComplete(t *testing.T) {
	forEach(t, func(t *testing.T, o ir.Op) {
		_, hasGrad := o.(ir.Differentiable)
		none, hasNone := o.(ir.NoGrad)
		if hasGrad == hasNone {
			t.Errorf("has a gradient: %v; says why not: %v", hasGrad, hasNone)
		}
		if hasNone && none.NoGradReason() == "" {
			t.Error("gives no reason for having no gradient")
		}
		_, evaluates := o.(ir.Evaluator)
		_, decomposes := o.(ir.Decomposer)
		if !evaluates && !decomposes {
			t.Error("has no meaning: neither Eval nor Decompose")
		}
		good, bad := samples(t, o)
		if len(good) == 0 || len(bad) == 0 {
			t.Errorf("brings %d good samples and %d bad ones", len(good), len(bad))
		}
		for _, s := range append(good, bad...) {
			if reflect.TypeOf(s.Op) != reflect.TypeOf(o) {
				t.Errorf("brings a sample of %s", ir.OpName(s.Op))
			}
		}
		for i := range reflect.TypeOf(o).NumField() {
			f := reflect.TypeOf(o).Field(i)
			if !f.IsExported() && !(f.Anonymous && f.Type.Size() == 0) {
				t.Errorf("field %s is neither an attribute nor an empty embedded type", f.Name)
			}
		}
	})
}

func TestBadSamplesAreRefused(t *testing.T) {
	forEach(t, func(t *testing.T, o ir.Op) {
		_, bad := samples(t, o)
		for _, s := range bad {
			_, err := s.Op.Infer(s.Types)
			if err == nil || !strings.Contains(err.Error(), s.Err) {
				t.Errorf("%s: error %v, want %q", describe(s), err, s.Err)
			}
		}
	})
}

func TestGoodSamplesEvaluate(t *testing.T) {
	forEach(t, func(t *testing.T, o ir.Op) {
		good, _ := samples(t, o)
		for _, s := range good {
			types, err := s.Op.Infer(typesOf(s.In))
			if err != nil {
				t.Errorf("%s: %v", describe(s), err)
				continue
			}
			if err := op.CheckData(s.Op, s.In); err != nil {
				t.Errorf("%s: %v", describe(s), err)
			}
			before := cloneTensors(s.In)
			out := run(s.Op, s.In)
			if len(out) != len(types) {
				t.Errorf("%s: %d results, want %d", describe(s), len(out), len(types))
				continue
			}
			for i, x := range out {
				n := int(types[i].Elems())
				if !x.Type.Equal(types[i]) || x.Type.DType.IsFloat() && (len(x.F) != n || x.I != nil) || !x.Type.DType.IsFloat() && (len(x.I) != n || x.F != nil) {
					t.Errorf("%s: result %d is %v with %d and %d elements, inferred %v", describe(s), i, x.Type, len(x.F), len(x.I), types[i])
				}
			}
			for i := range before {
				sameTensor(t, describe(s)+fmt.Sprintf(": operand %d after Eval", i), s.In[i], before[i], 0)
			}
			again := run(s.Op, s.In)
			for i := range out {
				sameTensor(t, describe(s)+": second run", again[i], out[i], 0)
			}
			for i, x := range s.In {
				rounded := cloneTensors(s.In[i : i+1])[0]
				rounded.Round()
				sameTensor(t, describe(s)+fmt.Sprintf(": operand %d rounded", i), x, rounded, 0)
			}
		}
	})
}

// sameTensor compares within a relative error; NaN equals NaN.
func sameTensor(t *testing.T, what string, got, want ir.Tensor, tolerance float64) {
	t.Helper()
	if !got.Type.Equal(want.Type) {
		t.Errorf("%s: type %v, want %v", what, got.Type, want.Type)
		return
	}
	for i, w := range want.F {
		g := got.F[i]
		if g != w && !(math.IsNaN(g) && math.IsNaN(w)) && !(math.Abs(g-w) <= tolerance*max(1, math.Abs(w))) {
			t.Errorf("%s: element %d is %v, want %v", what, i, g, w)
			return
		}
	}
	for i, w := range want.I {
		if g := got.I[i]; g != w {
			t.Errorf("%s: element %d is %v, want %v", what, i, g, w)
			return
		}
	}
}

func TestDecomposeEqualsEval(t *testing.T) {
	forEach(t, func(t *testing.T, o ir.Op) {
		d, ok := o.(ir.Decomposer)
		if _, both := o.(ir.Evaluator); !ok || !both {
			t.Skip("has not both")
		}
		_ = d
		good, _ := samples(t, o)
		for _, s := range good {
			want := run(s.Op, s.In)
			got := runDecomposed(s.Op.(ir.Decomposer), s.In)
			for i := range want {
				sameTensor(t, describe(s), got[i], want[i], tolerance(s.In))
			}
		}
	})
}

// tolerance is what literals in an element type cost.
func tolerance(in []ir.Tensor) float64 {
	worst := 1e-9
	for _, t := range in {
		switch t.Type.DType {
		case ir.F32:
			worst = max(worst, 1e-6)
		case ir.F16, ir.BF16:
			worst = max(worst, 2e-2)
		}
	}
	return worst
}

func TestAliasesShareBytes(t *testing.T) {
	forEach(t, func(t *testing.T, o ir.Op) {
		good, _ := samples(t, o)
		for _, a := range ir.AliasesOf(o) {
			shared := false
			for _, s := range good {
				out, err := s.Op.Infer(typesOf(s.In))
				if err != nil || a.In >= len(s.In) || a.Out >= len(out) {
					continue
				}
				same := out[a.Out].Bytes() == s.In[a.In].Type.Bytes()
				if same && !a.View && out[a.Out].Elems() != s.In[a.In].Type.Elems() {
					t.Errorf("%s: result %d has the bytes of operand %d but other elements: writing over it would not be safe", describe(s), a.Out, a.In)
				}
				shared = shared || same
				if a.View && !same {
					t.Errorf("%s: result %d is a view of operand %d with other bytes", describe(s), a.Out, a.In)
				}
			}
			if !shared {
				t.Errorf("no sample has equal bytes for result %d and operand %d", a.Out, a.In)
			}
		}
	})
}

// TestInferSurvivesAnything feeds shape rules what a damaged text or plan file may hold: any attributes, any operands.
func TestInferSurvivesAnything(t *testing.T) {
	forEach(t, func(t *testing.T, o ir.Op) {
		r := rand.New(rand.NewPCG(1, 2))
		good, _ := samples(t, o)
		accepted := 0
		for round := range 4000 {
			x, in := o, randomTypes(r, r.IntN(8))
			if round%2 == 0 {
				s := good[r.IntN(len(good))]
				x, in = s.Op, typesOf(s.In)
				for i := range in {
					in[i].Shape = in[i].Shape.Clone()
				}
				if len(in) > 0 {
					mutate(r, &in[r.IntN(len(in))])
				}
			}
			if round%4 != 0 {
				x = randomAttributes(r, x)
			}
			out, err := infer(t, x, in)
			if err != nil {
				continue
			}
			accepted++
			for i, typ := range out {
				if err := typ.Shape.Check(); err != nil || typ.DType.Bits() == 0 {
					t.Fatalf("%s%+v%v gives result %d the type %v", ir.OpName(x), x, in, i, typ)
				}
			}
			if w := ir.WorkOf(x, in, out); w.FLOPs < 0 || w.ReadBytes < 0 || w.WrittenBytes < 0 || w.ScratchBytes < 0 {
				t.Errorf("%s%+v%v costs %+v", ir.OpName(x), x, in, w)
			}
		}
		if accepted == 0 {
			t.Error("nothing was accepted: the test is too wild to mean anything")
		}
	})
}

// infer turns a panic into a failure that shows the operands.
func infer(t *testing.T, o ir.Op, in []ir.Type) (out []ir.Type, err error) {
	defer func() {
		if e := recover(); e != nil {
			t.Fatalf("%s%+v%v panics: %v", ir.OpName(o), o, in, e)
		}
	}()
	return o.Infer(in)
}

func randomExtent(r *rand.Rand) int64 {
	odd := []int64{-1, math.MinInt64, math.MaxInt64, 1 << 40, 1 << 31}
	if r.IntN(12) == 0 {
		return odd[r.IntN(len(odd))]
	}
	return r.Int64N(5)
}

func randomShape(r *rand.Rand) ir.Shape {
	s := make(ir.Shape, r.IntN(6))
	for i := range s {
		s[i] = randomExtent(r)
	}
	return s
}

func mutate(r *rand.Rand, t *ir.Type) {
	switch r.IntN(6) {
	case 0:
		t.DType = ir.DType(r.IntN(16))
	case 1:
		t.Space = ir.Space(r.IntN(5))
	case 2:
		t.Shape = randomShape(r)
	case 3:
		t.Shape = append(t.Shape, randomExtent(r))
	default:
		if len(t.Shape) > 0 {
			t.Shape[r.IntN(len(t.Shape))] = randomExtent(r)
		}
	}
}

func randomTypes(r *rand.Rand, n int) []ir.Type {
	shape, d := randomShape(r), ir.DType(r.IntN(16))
	types := make([]ir.Type, n)
	for i := range types {
		types[i] = ir.Type{DType: d, Shape: shape.Clone()} // alike, or hardly any is accepted
		if r.IntN(3) == 0 {
			mutate(r, &types[i])
		}
	}
	return types
}

// randomAttributes replaces some attributes of an op.
func randomAttributes(r *rand.Rand, o ir.Op) ir.Op {
	v := reflect.New(reflect.TypeOf(o)).Elem()
	v.Set(reflect.ValueOf(o))
	for i := range v.NumField() {
		f := v.Field(i)
		if !v.Type().Field(i).IsExported() || r.IntN(3) == 0 {
			continue
		}
		switch f.Kind() {
		case reflect.Bool:
			f.SetBool(r.IntN(2) == 0)
		case reflect.Int64:
			f.SetInt(randomExtent(r))
		case reflect.Uint8:
			f.SetUint(uint64(r.IntN(16)))
		case reflect.Uint64:
			f.SetUint(r.Uint64())
		case reflect.Float64:
			xs := []float64{0, 1, -1, 0.5, math.NaN(), math.Inf(1), math.Inf(-1), 1e300}
			f.SetFloat(xs[r.IntN(len(xs))])
		case reflect.String:
			xs := []string{"", "add", "mean", "sum", "max", "?"}
			f.SetString(xs[r.IntN(len(xs))])
		case reflect.Slice:
			f.Set(reflect.ValueOf([]int64(randomShape(r))).Convert(f.Type()))
		default:
			panic("attribute of kind " + f.Kind().String())
		}
	}
	return v.Interface().(ir.Op)
}
