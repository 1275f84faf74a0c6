package importer

import (
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// refused imports a file that must be refused, quickly and without memory, with a message that says want.
func refused(t *testing.T, path, want string) {
	t.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	start := time.Now()
	_, err := Import(path, Options{})
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("error %v, want %q", err, want)
	}
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d bytes were allocated for a bad file", n)
	}
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("a bad file took %v", d)
	}
}

// TestHostileBytes: files that no exporter writes.
func TestHostileBytes(t *testing.T) {
	field := func(num protowire.Number, body []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, num, protowire.BytesType), body)
	}
	declares := func(n uint64) []byte { // a graph with an initializer whose raw_data declares n bytes
		raw := protowire.AppendVarint(protowire.AppendTag(nil, 9, protowire.BytesType), n)
		return field(7, field(5, raw))
	}
	deep := []byte{}
	for range 10000 { // TypeProto -> Sequence -> TypeProto ...
		deep = field(1, deep)
		deep = field(4, deep)
	}
	for _, c := range []struct {
		name, want string
		raw        []byte
	}{
		{"empty", "no graph", nil},
		{"text", "not an ONNX file", []byte("<html>not found</html>")},
		{"declares 2 GB", "declares 2147483648 bytes where 0 are left", declares(1 << 31)},
		{"declares all of 64 bits", "declares 18446744073709551615 bytes", declares(1<<64 - 1)},
		{"nests", "nest deeper than", field(7, field(11, field(2, deep)))},
		{"cut number", "broken or cut number", []byte{0x08, 0xff, 0xff}},
		{"group", "wire type 3", []byte{0x3b}},
		{"field 0", "field number 0", []byte{0x00, 0x00}},
		{"another wire type", "has wire type 0", []byte{0x38, 0x01}},
		{"many messages", "more than", field(7, []byte(strings.Repeat("\x0a\x00", 5<<20)))},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, saveBytes(t, c.raw), c.want) })
	}
}

// TestTruncated: no prefix of a file makes trouble, and few make sense.
func TestTruncated(t *testing.T) {
	raw, err := proto.Marshal(mlp())
	if err != nil {
		t.Fatal(err)
	}
	path := saveBytes(t, nil)
	for n := range raw {
		if err := os.WriteFile(path, raw[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		if m, err := Import(path, Options{Dims: map[string]int64{"batch": 1}}); err == nil && m.Graph.Result("y") != nil && n < len(raw)-8 {
			t.Errorf("the first %d of %d bytes were accepted", n, len(raw))
		}
	}
}

// TestHostileGraphs: well-formed messages that are no graphs.
func TestHostileGraphs(t *testing.T) {
	x := []*onnxpb.ValueInfoProto{vi("x", float, 2)}
	relu := func(name, from, to string) *onnxpb.NodeProto { return node("Relu", name, in(from), in(to)) }
	dims := func(ds ...int64) *onnxpb.TensorProto {
		return &onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(1), Dims: ds}
	}
	with := func(p *onnxpb.TensorProto) *onnxpb.ModelProto {
		return model(13, x, []*onnxpb.TensorProto{p}, node("Add", "a", in("x", "w"), in("y")))
	}
	short := floats("w", []int64{4})
	short.RawData = short.RawData[:15]
	segment := floats("w", []int64{2})
	segment.Segment = &onnxpb.TensorProto_Segment{}
	ref := node("LeakyRelu", "a", in("x"), in("y"), attrFloat("alpha", 1))
	ref.Attribute[0].RefAttrName = proto.String("q")
	for _, c := range []struct {
		name, want string
		m          *onnxpb.ModelProto
	}{
		{"cycle", `operand "b" is defined nowhere before it`, model(13, x, nil, node("Add", "1", in("x", "b"), in("a")), relu("2", "a", "b"))},
		{"out of order", `operand "a" is defined nowhere`, model(13, x, nil, relu("1", "a", "b"), relu("2", "x", "a"))},
		{"defined twice", `output "a" is defined twice`, model(13, x, nil, relu("1", "x", "a"), relu("2", "x", "a"))},
		{"node writes an input", `output "x" is defined twice`, model(13, x, nil, relu("1", "x", "x"))},
		{"initializer twice", `initializer "w" is defined twice`, model(13, x, []*onnxpb.TensorProto{floats("w", []int64{2}), floats("w", []int64{2})}, relu("1", "x", "y"))},
		{"input twice", `input "x"`, model(13, append(x, x[0]), nil, relu("1", "x", "y"))},
		{"no output", `output "q" of the graph`, func() *onnxpb.ModelProto {
			m := model(13, x, nil, relu("1", "x", "y"))
			m.Graph.Output[0].Name = proto.String("q")
			return m
		}()},
		{"negative dim", "negative or too large", with(dims(-1))},
		{"dims overflow", "negative or too large", with(dims(1<<40, 1<<40))},
		{"dims without data", "needs 1099511627776 elements of data, the file has 0", with(dims(1 << 40))},
		{"short data", "needs 16 bytes of data, the file has 15", with(short)},
		{"segment", "segments", with(segment)},
		{"input dims overflow", "negative or too large", model(13, []*onnxpb.ValueInfoProto{vi("x", float, 1<<40, 1<<40)}, nil, relu("1", "x", "y"))},
		{"reference to nothing", "refers to a function's attribute", model(13, x, nil, ref)},
		{"expand to everything", "too large", model(13, x, []*onnxpb.TensorProto{longs("s", 1<<40, 1<<40, 2)}, node("Expand", "e", in("x", "s"), in("y")))},
		{"reshape overflow", "too large", model(13, x, []*onnxpb.TensorProto{longs("s", 1<<62, 1<<62)}, node("Reshape", "e", in("x", "s"), in("y")))},
		{"tile overflow", "too large", model(13, x, []*onnxpb.TensorProto{longs("s", 1<<61)}, node("Tile", "e", in("x", "s"), in("y")))},
		{"pad overflow", "", model(13, x, []*onnxpb.TensorProto{longs("s", 1<<62, 1<<62)}, node("Pad", "e", in("x", "s"), in("y")))},
		{"range without end", "range", model(13, x, []*onnxpb.TensorProto{floats("a", nil, 0), floats("b", nil, 1e30), floats("c", nil, 1e-30)}, node("Range", "e", in("a", "b", "c"), in("y")))},
		{"no operands", "operand 0 is missing", model(13, x, nil, node("Relu", "e", nil, in("y")))},
		{"empty concat", "operand 0 is missing", model(13, x, nil, node("Concat", "e", nil, in("y"), attrInt("axis", 0)))},
		{"no outputs", "output", model(13, x, nil, node("Constant", "e", nil, in("y", "z"), attrInt("value_int", 1)))},
	} {
		t.Run(c.name, func(t *testing.T) { refused(t, save(t, c.m), c.want) })
	}
}

// TestExternal: data beside the model is reached below its folder only, and within the file that is there.
func TestExternal(t *testing.T) {
	outer := t.TempDir()
	dir := filepath.Join(outer, "model")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	data := make([]byte, 64)
	for i := range 16 {
		data[4*i+3] = 0x3f
	}
	write := func(path string) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(outer, "secret"))
	write(filepath.Join(dir, "w.bin"))
	link := func(to, name string) {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Skipf("no symbolic links here: %v", err)
		}
	}
	link("../secret", "out")
	link(outer, "outdir")
	link("w.bin", "inside")
	for _, c := range []struct {
		location, offset, length, want string
	}{
		{"w.bin", "", "", ""},
		{"./w.bin", "16", "16", ""},
		{"inside", "48", "16", ""},
		{"../secret", "", "", "leads out"},
		{"sub/../../secret", "", "", "leads out"},
		{filepath.Join(outer, "secret"), "", "", "leads out"},
		{"sub/../w.bin", "", "", "leads out"},
		{"out", "", "", "escapes"},
		{"outdir/secret", "", "", "escapes"},
		{".", "", "", "no regular file"},
		{"", "", "", "without a location"},
		{"w.bin", "49", "16", "bytes 49 to 65 of a file of 64"},
		{"w.bin", "-1", "16", "offset -1"},
		{"w.bin", "9223372036854775807", "16", "bytes 9223372036854775807 to 9223372036854775823 of a file of 64"},
		{"w.bin", "0", "17", "length 17"},
		{"w.bin", "0", "-16", "length -16"},
		{"w.bin", "x", "16", "is no number"},
	} {
		w := &onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{4}, DataLocation: onnxpb.TensorProto_EXTERNAL.Enum()}
		for _, kv := range [][2]string{{"location", c.location}, {"offset", c.offset}, {"length", c.length}, {"checksum", "0"}} {
			if kv[1] != "" {
				w.ExternalData = append(w.ExternalData, &onnxpb.StringStringEntryProto{Key: proto.String(kv[0]), Value: proto.String(kv[1])})
			}
		}
		raw, err := proto.Marshal(model(13, []*onnxpb.ValueInfoProto{vi("x", float, 4)}, []*onnxpb.TensorProto{w}, node("Add", "a", in("x", "w"), in("y"))))
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, "m.onnx")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := Import(path, Options{})
		switch {
		case c.want != "":
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q from %s: error %v, want %q", c.location, c.offset, err, c.want)
			}
		case err != nil:
			t.Errorf("%q: %v", c.location, err)
		default:
			if got := contents(t, m.Graph)["w"].F; got[0] != 0.5 {
				t.Errorf("%q: content %v", c.location, got)
			}
		}
		t.Chdir(dir) // a model in the current folder has the folder ""
		if _, err := Import("m.onnx", Options{}); (err != nil) != (c.want != "") {
			t.Errorf("%q from the model's own folder: %v", c.location, err)
		}
		t.Chdir(outer)
	}
}

// TestExternalAbsent: a graph without its weights is imported, since it can be planned.
func TestExternalAbsent(t *testing.T) {
	w := &onnxpb.TensorProto{Name: proto.String("w"), DataType: proto.Int32(1), Dims: []int64{1 << 20, 1 << 12}, DataLocation: onnxpb.TensorProto_EXTERNAL.Enum(),
		ExternalData: []*onnxpb.StringStringEntryProto{{Key: proto.String("location"), Value: proto.String("weights.bin")}}}
	m := mustImport(t, save(t, model(13, []*onnxpb.ValueInfoProto{vi("x", float, 1, 1<<20)}, []*onnxpb.TensorProto{w}, node("MatMul", "a", in("x", "w"), in("y")))), Options{})
	if p := m.Graph.Param("w"); p.Init.Kind != ir.InitAbsent || !p.Trainable || p.Init.File.Path == "" {
		t.Errorf("%+v", p)
	}
}

// FuzzImport: whatever the bytes, an error or a graph that verifies.
func FuzzImport(f *testing.F) {
	add := func(m *onnxpb.ModelProto) {
		raw, err := proto.Marshal(m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(raw)
	}
	add(mlp())
	add(batchNorm(15, 3, attrInt("training_mode", 1)))
	raw, err := os.ReadFile("testdata/ops.json")
	if err != nil {
		f.Fatal(err)
	}
	var cases []struct{ Model string }
	if err := json.Unmarshal(raw, &cases); err != nil {
		f.Fatal(err)
	}
	for _, c := range cases {
		model, err := base64.StdEncoding.DecodeString(c.Model)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(model)
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, raw []byte) {
		path := filepath.Join(dir, "m.onnx")
		if err := os.WriteFile(path, raw, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := Lint(path, LintOptions{}); err != nil {
			t.Errorf("lint of a file that is there: %v", err)
		}
		seen, err := Inspect(path)
		if err != nil {
			return
		}
		opt := Options{Dims: map[string]int64{}}
		for _, d := range seen.Dims {
			opt.Dims[d.Name] = 2
		}
		for _, mode := range []string{BatchNormAsExported, BatchNormTrain} {
			opt.BatchNorm = mode
			m, err := Import(path, opt)
			if err != nil {
				continue
			}
			if err := ir.Verify(m.Graph); err != nil {
				t.Error(err)
			}
		}
	})
}
