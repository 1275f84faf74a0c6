package conformance

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// folder is where the corpus lies, from this package's.
var folder = filepath.Join("..", "..", "..", "shared", "onnx-node")

// testCase is a line of index.tsv.
type testCase struct {
	archive, name string
	opset         int64 // of ai.onnx; 0: not imported
	ops           []string
	tier          int
	fixed         bool // outputs are determined by inputs
	class         []string
	ends          string // types of inputs and outputs
	smooth        string // yes, zero, no
	grad          string // method, "as <case>", none
	note          string
}

func (c *testCase) String() string { return strings.TrimSuffix(c.archive, ".zip") + "/" + c.name }

// is tells whether the case has a class.
func (c *testCase) is(class string) bool {
	for _, k := range c.class {
		if k == class {
			return true
		}
	}
	return false
}

// index reads index.tsv, and skips the test where there is none.
func index(t testing.TB) []*testCase {
	rows := table(t, "index.tsv")
	var out []*testCase
	for _, r := range rows {
		c := &testCase{archive: r["archive"], name: r["case"], ops: strings.Split(r["ops"], ","), fixed: r["deterministic"] == "yes",
			class: strings.Split(r["class"], ","), ends: r["inputs"] + ";" + r["outputs"], smooth: r["differentiable"], grad: r["grad"], note: r["note"]}
		c.tier, _ = strconv.Atoi(r["tier"])
		for _, o := range strings.Split(r["opset"], ",") {
			if v, ok := strings.CutPrefix(o, "ai.onnx:"); ok {
				c.opset, _ = strconv.ParseInt(v, 10, 64)
			}
		}
		out = append(out, c)
	}
	return out
}

// table reads a file of tab-separated columns with a header.
func table(t testing.TB, name string) []map[string]string {
	raw, err := os.ReadFile(filepath.Join(folder, name))
	if err != nil {
		t.Skip("the ONNX test cases are not beside the repository")
	}
	lines := strings.Split(strings.TrimSuffix(string(raw), "\n"), "\n")
	head := strings.Split(lines[0], "\t")
	var rows []map[string]string
	for _, line := range lines[1:] {
		row := map[string]string{}
		for i, cell := range strings.Split(line, "\t") {
			row[head[i]] = cell
		}
		rows = append(rows, row)
	}
	return rows
}

// archives opens zips as they are asked for.
type archives struct {
	zips map[string]map[string]*zip.File
	open []*zip.ReadCloser
}

func (a *archives) files(name string) (map[string]*zip.File, error) {
	if f := a.zips[name]; f != nil {
		return f, nil
	}
	z, err := zip.OpenReader(filepath.Join(folder, name))
	if err != nil {
		return nil, err
	}
	a.open = append(a.open, z)
	f := map[string]*zip.File{}
	for _, x := range z.File {
		f[x.Name] = x
	}
	if a.zips == nil {
		a.zips = map[string]map[string]*zip.File{}
	}
	a.zips[name] = f
	return f, nil
}

func (a *archives) close() {
	for _, z := range a.open {
		z.Close()
	}
}

// read is the content of a file of an archive; nil where there is none.
func (a *archives) read(archive, name string) ([]byte, error) {
	files, err := a.files(archive)
	if err != nil || files[name] == nil {
		return nil, err
	}
	r, err := files[name].Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// content is what a case consists of.
type content struct {
	model      []byte
	sets       []dataSet
	rtol, atol float64
}

type dataSet struct{ inputs, outputs [][]byte }

func (a *archives) load(c *testCase) (*content, error) {
	x := &content{rtol: 1e-3, atol: 1e-7}
	var err error
	if x.model, err = a.read(c.archive, c.name+"/model.onnx"); err != nil {
		return nil, err
	}
	tolerance, err := a.read(c.archive, c.name+"/data.json")
	if err != nil {
		return nil, err
	}
	if tolerance != nil {
		var d struct{ Rtol, Atol *float64 }
		if err := json.Unmarshal(tolerance, &d); err != nil {
			return nil, err
		}
		if d.Rtol != nil {
			x.rtol = *d.Rtol
		}
		if d.Atol != nil {
			x.atol = *d.Atol
		}
	}
	for n := 0; ; n++ {
		var s dataSet
		for kind, list := range map[string]*[][]byte{"input": &s.inputs, "output": &s.outputs} {
			for j := 0; ; j++ {
				raw, err := a.read(c.archive, fmt.Sprintf("%s/test_data_set_%d/%s_%d.pb", c.name, n, kind, j))
				if err != nil {
					return nil, err
				}
				if raw == nil {
					break
				}
				*list = append(*list, raw)
			}
		}
		if s.outputs == nil {
			return x, nil
		}
		x.sets = append(x.sets, s)
	}
}
