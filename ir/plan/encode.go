package plan

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"reflect"

	"google.golang.org/protobuf/proto"

	"aitk/ir"
	"aitk/ir/plan/planpb"
)

// The plan file:
//
//	offset  bytes
//	0       8      magic "aitkplan"
//	8       4      version, little-endian, as all numbers here
//	12      4      length H of the header
//	16      8      length B of the body
//	24      H      header: planpb.Header, readable without the rest
//	24+H    B      body: planpb.Body
//	24+H+B  32     SHA-256 of everything before it
//
// The bytes are canonical: one plan has one file, and Unmarshal refuses every file that Marshal would not have written.
const (
	magic       = "aitkplan"
	version     = 1
	prefixBytes = 24
	sumBytes    = sha256.Size
)

// Marshal writes a plan file. It does not look at whether the plan is sound (plan/check does), only at whether the file can be read
// back: an error names the first index that points nowhere.
func Marshal(p *Plan) ([]byte, error) {
	if err := p.valid(); err != nil {
		return nil, err
	}
	file, err := marshal(p)
	if err != nil {
		return nil, fmt.Errorf("cannot encode the plan: %w", err)
	}
	return file, nil
}

func marshal(p *Plan) ([]byte, error) {
	opt := proto.MarshalOptions{Deterministic: true}
	head, err := opt.Marshal(encodeHeader(p))
	if err != nil {
		return nil, err
	}
	body, err := opt.Marshal(encodeBody(p))
	if err != nil {
		return nil, err
	}
	out := make([]byte, 0, prefixBytes+len(head)+len(body)+sumBytes)
	out = append(out, magic...)
	out = binary.LittleEndian.AppendUint32(out, version)
	out = binary.LittleEndian.AppendUint32(out, uint32(len(head)))
	out = binary.LittleEndian.AppendUint64(out, uint64(len(body)))
	out = append(append(out, head...), body...)
	sum := sha256.Sum256(out)
	return append(out, sum[:]...), nil
}

// text is the bytes of a name; empty ones are left out of the file.
func text(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

func encodeHeader(p *Plan) *planpb.Header {
	h := &planpb.Header{
		Tool: text(p.Tool), Model: text(p.Model), GraphSum: text(p.GraphSum),
		Device: text(p.Profile.Device), Profile: text(p.Profile.Name), ProfileSha256: text(p.Profile.SHA256),
	}
	for _, o := range p.Options {
		h.Options = append(h.Options, &planpb.Option{Key: text(o.Key), Value: text(o.Value)})
	}
	for _, d := range p.Dims {
		h.Dims = append(h.Dims, &planpb.Dim{Name: text(d.Name), Size: d.Size})
	}
	for _, a := range p.Arenas {
		h.Arenas = append(h.Arenas, &planpb.Arena{Space: uint32(a.Space), Bytes: a.Bytes, BudgetBytes: a.BudgetBytes, Align: a.Align})
	}
	return h
}

// encoder collects the tables while it walks the plan.
type encoder struct {
	body    planpb.Body
	types   map[string]uint32
	ops     map[string]uint32
	strings map[string]uint32
	origins map[ir.Origin]uint32
}

func encodeBody(p *Plan) *planpb.Body {
	e := &encoder{types: map[string]uint32{}, ops: map[string]uint32{}, strings: map[string]uint32{}, origins: map[ir.Origin]uint32{}}
	b := &e.body
	for _, s := range p.Symbols {
		b.Symbols = append(b.Symbols, &planpb.Symbol{Name: text(s.Name), Program: s.Program, Value: int32(s.Value), Bytes: s.Bytes})
	}
	for i := range p.Buffers {
		x := &p.Buffers[i]
		m := &planpb.Buffer{Name: text(x.Name), Type: e.typ(x.Type), Offset: x.Offset, Bytes: x.Bytes, Holds: int32(x.Holds), Category: uint32(x.Category)}
		for _, s := range x.Live {
			m.Live = append(m.Live, s.Program, s.Start, s.End)
		}
		b.Buffers = append(b.Buffers, m)
	}
	for i := range p.Params {
		b.Params = append(b.Params, e.param(&p.Params[i]))
	}
	for i := range p.Programs {
		b.Programs = append(b.Programs, e.program(&p.Programs[i]))
	}
	b.Report = encodeReport(&p.Report)
	return b
}

func (e *encoder) typ(t ir.Type) uint32 {
	key := t.String()
	i, ok := e.types[key]
	if !ok {
		i = uint32(len(e.body.Types))
		e.types[key] = i
		e.body.Types = append(e.body.Types, &planpb.Type{Dtype: uint32(t.DType), Space: uint32(t.Space), Shape: t.Shape})
	}
	return i
}

func (e *encoder) op(o ir.Op) uint32 {
	key := ir.FormatOp(o)
	i, ok := e.ops[key]
	if !ok {
		i = uint32(len(e.body.Ops))
		e.ops[key] = i
		e.body.Ops = append(e.body.Ops, []byte(key))
	}
	return i
}

func (e *encoder) string(s string) uint32 {
	i, ok := e.strings[s]
	if !ok {
		i = uint32(len(e.body.Strings))
		e.strings[s] = i
		e.body.Strings = append(e.body.Strings, []byte(s))
	}
	return i
}

func (e *encoder) origin(o ir.Origin) uint32 {
	i, ok := e.origins[o]
	if !ok {
		i = uint32(len(e.body.Origins))
		e.origins[o] = i
		e.body.Origins = append(e.body.Origins, &planpb.Origin{
			File: e.string(o.File), Scope: e.string(o.Scope), OpType: e.string(o.OpType),
			Node: text(o.Node), Opset: o.Opset, Index: o.Index,
		})
	}
	return i
}

func (e *encoder) ref(r Ref) *planpb.Ref {
	return &planpb.Ref{Buffer: int32(r.Buffer), Offset: r.Offset, Type: e.typ(r.Type)}
}

func (e *encoder) refs(rs []Ref) (out []*planpb.Ref) {
	for _, r := range rs {
		out = append(out, e.ref(r))
	}
	return out
}

func (e *encoder) ports(ps []Port) (out []*planpb.Port) {
	for _, p := range ps {
		out = append(out, &planpb.Port{Name: text(p.Name), Ref: e.ref(p.Ref)})
	}
	return out
}

func (e *encoder) param(x *Param) *planpb.Param {
	m := &planpb.Param{
		Name: text(x.Name), Type: e.typ(x.Type), Role: uint32(x.Role), Constant: x.Constant, Trainable: x.Trainable, Mutable: x.Mutable,
		Of: text(x.Of), Storage: int32(x.Storage), Init: uint32(x.Init.Kind), Fill: x.Init.Fill, Seed: x.Init.Seed,
	}
	for _, a := range x.Aliases {
		m.Aliases = append(m.Aliases, []byte(a))
	}
	if len(x.Init.Literal) > 0 {
		m.Literal = x.Init.Literal
	}
	if f := x.Init.File; f != (ir.Location{}) {
		m.File = &planpb.Location{Path: text(f.Path), Offset: f.Offset, Bytes: f.Bytes, Transposed: f.Transposed, Sha256: text(f.SHA256)}
	}
	m.Pack = e.packing(&x.Init.Pack)
	return m
}

func (e *encoder) packing(k *ir.Packing) *planpb.Packing {
	if reflect.ValueOf(*k).IsZero() {
		return nil
	}
	return &planpb.Packing{Source: e.typ(k.Source), Format: text(k.Format), Part: text(k.Part), Axis: k.Axis, Block: k.Block, Double: k.Double}
}

func (e *encoder) program(x *Program) *planpb.Program {
	m := &planpb.Program{Name: text(x.Name), Repeat: x.Repeat}
	for _, i := range x.Instrs {
		m.Instrs = append(m.Instrs, e.instr(i))
	}
	m.Inputs, m.Results = e.ports(x.Inputs), e.ports(x.Results)
	for _, r := range x.Entry {
		m.Entry = append(m.Entry, r.Param, int32(r.Buffer))
	}
	for _, r := range x.Exit {
		m.Exit = append(m.Exit, r.Param, int32(r.Buffer))
	}
	return m
}

func (e *encoder) instr(i Instr) *planpb.Instr {
	switch x := i.(type) {
	case *Exec:
		return &planpb.Instr{Kind: &planpb.Instr_Exec{Exec: &planpb.Exec{
			Lane: uint32(x.Lane), Op: e.op(x.Op), In: e.refs(x.In), Out: e.refs(x.Out), Scratch: int32(x.Scratch),
			Picos: x.Picos, Phase: uint32(x.Phase), Recompute: x.Recompute, Origin: e.origin(x.Origin),
		}}}
	case *Copy:
		return &planpb.Instr{Kind: &planpb.Instr_Copy{Copy: &planpb.Copy{
			Lane: uint32(x.Lane), Dst: e.ref(x.Dst), Src: e.ref(x.Src), Picos: x.Picos, Kind: uint32(x.Kind),
		}}}
	case *Wait:
		return &planpb.Instr{Kind: &planpb.Instr_Wait{Wait: &planpb.Wait{Lane: uint32(x.Lane), On: x.On, Back: x.Back}}}
	}
	panic(ir.Bugf("unknown instruction %T", i))
}

// firstFigures is how many figures the first plan files had.
const firstFigures = 20

// figures lists the numbers of a report in the order of the file. New ones are appended.
func figures(r *Report) []*int64 {
	return []*int64{
		&r.BudgetBytes, &r.PeakBytes, &r.HostPeakBytes, &r.BoundBytes, &r.NaiveBytes, &r.SavedBytes, &r.MinimumBudgetBytes,
		&r.UnlimitedArenaBytes, &r.StepPicos, &r.UnlimitedStepPicos, &r.OverheadBoundPPM, &r.RecomputedNodes, &r.RecomputedFLOPs,
		&r.RecomputedPicos, &r.TotalFLOPs, &r.SwapOutBytes, &r.SwapInBytes, &r.StallPicos, &r.QuantizedWeights, &r.QuantizedSavedBytes,
		&r.BindingAt, &r.BindingPicosPerGiB, &r.BudgetPicosPerGiB,
	}
}

func encodeReport(r *Report) *planpb.Report {
	m := &planpb.Report{Fits: r.Fits, QuantizedRelL2: r.QuantizedRelL2}
	for _, f := range figures(r) {
		m.Figures = append(m.Figures, *f)
	}
	for _, x := range r.Phases {
		y := &planpb.PhasePeak{Name: text(x.Name), PeakBytes: x.PeakBytes, At: x.At}
		for _, b := range x.Alive {
			y.Alive = append(y.Alive, int32(b))
		}
		m.Phases = append(m.Phases, y)
	}
	for _, d := range r.Decisions {
		m.Decisions = append(m.Decisions, &planpb.Decision{Symbol: int32(d.Symbol), What: text(d.What), At: d.At, Why: text(d.Why)})
	}
	for _, q := range r.Quantized {
		m.Quantized = append(m.Quantized, &planpb.Quantized{
			Name: text(q.Name), Format: text(q.Format), Bytes: q.Bytes, WasBytes: q.WasBytes, RelL2: q.RelL2, WorstBlock: q.WorstBlock, Skipped: text(q.Skipped),
		})
	}
	return m
}

// Header is what a plan file says about itself before its body.
type Header struct {
	Tool, Model, GraphSum string
	Options               []Option
	Dims                  []Dim
	Profile               Profile
	Arenas                []Arena
}

// ReadHeader reads the header from the first bytes of a plan file; the rest may be missing. The checksum, which covers the whole file, is
// not looked at.
func ReadHeader(data []byte) (*Header, error) {
	headBytes, _, err := prefix(data)
	if err != nil {
		return nil, err
	}
	if uint64(len(data)-prefixBytes) < headBytes {
		return nil, fmt.Errorf("plan file is truncated: its header has %d bytes, %d are there", headBytes, len(data)-prefixBytes)
	}
	return decodeHeader(data[prefixBytes : prefixBytes+headBytes])
}

// prefix reads magic, version and lengths.
func prefix(data []byte) (headBytes, bodyBytes uint64, err error) {
	if n := min(len(data), len(magic)); n == 0 || !bytes.Equal(data[:n], []byte(magic)[:n]) {
		return 0, 0, fmt.Errorf("not a plan file")
	}
	if len(data) < prefixBytes {
		return 0, 0, fmt.Errorf("plan file is truncated: %d bytes", len(data))
	}
	if v := binary.LittleEndian.Uint32(data[8:]); v != version {
		return 0, 0, fmt.Errorf("plan file has version %d, this program reads version %d; plan the model again", v, version)
	}
	return uint64(binary.LittleEndian.Uint32(data[12:])), binary.LittleEndian.Uint64(data[16:]), nil
}

// sections takes a whole file apart after its checksum was found right.
func sections(data []byte) (head, body []byte, err error) {
	headBytes, bodyBytes, err := prefix(data)
	if err != nil {
		return nil, nil, err
	}
	rest := uint64(len(data) - prefixBytes)
	if bodyBytes > 1<<62 || headBytes+bodyBytes+sumBytes > rest {
		return nil, nil, fmt.Errorf("plan file is truncated: %d bytes are missing", headBytes+bodyBytes+sumBytes-rest)
	}
	if headBytes+bodyBytes+sumBytes < rest {
		return nil, nil, fmt.Errorf("plan file has %d bytes after its end", rest-headBytes-bodyBytes-sumBytes)
	}
	end := len(data) - sumBytes
	if sum := sha256.Sum256(data[:end]); !bytes.Equal(sum[:], data[end:]) {
		return nil, nil, fmt.Errorf("plan file is damaged: its checksum is wrong")
	}
	return data[prefixBytes : prefixBytes+headBytes], data[prefixBytes+headBytes : end], nil
}
