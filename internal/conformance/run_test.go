package conformance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"google.golang.org/protobuf/proto"

	"aitk/importer"
	"aitk/importer/onnxpb"
	"aitk/internal/weights"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/cost"
	"aitk/runtime"
	"aitk/runtime/cpu"
	"aitk/runtime/ref"
)

// runner runs cases, one after the other.
type runner struct {
	archives
	dir string // for the model's file
}

// opened is a case with its data by input name.
type opened struct {
	*testCase
	*content
	path   string
	model  *onnxpb.ModelProto
	inputs []map[string]*elements // by data set
	want   [][]*elements
}

func (r *runner) openCase(c *testCase) (*opened, error) {
	x, err := r.load(c)
	if err != nil {
		return nil, err
	}
	o := &opened{testCase: c, content: x, path: filepath.Join(r.dir, "model.onnx"), model: &onnxpb.ModelProto{}}
	if err := proto.Unmarshal(x.model, o.model); err != nil {
		return nil, err
	}
	held := map[string]bool{}
	for _, t := range o.model.Graph.Initializer {
		held[t.GetName()] = true
	}
	var free []*onnxpb.ValueInfoProto
	for _, in := range o.model.Graph.Input {
		if !held[in.GetName()] {
			free = append(free, in)
		}
	}
	for _, s := range x.sets {
		infos := free
		if len(s.inputs) > len(free) {
			infos = o.model.Graph.Input
		}
		in := map[string]*elements{}
		for j, raw := range s.inputs {
			if j >= len(infos) {
				break
			}
			t, err := tensorOf(raw, infos[j])
			if err != nil {
				return nil, fmt.Errorf("input %q: %w", infos[j].GetName(), err)
			}
			in[infos[j].GetName()] = t
		}
		o.inputs = append(o.inputs, in)
		var want []*elements
		for j, raw := range s.outputs {
			t, err := tensorOf(raw, o.model.Graph.Output[j])
			if err != nil {
				return nil, fmt.Errorf("output %q: %w", o.model.Graph.Output[j].GetName(), err)
			}
			want = append(want, t)
		}
		o.want = append(o.want, want)
	}
	return o, os.WriteFile(o.path, x.model, 0o600)
}

func tensorOf(raw []byte, info *onnxpb.ValueInfoProto) (*elements, error) {
	t := info.GetType().GetTensorType()
	if t == nil {
		return nil, errors.New("is no tensor")
	}
	return decode(raw, t.GetElemType())
}

// imported is a graph and the inputs that it still has.
type imported struct {
	graph *ir.Graph
	bound []string
}

// importCase imports the model with the extents of a data set. An input on which a shape depends is bound as a constant, and only such a one.
func (o *opened) importCase(set map[string]*elements) (*imported, error) {
	seen, err := importer.Inspect(o.path)
	if err != nil {
		return nil, err
	}
	opt := importer.Options{Dims: map[string]int64{}, Inputs: map[string]ir.Tensor{}}
	for _, in := range seen.Inputs {
		x := set[in.Name]
		if x == nil || len(x.shape) != len(in.Shape) {
			continue
		}
		for a, d := range in.Shape {
			for _, s := range seen.Dims {
				if s.Name == d {
					opt.Dims[d] = x.shape[a]
				}
			}
		}
	}
	for {
		m, err := importer.Import(o.path, opt)
		if err == nil {
			var bound []string
			for _, in := range seen.Inputs {
				if _, ok := opt.Inputs[in.Name]; ok {
					bound = append(bound, in.Name)
				}
			}
			return &imported{m.Graph, bound}, nil
		}
		data, ok := errors.AsType[*importer.DataError](err)
		if !ok {
			return nil, err
		}
		more := false
		for _, name := range data.Inputs {
			if _, done := opt.Inputs[name]; done || set[name] == nil {
				continue
			}
			i := slices.IndexFunc(seen.Inputs, func(v importer.ValueInfo) bool { return v.Name == name })
			opt.Inputs[name], err = set[name].tensor(ir.Type{DType: seen.Inputs[i].DType, Shape: set[name].shape})
			if err != nil {
				return nil, err
			}
			more = true
		}
		if !more {
			return nil, data
		}
	}
}

// feeds are the inputs of a graph from a data set, reserved ones included.
func (g *imported) feeds(set map[string]*elements) (map[string]ir.Tensor, error) {
	in := map[string]ir.Tensor{}
	for _, v := range g.graph.Inputs {
		if v.Name[0] == '$' {
			in[v.Name] = ir.NewTensor(v.Type)
			continue
		}
		x := set[v.Name]
		if x == nil {
			return nil, fmt.Errorf("no data for input %q", v.Name)
		}
		t, err := x.tensor(v.Type)
		if err != nil {
			return nil, fmt.Errorf("input %q: %w", v.Name, err)
		}
		in[v.Name] = t
	}
	return in, nil
}

// params reads the content of parameters.
func params(g *ir.Graph) (map[string]ir.Tensor, error) {
	r := weights.NewReader()
	defer r.Close()
	out := map[string]ir.Tensor{}
	for _, p := range g.Params {
		raw, err := r.Bytes(p.Name, p.Type, &p.Init)
		if err != nil {
			return nil, err
		}
		if out[p.Name], err = ir.DecodeTensor(p.Type, raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// viaRef and viaCPU run a graph once.
func viaRef(g *ir.Graph, in, params map[string]ir.Tensor) (map[string]ir.Tensor, error) {
	out, _, err := ref.Run(g, in, params)
	for _, t := range out { // the interpreter leaves f32 unrounded
		t.Round()
	}
	return out, err
}

func viaCPU(g *ir.Graph, in, params map[string]ir.Tensor) (map[string]ir.Tensor, error) {
	s, err := onCPU(g, params)
	if err != nil {
		return nil, err
	}
	defer s.exe.Close()
	return s.run(in)
}

// onDevice is a graph on the device, to be run many times.
type onDevice struct {
	exe     *runtime.Executable
	program *plan.Program
}

func onCPU(g *ir.Graph, params map[string]ir.Tensor) (*onDevice, error) {
	g = g.Clone()
	g.Name = "eval"
	ctx := &passes.Context{Programs: []*ir.Graph{g}}
	p, err := passes.Compile(ctx, passes.MemoryOptions{Profile: cost.CPUGeneric(), BudgetBytes: -1, HostBudgetBytes: -1})
	if err != nil {
		return nil, err
	}
	mem := runtime.NewMemory(p)
	for i, q := range p.Params {
		if t, ok := params[q.Name]; ok {
			mem.Set(int32(i), t.Encode())
		}
	}
	dev := cpu.Open(cpu.Options{Threads: 1})
	exe, err := runtime.Load(p, dev, runtime.Options{Storage: mem, Poison: true})
	if err != nil {
		dev.Close()
		return nil, err
	}
	if err := exe.Run(context.Background(), "init"); err != nil {
		exe.Close()
		return nil, err
	}
	program, _ := p.Program("eval")
	return &onDevice{exe, program}, nil
}

func (s *onDevice) run(in map[string]ir.Tensor) (map[string]ir.Tensor, error) {
	for _, port := range s.program.Inputs {
		if err := s.exe.SetInput("eval", port.Name, in[port.Name].Encode()); err != nil {
			return nil, err
		}
	}
	if err := s.exe.Run(context.Background(), "eval"); err != nil {
		return nil, err
	}
	out := map[string]ir.Tensor{}
	for _, r := range s.program.Results {
		raw := make([]byte, r.Ref.Type.Bytes())
		if err := s.exe.Result("eval", r.Name, raw); err != nil {
			return nil, err
		}
		t, err := ir.DecodeTensor(r.Ref.Type, raw)
		if err != nil {
			return nil, err
		}
		out[r.Name] = t
	}
	return out, nil
}

// verdict is how a case went: passed, or at which stage and why not.
type verdict struct {
	stage  string // "", load, import, ref, cpu
	reason string
	bound  []string
	folded bool // no input was left
}

// forward runs a case through both.
func (r *runner) forward(c *testCase) (v verdict) {
	stage := "load"
	defer func() {
		if p := recover(); p != nil {
			v = verdict{stage: stage, reason: fmt.Sprintf("panic: %.300v", p)}
		}
	}()
	o, err := r.openCase(c)
	if err != nil {
		return verdict{stage: stage, reason: err.Error()}
	}
	if len(o.want) == 0 {
		return verdict{stage: stage, reason: "no data"}
	}
	for n := range o.want {
		stage = "import"
		g, err := o.importCase(o.inputs[n])
		if err != nil {
			return verdict{stage: stage, reason: err.Error()}
		}
		v.bound, v.folded = g.bound, len(g.graph.Inputs) == 0
		if err := ir.Verify(g.graph); err != nil {
			return verdict{stage: stage, reason: err.Error()}
		}
		in, err := g.feeds(o.inputs[n])
		if err != nil {
			return verdict{stage: stage, reason: err.Error()}
		}
		weights, err := params(g.graph)
		if err != nil {
			return verdict{stage: stage, reason: err.Error()}
		}
		if !c.fixed {
			stage = "distribution"
			if err := o.drawn(g.graph, o.inputs[n], in, weights); err != nil {
				return verdict{stage: stage, reason: err.Error()}
			}
		}
		for _, via := range []struct {
			name string
			run  func(*ir.Graph, map[string]ir.Tensor, map[string]ir.Tensor) (map[string]ir.Tensor, error)
		}{{"cpu", viaCPU}, {"ref", viaRef}} {
			stage = via.name
			if stage == "ref" && heavy(g.graph) {
				continue
			}
			got, err := via.run(g.graph, in, weights)
			if err != nil {
				return verdict{stage: stage, reason: err.Error()}
			}
			for j, want := range o.want[n] {
				name := o.model.Graph.Output[j].GetName()
				t, ok := got[name]
				if !ok {
					return verdict{stage: stage, reason: fmt.Sprintf("no result %q", name)}
				}
				if d := want.compare(t, c.rtol(o, t.Type.DType), c.atol(o, t.Type.DType, via.name), c.fixed); d != "" {
					return verdict{stage: stage, reason: fmt.Sprintf("output %q: %s", name, d)}
				}
			}
		}
	}
	return v
}

// rtol is the corpus' tolerance, and at least two units in the last place of bf16 and f16: the corpus rounds after each step of a formula, we where a core op
// ends.
func (c *testCase) rtol(o *opened, d ir.DType) float64 {
	switch d {
	case ir.BF16:
		return max(o.content.rtol, 0x1p-6)
	case ir.F16:
		return max(o.content.rtol, 0x1p-9)
	}
	return o.content.rtol
}

// atol is the corpus' tolerance. The interpreter does not round f32, so that what is rounded to whole numbers by quantization may fall to the other side.
func (c *testCase) atol(o *opened, d ir.DType, via string) float64 {
	if via == "ref" && d.IsInt() && c.is("quant") {
		return max(o.content.atol, 1)
	}
	if slices.Contains(c.ops, "DFT") || slices.Contains(c.ops, "STFT") { // sums of hundreds of terms, of which zeros remain as rounding
		return max(o.content.atol, 1e-5)
	}
	return o.content.atol
}

// heavy tells graphs that the reference interpreter would take minutes for: whole networks of 224 x 224 pixels.
func heavy(g *ir.Graph) bool {
	var flops int64
	for _, n := range g.Nodes {
		in := make([]ir.Type, len(n.In))
		for i, v := range n.In {
			in[i] = v.Type
		}
		out := make([]ir.Type, len(n.Out))
		for i, v := range n.Out {
			out[i] = v.Type
		}
		flops += ir.WorkOf(n.Op, in, out).FLOPs
	}
	return flops > 300e6
}
