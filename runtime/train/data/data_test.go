package data_test

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/internal/safetensors"
	"aitk/ir"
	"aitk/runtime/train/data"
)

// file writes tensors to a safetensors file.
func file(t *testing.T, name string, tensors ...data.Tensor) string {
	t.Helper()
	return fileOf(t, name, nil, tensors...)
}

// fileOf writes tensors whose elements count up, changed by edit.
func fileOf(t *testing.T, name string, edit func(name string, x *ir.Tensor), tensors ...data.Tensor) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	var specs []safetensors.Spec
	for _, x := range tensors {
		specs = append(specs, safetensors.Spec{Name: x.Name, Type: x.Type})
	}
	err := safetensors.WriteFile(path, nil, specs, func(s safetensors.Spec) ([]byte, error) {
		x := ir.NewTensor(s.Type)
		for i := range x.F {
			x.F[i] = float64(i)
		}
		for i := range x.I {
			x.I[i] = int64(i % 100)
		}
		if edit != nil {
			edit(s.Name, &x)
		}
		return x.Encode(), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func open(t *testing.T, path string) *data.Source {
	t.Helper()
	s, err := data.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func tensor(name string, d ir.DType, shape ...int64) data.Tensor {
	return data.Tensor{Name: name, Type: ir.T(d, shape...)}
}

func port(name string, d ir.DType, shape ...int64) data.Port {
	return data.Port{Name: name, Type: ir.T(d, shape...)}
}

// TestOpen: layouts and counts, and what is refused.
func TestOpen(t *testing.T) {
	for _, c := range []struct {
		name                    string
		tensors                 []data.Tensor
		layout                  data.Layout
		samples, batches, batch int64
		want                    string
	}{
		{name: "samples", tensors: []data.Tensor{tensor("x", ir.F32, 10, 3), tensor("target", ir.U8, 10)}, samples: 10},
		{name: "no target: the largest first dimension", tensors: []data.Tensor{tensor("x", ir.F32, 10, 3), tensor("ids", ir.I64, 4, 2)}, samples: 10},
		{name: "batches", layout: data.Batches, batches: 2, batch: 4, tensors: []data.Tensor{tensor("step0.x", ir.F32, 4, 3), tensor("step0.target", ir.I64, 4),
			tensor("step1.x", ir.F32, 4, 3), tensor("step1.target", ir.I64, 4)}},
		{name: "a dot in the input's name", layout: data.Batches, batches: 1, batch: 4, tensors: []data.Tensor{tensor("step0.a.b", ir.F32, 4, 3)}},
		{name: "mixed", want: "1 of 2 tensors are named step<i>", tensors: []data.Tensor{tensor("step0.x", ir.F32, 4), tensor("target", ir.I64, 4)}},
		{name: "hole", want: "up to step2 but none of step1", tensors: []data.Tensor{tensor("step0.x", ir.F32, 4), tensor("step2.x", ir.F32, 4)}},
		{name: "unlike", want: `tensor "step1.x" is f32[5], that of step0 f32[4]`, tensors: []data.Tensor{tensor("step0.x", ir.F32, 4), tensor("step1.x", ir.F32, 5)}},
		{name: "missing", want: "step1 has 1 tensors, step0 has 2", tensors: []data.Tensor{tensor("step0.x", ir.F32, 4), tensor("step0.y", ir.F32, 4), tensor("step1.x", ir.F32, 4)}},
		{name: "stranger", want: `"step1.z" has no counterpart`, tensors: []data.Tensor{tensor("step0.x", ir.F32, 4), tensor("step1.z", ir.F32, 4)}},
		{name: "no sample", want: "no sample", tensors: []data.Tensor{tensor("x", ir.F32, 0, 3)}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, err := data.Open(file(t, "d.safetensors", c.tensors...))
			if c.want != "" {
				if err == nil || !strings.Contains(err.Error(), c.want) || ir.KindOf(err) != ir.Usage {
					t.Fatalf("got %v, want %q of kind usage", err, c.want)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			if s.Layout() != c.layout || s.Samples() != c.samples || s.Batches() != c.batches || s.BatchSamples() != c.batch {
				t.Errorf("layout %v, %d samples, %d batches of %d", s.Layout(), s.Samples(), s.Batches(), s.BatchSamples())
			}
		})
	}
}

// TestRefusedFiles names what cannot be read and what can.
func TestRefusedFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"d.npz", "d.csv", "broken.safetensors", "t-labels-idx1-ubyte"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("no data"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	two, empty := t.TempDir(), t.TempDir()
	for _, name := range []string{"a.safetensors", "b.safetensors"} {
		if err := os.WriteFile(filepath.Join(two, name), nil, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "d.npz"):               ".safetensors",
		filepath.Join(dir, "d.csv"):               "cannot be read",
		filepath.Join(dir, "none"):                "no such file",
		filepath.Join(dir, "broken.safetensors"):  "not a safetensors file",
		filepath.Join(dir, "t-labels-idx1-ubyte"): "name the images file",
		two:   "a.safetensors, b.safetensors",
		empty: "no file that can be read",
	} {
		if _, err := data.Open(path); err == nil || !strings.Contains(err.Error(), want) || ir.KindOf(err) != ir.Usage {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	if s, err := data.Open(filepath.Dir(file(t, "only.safetensors", tensor("x", ir.F32, 2)))); err != nil || s.Samples() != 2 {
		t.Errorf("a folder with one file: %v", err)
	}
}

// TestBindRefuses lists all mismatches at once.
func TestBindRefuses(t *testing.T) {
	path := file(t, "d.safetensors", tensor("x", ir.F32, 10, 3), tensor("y", ir.I64, 10, 2), tensor("z", ir.F32, 7), tensor("i", ir.I32, 10), tensor("target", ir.U8, 10))
	for _, c := range []struct {
		name  string
		ports []data.Port
		want  []string
	}{
		{"good", []data.Port{port("x", ir.F32, 4, 3), port("z", ir.F32, 7), port("i", ir.I64, 4), port("target", ir.I64, 4), port("$step", ir.I64)}, nil},
		{"everything wrong", []data.Port{port("x", ir.F32, 4, 5), port("y", ir.F32, 4, 2), port("z", ir.F32, 8), port("w", ir.F32, 4), port("target", ir.I64, 4)}, []string{
			`tensor "x" has samples of shape [3], input "x" f32[4,5] takes samples of shape [5]`, `tensor "y" is i64 and input "y" takes f32`,
			`tensor "z" f32[7] has 7 samples, "target" has 10`, `no tensor for input "w" f32[4]; there are "i" i32[10], "target" u8[10]`}},
		{"narrowing", []data.Port{port("y", ir.I32, 4, 2)}, []string{"only u8 to f32, u8 to i64 and i32 to i64 are cast"}},
		{"two batches", []data.Port{port("x", ir.F32, 4, 3), port("target", ir.I64, 5)}, []string{"takes 5 samples, another input takes 4"}},
		{"nothing wanted", []data.Port{port("$lr", ir.F32)}, []string{"takes no data"}},
		{"no sample axis", []data.Port{port("z", ir.F32, 7)}, []string{"no input has a sample axis"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := open(t, path).Bind(c.ports, data.Labels{})
			if c.want == nil && err != nil {
				t.Fatal(err)
			}
			for _, w := range c.want {
				if err == nil || !strings.Contains(err.Error(), w) || ir.KindOf(err) != ir.Usage {
					t.Errorf("got %v, want %q", err, w)
				}
			}
		})
	}
}

// decode reads what a feed holds for an input.
func decode(t *testing.T, f *data.Feed, name string, d ir.DType, shape ...int64) ir.Tensor {
	t.Helper()
	for i := range f.Ports() {
		if f.Name(i) == name {
			x, err := ir.DecodeTensor(ir.T(d, shape...), f.Bytes(i))
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
	}
	t.Fatalf("the feed has no input %q", name)
	return ir.Tensor{}
}

// TestFill: samples in the order asked for, cast; a short batch repeats its last sample; shared tensors and leftovers.
func TestFill(t *testing.T) {
	s := open(t, file(t, "d.safetensors", tensor("x", ir.U8, 10, 2), tensor("pos", ir.F32, 3), tensor("extra", ir.F32, 10), tensor("target", ir.I32, 10)))
	f, err := s.Bind([]data.Port{port("x", ir.F32, 3, 2), port("pos", ir.F32, 3), port("target", ir.I64, 3)}, data.Labels{Classes: 10})
	if err != nil {
		t.Fatal(err)
	}
	if f.BatchSamples() != 3 || len(f.Notes()) != 1 || !strings.Contains(f.Notes()[0], `"extra"`) {
		t.Errorf("batch %d, notes %q", f.BatchSamples(), f.Notes())
	}
	for _, c := range []struct {
		samples []int64
		x       []float64
		target  []int64
	}{
		{[]int64{7, 0, 2}, []float64{14, 15, 0, 1, 4, 5}, []int64{7, 0, 2}},
		{[]int64{9}, []float64{18, 19, 18, 19, 18, 19}, []int64{9, 9, 9}},
	} {
		if err := f.Fill(c.samples, 0); err != nil {
			t.Fatal(err)
		}
		if x := decode(t, f, "x", ir.F32, 3, 2); !slices.Equal(x.F, c.x) {
			t.Errorf("samples %v: x is %v, want %v", c.samples, x.F, c.x)
		}
		if y := decode(t, f, "target", ir.I64, 3); !slices.Equal(y.I, c.target) {
			t.Errorf("samples %v: target is %v, want %v", c.samples, y.I, c.target)
		}
		if p := decode(t, f, "pos", ir.F32, 3); !slices.Equal(p.F, []float64{0, 1, 2}) {
			t.Errorf("pos is %v", p.F)
		}
	}
	samples := []int64{1, 2, 3}
	if n := testing.AllocsPerRun(20, func() { err = f.Fill(samples, 1) }); n != 0 || err != nil {
		t.Errorf("Fill allocates %v times, error %v", n, err)
	}
	if lo, hi, err := s.IntRange("target"); err != nil || lo != 0 || hi != 9 {
		t.Errorf("target from %d to %d, %v", lo, hi, err)
	}
	if bt, ok := s.BatchType("x", 5); !ok || !bt.Equal(ir.T(ir.U8, 5, 2)) {
		t.Errorf("a batch of x is %v", bt)
	}
}

// TestBatchesInOrder reads given batches.
func TestBatchesInOrder(t *testing.T) {
	s := open(t, fileOf(t, "d.safetensors", func(name string, x *ir.Tensor) {
		for i := range x.F {
			x.F[i] += 100 * float64(name[4]-'0')
		}
	}, tensor("step0.x", ir.F32, 2), tensor("step1.x", ir.F32, 2), tensor("step2.x", ir.F32, 2)))
	f, err := s.Bind([]data.Port{port("x", ir.F32, 2)}, data.Labels{})
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range []int64{2, 0, 1} {
		if err := f.FillBatch(k, k); err != nil {
			t.Fatal(err)
		}
		if x := decode(t, f, "x", ir.F32, 2); !slices.Equal(x.F, []float64{100 * float64(k), 100*float64(k) + 1}) {
			t.Errorf("batch %d holds %v", k, x.F)
		}
	}
	if n := testing.AllocsPerRun(20, func() { err = f.FillBatch(1, 0) }); n != 0 || err != nil {
		t.Errorf("FillBatch allocates %v times, error %v", n, err)
	}
}

// TestBadContent: a number that is none and a label that is none are named with their place.
func TestBadContent(t *testing.T) {
	for _, c := range []struct {
		name, file string
		d          ir.DType
		at         int
		value      float64
		labels     data.Labels
		want       string
		kind       ir.Kind
	}{
		{"nan", "x", ir.F32, 5, math.NaN(), data.Labels{}, `tensor "x", sample 2, holds NaN or an infinity (used in step 17)`, ir.Numeric},
		{"inf", "x", ir.F64, 4, math.Inf(-1), data.Labels{}, "sample 2", ir.Numeric},
		{"inf in f16", "x", ir.F16, 4, math.Inf(1), data.Labels{}, "sample 2", ir.Numeric},
		{"nan in bf16", "x", ir.BF16, 4, math.NaN(), data.Labels{}, "sample 2", ir.Numeric},
		{"large is fine", "x", ir.F32, 4, math.MaxFloat32, data.Labels{}, "", 0},
		{"label", "target", ir.I64, 2, 10, data.Labels{Classes: 10}, `tensor "target", sample 2, holds label 10, but the model has 10 classes`, ir.Failed},
		{"negative label", "target", ir.I64, 2, -1, data.Labels{Classes: 10}, "label -1", ir.Failed},
		{"ignored label", "target", ir.I64, 2, -1, data.Labels{Classes: 10, Ignore: -1, HasIgnore: true}, "", 0},
		{"classes not known", "target", ir.I64, 2, 99, data.Labels{}, "", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := ir.F32
			if c.file == "x" {
				d = c.d
			}
			s := open(t, fileOf(t, "d.safetensors", func(name string, x *ir.Tensor) {
				if name == c.file && len(x.F) > 0 {
					x.F[c.at] = c.value
				} else if name == c.file {
					x.I[c.at] = int64(c.value)
				}
			}, tensor("x", d, 4, 2), tensor("target", ir.I64, 4)))
			f, err := s.Bind([]data.Port{port("x", d, 2, 2), port("target", ir.I64, 2)}, c.labels)
			if err != nil {
				t.Fatal(err)
			}
			if err := f.Fill([]int64{0, 1}, 16); err != nil {
				t.Errorf("the samples before: %v", err)
			}
			err = f.Fill([]int64{3, 2}, 17)
			if c.want == "" && err != nil {
				t.Error(err)
			}
			if c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || ir.KindOf(err) != c.kind) {
				t.Errorf("got %v, want %q of kind %v", err, c.want, c.kind)
			}
		})
	}
}

// TestIDX: a compressed pair in a folder; the input takes the model's name and shape.
func TestIDX(t *testing.T) {
	dir := t.TempDir()
	idx := func(name string, raw []byte, shape ...uint32) {
		b := []byte{0, 0, 8, byte(len(shape))}
		for _, n := range shape {
			b = binary.BigEndian.AppendUint32(b, n)
		}
		b = append(b, raw...)
		if strings.HasSuffix(name, ".gz") {
			var z bytes.Buffer
			w := gzip.NewWriter(&z)
			w.Write(b)
			w.Close()
			b = z.Bytes()
		}
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	idx("train-images-idx3-ubyte.gz", []byte{0, 1, 2, 3, 4, 5, 6, 255, 8, 9, 10, 11}, 3, 2, 2)
	idx("train-labels-idx1-ubyte.gz", []byte{7, 8, 9}, 3)
	idx("t10k-images-idx3-ubyte", []byte{1, 2, 3, 4}, 1, 2, 2)
	s := open(t, dir)
	f, err := s.Bind([]data.Port{port("pixels", ir.F32, 2, 1, 4), port("target", ir.I64, 2)}, data.Labels{})
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Fill([]int64{1, 2}, 0); err != nil {
		t.Fatal(err)
	}
	if x := decode(t, f, "pixels", ir.F32, 2, 4); !slices.Equal(x.F, []float64{4, 5, 6, 255, 8, 9, 10, 11}) {
		t.Errorf("pixels %v", x.F)
	}
	if y := decode(t, f, "target", ir.I64, 2); !slices.Equal(y.I, []int64{8, 9}) {
		t.Errorf("target %v", y.I)
	}
	idx("t10k-labels-idx1-ubyte", []byte{1, 2}, 2)
	for name, want := range map[string]string{"t10k-images-idx3-ubyte": "do not belong together"} {
		if _, err := data.Open(filepath.Join(dir, name)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
	for i, raw := range [][]byte{{0, 0, 8, 1, 255, 255, 255, 255, 1}, {0, 0, 13, 1, 0, 0, 0, 1, 0}, {0, 0}, {0, 0, 8, 2, 0, 0}, {0, 0, 8, 3, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}, {0, 0, 8, 1, 0, 0, 0, 1, 5, 6}} {
		name := filepath.Join(dir, fmt.Sprintf("bad%d-images-idx3-ubyte", i))
		if err := os.WriteFile(name, raw, 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := data.Open(name); err == nil || ir.KindOf(err) != ir.Usage {
			t.Errorf("%x: %v", raw, err)
		}
	}
}
