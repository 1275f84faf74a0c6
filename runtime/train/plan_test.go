package train_test

import (
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"testing"

	"crypto/sha256"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
)

// model describes a softmax regression: logits = x W + b, trained by SGD with momentum. It stands in for a compiled model, so that the loop is tested
// without any pass.
type model struct {
	batch, features, classes int64
	momentum                 float64
	accumulate               int64 // above 1: program update
	clip                     bool  // program update
	frozen                   bool  // b is not trained
	padBytes                 int64 // between buffers: another layout of the same model, as another budget would give
	noMask                   bool  // program eval without $valid
	init                     map[string][]byte
}

func digits() model { return model{batch: 4, features: 3, classes: 3, momentum: 0.9} }

// graphs are the programs step, update and eval.
func (m *model) graphs() []*ir.Graph {
	step := ir.NewGraph("step")
	x := step.AddInput("x", ir.T(ir.F32, m.batch, m.features))
	y := step.AddInput("target", ir.T(ir.I64, m.batch))
	w, bias := m.weights(step)
	b := &ir.Builder{G: step, Origin: ir.Origin{Node: "fc"}}
	logits := b.Add(op.Add{}, b.Add(op.MatMul{}, x, w.Value), bias.Value)
	b.Origin.Node = "loss"
	loss := b.Add(op.SoftmaxCrossEntropy{Axis: 1, Reduction: "mean"}, logits, y)
	n := max(m.accumulate, 1)
	loss = b.Add(op.Div{}, loss, b.Scalar(ir.F32, float64(n)))
	b.Phase, b.Origin.Node = ir.Backward, "grad of loss"
	d := b.Add(op.SoftmaxCrossEntropyGrad{Axis: 1, Reduction: "mean"}, logits, y, b.Scalar(ir.F32, 1/float64(n)))
	grads := []*ir.Value{b.Add(op.MatMul{TransA: true}, x, d), b.Add(op.ReduceSum{Axes: []int64{0}}, d)}
	params := []*ir.Param{w, bias}
	if m.frozen {
		params, grads = params[:1], grads[:1]
	}
	b.Phase, b.Origin.Node = ir.Update, "finite"
	ok := b.Add(op.AllFinite{}, step.AddConst(ir.T(ir.Bool), []byte{1}), loss)
	for _, g := range grads {
		ok = b.Add(op.AllFinite{}, ok, g)
	}
	programs := []*ir.Graph{step}
	step.Results = []ir.Result{{Name: "loss", Value: loss}, {Name: "ok", Value: ok}}
	if m.accumulate > 1 || m.clip {
		up := ir.NewGraph("update")
		ub := &ir.Builder{G: up, Phase: ir.Update, Origin: ir.Origin{Node: "update"}}
		var accs, ws []*ir.Param
		for i, p := range params {
			acc := step.AddParam(p.Name+".grad", p.Type)
			acc.Role, acc.Of = ir.Accumulator, p.Name
			acc.Next = b.Add(op.Add{}, acc.Value, grads[i])
			ws = append(ws, same(up, p))
			accs = append(accs, same(up, acc))
		}
		grads = nil
		uok := up.AddConst(ir.T(ir.Bool), []byte{1})
		for _, a := range accs {
			uok = ub.Add(op.AllFinite{}, uok, a.Value)
			grads = append(grads, a.Value)
		}
		norm := m.update(up, ub, ws, grads, uok)
		for _, a := range accs {
			a.Next = ub.Add(op.Fill{DType: ir.F32, Shape: a.Type.Shape})
		}
		up.Results = []ir.Result{{Name: "ok", Value: uok}, {Name: "grad_norm", Value: norm}}
		programs = append(programs, up)
	} else {
		step.Results = append(step.Results, ir.Result{Name: "grad_norm", Value: m.update(step, b, params, grads, ok)})
	}
	return append(programs, m.eval())
}

// update appends the updates and returns the norm of the gradients.
func (m *model) update(g *ir.Graph, b *ir.Builder, params []*ir.Param, grads []*ir.Value, ok *ir.Value) *ir.Value {
	lr, step := g.AddInput("$lr", ir.T(ir.F32)), g.AddInput("$step", ir.T(ir.I64))
	var sum *ir.Value
	for i, p := range params {
		sq := b.Add(op.SumSquares{}, grads[i])
		if sum == nil {
			sum = sq
		} else {
			sum = b.Add(op.Add{}, sum, sq)
		}
		buf := g.AddParam(p.Name+".momentum", p.Type)
		buf.Role, buf.Of = ir.Moment, p.Name
		out := b.Multi(op.SGD{Momentum: m.momentum}, p.Value, grads[i], buf.Value, lr, step, ok)
		p.Next, buf.Next = out[0], out[1]
	}
	return b.Add(op.Sqrt{}, sum)
}

// eval is the forward half with the loss over the first $valid samples.
func (m *model) eval() *ir.Graph {
	g := ir.NewGraph("eval")
	x := g.AddInput("x", ir.T(ir.F32, m.batch, m.features))
	y := g.AddInput("target", ir.T(ir.I64, m.batch))
	w, bias := m.weights(g)
	b := &ir.Builder{G: g, Origin: ir.Origin{Node: "fc"}}
	logits := b.Add(op.Add{}, b.Add(op.MatMul{}, x, w.Value), bias.Value)
	if !m.noMask {
		valid := g.AddInput("$valid", ir.T(ir.I64))
		counts := b.Add(op.Less{}, b.Add(op.Iota{DType: ir.I64, Shape: y.Type.Shape, Step: 1}), valid)
		y = b.Add(op.Where{}, counts, y, b.Scalar(ir.I64, -100))
	}
	loss := b.Add(op.SoftmaxCrossEntropy{Axis: 1, Reduction: "mean", HasIgnore: !m.noMask, IgnoreIndex: -100}, logits, y)
	g.Results = []ir.Result{{Name: "logits", Value: logits}, {Name: "loss", Value: loss}}
	return g
}

func (m *model) weights(g *ir.Graph) (w, b *ir.Param) {
	w, b = g.AddParam("fc.weight", ir.T(ir.F32, m.features, m.classes)), g.AddParam("fc.bias", ir.T(ir.F32, m.classes))
	w.Trainable, b.Trainable = true, !m.frozen
	r := rand.New(rand.NewPCG(7, 7))
	for _, p := range []*ir.Param{w, b} {
		x := ir.NewTensor(p.Type)
		for i := range x.F {
			x.F[i] = r.NormFloat64() * 0.1
		}
		p.Init = ir.Init{Kind: ir.InitLiteral, Literal: x.Encode()}
		if raw := m.init[p.Name]; raw != nil {
			p.Init.Literal = raw
		}
	}
	w.Aliases = []string{"tied.weight"}
	return w, b
}

// same gives another program the same parameter.
func same(g *ir.Graph, p *ir.Param) *ir.Param {
	q := *p
	q.Value, q.Next = g.NewValue(p.Name, p.Type), nil
	g.Params = append(g.Params, &q)
	return &q
}

// plan lays every value of every program at a place of its own, except that new contents of parameters lie where the old ones did.
func (m *model) plan(t testing.TB) *plan.Plan {
	t.Helper()
	programs := m.graphs()
	sum := sha256.Sum256([]byte(programs[0].String()))
	l := &layout{p: &plan.Plan{Tool: "test", Model: "m.onnx", GraphSum: hex.EncodeToString(sum[:]), Profile: plan.Profile{Device: "cpu"},
		Options: []plan.Option{{Key: "budget", Value: fmt.Sprint(m.padBytes)}, {Key: "optimizer", Value: "sgd"}}}, pad: m.padBytes, index: map[string]int32{}}
	for _, g := range programs {
		l.declare(g)
	}
	l.transfer("init")
	for _, g := range programs {
		l.program(g)
	}
	l.transfer("save")
	l.p.Arenas = []plan.Arena{{Space: ir.Device, Bytes: l.end, BudgetBytes: -1, Align: 64}}
	l.p.Report.BudgetBytes = -1
	return l.p
}

type layout struct {
	p        *plan.Plan
	pad, end int64
	index    map[string]int32 // parameters by name
	homes    []plan.BufferID
	disk     int64
}

func (l *layout) buffer(name string, t ir.Type, holds plan.SymbolID, offset int64) plan.BufferID {
	if offset < 0 {
		offset = (l.end+l.pad+63)/64*64 + 0
	}
	if t.Space == ir.Device {
		l.end = max(l.end, offset+t.Bytes())
	}
	l.p.Buffers = append(l.p.Buffers, plan.Buffer{Name: name, Type: t, Offset: offset, Bytes: t.Bytes(), Holds: holds})
	return plan.BufferID(len(l.p.Buffers) - 1)
}

func (l *layout) symbol(name string, program int32, v ir.ID, bytes int64) plan.SymbolID {
	l.p.Symbols = append(l.p.Symbols, plan.Symbol{Name: name, Program: program, Value: v, Bytes: bytes})
	return plan.SymbolID(len(l.p.Symbols) - 1)
}

func (l *layout) live(b plan.BufferID, program, start, end int32) {
	l.p.Buffers[b].Live = append(l.p.Buffers[b].Live, plan.Span{Program: program, Start: start, End: end})
}

// declare adds the parameters of a graph that are new, its constants among them.
func (l *layout) declare(g *ir.Graph) {
	for _, c := range g.Consts {
		q := &ir.Param{Value: c.Value, Role: ir.Literal, Init: ir.Init{Kind: ir.InitLiteral, Literal: c.Data}}
		q.Name = fmt.Sprintf("literal %v %x", c.Type, c.Data)
		g.Params = append(g.Params, q)
	}
	g.Consts = nil
	for _, q := range g.Params {
		i, ok := l.index[q.Name]
		if !ok {
			i = int32(len(l.p.Params))
			l.index[q.Name] = i
			sym := l.symbol(q.Name, -1, ir.ID(i), q.Type.Bytes())
			l.homes = append(l.homes, l.buffer(q.Name, q.Type, sym, -1))
			t := q.Type
			t.Space = ir.Disk
			l.p.Params = append(l.p.Params, plan.Param{Name: q.Name, Type: q.Type, Role: q.Role, Constant: q.Role == ir.Literal, Trainable: q.Trainable,
				Of: q.Of, Aliases: q.Aliases, Init: q.Init, Storage: l.buffer(q.Name, t, sym, l.disk)})
			l.disk += (q.Type.Bytes() + 63) / 64 * 64
		}
		l.p.Params[i].Mutable = l.p.Params[i].Mutable || q.Next != nil
	}
}

// transfer is program init or save.
func (l *layout) transfer(name string) {
	at, init := int32(len(l.p.Programs)), name == "init"
	prog := plan.Program{Name: name, Repeat: !init}
	for i := range l.p.Params {
		q := &l.p.Params[i]
		disk := plan.Ref{Buffer: q.Storage, Type: l.p.Buffers[q.Storage].Type}
		home := plan.Ref{Buffer: l.homes[i], Type: q.Type}
		r := plan.Residency{Param: int32(i), Buffer: l.homes[i]}
		prog.Exit = append(prog.Exit, r)
		if init {
			prog.Instrs = append(prog.Instrs, &plan.Copy{Lane: plan.Read, Dst: home, Src: disk, Kind: plan.CopyLoad})
		} else {
			prog.Entry = append(prog.Entry, r)
			if q.Mutable {
				prog.Instrs = append(prog.Instrs, &plan.Copy{Lane: plan.Write, Dst: disk, Src: home, Kind: plan.CopySave})
			}
		}
	}
	end := int32(len(prog.Instrs))
	for i := range l.p.Params {
		l.live(l.homes[i], at, 0, end)
		if init || l.p.Params[i].Mutable {
			l.live(l.p.Params[i].Storage, at, 0, end)
		}
	}
	l.p.Programs = append(l.p.Programs, prog)
}

// program lowers a graph on the compute lane alone.
func (l *layout) program(g *ir.Graph) {
	at := int32(len(l.p.Programs))
	prog := plan.Program{Name: g.Name, Repeat: true}
	buffers := make([]plan.BufferID, g.NumValues())
	next := map[ir.ID]int32{} // new content -> parameter
	for _, q := range g.Params {
		buffers[q.ID] = l.homes[l.index[q.Name]]
		if q.Next != nil {
			next[q.Next.ID] = l.index[q.Name]
		}
	}
	end := int32(len(g.Nodes))
	for _, v := range g.Inputs {
		buffers[v.ID] = l.buffer(v.Name, v.Type, l.symbol(v.Name, at, v.ID, v.Type.Bytes()), -1)
		l.p.Buffers[buffers[v.ID]].Category = plan.CatInput
		l.live(buffers[v.ID], at, 0, end)
		prog.Inputs = append(prog.Inputs, plan.Port{Name: v.Name, Ref: plan.Ref{Buffer: buffers[v.ID], Type: v.Type}})
	}
	exit := append([]plan.BufferID{}, l.homes...)
	until := make([]int32, len(l.homes))
	for i := range until {
		until[i] = end
	}
	for pc, n := range g.Nodes {
		x := &plan.Exec{Op: n.Op, Phase: n.Phase, Origin: n.Origin, Scratch: plan.NoBuffer, Picos: 1}
		var in, out []ir.Type
		for _, v := range n.In {
			x.In = append(x.In, plan.Ref{Buffer: buffers[v.ID], Type: v.Type})
			in = append(in, v.Type)
		}
		for _, v := range n.Out {
			name, offset := fmt.Sprintf("%%%d", v.ID), int64(-1)
			p, isNext := next[v.ID]
			if isNext {
				offset = l.p.Buffers[l.homes[p]].Offset
			}
			b := l.buffer(name, v.Type, l.symbol(name, at, v.ID, v.Type.Bytes()), offset)
			if isNext {
				exit[p], until[p] = b, int32(pc)
			}
			l.live(b, at, int32(pc), end)
			buffers[v.ID] = b
			x.Out = append(x.Out, plan.Ref{Buffer: b, Type: v.Type})
			out = append(out, v.Type)
		}
		if n := ir.WorkOf(n.Op, in, out).ScratchBytes; n > 0 {
			x.Scratch = l.buffer("scratch", ir.T(ir.U8, n), plan.NoSymbol, -1)
			l.live(x.Scratch, at, int32(pc), int32(pc)+1)
		}
		prog.Instrs = append(prog.Instrs, x)
	}
	for i := range l.homes {
		l.live(l.homes[i], at, 0, until[i])
		prog.Entry = append(prog.Entry, plan.Residency{Param: int32(i), Buffer: l.homes[i]})
		prog.Exit = append(prog.Exit, plan.Residency{Param: int32(i), Buffer: exit[i]})
	}
	for _, r := range g.Results {
		prog.Results = append(prog.Results, plan.Port{Name: r.Name, Ref: plan.Ref{Buffer: buffers[r.Value.ID], Type: r.Value.Type}})
	}
	l.p.Programs = append(l.p.Programs, prog)
}
