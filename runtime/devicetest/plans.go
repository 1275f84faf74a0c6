package devicetest

import (
	"fmt"
	"slices"

	"aitk/ir"
	"aitk/ir/plan"
)

// alignBytes suits every device.
const alignBytes = 256

// maker builds plans of a few instructions by hand. Buffers of one program lie one after the other, none shares bytes unless asked to, and
// every program starts at the bottom of the arenas.
type maker struct {
	p    *plan.Plan
	prog *plan.Program
	id   int32
	next [ir.NumSpaces]int64
}

func newMaker(device string) *maker {
	return &maker{p: &plan.Plan{Tool: "devicetest", Profile: plan.Profile{Device: device}}}
}

// program starts the next program; the one before is finished.
func (m *maker) program(name string) {
	m.id = int32(len(m.p.Programs))
	m.p.Programs = append(m.p.Programs, plan.Program{Name: name, Repeat: true})
	m.prog = &m.p.Programs[m.id]
	m.next = [ir.NumSpaces]int64{}
}

func (m *maker) pc() int32 { return int32(len(m.prog.Instrs)) }

// symbol names new content.
func (m *maker) symbol(name string, bytes int64) plan.SymbolID {
	m.p.Symbols = append(m.p.Symbols, plan.Symbol{Name: name, Program: m.id, Value: ir.ID(len(m.p.Symbols)), Bytes: bytes})
	return plan.SymbolID(len(m.p.Symbols) - 1)
}

// buffer places a buffer of a symbol, live from the next instruction to the end.
func (m *maker) buffer(t ir.Type, holds plan.SymbolID) plan.Ref {
	r := m.bufferAt(t, holds, m.next[t.Space])
	b := &m.p.Buffers[r.Buffer]
	m.next[t.Space] = (b.Offset + b.Bytes + alignBytes - 1) / alignBytes * alignBytes
	return r
}

func (m *maker) bufferAt(t ir.Type, holds plan.SymbolID, offset int64) plan.Ref {
	id := plan.BufferID(len(m.p.Buffers))
	m.p.Buffers = append(m.p.Buffers, plan.Buffer{Name: fmt.Sprintf("b%d", id), Type: t, Offset: offset, Bytes: t.Bytes(), Holds: holds,
		Category: plan.CatTemporary, Live: []plan.Span{{Program: m.id, Start: m.pc(), End: -1}}})
	return plan.Ref{Buffer: id, Type: t}
}

// die ends a buffer's life before the next instruction.
func (m *maker) die(r plan.Ref) { m.p.Buffers[r.Buffer].Live[0].End = m.pc() }

// input adds an input of the program.
func (m *maker) input(name string, t ir.Type) plan.Ref {
	r := m.buffer(t, m.symbol(name, t.Bytes()))
	m.p.Buffers[r.Buffer].Category = plan.CatInput
	m.prog.Inputs = append(m.prog.Inputs, plan.Port{Name: name, Ref: r})
	return r
}

func (m *maker) result(name string, r plan.Ref) {
	m.prog.Results = append(m.prog.Results, plan.Port{Name: name, Ref: r})
}

// exec runs an op on the compute lane; over gives for each output the operand that it is written over, -1 for bytes of its own.
func (m *maker) exec(o ir.Op, over []int, in ...plan.Ref) ([]plan.Ref, error) {
	types := make([]ir.Type, len(in))
	for i, r := range in {
		types[i] = r.Type
	}
	outs, err := o.Infer(types)
	if err != nil {
		return nil, err
	}
	x := &plan.Exec{Op: o, In: in, Scratch: plan.NoBuffer, Picos: 1, Origin: ir.Origin{Node: fmt.Sprintf("%s.%d", m.prog.Name, m.pc())}}
	for i, t := range outs {
		s := m.symbol(fmt.Sprintf("v%d", len(m.p.Symbols)), t.Bytes())
		if over != nil && over[i] >= 0 {
			m.die(in[over[i]])
			x.Out = append(x.Out, m.bufferAt(t, s, m.p.Buffers[in[over[i]].Buffer].Offset))
			continue
		}
		x.Out = append(x.Out, m.buffer(t, s))
	}
	if w := ir.WorkOf(o, types, outs); w.ScratchBytes+w.PartialBytes > 0 {
		scratch := m.buffer(ir.T(ir.U8, w.ScratchBytes+w.PartialBytes), plan.NoSymbol)
		x.Scratch = scratch.Buffer
		m.p.Buffers[scratch.Buffer].Live[0].End = m.pc() + 1
	}
	m.prog.Instrs = append(m.prog.Instrs, x)
	return x.Out, nil
}

// mustExec is exec with one output of its own bytes, of an op that fits.
func (m *maker) mustExec(o ir.Op, in ...plan.Ref) plan.Ref {
	out, err := m.exec(o, nil, in...)
	if err != nil || len(out) != 1 {
		panic(ir.Bugf("%s: %d outputs, %v", ir.OpName(o), len(out), err))
	}
	return out[0]
}

// copy copies src to a new buffer in a space and returns it with the instruction's number.
func (m *maker) copy(lane plan.Lane, kind plan.CopyKind, to ir.Space, src plan.Ref) (plan.Ref, int32) {
	t := src.Type
	t.Space = to
	dst := m.buffer(t, m.p.Buffers[src.Buffer].Holds)
	m.prog.Instrs = append(m.prog.Instrs, &plan.Copy{Lane: lane, Dst: dst, Src: src, Picos: 1, Kind: kind})
	return dst, m.pc() - 1
}

func (m *maker) wait(lane plan.Lane, on, back int32) {
	m.prog.Instrs = append(m.prog.Instrs, &plan.Wait{Lane: lane, On: on, Back: back})
}

// plan finishes: open lives end with their programs, arenas are as large as their highest buffer.
func (m *maker) plan() *plan.Plan {
	var bytes [ir.NumSpaces]int64
	var used [ir.NumSpaces]bool
	for i := range m.p.Buffers {
		b := &m.p.Buffers[i]
		for k := range b.Live {
			if b.Live[k].End < 0 {
				b.Live[k].End = int32(len(m.p.Programs[b.Live[k].Program].Instrs))
			}
		}
		used[b.Type.Space] = true
		bytes[b.Type.Space] = max(bytes[b.Type.Space], b.Offset+b.Bytes)
	}
	for s := range bytes {
		if used[s] && ir.Space(s) != ir.Disk {
			m.p.Arenas = append(m.p.Arenas, plan.Arena{Space: ir.Space(s), Bytes: bytes[s], BudgetBytes: -1, Align: alignBytes})
		}
	}
	slices.SortFunc(m.p.Arenas, func(a, b plan.Arena) int { return int(a.Space) - int(b.Space) })
	return m.p
}
