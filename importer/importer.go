// Package importer turns an ONNX file into an ir.Graph: the forward half of a model in core ops, with every dimension bound, every
// parameter under its author's name, and every node knowing where in the file it came from.
//
// It is the only code that knows ONNX. It knows nothing of training, memory or devices: it appends no loss and no gradient, and it
// reads the content of weights only to compare copies of one.
//
// Invariants: the file is not trusted (see onnxpb and README.md) - no panic, no allocation of what is merely declared, nothing read
// outside the model's folder; what is not understood is refused, all of it at once, and never approximated; the same file and options
// give the same graph, value for value.
package importer

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"aitk/ir"
)

// The ways to treat batch normalization.
const (
	BatchNormAsExported = "as-exported" // training_mode of each node decides
	BatchNormTrain      = "train"       // the batch's statistics; running statistics move once a step
	BatchNormFrozen     = "frozen"      // running statistics, unchanged; scale and bias still train
)

// Options steer an import. The zero value asks for the file as it is.
type Options struct {
	Dims      map[string]int64     // bound symbolic dimensions, by their name in the file
	Inputs    map[string]ir.Tensor // graph inputs bound to constants
	BatchNorm string               // one of the BatchNorm constants; empty is as-exported
	Eval      bool                 // the graph for evaluation: dropout is the identity, batch norm frozen
	Select    []Selection          // what trains and what is frozen; the last match wins
	Outputs   []string             // tensors to compute instead of the graph's outputs
}

// Model is an imported or inspected model.
type Model struct {
	Graph *ir.Graph // nil after Inspect

	Path        string
	Producer    string
	IRVersion   int64
	Opset       int64 // of ai.onnx
	Dims        []Dim
	Inputs      []ValueInfo
	Outputs     []ValueInfo
	Params      []ParamInfo // weights, statistics and buffers of the file, in the module's order where the exporter told it
	Stored      []Stored    // where the file has each of them
	Nodes       int
	Ops         []OpCount // by descending count, then name
	Lost        []Finding // parameters of the module that the export left out, folded or merged into others: training goes on without them
	Unsupported error     // Inspect only: what Import would refuse for want of a lowering
	Stats       Stats
}

// Dim is a symbolic dimension. Its name is the file's, any text; an unnamed one is called after its input and axis.
type Dim struct {
	Name  string
	Bound bool
	Size  int64
	Where []string // `input "x" axis 0`
}

// ValueInfo describes an input or output of the file. A shape entry is a size or a dimension's name.
type ValueInfo struct {
	Name  string
	DType ir.DType
	Shape []string
}

// OpCount is how often an op occurs in the file.
type OpCount struct {
	Op    string // with its domain in front where it is not ai.onnx
	Count int
}

// Stats says what became of the file's nodes.
type Stats struct {
	Nodes        int   // of the graph
	Folded       int   // ops evaluated instead of added
	Literals     int   // constants of the graph
	LiteralBytes int64 //
}

// Inspect reads what can be known of a model before dimensions are bound.
func Inspect(path string) (*Model, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	src, w, err := read(f)
	if err != nil {
		return nil, err
	}
	m := newModel(src)
	m.Stored = w.stored()
	m.Dims = src.dims(nil)
	for _, p := range w.params {
		m.Params = append(m.Params, p.ParamInfo)
	}
	m.Unsupported = newLowering(src, w, &Options{}).unknownOps(src.outputs())
	return m, nil
}

func read(f *file) (*source, *weights, error) {
	src, err := readSource(f)
	if err != nil {
		return nil, nil, err
	}
	w, err := classify(src)
	return src, w, err
}

// Import lowers a model to a graph. Its errors are *ir.Error: of kind Usage for options that do not fit the file, Unsupported for what
// has no lowering, Failed for a broken file; all findings of a stage are listed at once.
func Import(path string, opt Options) (*Model, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return importFile(f, opt)
}

func importFile(f *file, opt Options) (*Model, error) {
	src, w, err := read(f)
	if err != nil {
		return nil, err
	}
	m := newModel(src)
	m.Lost = lost(src, w)
	m.Dims = src.dims(opt.Dims)
	if err := src.checkOptions(&opt, m.Dims, w); err != nil {
		return nil, err
	}
	results := opt.Outputs
	if len(results) == 0 {
		results = src.outputs()
	}
	l := newLowering(src, w, &opt)
	if err := l.unknownOps(results); err != nil {
		return nil, err
	}
	if err := l.bindInputs(m.Dims); err != nil {
		return nil, err
	}
	l.run(results)
	if len(l.errs) > 0 {
		return nil, joined(l.errs)
	}
	l.finish(m)
	return m, nil
}

func newLowering(src *source, w *weights, opt *Options) *lowering {
	return &lowering{src: src, w: w, opt: opt, b: &ir.Builder{G: ir.NewGraph(cmp.Or(src.graph.GetName(), "main"))},
		env: map[string]*operand{}, left: map[string]int{}, reserved: map[string]*ir.Value{}, folder: folder{consts: map[string]*ir.Value{}, holders: map[*ir.Tensor]int{}}}
}

// joined makes one error of many, of the first one's kind, and lists the first of them.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	kind := ir.KindOf(errs[0])
	if len(errs) > maxErrors {
		errs = append(errs[:maxErrors:maxErrors], fmt.Errorf("and %d more", len(errs)-maxErrors))
	}
	return &ir.Error{Kind: kind, Cause: errors.Join(errs...)}
}

// finish brings parameters into the module's order, appends the reserved inputs that were used, and fills in the model.
func (l *lowering) finish(m *Model) {
	g := l.b.G
	rank := map[*ir.Param]int{}
	for i, p := range l.w.params {
		if p.value != nil {
			rank[p.value] = i
		}
		m.Params = append(m.Params, p.ParamInfo)
	}
	slices.SortFunc(g.Params, func(a, b *ir.Param) int { return rank[a] - rank[b] })
	for _, name := range []string{"$seed", "$step", "$micro"} {
		if v := l.reserved[name]; v != nil {
			g.Inputs = append(g.Inputs, v)
		}
	}
	g.Renumber()
	m.Graph, m.Stored = g, l.w.stored()
	m.Stats = Stats{Nodes: len(g.Nodes), Folded: l.folder.folded, Literals: len(g.Consts)}
	for _, c := range g.Consts {
		m.Stats.LiteralBytes += int64(len(c.Data))
	}
}
