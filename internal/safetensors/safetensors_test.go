package safetensors

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
)

// file is a header and dataBytes zeros.
func file(header string, dataBytes int) []byte {
	raw := binary.LittleEndian.AppendUint64(nil, uint64(len(header)))
	return append(append(raw, header...), make([]byte, dataBytes)...)
}

func TestOpenRefuses(t *testing.T) {
	huge := binary.LittleEndian.AppendUint64(nil, 1<<62)
	long := append(binary.LittleEndian.AppendUint64(nil, MaxHeaderBytes+1), '{')
	one := `{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}`
	cases := []struct {
		name, want string
		raw        []byte
	}{
		{"empty", "shorter than", nil},
		{"short", "shorter than", []byte{1, 2}},
		{"huge header", "cut off", huge},
		{"long header", "cut off", long},
		{"no brace", "does not begin with {", file(`[]`, 0)},
		{"empty header", "does not begin with {", file(``, 0)},
		{"cut JSON", "unexpected EOF", file(`{"a":`, 0)},
		{"not JSON", "invalid character", file(`{a}`, 0)},
		{"twice", `name "a" stands twice`, file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2)},
		{"field twice", `field "dtype" stands twice`, file(`{"a":{"dtype":"U8","dtype":"U8"}}`, 0)},
		{"unknown field", `unknown field "x"`, file(`{"a":{"x":1}}`, 0)},
		{"missing", `field "shape" is missing`, file(`{"a":{"dtype":"U8","data_offsets":[0,1]}}`, 1)},
		{"negative", "not an integer between", file(`{"a":{"dtype":"U8","shape":[-1],"data_offsets":[0,1]}}`, 1)},
		{"fraction", "not an integer between", file(`{"a":{"dtype":"U8","shape":[1.5],"data_offsets":[0,1]}}`, 1)},
		{"overflow", "too large", file(`{"a":{"dtype":"U8","shape":[9223372036854775807,9223372036854775807],"data_offsets":[0,1]}}`, 1)},
		{"rank", "more than 64", file(`{"a":{"dtype":"U8","shape":[`+strings.Repeat("1,", 64)+`1],"data_offsets":[0,1]}}`, 1)},
		{"outside", `"a": bytes 0 to 8 are outside the file's 7`, file(one, 7)},
		{"backwards", "outside", file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,0]}}`, 1)},
		{"size", "f32[3] needs 12 bytes, the header gives 8", file(`{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}}`, 8)},
		{"dtype", `element type "F8_E4M3" of "a" "b"`, file(`{"b":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[1,2]},"a":{"dtype":"F8_E4M3","shape":[1],"data_offsets":[0,1]}}`, 2)},
		{"overlap", `"a" and "b" overlap`, file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]}}`, 3)},
		{"hole", `1 bytes between "a" and "b"`, file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}}`, 3)},
		{"hole in front", `1 bytes between the header and "a"`, file(`{"a":{"dtype":"U8","shape":[1],"data_offsets":[1,2]}}`, 2)},
		{"bytes behind", `1 bytes after "a"`, file(one, 9)},
		{"text behind header", "bytes after the closing", file(`{}x`, 0)},
		{"metadata", "where a string was expected", file(`{"__metadata__":{"a":1}}`, 0)},
		{"metadata twice", `metadata key "a" stands twice`, file(`{"__metadata__":{"a":"1","a":"2"}}`, 0)},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := New(bytes.NewReader(c.raw), int64(len(c.raw)))
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// sparse is a reader that declares far more than it holds.
type sparse struct{ head []byte }

func (s sparse) ReadAt(p []byte, off int64) (int, error) {
	clear(p)
	if off < int64(len(s.head)) {
		copy(p, s.head[off:])
	}
	return len(p), nil
}

func TestHeaderCap(t *testing.T) {
	s := sparse{binary.LittleEndian.AppendUint64(nil, MaxHeaderBytes+1)}
	got := testing.AllocsPerRun(1, func() {
		if _, err := New(s, 1<<40); err == nil || !strings.Contains(err.Error(), "longer than") {
			t.Fatal(err)
		}
	})
	if got > 20 {
		t.Errorf("%v allocations for a refused header", got)
	}
}

var specs = []Spec{
	{"zeta", ir.T(ir.F64, 2)}, {"w\"\n<b>", ir.T(ir.F32, 3, 5)}, {"half", ir.T(ir.F16, 3)}, {"b", ir.T(ir.BF16)},
	{"ids", ir.T(ir.I64, 0)}, {"i", ir.T(ir.I32, 1)}, {"q", ir.T(ir.I8, 3)}, {"u", ir.T(ir.U8, 2)}, {"mask", ir.T(ir.Bool, 5)},
}

func content(s Spec) ([]byte, error) {
	raw := make([]byte, s.Type.Bytes())
	r := rand.New(rand.NewPCG(1, uint64(len(s.Name)+len(raw))))
	for i := range raw {
		raw[i] = byte(r.Uint32())
	}
	return raw, nil
}

func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	meta := map[string]string{"b": "2", "a": "x\ny"}
	var files [][]byte
	for k := range 2 {
		order := slices.Clone(specs)
		if k == 1 {
			slices.Reverse(order) // the order of announcement must not show
		}
		path := filepath.Join(dir, fmt.Sprint(k))
		if err := WriteFile(path, meta, order, content); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, raw)
	}
	if !bytes.Equal(files[0], files[1]) {
		t.Error("the file depends on the order of its tensors")
	}
	f, err := Open(filepath.Join(dir, "0"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if m := f.Metadata(); len(m) != 2 || m["a"] != "x\ny" {
		t.Errorf("metadata %v", m)
	}
	if want := []string{"ids", "zeta", "i", "w\"\n<b>", "b", "half", "mask", "q", "u"}; !slices.Equal(f.Names(), want) {
		t.Errorf("names %q", f.Names())
	}
	for _, s := range specs {
		x, ok := f.Info(s.Name)
		if !ok || !x.Type.Equal(s.Type) {
			t.Fatalf("%q: %v", s.Name, x)
		}
		if x.Offset*8%s.Type.DType.Bits() != 0 || f.Infos()[0].Offset%8 != 0 {
			t.Errorf("%q is not aligned: %d", s.Name, x.Offset)
		}
		want, _ := content(s)
		got := make([]byte, x.Bytes)
		if err := f.ReadTensor(s.Name, got); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q: %v, %v", s.Name, got, err)
		}
		if !bytes.Equal(files[0][x.Offset:x.Offset+x.Bytes], want) {
			t.Errorf("%q: Offset does not name its bytes", s.Name)
		}
	}
	part := make([]byte, 4)
	want, _ := content(specs[1])
	if err := f.ReadAt(specs[1].Name, part, 8); err != nil || !bytes.Equal(part, want[8:12]) {
		t.Error(part, err)
	}
	for _, err := range []error{f.ReadTensor("no", nil), f.ReadTensor("u", nil), f.ReadAt("u", part, 0), f.ReadAt("u", nil, -1), f.ReadAt("u", part[:1], 2)} {
		if err == nil {
			t.Error("a bad read succeeded")
		}
	}
}

func TestWriterIsAtomic(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "w")
	if err := os.WriteFile(path, []byte("old"), 0o666); err != nil {
		t.Fatal(err)
	}
	w, err := Create(path, nil, specs[:2])
	if err != nil {
		t.Fatal(err)
	}
	check := func(err error, want string) {
		t.Helper()
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	check(w.WriteAt("nobody", nil, 0), "announced")
	check(w.WriteAt("zeta", make([]byte, 17), 0), "outside")
	check(w.WriteAt("zeta", make([]byte, 8), 8), "filled up to byte 0")
	if err := w.WriteAt("zeta", make([]byte, 16), 0); err != nil {
		t.Fatal(err)
	}
	check(w.Commit(), "has 0 of its 60 bytes")
	for range 2 {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	}
	if old, _ := os.ReadFile(path); string(old) != "old" {
		t.Error("an abandoned file touched its target")
	}
	if left, _ := os.ReadDir(dir); len(left) != 1 {
		t.Errorf("left behind: %v", left)
	}
	for want, bad := range map[string][]Spec{
		"stands twice":         {specs[0], specs[0]},
		"i4 has no":            {{"p", ir.T(ir.I4, 2)}},
		"cannot be the name":   {{"\xff", ir.T(ir.F32)}},
		"\"__metadata__\" can": {{"__metadata__", ir.T(ir.F32)}},
		"too large":            {{"n", ir.T(ir.F32, -1)}},
	} {
		_, err := Create(path, nil, bad)
		check(err, want)
	}
	_, err = Create(path, map[string]string{"\xff": ""}, nil)
	check(err, "not UTF-8")
	if _, err := Create(filepath.Join(dir, "no", "w"), nil, nil); err == nil {
		t.Error("created a file in a missing folder")
	}
	if device := filepath.Join(dir, "device"); os.Symlink(os.DevNull, device) == nil {
		_, err := Create(device, nil, nil)
		check(err, "no regular file")
		if err := os.Remove(device); err != nil {
			t.Error(err)
		}
	}
	if err := WriteFile(path, nil, nil, content); err != nil {
		t.Error(err)
	}
	if f, err := Open(path); err != nil || len(f.Names()) != 0 {
		t.Error("a file without tensors:", err)
	} else {
		f.Close()
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Error(err)
	}
}

func TestOpenReal(t *testing.T) {
	data, _ := filepath.Glob("../../../shared/models/data/*.safetensors")
	small, _ := filepath.Glob("../../../shared/models/small/*/*.safetensors")
	paths := append(data, small...)
	if len(paths) == 0 {
		t.Skip("no safetensors files under ../shared/models")
	}
	for _, p := range paths {
		f, err := Open(p)
		if err != nil {
			t.Error(err)
			continue
		}
		if len(f.Names()) == 0 {
			t.Errorf("%s: no tensors", p)
		}
		f.Close()
	}
}

func FuzzOpen(f *testing.F) {
	f.Add(file(`{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"__metadata__":{"k":"v"}}`, 8))
	f.Add(file(`{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"b":{"dtype":"BOOL","shape":[],"data_offsets":[2,3]}}`, 3))
	f.Add([]byte("\xff\xff\xff\xff\xff\xff\xff\x7f{"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		x, err := New(bytes.NewReader(raw), int64(len(raw)))
		if err != nil {
			return
		}
		total := int64(0)
		for _, name := range x.Names() {
			info, ok := x.Info(name)
			if !ok {
				t.Fatalf("%q has no info", name)
			}
			if err := x.ReadTensor(name, make([]byte, info.Bytes)); err != nil {
				t.Fatal(err)
			}
			total += info.Bytes
		}
		if total > int64(len(raw)) {
			t.Fatalf("%d bytes of tensors in a file of %d", total, len(raw))
		}
	})
}
