package passes

import (
	"path/filepath"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/passes/cost"
)

// lower turns placed programs into a plan: nodes become instructions with explicit waits, storages become buffers, and the programs init and
// save, which move parameters between storage and their homes, are added. needs: placed.
//
//	%9 =b SwapIn %4     ->   wait h2d on 31        (last reader of the bytes)
//	                         copy h2d b9 <- h4
//	%8 =b ReluGrad ..   ->   wait compute on 40    (the copy)
//	                         exec ReluGrad b9 b7 -> b8
func lower(p *placement, prof *cost.Profile) *plan.Plan {
	l := &lowering{placement: p, prof: prof, plan: &plan.Plan{}}
	l.declareParams()
	l.init()
	for k, s := range p.programs {
		l.program(k, s)
	}
	l.save()
	for space := range ir.NumSpaces {
		if n, used := l.arenaBytes(space); used {
			l.plan.Arenas = append(l.plan.Arenas, plan.Arena{Space: space, Bytes: n, BudgetBytes: -1, Align: prof.AlignBytes})
		}
	}
	return l.plan
}

// lowering carries lower. What the plan says of a parameter that is a shadow, it says of its owner: a shadow holds the same symbol and is no
// parameter of the plan, only a second place where that content lies.
type lowering struct {
	*placement
	prof    *cost.Profile
	plan    *plan.Plan
	index   []int32         // by placement param: index into plan.Params; a shadow has its owner's
	homes   []plan.BufferID // by placement param
	symbols []plan.SymbolID // by placement param
}

// arenaBytes is the extent of a space's buffers, and whether there are any: tensors without elements need an arena too.
func (l *lowering) arenaBytes(space ir.Space) (bytes int64, used bool) {
	for _, b := range l.plan.Buffers {
		if b.Type.Space == space {
			bytes, used = max(bytes, b.Offset+b.Bytes), true
		}
	}
	return bytes, used
}

func (l *lowering) buffer(b plan.Buffer) plan.BufferID {
	l.plan.Buffers = append(l.plan.Buffers, b)
	return plan.BufferID(len(l.plan.Buffers) - 1)
}

func (l *lowering) symbol(s plan.Symbol) plan.SymbolID {
	l.plan.Symbols = append(l.plan.Symbols, s)
	return plan.SymbolID(len(l.plan.Symbols) - 1)
}

// declareParams lists the parameters, each with a buffer at home and one in storage.
func (l *lowering) declareParams() {
	owner := map[string]int{}
	disk := int64(0)
	for i, q := range l.params {
		t := q.Type
		home := plan.Buffer{Name: q.Name, Type: t, Offset: l.seats[q.home].offset, Bytes: t.Bytes(), Category: paramCategory(q.Param)}
		if q.Role == ir.Shadow {
			o := owner[q.Of]
			home.Holds = l.symbols[o]
			l.index, l.symbols = append(l.index, l.index[o]), append(l.symbols, l.symbols[o])
			l.homes = append(l.homes, l.buffer(home))
			continue
		}
		owner[q.Name] = i
		sym := l.symbol(plan.Symbol{Name: q.Name, Program: -1, Value: q.ID, Bytes: t.Bytes()})
		home.Holds = sym
		stored := home
		stored.Type.Space, stored.Offset, stored.Live = ir.Disk, disk, nil
		disk += roundUp(t.Bytes(), l.prof.AlignBytes)
		mutable := false
		for k, in := range q.in {
			mutable = mutable || in != nil && in.Next != nil && changes(l.programs[k].g, in)
		}
		l.index = append(l.index, int32(len(l.plan.Params)))
		l.symbols = append(l.symbols, sym)
		l.homes = append(l.homes, l.buffer(home))
		t.Space = ir.Device
		l.plan.Params = append(l.plan.Params, plan.Param{
			Name: q.Name, Type: t, Role: q.Role, Constant: q.Role == ir.Literal, Trainable: q.Trainable, Mutable: mutable,
			Of: q.Of, Aliases: q.Aliases, Init: q.Init, Storage: l.buffer(stored),
		})
	}
}

// changes tells whether program g gives a parameter new content, rather than bringing the old one back from a swap or from the shadow.
func changes(g *ir.Graph, q *ir.Param) bool {
	v := content(q.Next)
	p := g.Param(v.Name)
	shadow := p != nil && p.Value == v && p.Role == ir.Shadow && p.Of == q.Name
	return v != q.Value && !shadow
}

// content traces a value through copies to the value whose content it is.
func content(v *ir.Value) *ir.Value {
	for v.Def != nil {
		switch v.Def.Op.(type) {
		case op.SwapIn, op.SwapOut:
			v = v.Def.In[0]
		default:
			return v
		}
	}
	return v
}

func paramCategory(q *ir.Param) plan.Category {
	switch q.Role {
	case ir.Moment:
		return plan.CatOptimizerState
	case ir.Accumulator:
		return plan.CatGradient
	case ir.Statistic:
		return plan.CatStatistic
	case ir.Literal, ir.Buffer:
		return plan.CatConstant
	}
	return plan.CatParameter
}

// program lowers program k, the k-th after init: first the instructions, then, from where each moment's instructions stand, the lives of buffers.
func (l *lowering) program(k int, s *seated) {
	at := int32(len(l.plan.Programs))
	e := &emission{lowering: l, seated: s, k: k, at: at, h: newHazards(), buffers: make([]plan.BufferID, len(s.seat))}
	e.assignBuffers()
	pcs := make([]int32, 0, len(s.nodes)+2) // by moment: its first instruction, a wait where it has some
	runs := make([]int32, 0, len(s.nodes))  // by node: the instruction that does it, behind its waits
	for i, n := range s.nodes {
		pcs = append(pcs, int32(len(e.h.instrs)))
		e.node(int32(i), n)
		runs = append(runs, int32(len(e.h.instrs))-1)
	}
	pcs = append(pcs, int32(len(e.h.instrs)))
	e.h.join()
	pcs = append(pcs, int32(len(e.h.instrs)))
	moved := e.h.cycle()
	for i := range pcs[1:] {
		pcs[1+i] += moved // the waits in front belong to the first moment
	}
	for i := range runs {
		runs[i] += moved
	}
	prog := plan.Program{Name: s.g.Name, Instrs: e.h.instrs, Repeat: true}
	for _, v := range s.g.Inputs {
		prog.Inputs = append(prog.Inputs, plan.Port{Name: v.Name, Ref: e.ref(v)})
	}
	for _, r := range s.g.Results {
		prog.Results = append(prog.Results, plan.Port{Name: r.Name, Ref: e.ref(r.Value)})
	}
	for i, q := range l.params {
		prog.Entry = append(prog.Entry, plan.Residency{Param: l.index[i], Buffer: l.homes[i]})
		out := l.homes[i]
		if in := q.in[k]; in != nil && in.Next != nil {
			out = e.buffers[s.live.Storages.Of[in.Next.ID]]
		}
		prog.Exit = append(prog.Exit, plan.Residency{Param: l.index[i], Buffer: out})
		if q.in[k] == nil {
			l.liveIn(l.homes[i], at, 0, int32(len(prog.Instrs)))
		}
	}
	for i := range s.live.Storages.All {
		a, b := s.span(int32(i))
		start, end := pcs[a], pcs[b]
		if s.live.Def[i] >= 0 {
			start = runs[a]
		}
		if s.handed[i] >= 0 {
			end = runs[b] // the node that writes over it still reads it
		}
		l.liveIn(e.buffers[i], at, start, end)
	}
	for i, sc := range e.scratchBuffers {
		if sc != plan.NoBuffer {
			l.liveIn(sc, at, pcs[i], pcs[i+1])
		}
	}
	l.plan.Programs = append(l.plan.Programs, prog)
}

func (l *lowering) liveIn(b plan.BufferID, program, start, end int32) {
	x := &l.plan.Buffers[b]
	x.Live = append(x.Live, plan.Span{Program: program, Start: start, End: end})
}

// emission is the lowering of one program.
type emission struct {
	*lowering
	*seated
	k              int   // number of the program in the placement
	at             int32 // number of the program in the plan
	h              *hazards
	buffers        []plan.BufferID // by storage
	scratchBuffers []plan.BufferID // by node
	copies         []int32         // by storage of a SwapOut's result: its instruction
}

// assignBuffers makes a buffer for every storage of the program; a parameter's is its home.
func (e *emission) assignBuffers() {
	st := e.live.Storages
	symbols := make([]plan.SymbolID, len(st.All))
	for i, q := range e.params {
		if in := q.in[e.k]; in != nil {
			at := st.Of[in.ID]
			e.buffers[at], symbols[at] = e.homes[i], e.symbols[i]
		}
	}
	gradient := e.gradients()
	becomes := make([]*ir.Param, len(st.All)) // by storage: the parameter whose new content it is
	for _, q := range e.g.Params {
		if q.Next != nil {
			becomes[st.Of[q.Next.ID]] = q
		}
	}
	for i, x := range st.All {
		if x.Kind == ParamStorage {
			continue
		}
		if symbols[i] = e.sameContent(x.Root, symbols); symbols[i] < 0 {
			symbols[i] = e.symbol(plan.Symbol{Name: valueName(x.Root), Program: e.at, Value: x.Root.ID, Bytes: x.Bytes})
		}
		b := plan.Buffer{
			Name: valueName(x.Root), Type: x.Root.Type, Offset: e.seats[e.seat[i]].offset, Bytes: x.Bytes, Holds: symbols[i],
			Category: e.category(x, gradient[i]),
		}
		if q := becomes[i]; q != nil {
			b.Name, b.Category = q.Name+"'", paramCategory(q)
		}
		e.buffers[i] = e.buffer(b)
	}
	for i, n := range e.nodes {
		sc := plan.NoBuffer
		if at := e.scratch[i]; at >= 0 {
			bytes := e.seats[at].bytes
			sc = e.buffer(plan.Buffer{
				Name: "scratch of " + nodeName(n), Type: ir.T(ir.U8, bytes), Offset: e.seats[at].offset, Bytes: bytes, Category: plan.CatTemporary,
				Holds: plan.NoSymbol,
			})
		}
		e.scratchBuffers = append(e.scratchBuffers, sc)
	}
	e.copies = filled(len(st.All))
}

// sameContent is the symbol of a value that copies or recomputes another one; -1 for a value with content of its own.
func (e *emission) sameContent(v *ir.Value, symbols []plan.SymbolID) plan.SymbolID {
	of := e.live.Storages.Of
	if v.Def == nil {
		return -1
	}
	switch v.Def.Op.(type) {
	case op.SwapIn, op.SwapOut:
		return symbols[of[v.Def.In[0].ID]]
	}
	if c := v.Def.CopyOf; c != nil {
		return symbols[of[c.Out[v.Index].ID]]
	}
	return -1
}

// gradients marks the storages that an update reads as a gradient: backward values that nodes of the update phase read.
func (e *emission) gradients() []bool {
	out := make([]bool, len(e.live.Storages.All))
	for _, n := range e.nodes {
		if n.Phase != ir.Update {
			continue
		}
		for _, v := range n.In {
			if v.Def != nil && v.Def.Phase == ir.Backward {
				out[e.live.Storages.Of[v.ID]] = true
			}
		}
	}
	return out
}

func (e *emission) category(x Storage, gradient bool) plan.Category {
	switch {
	case x.Kind == InputStorage:
		return plan.CatInput
	case gradient:
		return plan.CatGradient
	case x.Root.Def != nil && x.Root.Def.Phase == ir.Forward, x.Root.Def != nil && x.Root.Def.CopyOf != nil:
		return plan.CatActivation
	}
	if c := content(x.Root); c.Def == nil {
		if q := e.g.Param(c.Name); q != nil {
			return paramCategory(q)
		}
	} else if c.Def.Phase == ir.Forward {
		return plan.CatActivation
	}
	return plan.CatTemporary
}

// valueName is the exporter's name of a value, or its node's.
func valueName(v *ir.Value) string {
	if v.Name == "" && v.Def != nil {
		return nodeName(v.Def)
	}
	return v.Name
}

func (e *emission) ref(v *ir.Value) plan.Ref {
	return plan.Ref{Buffer: e.buffers[e.live.Storages.Of[v.ID]], Type: v.Type}
}

func (e *emission) refs(vs []*ir.Value) []plan.Ref {
	out := make([]plan.Ref, len(vs))
	for i, v := range vs {
		out[i] = e.ref(v)
	}
	return out
}

// touch is the bytes of a Ref.
func (l *lowering) touch(r plan.Ref, write bool) access {
	b := &l.plan.Buffers[r.Buffer]
	return access{space: b.Type.Space, start: b.Offset + r.Offset, end: b.Offset + r.Offset + r.Type.Bytes(), write: write}
}

// node emits one node.
func (e *emission) node(i int32, n *ir.Node) {
	switch n.Op.(type) {
	case op.SwapOut:
		e.copies[e.live.Storages.Of[n.Out[0].ID]] = e.copy(&plan.Copy{Lane: plan.D2H, Dst: e.ref(n.Out[0]), Src: e.ref(n.In[0]),
			Picos: e.prof.D2HPicos(n.In[0].Type.Bytes()), Kind: plan.CopySwapOut})
	case op.SwapIn:
		e.copy(&plan.Copy{Lane: plan.H2D, Dst: e.ref(n.Out[0]), Src: e.ref(n.In[0]), Picos: e.prof.H2DPicos(n.In[0].Type.Bytes()), Kind: plan.CopySwapIn})
	case op.SwapWait:
		e.h.append(&plan.Wait{Lane: plan.Compute, On: e.copies[e.live.Storages.Of[n.In[1].ID]]})
	default:
		e.exec(i, n)
	}
}

func (e *emission) copy(c *plan.Copy) int32 {
	return e.h.emit(c, []access{e.touch(c.Src, false), e.touch(c.Dst, true)})
}

func (e *emission) exec(i int32, n *ir.Node) {
	x := &plan.Exec{
		Lane: plan.Compute, Op: n.Op, In: e.refs(n.In), Out: e.refs(n.Out), Scratch: e.scratchBuffers[i],
		Picos: e.prof.ExecPicos(n.Op, types(n.In), types(n.Out)), Phase: n.Phase, Recompute: n.CopyOf != nil, Origin: n.Origin,
	}
	if x.Origin.File != "" {
		x.Origin.File = filepath.Base(x.Origin.File) // a plan says nothing of the machine that made it
	}
	var touches []access
	for _, r := range x.In {
		touches = append(touches, e.touch(r, false))
	}
	for _, r := range x.Out {
		touches = append(touches, e.touch(r, true))
	}
	if x.Scratch != plan.NoBuffer {
		b := e.plan.Buffers[x.Scratch]
		touches = append(touches, access{space: ir.Device, start: b.Offset, end: b.Offset + b.Bytes, write: true})
	}
	e.h.emit(x, touches)
}
