package importer

import (
	"encoding/base64"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"aitk/ir"
	"aitk/runtime/ref"
)

// recorded is a tensor of testdata/ops.json.
type recorded struct {
	DType string
	Shape []int64
	Data  []any // numbers, or "nan", "inf", "-inf"
}

func (r recorded) tensor(t *testing.T) ir.Tensor {
	t.Helper()
	d, ok := ir.ParseDType(r.DType)
	if !ok {
		t.Fatalf("dtype %q", r.DType)
	}
	x := ir.NewTensor(ir.Type{DType: d, Shape: append(ir.Shape{}, r.Shape...)})
	for i, v := range r.Data {
		n, isNumber := v.(float64)
		if !isNumber {
			var err error
			if n, err = strconv.ParseFloat(v.(string), 64); err != nil {
				t.Fatal(err)
			}
		}
		if d.IsFloat() {
			x.F[i] = n
		} else {
			x.I[i] = int64(n)
		}
	}
	x.Round()
	return x
}

// TestOps runs every lowering on tiny models whose outputs the ONNX project's reference evaluator gave (testdata/make_ops.py): once with the
// inputs as inputs, once with all of them bound as constants, so that the same ops are evaluated while importing.
func TestOps(t *testing.T) {
	testRecorded(t, "testdata/ops.json")
}

// TestMsft does it for the ops of com.microsoft, of which ONNX Runtime itself gave the outputs (testdata/make_msft.py).
func TestMsft(t *testing.T) { testRecorded(t, "testdata/msft.json") }

func testRecorded(t *testing.T, file string) {
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name            string
		Model           string
		Inputs, Outputs map[string]recorded
	}
	if err := json.Unmarshal(raw, &cases); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, c := range cases {
		t.Run(c.Name, func(t *testing.T) {
			model, err := base64.StdEncoding.DecodeString(c.Model)
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(dir, c.Name+".onnx")
			if err := os.WriteFile(path, model, 0o600); err != nil {
				t.Fatal(err)
			}
			inputs := map[string]ir.Tensor{}
			for name, r := range c.Inputs {
				inputs[name] = r.tensor(t)
			}
			m := checkOp(t, path, Options{}, inputs, c.Outputs)
			if len(inputs) == 0 && len(m.Graph.Nodes) != 0 {
				t.Errorf("constants were not evaluated:\n%v", m.Graph)
			}
			folded := checkOp(t, path, Options{Inputs: inputs}, nil, c.Outputs)
			if len(folded.Graph.Params) == 0 && len(folded.Graph.Nodes) != 0 {
				t.Errorf("nodes are left although everything is known:\n%v", folded.Graph)
			}
		})
	}
}

func checkOp(t *testing.T, path string, opt Options, inputs map[string]ir.Tensor, want map[string]recorded) *Model {
	t.Helper()
	m, err := Import(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(m.Graph); err != nil {
		t.Fatal(err)
	}
	got, _, err := ref.Run(m.Graph, inputs, contents(t, m.Graph))
	if err != nil {
		t.Fatal(err)
	}
	for name, r := range want {
		w, g := r.tensor(t), got[name]
		if !g.Type.Equal(w.Type) {
			t.Errorf("%s is %v, want %v", name, g.Type, w.Type)
			continue
		}
		for i := range w.F {
			same := g.F[i] == w.F[i] || math.IsNaN(g.F[i]) && math.IsNaN(w.F[i])
			if !same && !(math.Abs(g.F[i]-w.F[i]) <= 2e-5*(1+math.Abs(w.F[i]))) {
				t.Errorf("%s is %v, want %v", name, g.F, w.F)
				break
			}
		}
		for i := range w.I {
			if g.I[i] != w.I[i] {
				t.Errorf("%s is %v, want %v", name, g.I, w.I)
				break
			}
		}
	}
	return m
}
