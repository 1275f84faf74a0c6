package conformance

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"aitk/importer"
	"aitk/importer/onnxpb"
	"aitk/ir"
)

// Random results are judged by their distribution, of which the standard says all and the numbers in the corpus nothing. The counters of the run are the
// seed, so that a test gives the same verdict every time; the bounds are such that a right distribution passes them for all but one seed in a million.

// sigmas is the distance from the mean at which a normal variable lies one time in two million.
const sigmas = 5

// steps runs a graph for many steps, through the device and the interpreter.
func steps(g *ir.Graph, n int, in, weights map[string]ir.Tensor, visit func(via string, out map[string]ir.Tensor) error) error {
	s, err := onCPU(g, weights)
	if err != nil {
		return err
	}
	defer s.exe.Close()
	ofRef := func(in map[string]ir.Tensor) (map[string]ir.Tensor, error) { return viaRef(g, in, weights) }
	for step := range n {
		if t, ok := in["$step"]; ok {
			t.I[0] = int64(step)
		}
		for i, run := range []func(map[string]ir.Tensor) (map[string]ir.Tensor, error){s.run, ofRef} {
			out, err := run(in)
			if err != nil {
				return err
			}
			if err := visit([]string{"cpu", "ref"}[i], out); err != nil {
				return err
			}
		}
	}
	return nil
}

// drawn judges a random case of the corpus over a thousand steps. All of them keep the mean of their first input x, element by element: Bernoulli is 1 with
// probability x, dropout is x/(1-ratio) with probability 1-ratio, and both are 0 else. Elements must be these two values, each as often as it should be, and
// neighbours as often alike as independent ones are.
func (o *opened) drawn(g *ir.Graph, set map[string]*elements, in, weights map[string]ir.Tensor) error {
	const n = 1000
	x, keep := set[o.model.Graph.Input[0].GetName()], 1.0
	dropout := slices.Contains(o.ops, "Dropout")
	if dropout {
		keep = 1 - set["r"].f[0]
	}
	counts := map[string][]int{"cpu": make([]int, len(x.f)), "ref": make([]int, len(x.f))}
	alike := map[string][]int{"cpu": make([]int, len(x.f)), "ref": make([]int, len(x.f))}
	err := steps(g, n, in, weights, func(via string, out map[string]ir.Tensor) error {
		y := out[o.model.Graph.Output[0].GetName()]
		hits := make([]bool, len(y.F))
		for i, v := range y.F {
			one := 1.0
			if dropout {
				one = x.f[i] / keep
			}
			hits[i] = v != 0
			if hits[i] && math.Abs(v-one) > 1e-5*math.Abs(one) {
				return fmt.Errorf("%s: element %d is %v, want 0 or %v", via, i, v, one)
			}
			if hits[i] {
				counts[via][i]++
			}
			if i > 0 && hits[i] == hits[i-1] {
				alike[via][i]++
			}
		}
		if dropout && len(o.model.Graph.Output) > 1 {
			for i, v := range out[o.model.Graph.Output[1].GetName()].I {
				if (v != 0) != hits[i] && x.f[i] != 0 {
					return fmt.Errorf("%s: element %d: the mask is %d, the output %v", via, i, v, y.F[i])
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	p := func(i int) float64 {
		switch {
		case dropout:
			return keep
		case strings.HasSuffix(o.name, "_expanded"): // the standard's own body of Bernoulli asks whether a uniform number exceeds x, which is as likely as 0
			return 1 - x.f[i]
		}
		return x.f[i]
	}
	for _, via := range []string{"cpu", "ref"} {
		for i := range x.f {
			if err := binomial(counts[via][i], n, p(i)); err != nil {
				return fmt.Errorf("%s: element %d is not 0: %w", via, i, err)
			}
			if i > 0 {
				if err := binomial(alike[via][i], n, p(i)*p(i-1)+(1-p(i))*(1-p(i-1))); err != nil {
					return fmt.Errorf("%s: elements %d and %d are alike: %w", via, i-1, i, err)
				}
			}
		}
	}
	return nil
}

// binomial holds k hits among n against their probability.
func binomial(k, n int, p float64) error {
	if d := math.Abs(float64(k) - float64(n)*p); d > sigmas*math.Sqrt(float64(n)*p*(1-p))+1e-9 {
		return fmt.Errorf("%d times of %d, want a probability of %v", k, n, p)
	}
	return nil
}

// TestDistributions holds the random operators, for which the corpus has no case, against the distributions that the standard names.
func TestDistributions(t *testing.T) {
	const rows, n = 100, 20000
	float := func(name string, f float32) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_FLOAT.Enum(), F: &f}
	}
	integer := func(name string, i int64) *onnxpb.AttributeProto {
		return &onnxpb.AttributeProto{Name: &name, Type: onnxpb.AttributeProto_INT.Enum(), I: &i}
	}
	shape := &onnxpb.AttributeProto{Name: proto.String("shape"), Type: onnxpb.AttributeProto_INTS.Enum(), Ints: []int64{rows, n / rows}}
	normal := func(x float64) float64 { return (1 + math.Erf(x/math.Sqrt2)) / 2 }
	even := func(x float64) float64 { return min(max(x, 0), 1) }
	for _, c := range []struct {
		op        string
		like      bool
		attrs     []*onnxpb.AttributeProto
		mean, dev float64
		cdf       func(float64) float64 // of the standardised variable: (x-mean)/dev, or (x-low)/(high-low)
		at, by    float64               // that standardise it
	}{
		{"RandomNormal", false, []*onnxpb.AttributeProto{shape}, 0, 1, normal, 0, 1},
		{"RandomNormal", false, []*onnxpb.AttributeProto{shape, float("mean", -3), float("scale", 0.25), float("seed", 7)}, -3, 0.25, normal, -3, 0.25},
		{"RandomNormal", false, []*onnxpb.AttributeProto{shape, integer("dtype", int64(onnxpb.TensorProto_DOUBLE))}, 0, 1, normal, 0, 1},
		{"RandomNormalLike", true, []*onnxpb.AttributeProto{float("mean", 10), float("scale", 2)}, 10, 2, normal, 10, 2},
		{"RandomUniform", false, []*onnxpb.AttributeProto{shape}, 0.5, math.Sqrt(1. / 12), even, 0, 1},
		{"RandomUniform", false, []*onnxpb.AttributeProto{shape, float("low", -2), float("high", 4), integer("dtype", int64(onnxpb.TensorProto_DOUBLE))}, 1, math.Sqrt(3), even, -2, 6},
		{"RandomUniformLike", true, []*onnxpb.AttributeProto{float("low", 5), float("high", 6)}, 5.5, math.Sqrt(1. / 12), even, 5, 1},
	} {
		t.Run(fmt.Sprintf("%s %v", c.op, c.attrs[len(c.attrs)-1].GetName()), func(t *testing.T) {
			g := oneNode(t, c.op, c.attrs, c.like, []int64{rows, n / rows})
			seen := map[string][]float64{}
			err := steps(g, 2, reserved(g, ir.NewTensor(ir.T(ir.F32, rows, n/rows))), nil, func(via string, out map[string]ir.Tensor) error {
				seen[via] = append(seen[via], out["y"].F...)
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, via := range []string{"cpu", "ref"} {
				t.Log(via, continuous(t, seen[via], c.mean, c.dev, func(x float64) float64 { return c.cdf((x - c.at) / c.by) }))
			}
		})
	}
}

// continuous holds a sample against a distribution: mean and variance within five standard errors, the distribution function within Kolmogorov's and
// Smirnov's bound for one in a million, neighbours without correlation.
func continuous(t *testing.T, x []float64, mean, dev float64, cdf func(float64) float64) string {
	t.Helper()
	n := float64(len(x))
	sum, squares, fourth, pairs := 0.0, 0.0, 0.0, 0.0
	for i, v := range x {
		z := (v - mean) / dev
		sum, squares, fourth = sum+z, squares+z*z, fourth+z*z*z*z
		if i > 0 {
			pairs += z * (x[i-1] - mean) / dev
		}
	}
	m, v, r := sum/n, squares/n, pairs/n
	if bound := sigmas / math.Sqrt(n); math.Abs(m) > bound || math.Abs(r) > bound {
		t.Errorf("the mean is %v standard deviations off, neighbours correlate by %v; bound %v", m, r, bound)
	}
	if bound := sigmas * math.Sqrt((fourth/n-1)/n); math.Abs(v-1) > bound {
		t.Errorf("the variance is %v times what it should be, bound %v", v, bound)
	}
	sorted := slices.Sorted(slices.Values(x))
	d := 0.0
	for i, v := range sorted {
		f := cdf(v)
		d = max(d, f-float64(i)/n, float64(i+1)/n-f)
	}
	bound := math.Sqrt(-math.Log(1e-6/2)/2) / math.Sqrt(n)
	if d > bound {
		t.Errorf("the distribution function is %v off, bound %v", d, bound)
	}
	return fmt.Sprintf("%d draws: mean %.4f and variance %.4f of the standardised variable, distribution function within %.4f (bound %.4f)", len(x), m, v, d, bound)
}

// TestMultinomial counts classes: as often as their probabilities say, by Pearson's test, in each row by itself.
func TestMultinomial(t *testing.T) {
	const n = 20000
	logits := []float64{0, 1, -1, 2, math.Inf(-1), 0, 5, 5, 5, 5}
	count := int64(n)
	g := oneNode(t, "Multinomial", []*onnxpb.AttributeProto{{Name: proto.String("sample_size"), Type: onnxpb.AttributeProto_INT.Enum(), I: &count}}, true, []int64{2, 5})
	in := ir.NewTensor(ir.T(ir.F32, 2, 5))
	copy(in.F, logits)
	err := steps(g, 1, reserved(g, in), nil, func(via string, out map[string]ir.Tensor) error {
		y := out["y"]
		if y.Type.DType != ir.I32 || !y.Type.Shape.Equal(ir.Shape{2, n}) {
			return fmt.Errorf("type %v", y.Type)
		}
		for row := range 2 {
			var counts [5]int
			for _, c := range y.I[row*n : (row+1)*n] {
				counts[c]++
			}
			total, chi := 0.0, 0.0
			for _, l := range logits[5*row : 5*row+5] {
				total += math.Exp(l)
			}
			for k, l := range logits[5*row : 5*row+5] {
				want := n * math.Exp(l) / total
				if want == 0 {
					if counts[k] > 0 {
						return fmt.Errorf("%s: class %d has no probability and %d draws", via, k, counts[k])
					}
					continue
				}
				chi += (float64(counts[k]) - want) * (float64(counts[k]) - want) / want
			}
			const bound = 33.4 // of chi squared with 4 degrees of freedom, one in a million; with fewer it is smaller
			if chi > bound {
				return fmt.Errorf("%s: row %d: counts %v, chi squared %.1f", via, row, counts, chi)
			}
			t.Logf("%s: row %d: chi squared %.2f (bound %v)", via, row, chi, bound)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

// reserved are zeros for a graph's counters and x for its input.
func reserved(g *ir.Graph, x ir.Tensor) map[string]ir.Tensor {
	in := map[string]ir.Tensor{}
	for _, v := range g.Inputs {
		if strings.HasPrefix(v.Name, "$") {
			in[v.Name] = ir.NewTensor(v.Type)
		} else {
			in[v.Name] = x
		}
	}
	return in
}

// oneNode imports a model of one node, of an f32 input if it takes one.
func oneNode(t *testing.T, op string, attrs []*onnxpb.AttributeProto, input bool, shape []int64) *ir.Graph {
	t.Helper()
	node := &onnxpb.NodeProto{OpType: &op, Output: []string{"y"}, Attribute: attrs}
	graph := &onnxpb.GraphProto{Name: proto.String("g"), Node: []*onnxpb.NodeProto{node}, Output: []*onnxpb.ValueInfoProto{{Name: proto.String("y")}}}
	if input {
		node.Input = []string{"x"}
		dims := &onnxpb.TensorShapeProto{}
		for _, d := range shape {
			dims.Dim = append(dims.Dim, &onnxpb.TensorShapeProto_Dimension{Value: &onnxpb.TensorShapeProto_Dimension_DimValue{DimValue: d}})
		}
		graph.Input = []*onnxpb.ValueInfoProto{{Name: proto.String("x"), Type: &onnxpb.TypeProto{Value: &onnxpb.TypeProto_TensorType{
			TensorType: &onnxpb.TypeProto_Tensor{ElemType: proto.Int32(int32(onnxpb.TensorProto_FLOAT)), Shape: dims}}}}}
	}
	m := &onnxpb.ModelProto{IrVersion: proto.Int64(8), Graph: graph, OpsetImport: []*onnxpb.OperatorSetIdProto{{Version: proto.Int64(17)}}}
	raw, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, raw, 0o600); err != nil {
		t.Fatal(err)
	}
	got, err := importer.Import(path, importer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return got.Graph
}
