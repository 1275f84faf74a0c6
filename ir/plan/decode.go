package plan

import (
	"bytes"
	"fmt"

	"google.golang.org/protobuf/proto"

	"aitk/ir"
	"aitk/ir/plan/planpb"
)

// Unmarshal reads a plan file whose ops are in vocab. It refuses what is truncated, damaged, of another version, of unknown ops, or not as
// Marshal writes it; every index of the plan it returns is good, so that views need not look. It allocates in proportion to len(data)
// and keeps no part of data. Whether the plan is sound is for plan/check.
func Unmarshal(data []byte, vocab ir.Vocabulary) (*Plan, error) {
	head, body, err := sections(data)
	if err != nil {
		return nil, err
	}
	h, err := decodeHeader(head)
	if err != nil {
		return nil, err
	}
	b := &planpb.Body{}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(body, b); err != nil {
		return nil, fmt.Errorf("plan file is damaged: %w", err)
	}
	p, err := decodeBody(h, b, vocab)
	if err != nil {
		return nil, fmt.Errorf("plan file: %w", err)
	}
	if err := p.valid(); err != nil {
		return nil, fmt.Errorf("plan file: %w", err)
	}
	if again, err := marshal(p); err != nil || !bytes.Equal(again, data) {
		return nil, fmt.Errorf("plan file is not as this program writes it; plan the model again")
	}
	return p, nil
}

func decodeHeader(data []byte) (*Header, error) {
	m := &planpb.Header{}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(data, m); err != nil {
		return nil, fmt.Errorf("plan file's header is damaged: %w", err)
	}
	h := &Header{
		Tool: string(m.Tool), Model: string(m.Model), GraphSum: string(m.GraphSum),
		Profile: Profile{Device: string(m.Device), Name: string(m.Profile), SHA256: string(m.ProfileSha256)},
	}
	for _, o := range m.Options {
		h.Options = append(h.Options, Option{string(o.Key), string(o.Value)})
	}
	for _, d := range m.Dims {
		h.Dims = append(h.Dims, Dim{string(d.Name), d.Size})
	}
	for _, a := range m.Arenas {
		h.Arenas = append(h.Arenas, Arena{Space: ir.Space(small(a.Space)), Bytes: a.Bytes, BudgetBytes: a.BudgetBytes, Align: a.Align})
	}
	return h, nil
}

// small keeps a number that is too large for a byte from becoming a valid one.
func small(x uint32) uint8 { return uint8(min(x, 255)) }

// decoder keeps the first error, so that its methods can be used in expressions.
type decoder struct {
	b       *planpb.Body
	types   []ir.Type
	ops     []ir.Op
	origins []ir.Origin
	err     error
}

func (d *decoder) fail(format string, args ...any) {
	if d.err == nil {
		d.err = fmt.Errorf(format, args...)
	}
}

// pick takes an entry of a table.
func pick[T any](d *decoder, list []T, i uint32, what string) (x T) {
	if uint64(i) >= uint64(len(list)) {
		d.fail("%s %d of %d does not exist", what, i, len(list))
		return x
	}
	return list[i]
}

func decodeBody(h *Header, b *planpb.Body, vocab ir.Vocabulary) (*Plan, error) {
	d := &decoder{b: b}
	p := &Plan{Tool: h.Tool, Model: h.Model, GraphSum: h.GraphSum, Options: h.Options, Dims: h.Dims, Profile: h.Profile, Arenas: h.Arenas}
	for _, t := range b.Types {
		x := ir.Type{DType: ir.DType(small(t.Dtype)), Space: ir.Space(small(t.Space))}
		if len(t.Shape) > 0 {
			x.Shape = t.Shape
		}
		d.types = append(d.types, x)
	}
	for _, o := range b.Ops {
		x, err := ir.ParseOp(string(o), vocab)
		if err != nil {
			return nil, fmt.Errorf("op %q: %w", o, err)
		}
		d.ops = append(d.ops, x)
	}
	for _, o := range b.Origins {
		d.origins = append(d.origins, ir.Origin{
			File: string(pick(d, b.Strings, o.File, "string")), Scope: string(pick(d, b.Strings, o.Scope, "string")),
			OpType: string(pick(d, b.Strings, o.OpType, "string")), Node: string(o.Node), Opset: o.Opset, Index: o.Index,
		})
	}
	for _, s := range b.Symbols {
		p.Symbols = append(p.Symbols, Symbol{Name: string(s.Name), Program: s.Program, Value: ir.ID(s.Value), Bytes: s.Bytes})
	}
	for _, x := range b.Buffers {
		y := Buffer{Name: string(x.Name), Type: d.typ(x.Type), Offset: x.Offset, Bytes: x.Bytes, Holds: SymbolID(x.Holds), Category: Category(small(x.Category))}
		if len(x.Live)%3 != 0 {
			d.fail("spans of buffer %q are cut short", x.Name)
		}
		for l := x.Live; len(l) >= 3; l = l[3:] {
			y.Live = append(y.Live, Span{l[0], l[1], l[2]})
		}
		p.Buffers = append(p.Buffers, y)
	}
	for _, x := range b.Params {
		p.Params = append(p.Params, d.param(x))
	}
	for _, x := range b.Programs {
		p.Programs = append(p.Programs, d.program(x))
	}
	d.report(b.Report, &p.Report)
	return p, d.err
}

func (d *decoder) typ(i uint32) ir.Type {
	t := pick(d, d.types, i, "type")
	if t.Shape != nil {
		t.Shape = t.Shape.Clone()
	}
	return t
}

func (d *decoder) ref(r *planpb.Ref) Ref {
	if r == nil {
		d.fail("an operand is missing")
		return Ref{}
	}
	return Ref{Buffer: BufferID(r.Buffer), Offset: r.Offset, Type: d.typ(r.Type)}
}

func (d *decoder) refs(rs []*planpb.Ref) (out []Ref) {
	for _, r := range rs {
		out = append(out, d.ref(r))
	}
	return out
}

func (d *decoder) ports(ps []*planpb.Port) (out []Port) {
	for _, p := range ps {
		out = append(out, Port{Name: string(p.Name), Ref: d.ref(p.Ref)})
	}
	return out
}

func (d *decoder) residencies(list []int32) (out []Residency) {
	if len(list)%2 != 0 {
		d.fail("a list of residencies is cut short")
	}
	for ; len(list) >= 2; list = list[2:] {
		out = append(out, Residency{Param: list[0], Buffer: BufferID(list[1])})
	}
	return out
}

func (d *decoder) param(x *planpb.Param) Param {
	p := Param{
		Name: string(x.Name), Type: d.typ(x.Type), Role: ir.Role(small(x.Role)), Constant: x.Constant, Trainable: x.Trainable, Mutable: x.Mutable,
		Of: string(x.Of), Storage: BufferID(x.Storage), Init: ir.Init{Kind: ir.InitKind(small(x.Init)), Fill: x.Fill, Seed: x.Seed},
	}
	for _, a := range x.Aliases {
		p.Aliases = append(p.Aliases, string(a))
	}
	if len(x.Literal) > 0 {
		p.Init.Literal = x.Literal
	}
	if f := x.File; f != nil {
		p.Init.File = ir.Location{Path: string(f.Path), Offset: f.Offset, Bytes: f.Bytes, Transposed: f.Transposed, SHA256: string(f.Sha256)}
	}
	if k := x.Pack; k != nil {
		p.Init.Pack = ir.Packing{Source: d.typ(k.Source), Format: string(k.Format), Part: string(k.Part), Axis: k.Axis, Block: k.Block, Double: k.Double}
	}
	return p
}

func (d *decoder) program(x *planpb.Program) Program {
	p := Program{Name: string(x.Name), Repeat: x.Repeat}
	for _, i := range x.Instrs {
		p.Instrs = append(p.Instrs, d.instr(i))
	}
	p.Inputs, p.Results = d.ports(x.Inputs), d.ports(x.Results)
	p.Entry, p.Exit = d.residencies(x.Entry), d.residencies(x.Exit)
	return p
}

func (d *decoder) instr(i *planpb.Instr) Instr {
	switch k := i.Kind.(type) {
	case *planpb.Instr_Exec:
		x := k.Exec
		return &Exec{
			Lane: Lane(small(x.Lane)), Op: pick(d, d.ops, x.Op, "op"), In: d.refs(x.In), Out: d.refs(x.Out), Scratch: BufferID(x.Scratch),
			Picos: x.Picos, Phase: ir.Phase(small(x.Phase)), Recompute: x.Recompute, Origin: pick(d, d.origins, x.Origin, "origin"),
		}
	case *planpb.Instr_Copy:
		x := k.Copy
		return &Copy{Lane: Lane(small(x.Lane)), Dst: d.ref(x.Dst), Src: d.ref(x.Src), Picos: x.Picos, Kind: CopyKind(small(x.Kind))}
	case *planpb.Instr_Wait:
		return &Wait{Lane: Lane(small(k.Wait.Lane)), On: k.Wait.On, Back: k.Wait.Back}
	}
	d.fail("an instruction of unknown kind")
	return nil
}

func (d *decoder) report(m *planpb.Report, r *Report) {
	if m == nil {
		d.fail("the report is missing")
		return
	}
	r.Fits, r.QuantizedRelL2 = m.Fits, m.QuantizedRelL2
	all := figures(r)
	if len(m.Figures) < firstFigures || len(m.Figures) > len(all) {
		d.fail("the report has %d figures, not %d", len(m.Figures), len(all))
		return
	}
	for i, f := range m.Figures {
		*all[i] = f
	}
	for _, x := range m.Phases {
		y := PhasePeak{Name: string(x.Name), PeakBytes: x.PeakBytes, At: x.At}
		for _, b := range x.Alive {
			y.Alive = append(y.Alive, BufferID(b))
		}
		r.Phases = append(r.Phases, y)
	}
	for _, x := range m.Decisions {
		r.Decisions = append(r.Decisions, Decision{Symbol: SymbolID(x.Symbol), What: string(x.What), At: x.At, Why: string(x.Why)})
	}
	for _, x := range m.Quantized {
		r.Quantized = append(r.Quantized, Quantized{
			Name: string(x.Name), Format: string(x.Format), Bytes: x.Bytes, WasBytes: x.WasBytes, RelL2: x.RelL2, WorstBlock: x.WorstBlock, Skipped: string(x.Skipped),
		})
	}
}
