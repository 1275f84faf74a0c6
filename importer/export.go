package importer

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"aitk/importer/onnxpb"
	"aitk/internal/durable"
	"aitk/ir"
)

// ExportOptions say what an export holds.
type ExportOptions struct {
	// Value fills dst with the content of a parameter, in its author's orientation: row-major little-endian elements of type t. ok is false for
	// parameters that keep what the file has.
	Value func(name string, t ir.Type, dst []byte) (ok bool, err error)
	// Training keeps dropout and batch norm as the file has them; else both are put into the form for inference.
	Training bool
	// ExternalBytes is how many bytes of tensors a model may hold; beyond, those of a page and more go into a file beside it. 0: 512 MiB.
	ExternalBytes int64
}

const (
	defaultExternalBytes = 512 << 20
	externalPage         = 4096 // smallest tensor that lies outside, and alignment there
	dataSuffix           = ".data"
)

// Export writes the model at path again with other content in its parameters: the same nodes, names, order and metadata, each tensor in the orientation
// and under the name that the file has, so that what reads the one reads the other. Calls of the model's own functions are written out. Weights that an optimizer had merged because their values
// were equal become tensors of their own where their values differ now; ties stay ties.
//
// The data of large models lies in the file out.data. Both files are written under other names and renamed; the model that is read is never written to.
// Doc strings are left out.
func Export(path, out string, opt ExportOptions) error {
	f, err := open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	src, w, err := read(f)
	if err != nil {
		return err
	}
	if err := src.apart(out); err != nil {
		return err
	}
	x := &exporter{src: src, w: w, opt: opt, values: map[string]*param{}, at: map[string]*view{}, nodes: slices.Clone(src.graph.Node[:src.main])}
	if err := x.whole(); err != nil {
		return err
	}
	x.place()
	if !opt.Training {
		if err := x.inference(); err != nil {
			return err
		}
	}
	return x.write(out)
}

// apart refuses to write over what is read.
func (s *source) apart(out string) error {
	read := []string{s.file.path}
	for _, name := range s.order {
		if in := s.tensors[name].init; in.Kind == ir.InitFile && !slices.Contains(read, in.File.Path) {
			read = append(read, in.File.Path)
		}
	}
	for _, to := range []string{out, out + dataSuffix} {
		st, err := os.Stat(to)
		if err != nil {
			continue
		}
		for _, from := range read {
			if other, err := os.Stat(from); err == nil && os.SameFile(st, other) {
				return ir.Errorf(ir.Usage, ir.Origin{File: s.file.path}, "the export would write over %s, which it reads: give it another name", from)
			}
		}
	}
	return nil
}

// exporter changes the decoded model and writes it.
type exporter struct {
	src    *source
	nodes  []*onnxpb.NodeProto // of the main graph
	w      *weights
	opt    ExportOptions
	values map[string]*param // tensors to be written from a parameter that the file does not hold under this name
	at     map[string]*view  // by tensor: the parameter that it holds
}

// whole refuses what cannot be written as one graph: nodes of functions whose operators are of other versions than the model's.
func (x *exporter) whole() error {
	for n, versions := range x.src.versions {
		d := domainOf(n.GetDomain())
		if v, ok := versions[d]; ok && v != x.src.opsets[d] {
			return ir.Errorf(ir.Unsupported, ir.Origin{File: x.src.file.path, Node: n.GetName(), OpType: n.GetOpType()},
				"it stands in a function of opset %d, the model is of opset %d: the two cannot be written into one graph", v, x.src.opsets[d])
		}
	}
	return nil
}

// place decides which tensor of the written file holds which parameter.
func (x *exporter) place() {
	g := x.src.graph
	for name, v := range x.w.views {
		x.at[name] = v
	}
	for u, v := range x.w.byUse { // an operand of its own
		name := v.param.Name
		if x.at[name] == nil {
			x.at[name] = v
		}
		g.Node[u.node].Input[u.operand] = name
	}
	sparse := map[string]bool{} // which become dense: training leaves few zeros
	for _, p := range g.SparseInitializer {
		sparse[p.Values.GetName()] = true
	}
	var added []string
	for name, v := range x.at {
		made, isNode := x.src.def[name]
		isConstant := isNode && g.Node[made].GetOpType() == "Constant"
		if x.src.tensors[name] != nil && (!isNode || isConstant) && !sparse[name] {
			continue
		}
		x.values[name] = v.param
		added = append(added, name)
	}
	slices.SortFunc(added, func(a, b string) int { // in the order in which the nodes or their readers stand
		return x.position(a) - x.position(b)
	})
	for _, name := range added {
		v := x.at[name]
		g.Initializer = append(g.Initializer, &onnxpb.TensorProto{Name: proto.String(name), Dims: v.shape.Clone(), DataType: proto.Int32(x.elementType(v))})
	}
	g.SparseInitializer = slices.DeleteFunc(slices.Clone(g.SparseInitializer), func(p *onnxpb.SparseTensorProto) bool { return x.values[p.Values.GetName()] != nil })
	x.nodes = slices.DeleteFunc(x.nodes, func(n *onnxpb.NodeProto) bool { return len(n.Output) == 1 && x.values[n.Output[0]] != nil })
}

// position orders tensors that get a place among the initializers.
func (x *exporter) position(name string) int {
	if i, ok := x.src.def[name]; ok {
		return i
	}
	first := len(x.src.graph.Node)
	for u, v := range x.w.byUse {
		if v.param.Name == name {
			first = min(first, u.node)
		}
	}
	return first
}

// elementType is ONNX's number for a parameter's element type.
func (x *exporter) elementType(v *view) int32 {
	for n := range int32(32) {
		if d, ok := wholeType(n); ok && d == v.param.Type.DType {
			return n
		}
	}
	panic(ir.Bugf("parameter %q of type %v has no ONNX type", v.param.Name, v.param.Type))
}

// inference takes dropout out of the graph and makes batch norms use their running statistics.
func (x *exporter) inference() error {
	g := x.src.graph
	read := map[string]bool{}
	for _, n := range g.Node {
		for _, in := range n.Input {
			read[in] = true
		}
	}
	outputs := map[string]bool{}
	for _, o := range g.Output {
		outputs[o.GetName()] = true
	}
	stands := map[string]string{} // output of a dropout -> what it stands for
	find := func(name string) string {
		for stands[name] != "" {
			name = stands[name]
		}
		return name
	}
	kept := x.nodes[:0:0]
	for _, n := range x.nodes {
		switch op := n.GetOpType(); {
		case domainOf(n.GetDomain()) != "":
		case op == "BatchNormalization":
			for _, o := range n.Output[min(1, len(n.Output)):] {
				if o != "" && read[o] {
					return ir.Errorf(ir.Unsupported, ir.Origin{File: x.src.file.path, Node: n.GetName(), OpType: op}, "its running statistics are read by other nodes: export with training form kept")
				}
				g.Output = slices.DeleteFunc(g.Output, func(v *onnxpb.ValueInfoProto) bool { return v.GetName() == o })
			}
			n.Output = n.Output[:min(1, len(n.Output))]
			n.Attribute = slices.DeleteFunc(n.Attribute, func(a *onnxpb.AttributeProto) bool { return a.GetName() == "training_mode" })
		case op == "Dropout" && len(n.Input) > 0 && len(n.Output) > 0:
			if len(n.Output) > 1 && n.Output[1] != "" && (read[n.Output[1]] || outputs[n.Output[1]]) {
				n.Input = n.Input[:1] // the mask is all true
				break
			}
			if outputs[n.Output[0]] {
				n.OpType, n.Input, n.Output, n.Attribute = proto.String("Identity"), n.Input[:1], n.Output[:1], nil
				break
			}
			stands[n.Output[0]] = n.Input[0]
			continue
		}
		kept = append(kept, n)
	}
	x.nodes = kept
	for _, n := range g.Node { // in the bodies of control flow too
		for i, in := range n.Input {
			n.Input[i] = find(in)
		}
	}
	return nil
}

// write fills in the tensors' data and writes model and data file.
func (x *exporter) write(out string) (err error) {
	m := x.src.file.model
	x.src.graph.Node = x.nodes
	m.Graph, m.Functions = x.src.graph, nil
	tensors := tensorsIn(m.ProtoReflect(), nil)
	total := int64(0)
	for _, t := range tensors {
		total += t.GetRawBytes()
		if name := t.GetName(); x.values[name] != nil {
			total += x.at[name].param.Type.Bytes()
		}
	}
	for _, t := range tensors {
		if src := x.src.tensors[t.GetName()]; src != nil && t.GetDataLocation() == onnxpb.TensorProto_EXTERNAL {
			total += src.typ.Bytes()
		}
	}
	limit := x.opt.ExternalBytes
	if limit == 0 {
		limit = defaultExternalBytes
	}
	d := &dataFile{path: out + dataSuffix, location: filepath.Base(out) + dataSuffix}
	defer func() { err = errors.Join(err, d.discard()) }()
	if total > limit {
		if err := d.create(); err != nil {
			return err
		}
	}
	constants := x.constantTensors()
	var errs []error // all tensors without content at once
	for _, t := range tensors {
		if err := x.fill(t, constants[t], d); err != nil {
			errs = append(errs, x.src.fail(ir.KindOf(err), "tensor %q: %w", t.GetName(), err))
		}
	}
	if len(errs) > 0 {
		return joined(errs)
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return x.src.fail(ir.Failed, "cannot encode the model: %w", err)
	}
	if err := d.keep(); err != nil {
		return err
	}
	if err := durable.WriteFile(out, func(w io.Writer) error { _, err := w.Write(raw); return err }); err != nil {
		return fmt.Errorf("cannot write %s: %w", out, err)
	}
	return nil
}

// tensorsIn lists all tensors of a message, in its order.
func tensorsIn(m protoreflect.Message, list []*onnxpb.TensorProto) []*onnxpb.TensorProto {
	if t, ok := m.Interface().(*onnxpb.TensorProto); ok {
		return append(list, t)
	}
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if fd.Message() == nil || !m.Has(fd) {
			continue
		}
		if !fd.IsList() {
			list = tensorsIn(m.Get(fd).Message(), list)
			continue
		}
		for k := range m.Get(fd).List().Len() {
			list = tensorsIn(m.Get(fd).List().Get(k).Message(), list)
		}
	}
	return list
}

// constantTensors names the tensors of Constant nodes after what the nodes make.
func (x *exporter) constantTensors() map[*onnxpb.TensorProto]string {
	names := map[*onnxpb.TensorProto]string{}
	for _, t := range x.src.graph.Initializer {
		names[t] = t.GetName()
	}
	for _, n := range x.src.graph.Node {
		for _, a := range n.Attribute {
			if n.GetOpType() == "Constant" && len(n.Output) == 1 && a.GetName() == "value" && a.T != nil {
				names[a.T] = n.Output[0]
			}
		}
	}
	return names
}

// fill gives a tensor its content: a parameter's where name says that it holds one, else what the file has.
func (x *exporter) fill(t *onnxpb.TensorProto, name string, d *dataFile) error {
	raw, err := x.content(t, name)
	if err != nil {
		return err
	}
	t.RawOffset, t.RawBytes = nil, nil
	if raw == nil { // typed fields stay as they are
		return nil
	}
	t.FloatData, t.DoubleData, t.Int32Data, t.Int64Data, t.Uint64Data = nil, nil, nil, nil, nil
	t.ExternalData, t.DataLocation, t.RawData = nil, nil, raw
	if d.f == nil || len(raw) < externalPage {
		return nil
	}
	offset, err := d.append(raw)
	t.RawData = nil
	t.DataLocation = onnxpb.TensorProto_EXTERNAL.Enum()
	for _, e := range [][2]string{{"location", d.location}, {"offset", strconv.FormatInt(offset, 10)}, {"length", strconv.Itoa(len(raw))}} {
		t.ExternalData = append(t.ExternalData, &onnxpb.StringStringEntryProto{Key: proto.String(e[0]), Value: proto.String(e[1])})
	}
	return err
}

// content is the bytes of a tensor as the written file has them; nil where its typed fields hold it.
func (x *exporter) content(t *onnxpb.TensorProto, name string) ([]byte, error) {
	if v := x.at[name]; name != "" && v != nil {
		p := v.param
		raw := make([]byte, p.Type.Bytes())
		ok := false
		if x.opt.Value != nil {
			var err error
			if ok, err = x.opt.Value(p.Name, p.Type, raw); err != nil {
				return nil, err
			}
		}
		switch {
		case ok && v.transposed:
			return transposeBytes(raw, p.Type), nil
		case ok:
			return raw, nil
		case x.values[name] != nil:
			return x.original(p, v)
		}
	}
	if t.GetDataLocation() != onnxpb.TensorProto_EXTERNAL && t.RawOffset == nil {
		return nil, nil
	}
	src, err := x.src.file.tensor(t)
	if err != nil {
		return nil, err
	}
	return x.src.file.bytes(src.init)
}

// original is a parameter's first content, in the file's orientation, where the file holds it under another name or not at all.
func (x *exporter) original(p *param, v *view) ([]byte, error) {
	if p.Init.Kind == ir.InitFill {
		c := ir.NewTensor(p.Type)
		for i := range c.F {
			c.F[i] = p.Init.Fill
		}
		return c.Encode(), nil
	}
	in := p.Init
	stored := in.File.Transposed // the bytes are those of the file, turned
	in.File.Transposed = false
	raw, err := x.src.file.bytes(in)
	if err != nil || stored == v.transposed {
		return raw, err
	}
	return transposeBytes(raw, p.Type), nil
}

// dataFile is the file beside a large model.
type dataFile struct {
	path, location string
	f              *durable.File // nil: nothing is written beside
	size           int64
}

func (d *dataFile) create() (err error) {
	d.f, err = durable.Create(d.path)
	return err
}

// append writes bytes at the next page.
func (d *dataFile) append(raw []byte) (offset int64, err error) {
	offset = (d.size + externalPage - 1) / externalPage * externalPage
	_, err = d.f.WriteAt(raw, offset)
	d.size = offset + int64(len(raw))
	return offset, err
}

// keep puts the file in its place.
func (d *dataFile) keep() error {
	if d.f == nil {
		return nil
	}
	return d.f.Commit()
}

// discard removes what was not kept.
func (d *dataFile) discard() error {
	if d.f == nil {
		return nil
	}
	return d.f.Close()
}
