package importer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/internal/safetensors"
	content "aitk/internal/weights"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime/ref"
)

// The models of these tests are real exports that lie outside the repository.
const modelsDir = "../../shared/models/small"

func realFile(t *testing.T, name string) string {
	t.Helper()
	p := filepath.Join(modelsDir, name)
	if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("%s is not there: the real models lie outside the repository", p)
	}
	return p
}

// golden is what the framework says of a model.
type golden struct {
	Loss struct {
		Type      string
		ClassAxis int64 `json:"class_axis"`
		Logits    string
		Output    string
	}
	Losses []float64 `json:"losses_f64"`
	Final  map[string]json.RawMessage
	Tied   map[string]string `json:"tied_parameters"`
	ONNX   []struct {
		File      string
		Elsewhere map[string]struct {
			Initializer string
			Missing     bool
		} `json:"parameters_not_under_their_name"`
	}
}

func readGolden(t *testing.T, name string) (g golden) {
	t.Helper()
	raw, err := os.ReadFile(realFile(t, name))
	if err == nil {
		err = json.Unmarshal(raw, &g)
	}
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// step0 reads the first batch: graph inputs and target.
func step0(t *testing.T, model string) map[string]ir.Tensor {
	t.Helper()
	f, err := safetensors.Open(realFile(t, model+"/batches.safetensors"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	out := map[string]ir.Tensor{}
	for _, info := range f.Infos() {
		name, ok := strings.CutPrefix(info.Name, "step0.")
		if !ok {
			continue
		}
		raw := make([]byte, info.Type.Bytes())
		if err := f.ReadTensor(info.Name, raw); err != nil {
			t.Fatal(err)
		}
		if out[name], err = ir.DecodeTensor(info.Type, raw); err != nil {
			t.Fatal(err)
		}
	}
	return out
}

func contents(t *testing.T, g *ir.Graph) map[string]ir.Tensor {
	t.Helper()
	r := content.NewReader()
	defer r.Close()
	out := map[string]ir.Tensor{}
	for _, p := range g.Params {
		x, err := r.Tensor(p.Name, p.Type, &p.Init)
		if err != nil {
			t.Fatal(err)
		}
		out[p.Name] = x
	}
	return out
}

// importReal imports with the dimensions of the first batch.
func importReal(t *testing.T, file string, opt Options) *Model {
	t.Helper()
	path := realFile(t, file)
	seen, err := Inspect(path)
	if err != nil {
		t.Fatal(err)
	}
	batch := step0(t, filepath.Dir(file))
	opt.Dims = map[string]int64{}
	for _, in := range seen.Inputs {
		for a, d := range in.Shape {
			if slices.ContainsFunc(seen.Dims, func(x Dim) bool { return x.Name == d }) {
				opt.Dims[d] = batch[in.Name].Type.Shape[a]
			}
		}
	}
	m, err := Import(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(m.Graph); err != nil {
		t.Fatal(err)
	}
	return m
}

// TestRealLoss holds the forward graph against the framework: the loss of the first batch. It is near 1e-12 where the graph holds no
// float32 constant of the framework's float64 expression, and within float32's reach else.
func TestRealLoss(t *testing.T) {
	for _, c := range []struct {
		file, golden string
		opt          Options
		tolerance    float64
	}{
		{"mlp_digits/model.onnx", "golden.json", Options{}, 1e-9},
		{"mlp_digits/model_default.onnx", "golden.json", Options{}, 1e-9},
		{"mlp_digits/model_ts.onnx", "golden.json", Options{}, 1e-9},
		{"mlp_mnist/model.onnx", "golden.json", Options{}, 1e-9},
		{"cnn_mnist/model.onnx", "golden.json", Options{}, 1e-9},
		{"cnn_mnist/model_ts.onnx", "golden.json", Options{}, 1e-9},
		{"gpt_mini/model.onnx", "golden.json", Options{}, 1e-9},
		{"gpt_mini/model_default.onnx", "golden.json", Options{}, 1e-9},
		{"gpt_mini/model_dynseq.onnx", "golden.json", Options{}, 1e-9},
		{"llama_mini/model.onnx", "golden.json", Options{}, 1e-9},
		{"llama_mini/model_default.onnx", "golden.json", Options{}, 1e-9},
		{"bert_mini/model.onnx", "golden.json", Options{}, 1e-9},
		{"bert_mini/model_default.onnx", "golden.json", Options{}, 1e-9},
		{"vit_mini/model.onnx", "golden.json", Options{}, 1e-9},
		{"vit_mini/model_default.onnx", "golden.json", Options{}, 1e-9},
		{"resnet18_mini/model.onnx", "golden.json", Options{BatchNorm: BatchNormTrain}, 1e-9},
		{"resnet18_mini/model_ts.onnx", "golden.json", Options{}, 1e-9},
		{"resnet18_mini/model_ts.onnx", "golden_frozen_bn.json", Options{BatchNorm: BatchNormFrozen}, 1e-9},
		{"resnet18_mini/model.onnx", "golden_frozen_bn.json", Options{}, 1e-9},
		{"autoencoder/model.onnx", "golden.json", Options{}, 1e-9},
		{"unet_seg/model.onnx", "golden.json", Options{BatchNorm: BatchNormTrain}, 1e-9},
		{"tcn_char/model.onnx", "golden.json", Options{}, 1e-9},
		{"unet_sd_mini/model.onnx", "golden.json", Options{}, 1e-9},
		{"flux_mini/model.onnx", "golden.json", Options{}, 1e-6},
		{"wan_mini/model.onnx", "golden.json", Options{}, 1e-8},
		{"mobilenet_mini/model_ts.onnx", "golden.json", Options{BatchNorm: BatchNormTrain}, 1e-9},
	} {
		t.Run(c.file+" "+c.opt.BatchNorm, func(t *testing.T) {
			t.Parallel()
			want := readGolden(t, filepath.Dir(c.file)+"/"+c.golden)
			m := importReal(t, c.file, c.opt)
			g := m.Graph
			batch := step0(t, filepath.Dir(c.file))
			addLoss(t, g, want, batch["target"].Type)
			results, _, err := ref.Run(g, batch, contents(t, g))
			if err != nil {
				t.Fatal(err)
			}
			got := results["loss"].F[0]
			if diff := math.Abs(got - want.Losses[0]); !(diff <= c.tolerance) {
				t.Errorf("loss %.12f, the framework has %.12f: off by %.2g", got, want.Losses[0], diff)
			} else {
				t.Logf("%s: off by %.2g", c.file, diff)
			}
		})
	}
}

func addLoss(t *testing.T, g *ir.Graph, want golden, target ir.Type) {
	t.Helper()
	b := &ir.Builder{G: g}
	y := g.Results[0].Value
	tgt := g.AddInput("target", target)
	var loss *ir.Value
	switch want.Loss.Type {
	case "cross_entropy":
		axis := want.Loss.ClassAxis
		if axis < 0 {
			axis += int64(len(y.Type.Shape))
		}
		loss = b.Add(op.SoftmaxCrossEntropy{Axis: axis, Reduction: "mean"}, y, tgt)
	case "mse":
		d := b.Add(op.Sub{}, y, tgt)
		loss = b.Add(op.ReduceMean{Axes: axesFrom(0, len(y.Type.Shape))}, b.Add(op.Mul{}, d, d))
	case "bce_with_logits": // softplus(y) - t*y
		l := b.Add(op.Sub{}, b.Add(op.Softplus{}, y), b.Add(op.Mul{}, tgt, y))
		loss = b.Add(op.ReduceMean{Axes: axesFrom(0, len(y.Type.Shape))}, l)
	default:
		t.Fatalf("loss %q", want.Loss.Type)
	}
	g.Results = append(g.Results, ir.Result{Name: "loss", Value: loss})
}

// TestRealParameters: each parameter of the module that the file holds in any form is trainable under the author's name and in the
// author's orientation, and has the same content whichever export it comes from.
func TestRealParameters(t *testing.T) {
	for _, c := range []struct{ file, reference string }{
		{"mlp_digits/model_ts.onnx", "model.onnx"},
		{"cnn_mnist/model_ts.onnx", "model.onnx"},
		{"gpt_mini/model_default.onnx", "model.onnx"},
		{"llama_mini/model_default.onnx", "model.onnx"},
		{"bert_mini/model_default.onnx", "model.onnx"},
		{"vit_mini/model_default.onnx", "model.onnx"},
		{"resnet18_mini/model_ts.onnx", "model.onnx"},
		{"flux_mini/model_default.onnx", "model.onnx"},
		{"wan_mini/model_default.onnx", "model.onnx"},
		{"unet_sd_mini/model_default.onnx", "model.onnx"},
		{"mobilenet_mini/model_ts.onnx", "model.onnx"},
	} {
		t.Run(c.file, func(t *testing.T) {
			dir, file := filepath.Split(c.file)
			want := readGolden(t, dir+"golden.json")
			missing := map[string]bool{}
			for _, o := range want.ONNX {
				for name, where := range o.Elsewhere {
					missing[name] = missing[name] || o.File == file && where.Missing
				}
			}
			g := importReal(t, c.file, Options{}).Graph
			full := importReal(t, dir+c.reference, Options{}).Graph
			got, reference := contents(t, g), contents(t, full)
			for name := range want.Final {
				if strings.Contains(name, "running_") {
					continue
				}
				if first, tied := want.Tied[name]; tied {
					name = first
				}
				r := full.Param(name)
				if r == nil || !r.Trainable {
					t.Errorf("%s: %q is no trainable parameter", c.reference, name)
					continue
				}
				if missing[name] {
					continue
				}
				p := g.Param(name)
				switch {
				case p == nil:
					t.Errorf("%q is no parameter", name)
				case !p.Trainable:
					t.Errorf("%q is frozen: %s", name, p.Reason)
				case !p.Type.Equal(r.Type):
					t.Errorf("%q is %v, the author's is %v", name, p.Type, r.Type)
				case !slices.Equal(got[name].F, reference[name].F):
					t.Errorf("%q has other content than in %s", name, c.reference)
				}
			}
			for _, p := range g.Params {
				if p.Role == ir.Statistic && (p.Trainable || !strings.Contains(p.Name, "running_")) {
					t.Errorf("%q is a statistic, trainable: %v", p.Name, p.Trainable)
				}
			}
		})
	}
}

// TestRealTies pins what becomes of tensors that an export merged or copied.
func TestRealTies(t *testing.T) {
	for _, c := range []struct {
		file string
		want []string // "name = alias, alias", in the module's order
		not  []string // names that are no parameter of their own
	}{
		{"gpt_mini/model.onnx", []string{"transformer.wte.weight = lm_head.weight"}, []string{"lm_head.weight"}},
		{"gpt_mini/model_default.onnx", []string{"transformer.wte.weight = lm_head.weight, val_344"}, []string{"lm_head.weight", "val_344"}},
		{"traps/lost_tie.onnx", []string{"tok.weight = head.weight, val_13", "pos.weight = embedding_1", "fc1.weight = val_7"}, []string{"val_13"}},
		{"traps/false_ties.onnx", []string{"tok.weight = head.weight, val_13", "norm1.weight = ", "norm2.weight = ", "norm2.bias = "}, nil},
		{"traps/no_ties.onnx", []string{"tok.weight = head.weight"}, nil},
	} {
		t.Run(c.file, func(t *testing.T) {
			path := realFile(t, c.file)
			m, err := Inspect(path)
			if err != nil {
				t.Fatal(err)
			}
			dims := map[string]int64{}
			for _, d := range m.Dims {
				dims[d.Name] = 2
			}
			m, err = Import(path, Options{Dims: dims})
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, p := range m.Graph.Params {
				lines = append(lines, p.Name+" = "+strings.Join(p.Aliases, ", "))
			}
			for _, w := range c.want {
				if !slices.Contains(lines, w) {
					t.Errorf("want %q among\n  %s", w, strings.Join(lines, "\n  "))
				}
			}
			for _, n := range c.not {
				if m.Graph.Param(n) != nil {
					t.Errorf("%q is a parameter of its own", n)
				}
			}
		})
	}
}

// TestRealStored: the way back from parameters to the file's tensors.
func TestRealStored(t *testing.T) {
	for _, c := range []struct {
		file string
		want []Stored
	}{
		{"gpt_mini/model_default.onnx", []Stored{
			{"lm_head.weight", "transformer.wte.weight", false, ir.Shape{128, 64}, -1, -1},
			{"val_344", "transformer.wte.weight", true, ir.Shape{64, 128}, -1, -1}}},
		{"traps/false_ties.onnx", []Stored{
			{"norm1.weight", "norm1.weight", false, ir.Shape{8}, -1, -1},
			{"norm1.weight", "norm2.weight", false, ir.Shape{8}, 6, 1}}},
	} {
		m, err := Inspect(realFile(t, c.file))
		if err != nil {
			t.Fatal(err)
		}
		for _, w := range c.want {
			if !slices.ContainsFunc(m.Stored, func(s Stored) bool { return fmt.Sprint(s) == fmt.Sprint(w) }) {
				t.Errorf("%s: want %+v among %+v", c.file, w, m.Stored)
			}
		}
	}
}

// TestRealDeterministic: the same file gives the same graph.
func TestRealDeterministic(t *testing.T) {
	for _, f := range []string{"llama_mini/model_default.onnx", "resnet18_mini/model_ts.onnx"} {
		a, b := importReal(t, f, Options{}).Graph.String(), importReal(t, f, Options{}).Graph.String()
		if a != b {
			t.Errorf("%s: two imports differ", f)
		}
		if g, err := ir.Parse(a, op.Vocabulary()); err != nil {
			t.Errorf("%s: its text cannot be read back: %v", f, err)
		} else if g.String() != a {
			t.Errorf("%s: the text changes when it is read and printed", f)
		}
	}
}
