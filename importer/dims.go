package importer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// newModel fills in what the file says of itself.
func newModel(s *source) *Model {
	p := s.file.model
	m := &Model{Path: s.file.path, IRVersion: p.GetIrVersion(), Opset: s.opsets[""], Nodes: len(s.graph.Node),
		Producer: strings.TrimSpace(p.GetProducerName() + " " + p.GetProducerVersion())}
	for _, in := range s.inputs {
		m.Inputs = append(m.Inputs, valueInfo(in))
	}
	for _, out := range s.graph.Output {
		m.Outputs = append(m.Outputs, valueInfo(out))
	}
	counts := map[string]int{}
	for i := range s.graph.Node {
		counts[s.origin(i).OpType]++
	}
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		m.Ops = append(m.Ops, OpCount{name, counts[name]})
	}
	slices.SortStableFunc(m.Ops, func(a, b OpCount) int { return b.Count - a.Count })
	return m
}

func valueInfo(v *onnxpb.ValueInfoProto) ValueInfo {
	t := v.GetType().GetTensorType()
	info := ValueInfo{Name: v.GetName()}
	info.DType, _ = dtypeOf(t.GetElemType())
	for a, d := range t.GetShape().GetDim() {
		info.Shape = append(info.Shape, dimText(v.GetName(), a, d))
	}
	return info
}

// dimText is a dimension's size, or its name: the file's, or one made of input and axis.
func dimText(input string, axis int, d *onnxpb.TensorShapeProto_Dimension) string {
	switch v := d.GetValue().(type) {
	case *onnxpb.TensorShapeProto_Dimension_DimValue:
		if v.DimValue >= 0 { // some exporters write -1 for what is not known
			return strconv.FormatInt(v.DimValue, 10)
		}
	case *onnxpb.TensorShapeProto_Dimension_DimParam:
		if v.DimParam != "" {
			return v.DimParam
		}
	}
	return fmt.Sprintf("%s.%d", input, axis)
}

func symbolic(d *onnxpb.TensorShapeProto_Dimension) bool {
	v, sized := d.GetValue().(*onnxpb.TensorShapeProto_Dimension_DimValue)
	return !sized || v.DimValue < 0
}

// outputs lists the names of the graph's outputs in file order.
func (s *source) outputs() []string {
	var names []string
	for _, o := range s.graph.Output {
		names = append(names, o.GetName())
	}
	return names
}

// dims lists the symbolic dimensions of the inputs, in order of appearance. Those of outputs follow from them.
func (s *source) dims(bound map[string]int64) []Dim {
	var dims []Dim
	at := map[string]int{}
	for _, in := range s.inputs {
		for a, d := range in.GetType().GetTensorType().GetShape().GetDim() {
			if !symbolic(d) {
				continue
			}
			name := dimText(in.GetName(), a, d)
			i, seen := at[name]
			if !seen {
				i = len(dims)
				at[name] = i
				size, ok := bound[name]
				dims = append(dims, Dim{Name: name, Bound: ok, Size: size})
			}
			dims[i].Where = append(dims[i].Where, fmt.Sprintf("input %q axis %d", in.GetName(), a))
		}
	}
	return dims
}

// checkOptions holds the options against the file and applies the selections. All unbound dimensions are told at once.
func (s *source) checkOptions(opt *Options, dims []Dim, w *weights) error {
	usage := func(remedy, format string, args ...any) error {
		e := ir.Errorf(ir.Usage, ir.Origin{File: s.file.path}, format, args...)
		e.Remedy = remedy
		return e
	}
	var errs []error
	var known, unbound, flags []string
	for _, d := range dims {
		known = append(known, strconv.Quote(d.Name))
		if !d.Bound && !s.onlyIn(d, opt.Inputs) {
			unbound = append(unbound, fmt.Sprintf("%q (%s)", d.Name, strings.Join(d.Where, ", ")))
			flags = append(flags, fmt.Sprintf("--dim %s=8", shellWord(d.Name)))
		}
		if d.Bound && d.Size < 0 {
			errs = append(errs, usage("", "dimension %q is bound to %d", d.Name, d.Size))
		}
	}
	if len(unbound) > 0 {
		errs = append(errs, usage("bind with "+strings.Join(flags, " "), "dimensions without a size: %s", strings.Join(unbound, ", ")))
	}
	for _, name := range slices.Sorted(maps.Keys(opt.Dims)) {
		if !slices.ContainsFunc(dims, func(d Dim) bool { return d.Name == name }) {
			errs = append(errs, usage("the model has "+orNone(known), "no dimension is called %q", name))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(opt.Inputs)) {
		if !slices.ContainsFunc(s.inputs, func(v *onnxpb.ValueInfoProto) bool { return v.GetName() == name }) {
			errs = append(errs, usage("", "no input is called %q", name))
		}
	}
	switch opt.BatchNorm {
	case "", BatchNormAsExported, BatchNormTrain, BatchNormFrozen:
	default:
		errs = append(errs, usage("", "batch norm is train, frozen or as-exported, not %q", opt.BatchNorm))
	}
	for _, name := range opt.Outputs {
		if _, ok := s.def[name]; !ok {
			errs = append(errs, usage("", "no node computes an output %q", name))
		}
	}
	for _, glob := range w.choose(opt.Select) {
		errs = append(errs, usage("`aitk inspect` lists the names", "no parameter is called %q", glob))
	}
	if len(errs) == 1 {
		return errs[0]
	}
	if err := errors.Join(errs...); err != nil {
		return &ir.Error{Kind: ir.Usage, Cause: err}
	}
	return nil
}

// onlyIn tells whether a dimension occurs only in inputs that are bound to constants.
func (s *source) onlyIn(d Dim, inputs map[string]ir.Tensor) bool {
	for _, in := range s.inputs {
		if _, constant := inputs[in.GetName()]; constant {
			continue
		}
		for a, dim := range in.GetType().GetTensorType().GetShape().GetDim() {
			if symbolic(dim) && dimText(in.GetName(), a, dim) == d.Name {
				return false
			}
		}
	}
	return true
}

func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}

// shellWord quotes a name that a shell would take apart. What cannot be printed is written by its escape, in the form that bash, zsh and ksh read back.
func shellWord(s string) string {
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) }) {
		quoted := strconv.Quote(s)
		return "$'" + strings.ReplaceAll(strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`), "'", `\'`) + "'"
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !(r < 128 && isWord(byte(r))) && !strings.ContainsRune("_.:-", r) }) {
		return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
	}
	return s
}

// bindInputs makes the graph's inputs, all dimensions replaced by their sizes, and literals of those that the user binds.
func (l *lowering) bindInputs(dims []Dim) error {
	size := map[string]int64{}
	for _, d := range dims {
		size[d.Name] = d.Size
	}
	var errs []error
	for _, in := range l.src.inputs {
		name := in.GetName()
		x, err := l.input(in, size)
		if err != nil {
			errs = append(errs, l.src.fail(ir.KindOf(err), "input %q: %w", name, err))
			continue
		}
		l.env[name] = x // kept whether it is read or not: it is an input of the graph
	}
	if len(errs) > 0 {
		return joined(errs)
	}
	return nil
}

// smallerDims is the way out where a dimension was bound to a size that nobody can mean.
const smallerDims = "bind smaller dimensions (--dim), the batch above all"

func (l *lowering) input(in *onnxpb.ValueInfoProto, size map[string]int64) (*operand, error) {
	t := in.GetType().GetTensorType()
	if t == nil || t.Shape == nil {
		return nil, &ir.Error{Kind: ir.Unsupported, Cause: errors.New("is no tensor of known rank")}
	}
	d, err := wantDType(t.GetElemType())
	if err != nil {
		return nil, err
	}
	elem := int32(0)
	if _, _, narrow := narrowType(t.GetElemType()); narrow {
		elem = t.GetElemType()
	}
	typ := ir.Type{DType: d, Shape: ir.Shape{}}
	bound, isConstant := l.opt.Inputs[in.GetName()]
	for a, dim := range t.Shape.Dim {
		n := dim.GetDimValue()
		if symbolic(dim) {
			n = size[dimText(in.GetName(), a, dim)]
			if isConstant && a < len(bound.Type.Shape) {
				n = bound.Type.Shape[a]
			}
		}
		typ.Shape = append(typ.Shape, n)
	}
	if err := typ.Shape.Check(); err != nil {
		if slices.ContainsFunc(t.Shape.Dim, symbolic) {
			return nil, &ir.Error{Kind: ir.Usage, Cause: err, Remedy: smallerDims}
		}
		return nil, err
	}
	if isConstant {
		if !bound.Type.Equal(typ) {
			return nil, &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("is %v and was bound to %v", typ, bound.Type)}
		}
		return &operand{typ: typ, known: &bound, elem: elem}, nil
	}
	if strings.HasPrefix(in.GetName(), "$") {
		return nil, &ir.Error{Kind: ir.Unsupported, Cause: errors.New("names that begin with $ are reserved")}
	}
	return &operand{typ: typ, value: l.b.G.AddInput(in.GetName(), typ), elem: elem}, nil
}
