package check_test

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/plan"
)

// Ops of the tests: the checker knows none by name. All work on equal shapes.
type (
	mul   struct{}               // may write over either operand
	neg   struct{ Bias float64 } // may write over nothing
	total struct{}               // to a scalar
	sgd   struct{ Rate []int64 } // (w, g, m) -> w', m'; stateful, in place
)

func equalShapes(in []ir.Type, n int) error {
	if len(in) != n {
		return fmt.Errorf("%d operands, not %d", len(in), n)
	}
	for _, t := range in[1:] {
		if !t.Equal(in[0]) {
			return fmt.Errorf("operands %v and %v differ", in[0], t)
		}
	}
	return nil
}

func (mul) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := equalShapes(in, 2); err != nil {
		return nil, err
	}
	return in[:1], nil
}
func (mul) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 0}, {Out: 0, In: 1}} }
func (mul) Stateful() bool        { return false }
func (mul) Stream() uint64        { return 0 }

func (neg) Infer(in []ir.Type) ([]ir.Type, error) { return in, equalShapes(in, 1) }

func (total) Infer(in []ir.Type) ([]ir.Type, error) {
	return []ir.Type{ir.T(ir.F32)}, equalShapes(in, 1)
}

func (sgd) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := equalShapes(in, 3); err != nil {
		return nil, err
	}
	return []ir.Type{in[0], in[2]}, nil
}
func (sgd) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 0}, {Out: 1, In: 2}} }
func (sgd) Stateful() bool        { return true }
func (sgd) Stream() uint64        { return 0 }

// maker builds a plan by hand; names stand for IDs.
type maker struct {
	p    *plan.Plan
	syms map[string]plan.SymbolID
	bufs map[string]plan.BufferID
}

func vec() ir.Type { return ir.T(ir.F32, 16) } // 64 bytes

func (m *maker) sym(name string, prog int32, t ir.Type) {
	m.syms[name] = plan.SymbolID(len(m.p.Symbols))
	m.p.Symbols = append(m.p.Symbols, plan.Symbol{Name: name, Program: prog, Bytes: t.Bytes()})
}

// buf adds a buffer. spans: program, start, end ...; holds "" is scratch.
func (m *maker) buf(name, holds string, space ir.Space, t ir.Type, offset int64, spans ...int32) {
	t.Space = space
	b := plan.Buffer{Name: name, Type: t, Offset: offset, Bytes: t.Bytes(), Holds: plan.NoSymbol}
	if holds != "" {
		b.Holds = m.syms[holds]
	}
	for i := 0; i < len(spans); i += 3 {
		b.Live = append(b.Live, plan.Span{Program: spans[i], Start: spans[i+1], End: spans[i+2]})
	}
	m.bufs[name] = plan.BufferID(len(m.p.Buffers))
	m.p.Buffers = append(m.p.Buffers, b)
}

// ref is a whole buffer, as stored.
func (m *maker) ref(name string) plan.Ref {
	b := m.bufs[name]
	t := m.p.Buffers[b].Type
	t.Shape = t.Shape.Clone()
	return plan.Ref{Buffer: b, Type: t}
}

// part is half a buffer, in bytes.
func (m *maker) part(name string, offset, bytes int64) plan.Ref {
	return plan.Ref{Buffer: m.bufs[name], Offset: offset, Type: ir.T(ir.U8, bytes)}
}

func (m *maker) exec(op ir.Op, phase ir.Phase, node string, outs, ins []string) *plan.Exec {
	x := &plan.Exec{Lane: plan.Compute, Op: op, Scratch: plan.NoBuffer, Picos: 1000, Phase: phase, Origin: ir.Origin{Node: node}}
	for _, o := range outs {
		x.Out = append(x.Out, m.ref(o))
	}
	for _, i := range ins {
		x.In = append(x.In, m.ref(i))
	}
	return x
}

func (m *maker) copy(lane plan.Lane, kind plan.CopyKind, dst, src string) *plan.Copy {
	return &plan.Copy{Lane: lane, Kind: kind, Dst: m.ref(dst), Src: m.ref(src), Picos: 500}
}

func wait(lane plan.Lane, on, back int32) *plan.Wait {
	return &plan.Wait{Lane: lane, On: on, Back: back}
}

func (m *maker) live(list ...any) (r []plan.Residency) {
	for i := 0; i < len(list); i += 2 {
		r = append(r, plan.Residency{Param: int32(list[i].(int)), Buffer: m.bufs[list[i+1].(string)]})
	}
	return r
}

// Programs of the good plan, by index.
const (
	pInit, pStep, pEval, pSave = 0, 1, 2, 3
)

// good is a plan with everything in it: parameter w trained in place on the device; frozen v; moment m whose home is the host; a swapped
// out and in; b computed again; scratch; a result; staging in init.
//
//	device   0 w, w'   64 v   128 x, then b2   192 a, then d, g   256 b   320 c, then a2   384 scratch   448 loss   512 md, md'
//	pinned   0 ha      64 hm, hm'    128 staging
func good() *plan.Plan { return goodMaker().p }

func goodMaker() *maker {
	m := &maker{p: &plan.Plan{Tool: "test", Model: "hand.onnx"}, syms: map[string]plan.SymbolID{}, bufs: map[string]plan.BufferID{}}
	p := m.p
	p.Arenas = []plan.Arena{{Space: ir.Device, Bytes: 576, BudgetBytes: 640, Align: 64}, {Space: ir.Pinned, Bytes: 160, BudgetBytes: -1, Align: 64}}
	for _, n := range []string{"w", "v", "m"} {
		m.sym(n, -1, vec())
	}
	for _, n := range []string{"x", "a", "b", "c", "d", "g", "w'", "m'"} {
		m.sym(n, pStep, vec())
	}
	m.sym("loss", pStep, ir.T(ir.F32))
	m.sym("ex", pEval, vec())
	m.sym("ey", pEval, vec())

	m.buf("w.file", "w", ir.Disk, vec(), 0)
	m.buf("v.file", "v", ir.Disk, vec(), 0)
	m.buf("m.file", "m", ir.Disk, vec(), 0)
	m.buf("w", "w", ir.Device, vec(), 0, pInit, 0, 9, pStep, 0, 15, pEval, 0, 1, pSave, 0, 2)
	m.buf("v", "v", ir.Device, vec(), 64, pInit, 0, 9, pStep, 0, 18, pEval, 0, 1, pSave, 0, 2)
	m.buf("hm", "m", ir.Pinned, vec(), 64, pInit, 0, 9, pStep, 0, 17, pEval, 0, 1, pSave, 0, 2)
	half := ir.T(ir.U8, 32)
	m.buf("staging", "v", ir.Pinned, half, 128, pInit, 2, 9)
	p.Buffers[m.bufs["staging"]].Category = plan.CatStaging

	m.buf("x", "x", ir.Device, vec(), 128, pStep, 0, 1)
	m.buf("a", "a", ir.Device, vec(), 192, pStep, 0, 6)
	m.buf("ha", "a", ir.Pinned, vec(), 0, pStep, 2, 12)
	m.buf("b", "b", ir.Device, vec(), 256, pStep, 3, 5)
	m.buf("c", "c", ir.Device, vec(), 320, pStep, 4, 7)
	m.buf("d", "d", ir.Device, vec(), 192, pStep, 6, 13)
	m.buf("a2", "a", ir.Device, vec(), 320, pStep, 10, 13)
	m.buf("b2", "b", ir.Device, vec(), 128, pStep, 12, 14)
	m.buf("scratch", "", ir.Device, vec(), 384, pStep, 13, 14)
	m.buf("g", "g", ir.Device, vec(), 192, pStep, 13, 17)
	m.buf("md", "m", ir.Device, vec(), 512, pStep, 8, 15)
	m.buf("w'", "w'", ir.Device, vec(), 0, pStep, 15, 18)
	m.buf("md'", "m'", ir.Device, vec(), 512, pStep, 15, 18)
	m.buf("hm'", "m'", ir.Pinned, vec(), 64, pStep, 17, 18)
	m.buf("loss", "loss", ir.Device, ir.T(ir.F32), 448, pStep, 14, 18)
	m.buf("ex", "ex", ir.Device, vec(), 128, pEval, 0, 1)
	m.buf("ey", "ey", ir.Device, vec(), 192, pEval, 0, 1)

	p.Params = []plan.Param{
		{Name: "w", Type: vec(), Trainable: true, Mutable: true, Storage: m.bufs["w.file"]},
		{Name: "v", Type: vec(), Storage: m.bufs["v.file"]},
		{Name: "m", Type: vec(), Role: ir.Moment, Of: "w", Mutable: true, Storage: m.bufs["m.file"]},
	}
	chunk := func(lane plan.Lane, kind plan.CopyKind, dst, src string, at, from int64) *plan.Copy {
		return &plan.Copy{Lane: lane, Kind: kind, Dst: m.part(dst, at, 32), Src: m.part(src, from, 32), Picos: 100}
	}
	home := m.live(0, "w", 1, "v", 2, "hm")
	p.Programs = []plan.Program{
		{Name: "init", Exit: home, Instrs: []plan.Instr{
			m.copy(plan.Read, plan.CopyLoad, "w", "w.file"),
			m.copy(plan.Read, plan.CopyLoad, "hm", "m.file"),
			chunk(plan.Read, plan.CopyLoad, "staging", "v.file", 0, 0),
			wait(plan.H2D, 2, 0),
			chunk(plan.H2D, plan.CopySwapIn, "v", "staging", 0, 0),
			wait(plan.Read, 4, 0), // the first half has left the staging buffer
			chunk(plan.Read, plan.CopyLoad, "staging", "v.file", 0, 32),
			wait(plan.H2D, 6, 0),
			chunk(plan.H2D, plan.CopySwapIn, "v", "staging", 32, 0),
		}},
		{Name: "step", Repeat: true, Entry: home, Exit: m.live(0, "w'", 1, "v", 2, "hm'"), Instrs: []plan.Instr{
			0:  m.exec(mul{}, ir.Forward, "A", []string{"a"}, []string{"x", "w"}),
			1:  wait(plan.D2H, 0, 0),
			2:  m.copy(plan.D2H, plan.CopySwapOut, "ha", "a"),
			3:  m.exec(neg{Bias: 2}, ir.Forward, "B", []string{"b"}, []string{"a"}),
			4:  m.exec(mul{}, ir.Forward, "C", []string{"c"}, []string{"b", "v"}),
			5:  wait(plan.Compute, 2, 0), // a has left
			6:  m.exec(neg{}, ir.Forward, "D", []string{"d"}, []string{"c"}),
			7:  wait(plan.H2D, 17, 1), // the moment of the run before has arrived at home
			8:  m.copy(plan.H2D, plan.CopySwapIn, "md", "hm"),
			9:  wait(plan.H2D, 6, 0), // c has been read
			10: m.copy(plan.H2D, plan.CopySwapIn, "a2", "ha"),
			11: wait(plan.Compute, 10, 0),
			12: recompute(m.exec(neg{Bias: 2}, ir.Backward, "B", []string{"b2"}, []string{"a2"})),
			13: m.exec(mul{}, ir.Backward, "G", []string{"g"}, []string{"d", "b2"}),
			14: m.exec(total{}, ir.Backward, "L", []string{"loss"}, []string{"g"}),
			15: m.exec(sgd{}, ir.Update, "U", []string{"w'", "md'"}, []string{"w", "g", "md"}),
			16: wait(plan.D2H, 15, 0),
			17: m.copy(plan.D2H, plan.CopySwapOut, "hm'", "md'"),
		},
			Inputs:  []plan.Port{{Name: "x", Ref: m.ref("x")}},
			Results: []plan.Port{{Name: "loss", Ref: m.ref("loss")}},
		},
		{Name: "eval", Repeat: true, Entry: home, Exit: home, Instrs: []plan.Instr{
			m.exec(mul{}, ir.Forward, "E", []string{"ey"}, []string{"ex", "w"}),
		},
			Inputs:  []plan.Port{{Name: "x", Ref: m.ref("ex")}},
			Results: []plan.Port{{Name: "y", Ref: m.ref("ey")}},
		},
		{Name: "save", Entry: home, Exit: home, Instrs: []plan.Instr{
			m.copy(plan.Write, plan.CopySave, "w.file", "w"),
			m.copy(plan.Write, plan.CopySave, "m.file", "hm"),
		}},
	}
	p.Programs[pStep].Instrs[13].(*plan.Exec).Scratch = m.bufs["scratch"]
	return m
}

func recompute(x *plan.Exec) *plan.Exec { x.Recompute = true; return x }
