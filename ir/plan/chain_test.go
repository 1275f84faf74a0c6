package plan_test

import (
	"fmt"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/ir/plan/check"
)

// Ops of the tests; package plan knows none by name.
type (
	times  struct{} // elementwise; may write over the first operand
	update struct { // (w, g) -> w'; stateful, in place
		Rate float64
		Axes []int64
	}
)

func (times) Infer(in []ir.Type) ([]ir.Type, error) { return in[:1], nil }
func (times) Alias() []ir.AliasPair                 { return []ir.AliasPair{{Out: 0, In: 0}} }
func (times) Stateful() bool                        { return false }
func (times) Stream() uint64                        { return 0 }

func (update) Infer(in []ir.Type) ([]ir.Type, error) { return in[:1], nil }
func (update) Alias() []ir.AliasPair                 { return []ir.AliasPair{{Out: 0, In: 0}} }
func (update) Stateful() bool                        { return true }
func (update) Stream() uint64                        { return 0 }

func vocabulary() ir.Vocabulary { return ir.NewVocabulary([]ir.Op{times{}, update{}}) }

// chain makes a training step of n layers a_i = a_{i-1} * w_i whose activations are kept, recomputed and swapped in turn, with one program
// init that loads the weights. Offsets are first fit by spans;
type chain struct {
	p    *plan.Plan
	prog int32
}

func (c *chain) emit(i plan.Instr) int32 {
	pr := &c.p.Programs[c.prog]
	pr.Instrs = append(pr.Instrs, i)
	return int32(len(pr.Instrs)) - 1
}

func (c *chain) symbol(name string, prog int32) plan.SymbolID {
	c.p.Symbols = append(c.p.Symbols, plan.Symbol{Name: name, Program: prog, Value: ir.ID(len(c.p.Symbols)), Bytes: 4096})
	return plan.SymbolID(len(c.p.Symbols)) - 1
}

func (c *chain) buffer(s plan.SymbolID, space ir.Space, cat plan.Category) plan.BufferID {
	t := ir.T(ir.F32, 32, 32)
	t.Space = space
	c.p.Buffers = append(c.p.Buffers, plan.Buffer{Name: c.p.Symbols[s].Name, Type: t, Offset: -1, Bytes: 4096, Holds: s, Category: cat})
	return plan.BufferID(len(c.p.Buffers)) - 1
}

// use makes b live from the current end of the program on, or longer.
func (c *chain) use(b plan.BufferID, from, to int32) {
	l := &c.p.Buffers[b].Live
	if n := len(*l); n == 0 || (*l)[n-1].Program != c.prog {
		*l = append(*l, plan.Span{Program: c.prog, Start: from, End: to})
	} else {
		(*l)[n-1].End = max((*l)[n-1].End, to)
	}
}

func (c *chain) ref(b plan.BufferID) plan.Ref {
	t := c.p.Buffers[b].Type
	t.Shape = t.Shape.Clone()
	return plan.Ref{Buffer: b, Type: t}
}

// exec appends an op; operands live until after it unless handed over.
func (c *chain) exec(op ir.Op, phase ir.Phase, node string, again bool, out plan.BufferID, in ...plan.BufferID) int32 {
	x := &plan.Exec{Op: op, Phase: phase, Recompute: again, Scratch: plan.NoBuffer, Picos: 2_000_000, Origin: ir.Origin{File: "chain.onnx", Node: node, OpType: "Mul", Opset: 17}}
	pc := c.emit(x)
	for _, b := range in {
		x.In = append(x.In, c.ref(b))
		c.use(b, pc, pc+1)
	}
	x.Out = append(x.Out, c.ref(out))
	c.use(out, pc, pc+1)
	return pc
}

func (c *chain) copy(lane plan.Lane, kind plan.CopyKind, dst, src plan.BufferID) int32 {
	pc := c.emit(&plan.Copy{Lane: lane, Kind: kind, Dst: c.ref(dst), Src: c.ref(src), Picos: 3_000_000})
	for _, b := range []plan.BufferID{dst, src} {
		if c.p.Buffers[b].Type.Space != ir.Disk {
			c.use(b, pc, pc+1)
		}
	}
	return pc
}

func (c *chain) wait(lane plan.Lane, on int32) int32 { return c.emit(&plan.Wait{Lane: lane, On: on}) }

// place gives offsets by first fit, and the arenas their sizes.
func (c *chain) place() {
	meet := func(a, b *plan.Buffer) bool {
		for _, s := range a.Live {
			for _, u := range b.Live {
				if s.Program == u.Program && s.Start < u.End && u.Start < s.End {
					return true
				}
			}
		}
		return false
	}
	for i := range c.p.Params { // a weight and its successor share a place of their own
		if i < len(c.p.Programs[0].Exit) {
			c.p.Buffers[c.p.Programs[0].Exit[i].Buffer].Offset = int64(i) * 4096
			c.p.Buffers[c.p.Programs[1].Exit[i].Buffer].Offset = int64(i) * 4096
		}
	}
	for i := range c.p.Buffers {
		b := &c.p.Buffers[i]
		for b.Offset < 0 && b.Type.Space != ir.Disk {
			for at := int64(0); b.Offset < 0; at += 4096 {
				free := true
				for k := range c.p.Buffers {
					o := &c.p.Buffers[k]
					free = free && !(o.Offset == at && o.Type.Space == b.Type.Space && meet(o, b))
				}
				if free {
					b.Offset = at
				}
			}
		}
		b.Offset = max(b.Offset, 0)
		if a := c.p.Arena(b.Type.Space); a != nil {
			a.Bytes = max(a.Bytes, b.Offset+b.Bytes)
		}
	}
}

func chainPlan(n int, name string) *plan.Plan {
	c := &chain{p: &plan.Plan{
		Tool: "aitk test", Model: "chain.onnx", GraphSum: "00ff", Options: []plan.Option{{Key: "loss", Value: "mse"}}, Dims: []plan.Dim{{Name: "batch", Size: 32}},
		Profile: plan.Profile{Device: "null", Name: "test", SHA256: "1234"},
		Arenas:  []plan.Arena{{Space: ir.Device, BudgetBytes: 1 << 20, Align: 256}, {Space: ir.Pinned, BudgetBytes: -1, Align: 64}},
	}}
	p := c.p
	p.Programs = []plan.Program{{Name: "init"}, {Name: "step", Repeat: true}}
	var w, file []plan.BufferID
	for i := range n {
		s := c.symbol(fmt.Sprintf("layers.%d.%sweight", i, name), -1)
		w = append(w, c.buffer(s, ir.Device, plan.CatParameter))
		file = append(file, c.buffer(s, ir.Disk, plan.CatParameter))
		c.copy(plan.Read, plan.CopyLoad, w[i], file[i])
	}
	end := int32(len(p.Programs[0].Instrs))
	for i := range n {
		p.Buffers[w[i]].Live[0] = plan.Span{Program: 0, End: end}
		p.Params = append(p.Params, plan.Param{Name: fmt.Sprintf("layers.%d.%sweight", i, name), Type: ir.T(ir.F32, 32, 32), Trainable: true, Mutable: true,
			Aliases: []string{"tied"}, Init: ir.Init{Kind: ir.InitFile, File: ir.Location{Path: "w.bin", Offset: int64(i) * 4096, Bytes: 4096, Transposed: i%2 == 0, SHA256: "ab"}}, Storage: file[i]})
		p.Programs[0].Exit = append(p.Programs[0].Exit, plan.Residency{Param: int32(i), Buffer: w[i]})
	}
	p.Params[0].Init.Pack = ir.Packing{Source: ir.T(ir.BF16, 32, 64), Format: "cast", Part: "codes", Block: 64, Double: true}
	p.Params = append(p.Params, plan.Param{Name: "zero", Type: ir.T(ir.I64), Constant: true, Storage: plan.NoBuffer, Init: ir.Init{Kind: ir.InitLiteral, Literal: make([]byte, 8)}})
	c.step(w, name)
	p.Programs[1].Entry = p.Programs[0].Exit
	c.place()
	p.Report = plan.Report{Fits: true, BudgetBytes: 1 << 20, PeakBytes: 77, StepPicos: 12, UnlimitedStepPicos: 10, SwapOutBytes: 3, Decisions: p.Report.Decisions,
		Quantized: []plan.Quantized{{Name: "w", Format: "nf4/64", Bytes: 3, WasBytes: 9, RelL2: 0.5, WorstBlock: 0.75}, {Name: "v", RelL2: plan.NotMeasured, Skipped: "a bias"}}}
	return p
}

// step writes program step.
func (c *chain) step(w []plan.BufferID, name string) {
	p, n := c.p, len(w)
	c.prog = 1
	x := c.buffer(c.symbol("x", 1), ir.Device, plan.CatInput)
	c.use(x, 0, 1)
	p.Programs[1].Inputs = []plan.Port{{Name: "x", Ref: c.ref(x)}}
	acts := []plan.BufferID{x} // by layer, the buffer that holds it now
	host := map[int]plan.BufferID{}
	out := -1
	var left int32
	for i := range n {
		a := c.buffer(c.symbol(fmt.Sprintf("a%d%s", i, name), 1), ir.Device, plan.CatActivation)
		pc := c.exec(times{}, ir.Forward, fmt.Sprintf("fwd%d%s", i, name), false, a, acts[i], w[i])
		if out >= 0 { // the activation before has been read: wait until it has left
			c.use(acts[out], 0, c.wait(plan.Compute, left)+1)
			out = -1
		}
		acts = append(acts, a)
		if i%3 == 2 && i+1 < n {
			h := c.buffer(p.Buffers[a].Holds, ir.Pinned, plan.CatActivation)
			host[i+1] = h
			c.wait(plan.D2H, pc)
			left = c.copy(plan.D2H, plan.CopySwapOut, h, a)
			out = i + 1
			p.Report.Decisions = append(p.Report.Decisions, plan.Decision{Symbol: p.Buffers[a].Holds, What: "swapped", At: 0, Why: "idle for long"})
		}
	}
	g := acts[n]
	for i := n - 1; i >= 0; i-- {
		switch {
		case host[i] != 0:
			last := int32(len(p.Programs[1].Instrs)) - 1
			c.wait(plan.H2D, last)
			a := c.buffer(p.Buffers[acts[i]].Holds, ir.Device, plan.CatActivation)
			back := c.copy(plan.H2D, plan.CopySwapIn, a, host[i])
			c.wait(plan.Compute, back)
			acts[i] = a
		case i%3 == 2: // a_{i-1}, where i-1 is 1 modulo 3, is computed again from a_{i-2}
			a := c.buffer(p.Buffers[acts[i]].Holds, ir.Device, plan.CatActivation)
			c.exec(times{}, ir.Backward, fmt.Sprintf("fwd%d%s", i-1, name), true, a, acts[i-1], w[i-1])
			acts[i] = a
		}
		gw := c.buffer(c.symbol(fmt.Sprintf("gw%d", i), 1), ir.Device, plan.CatGradient)
		c.exec(times{}, ir.Backward, fmt.Sprintf("gw%d", i), false, gw, g, acts[i])
		gn := c.buffer(c.symbol(fmt.Sprintf("g%d", i), 1), ir.Device, plan.CatTemporary)
		c.exec(times{}, ir.Backward, fmt.Sprintf("g%d", i), false, gn, g, w[i])
		nw := c.buffer(c.symbol(p.Buffers[w[i]].Name+"'", 1), ir.Device, plan.CatParameter)
		pc := c.exec(update{Rate: 0.1, Axes: []int64{0, 1}}, ir.Update, fmt.Sprintf("upd%d", i), false, nw, w[i], gw)
		l := p.Buffers[w[i]].Live
		l[len(l)-1] = plan.Span{Program: 1, Start: 0, End: pc}
		g = gn
	}
	end := int32(len(p.Programs[1].Instrs))
	c.use(g, 0, end)
	p.Programs[1].Results = []plan.Port{{Name: "dx", Ref: c.ref(g)}}
	for i := range n {
		nw := plan.BufferID(-1)
		for b := range p.Buffers {
			if p.Buffers[b].Name == p.Buffers[w[i]].Name+"'" {
				nw = plan.BufferID(b)
			}
		}
		c.use(nw, 0, end)
		p.Programs[1].Exit = append(p.Programs[1].Exit, plan.Residency{Param: int32(i), Buffer: nw})
	}
	for i := range p.Report.Decisions {
		p.Report.Decisions[i].At = end - 1
	}
}

func TestChainIsSound(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8, 40} {
		if err := check.Check(chainPlan(n, "")); err != nil {
			t.Fatalf("%d layers: %v", n, err)
		}
	}
}
