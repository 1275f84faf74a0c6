package importer

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aitk/importer/onnxpb"
	"aitk/internal/regular"
	"aitk/ir"
)

// Severity says what a finding means for training.
type Severity string

// The severities, worst first.
const (
	LintError   Severity = "error"   // training cannot work
	LintWarning Severity = "warning" // training works and does not do what the author of the model meant, or needs a flag
	LintInfo    Severity = "info"    // taken care of; worth knowing
)

// The codes of findings.
const (
	FoldedBatchNorm     = "folded-batch-norm"     // batch norm was merged into a convolution: its parameters are gone
	InferenceBatchNorm  = "inference-batch-norm"  // batch norm normalises by its running statistics, which do not move
	StaleStatistics     = "stale-statistics"      // the file does not hand on the statistics that training moves
	DroppedParameter    = "dropped-parameter"     // the module has a parameter of which the file knows nothing
	FoldedParameter     = "folded-parameter"      // the file holds what was computed from parameters
	LostTie             = "lost-tie"              // one weight is stored as several
	FalseTie            = "false-tie"             // several weights are stored as one
	RenamedParameter    = "renamed-parameter"     // a weight is stored under a name that its author did not give it, or turned
	HiddenWeight        = "hidden-weight"         // a tensor in a weight's place that is no parameter, or lies in a Constant node
	DropoutRemoved      = "dropout-removed"       // dropout does nothing
	FixedBatch          = "fixed-batch"           // the batch size is written into the graph
	IntegerWeight       = "integer-weight"        // a weight of integers, which has no gradient
	NotDifferentiable   = "not-differentiable"    // an op without gradient cuts weights off from the output
	InferenceOnly       = "inference-only"        // a form that only inference wants: caches, argmax or softmax at the end
	MaskOverflow        = "mask-overflow"         // a constant that becomes infinite in the narrow type
	LowPrecisionWeights = "low-precision-weights" // weights of 16 bits or fewer, too coarse for updates
	OldOpset            = "old-opset"             // an opset that cannot say what training needs, or is not read at all
	UnsupportedOp       = "unsupported-op"        // an op without a lowering
	LinkedData          = "linked-data"           // a data file has other names elsewhere: it may be somebody else's
	InvalidGraph        = "invalid-graph"         // not a graph that anybody could run
)

// Finding is one thing that is wrong with a model for training, or would surprise.
type Finding struct {
	Code      string   `json:"code"`
	Severity  Severity `json:"severity"`
	Node      string   `json:"node,omitempty"`      // name of the node, or of its first output
	Parameter string   `json:"parameter,omitempty"` // author's name, or the tensor's in the file
	Tensor    string   `json:"tensor,omitempty"`    // of the file, where its name is another
	Message   string   `json:"message"`
	Remedy    string   `json:"remedy,omitempty"`
}

// LintOptions say how the model would be trained. Dimensions that are not bound get sizes of the linter's choice.
type LintOptions struct {
	Options
	Output string   // the output that feeds the loss; empty: the first
	Loss   string   // name of the loss; empty: not said, and taken for cross-entropy
	DType  ir.DType // compute type that training will use; Invalid: the file's
}

// opsetOf is the version of the standard operators that a model asks for; 0 if it asks for none.
func opsetOf(m *onnxpb.ModelProto) (v int64) {
	for _, o := range m.OpsetImport {
		if domainOf(o.GetDomain()) == "" {
			v = max(v, o.GetVersion())
		}
	}
	return v
}

// readable tells whether a path leads to a file that can be opened: what is wrong with it is then its content.
func readable(path string) bool {
	f, err := regular.Open(path)
	if err != nil {
		return false
	}
	return f.Close() == nil
}

// linter gathers findings.
type linter struct {
	opt  *LintOptions
	src  *source
	w    *weights
	out  []Finding
	seen map[Finding]bool
}

// Lint tells everything about a model that would make training wrong, impossible or other than expected, in one run: worst first, then in
// the order of the codes, then of the file. A file that cannot be read at all (missing, not allowed) is an error; a broken one is a finding.
//
// It reads the whole skeleton of the file, and of the weights only constants and what may be copies of one another.
func Lint(path string, opt LintOptions) ([]Finding, error) {
	findings, _, err := LintModel(path, opt)
	return findings, err
}

// LintModel is Lint that also hands over the model it looked at, with sizes of its choice for dimensions that are not bound; nil where none could be
// imported.
func LintModel(path string, opt LintOptions) ([]Finding, *Model, error) {
	l := &linter{opt: &opt, seen: map[Finding]bool{}}
	f, err := open(path)
	if err != nil {
		if !readable(path) {
			return nil, nil, err
		}
		l.failed(err, LintError)
		return l.out, nil, nil
	}
	defer f.Close()
	if v := opsetOf(f.model); v > 0 && v < minOpset {
		l.add(Finding{Code: OldOpset, Severity: LintError, Message: fmt.Sprintf("opset %d is older than %d, the oldest that is read", v, minOpset), Remedy: remedyConvert})
		return l.out, nil, nil
	}
	if l.src, l.w, err = read(f); err != nil {
		l.failed(err, LintError)
		return l.out, nil, nil
	}
	l.w.choose(opt.Select) // a pattern without a hit is for the import below to report
	l.parameters()
	l.ties()
	l.nodes()
	l.form()
	m := l.lowered()
	l.sort()
	return l.out, m, nil
}

// Trainable tells whether training can work at all by these findings.
func Trainable(findings []Finding) bool {
	return !slices.ContainsFunc(findings, func(f Finding) bool { return f.Severity == LintError })
}

// The remedies that several findings share.
const (
	remedyConvert  = "convert the model first: python -c \"import onnx, onnx.version_converter as v; onnx.save(v.convert_version(onnx.load('old.onnx'), 17), 'new.onnx')\""
	remedyExport   = "export without the exporter's optimizer: torch.onnx.export(model, args, 'model.onnx', dynamo=True, optimize=False)"
	remedyTraining = "export for training: torch.onnx.export(..., dynamo=True, optimize=False), or with the older exporter training=torch.onnx.TrainingMode.TRAINING, do_constant_folding=False"
)

func (l *linter) add(f Finding) {
	if !l.seen[f] {
		l.seen[f] = true
		l.out = append(l.out, f)
	}
}

// at is a finding about node i.
func (l *linter) at(i int, code string, s Severity, remedy, format string, args ...any) {
	l.add(Finding{Code: code, Severity: s, Node: nodeLabel(l.src.graph.Node[i]), Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

// of is a finding about a parameter.
func (l *linter) of(param, code string, s Severity, remedy, format string, args ...any) {
	l.add(Finding{Code: code, Severity: s, Parameter: param, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

// kept is a finding about how the file keeps a parameter.
func (l *linter) kept(param, tensor, code string, s Severity, remedy, format string, args ...any) {
	l.add(Finding{Code: code, Severity: s, Parameter: param, Tensor: tensor, Message: fmt.Sprintf(format, args...), Remedy: remedy})
}

func nodeLabel(n *onnxpb.NodeProto) string { return cmp.Or(n.GetName(), first(n.Output)) }

// failed turns errors of the importer into findings, one for each.
func (l *linter) failed(err error, s Severity) {
	for _, e := range leaves(err) {
		f := Finding{Code: InvalidGraph, Severity: s, Message: e.Error()}
		if x, ok := errors.AsType[*ir.Error](e); ok {
			f.Node, f.Remedy = x.Origin.Node, x.Remedy
			if x.Kind == ir.Unsupported {
				f.Code = UnsupportedOp
			}
			if x.Cause != nil {
				f.Message = x.Cause.Error()
			}
			if x.Origin.Node == "" && x.Origin.OpType != "" { // a finding that names no node leaves the author searching
				f.Node, f.Message = l.outputOf(x.Origin), x.Origin.String()+": "+f.Message
			}
		}
		if d, ok := errors.AsType[*DataError](e); ok && len(d.Inputs) > 0 {
			f.Remedy = fmt.Sprintf("bind it: --input %s=FILE", shellWord(d.Inputs[0]))
		}
		l.add(f)
	}
}

// outputOf names a node without a name by its first output, where it is one of the graph's own nodes and not of a body.
func (l *linter) outputOf(o ir.Origin) string {
	if l.src == nil || int(o.Index) >= len(l.src.graph.Node) || l.src.origin(int(o.Index)) != o {
		return ""
	}
	return first(l.src.graph.Node[o.Index].Output)
}

// leaves takes joined errors apart.
func leaves(err error) []error {
	if j, ok := err.(interface{ Unwrap() []error }); ok {
		var out []error
		for _, e := range j.Unwrap() {
			out = append(out, leaves(e)...)
		}
		return out
	}
	if e, ok := err.(*ir.Error); ok && e.Cause != nil {
		if _, many := e.Cause.(interface{ Unwrap() []error }); many {
			return leaves(e.Cause)
		}
	}
	return []error{err}
}

// sort puts the worst first and keeps the order of the checks within a severity.
func (l *linter) sort() {
	rank := map[Severity]int{LintError: 0, LintWarning: 1, LintInfo: 2}
	slices.SortStableFunc(l.out, func(a, b Finding) int { return rank[a.Severity] - rank[b.Severity] })
}

// lowered checks what only shows when the graph is lowered: ops, shapes, gradients.
func (l *linter) lowered() *Model {
	results := l.opt.Outputs
	if len(results) == 0 {
		results = l.src.outputs()
	}
	unknown := newLowering(l.src, l.w, &l.opt.Options).unknownNodes(results)
	for _, u := range unknown {
		l.at(u.nodes[0], UnsupportedOp, LintError, remedyUnsupported(u.op, l.src, u.nodes[0]), "%s has no lowering; %d nodes use it", u.op, len(u.nodes))
	}
	if len(unknown) > 0 {
		return nil
	}
	m, err := l.importSomehow()
	if err != nil {
		return nil
	}
	l.gradients(m.Graph.Clone())
	return m
}

func remedyUnsupported(op string, s *source, i int) string {
	if in := s.graph.Node[i].Input; len(in) > 0 && in[0] != "" && s.tensors[in[0]] == nil {
		return fmt.Sprintf("where the loss does not need it, stop before it: --output %s; `aitk ops --onnx` lists what is known", shellWord(in[0]))
	}
	return "`aitk ops --onnx` lists what is known"
}

// importSomehow imports with the dimensions that are bound, and sizes of our choice for the others. Where none fits, the first
// failure is a finding: an error if all dimensions were the user's, else a warning, since other sizes may fit.
func (l *linter) importSomehow() (*Model, error) {
	dims := l.src.dims(l.opt.Dims)
	var free []string
	for _, d := range dims {
		if !d.Bound && !l.src.onlyIn(d, l.opt.Inputs) {
			free = append(free, d.Name)
		}
	}
	tries := []int64{16}
	if len(free) > 0 {
		tries = []int64{16, 64, 8, 128, 2, 224, 1}
	}
	var first error
	for _, size := range tries {
		opt := l.opt.Options
		opt.Dims = maps.Clone(opt.Dims)
		if opt.Dims == nil {
			opt.Dims = map[string]int64{}
		}
		for i, name := range free {
			opt.Dims[name] = size
			if i == 0 || strings.Contains(name, "batch") {
				opt.Dims[name] = 2
			}
		}
		m, err := importFile(l.src.file, opt)
		if err == nil {
			return m, nil
		}
		if first == nil {
			first = err
		}
	}
	severity := LintError
	if len(free) > 0 && ir.KindOf(first) == ir.Failed {
		severity = LintWarning
	}
	l.failed(first, severity)
	return nil, first
}
