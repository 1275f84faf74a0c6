package passes

import (
	"fmt"
	"hash/fnv"
	"math"
	"slices"
	"strings"

	"aitk/internal/quant"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
)

// lora puts adapters beside frozen weights: the model's own parameters are all frozen, and what trains is a product of two small matrices added
// to the output of the op that reads the weight, before the bias.
//
//	%2 = MatMul{transB=true} %0 %1           %1 the weight "fc.weight" [out,in]
//	%3 = Add %2 %bias
//
// becomes, with rank r,
//
//	%2 = MatMul{transB=true} %0 %1
//	%6 = MatMul{transB=true} %0 %4           %4 "fc.lora_A.weight" f32[r,in], drawn evenly in ±1/sqrt(in)
//	%7 = Mul %6 alpha/r
//	%8 = MatMul{transB=true} %7 %5           %5 "fc.lora_B.weight" f32[out,r], zero
//	%9 = Add %2 %8
//	%3 = Add %9 %bias
//
// A and B are float32 and cast to the compute type. The scale is applied where tensors are smallest. A convolution has a convolution of the same
// strides, pads and dilations to r channels for A, and one of 1x1 for B. A weight that several ops read has one adapter that all of them add.
// A packed weight (query, key and value in one matrix) is one weight: it gets one adapter over the whole.
//
// Orientation is found in the graph: the weight stands as the second or first operand of a product, as it is stored or transposed. What a glob
// hits and cannot be adapted is told in a note, with the reason.
func lora() Pass {
	return Pass{
		Name:      "lora",
		Doc:       "freeze the model and put low-rank adapters beside the weights that --lora names",
		Preserves: Changes,
		Run: func(ctx *Context, g *ir.Graph) error {
			if len(ctx.Options.LoRA) == 0 {
				return nil
			}
			targets, rejected := loraTargets(g)
			a := &adapting{ctx: ctx, g: g, made: map[string]*adapterPair{}, sub: make([]*ir.Value, g.NumValues()), stream: freeStream(g)}
			if err := a.choose(targets, rejected); err != nil {
				return err
			}
			for _, p := range g.Params {
				if p.Role == ir.Weight && p.Trainable {
					p.Trainable, p.Reason = false, "frozen: adapters train"
				}
			}
			if err := a.parameters(targets); err != nil {
				return err
			}
			a.tellShared(targets)
			a.insert(targets)
			ctx.Count("weights adapted", int64(len(a.made)))
			ctx.Count("adapter parameters", a.elems)
			return nil
		},
	}
}

// loraTarget is one op that reads a weight in a way that an adapter can follow.
type loraTarget struct {
	node     *ir.Node
	param    *ir.Param
	operand  int      // of node, that leads to the weight
	out, in  int64    // of the weight as a linear map
	kernel   ir.Shape // spatial extents; nil for a product
	inOut    bool     // a matrix stored [in, out]
	rejected string
}

// vectorReason is why vectors are neither adapted nor quantized.
const vectorReason = "a bias, a scale or another vector"

// loraTargets finds the ops that an adapter can follow, and why other weights have none: by parameter name.
func loraTargets(g *ir.Graph) (targets []loraTarget, rejected map[string]string) {
	rejected = map[string]string{}
	params := make([]*ir.Param, g.NumValues())
	for _, p := range g.Params {
		params[p.ID] = p
		if p.Role == ir.Weight {
			switch len(p.Type.Shape) {
			case 0, 1:
				rejected[p.Name] = vectorReason
			default:
				rejected[p.Name] = "no MatMul, Gemm or Conv reads it as its weight"
			}
		}
	}
	for _, n := range g.Nodes {
		t, ok := loraTargetOf(n, params)
		if !ok {
			continue
		}
		if t.rejected != "" {
			rejected[t.param.Name] = t.rejected
			continue
		}
		targets = append(targets, t)
	}
	for _, t := range targets {
		delete(rejected, t.param.Name)
	}
	return targets, rejected
}

// loraTargetOf looks at one node.
func loraTargetOf(n *ir.Node, params []*ir.Param) (loraTarget, bool) {
	switch o := n.Op.(type) {
	case op.MatMul:
		for _, k := range []int{1, 0} {
			p, turned := weightBehind(n.In[k], params)
			if p == nil || len(p.Type.Shape) != 2 {
				continue
			}
			t := loraTarget{node: n, param: p, operand: k, out: p.Type.Shape[0], in: p.Type.Shape[1]}
			// As the second operand [in,out] is the plain orientation, as the first one [out,in] is.
			t.inOut = k == 1 && o.TransB == turned || k == 0 && o.TransA != turned
			if t.inOut {
				t.out, t.in = t.in, t.out
			}
			return t, true
		}
	case op.Conv:
		p, turned := weightBehind(n.In[1], params)
		if p == nil || turned || len(p.Type.Shape) < 3 {
			return loraTarget{}, false
		}
		s := p.Type.Shape
		t := loraTarget{node: n, param: p, operand: 1, out: s[0], in: s[1], kernel: s[2:]}
		if o.Group != 1 {
			t.rejected = fmt.Sprintf("a convolution in %d groups", o.Group)
		}
		return t, true
	case op.ConvGradInput:
		if p, _ := weightBehind(n.In[0], params); p != nil {
			return loraTarget{param: p, rejected: "a transposed convolution"}, true
		}
	case op.Gather:
		if p, _ := weightBehind(n.In[0], params); p != nil {
			return loraTarget{param: p, rejected: "an embedding"}, true
		}
	}
	return loraTarget{}, false
}

// weightPasses tells ops that weightBehind sees through.
func weightPasses(o ir.Op) bool {
	switch x := o.(type) {
	case op.Cast, op.Dequantize:
		return true
	case op.Transpose:
		return slices.Equal(x.Perm, []int64{1, 0})
	}
	return false
}

// weightBehind follows casts, transposes of matrices and dequantization to a weight.
func weightBehind(v *ir.Value, params []*ir.Param) (p *ir.Param, turned bool) {
	for v.Def != nil {
		if !weightPasses(v.Def.Op) {
			return nil, false
		}
		if _, ok := v.Def.Op.(op.Transpose); ok {
			turned = !turned
		}
		v = v.Def.In[0]
	}
	if p := params[v.ID]; p != nil && p.Role == ir.Weight {
		return p, turned
	}
	return nil, false
}

// adapting carries the pass.
type adapting struct {
	ctx    *Context
	g      *ir.Graph
	specs  map[string]LoRASpec     // by weight
	made   map[string]*adapterPair // by weight
	sub    []*ir.Value             // by value ID: the output with the delta
	elems  int64
	stream uint64 // of the next dropout
	b      *ir.Builder
}

type adapterPair struct{ a, b *ir.Param }

// choose finds what the globs hit and says what of it cannot be adapted.
func (a *adapting) choose(targets []loraTarget, rejected map[string]string) error {
	a.specs = map[string]LoRASpec{}
	var idle []string
	for _, s := range a.ctx.Options.LoRA {
		if !slices.ContainsFunc(a.g.Params, func(p *ir.Param) bool { return p.Role == ir.Weight && s.hits(p.Name) }) {
			idle = append(idle, s.Glob)
		}
	}
	if len(idle) > 0 {
		return ir.Errorf(ir.Usage, ir.Origin{}, "--lora: no weight is named like %s; `aitk inspect` lists them", strings.Join(idle, ", "))
	}
	for _, t := range targets {
		if s, ok := MatchLoRA(a.ctx.Options.LoRA, t.param.Name); ok {
			a.specs[t.param.Name] = s
		}
	}
	var reasons []string
	names := map[string][]string{}
	for _, p := range a.g.Params {
		_, hit := MatchLoRA(a.ctx.Options.LoRA, p.Name)
		reason := rejected[p.Name]
		if !hit || reason == "" || p.Role != ir.Weight {
			continue
		}
		if names[reason] == nil {
			reasons = append(reasons, reason)
		}
		names[reason] = append(names[reason], p.Name)
	}
	for _, r := range reasons {
		list := strings.Join(names[r], ", ")
		if r == vectorReason { // nobody expects an adapter there
			list = someNames(names[r])
		}
		a.ctx.Note(fmt.Sprintf("no adapter (%s): %s", r, list))
	}
	switch {
	case len(a.specs) > 0:
	case len(reasons) == 0:
		return ir.Errorf(ir.Usage, ir.Origin{}, "--lora: rank=0 leaves no adapter: the last match decides")
	default:
		return ir.Errorf(ir.Usage, ir.Origin{}, "--lora: nothing of what is hit can be adapted: %s", a.ctx.Notes[len(a.ctx.Notes)-1])
	}
	return nil
}

// parameters makes A and B of each weight, in the order of the graph.
func (a *adapting) parameters(targets []loraTarget) error {
	var missing, misfit []string
	for _, t := range targets {
		spec, ok := a.specs[t.param.Name]
		if !ok || a.made[t.param.Name] != nil {
			continue
		}
		module := ModuleOf(t.param.Name)
		var file *AdapterTensors
		if spec.Init != "" {
			if a.ctx.Options.AdapterInit == nil {
				return ir.Errorf(ir.Usage, ir.Origin{}, "--lora: the adapter file %q was not opened", spec.Init)
			}
			x, ok := a.ctx.Options.AdapterInit(spec.Init, module)
			if !ok || len(x.A.Type.Shape) == 0 {
				missing = append(missing, module+" in "+spec.Init)
				continue
			}
			file = &x
			if spec.Rank == RankOfFile {
				spec.Rank = x.A.Type.Shape[0]
			}
			if spec.Alpha == 0 {
				spec.Alpha = x.Alpha
			}
			a.specs[t.param.Name] = spec
		}
		shapeA, shapeB := ir.Shape{spec.Rank, t.in}, ir.Shape{t.out, spec.Rank}
		for _, k := range t.kernel {
			shapeA, shapeB = append(shapeA, k), append(shapeB, 1)
		}
		pair := &adapterPair{a: a.add(t.param, module+".lora_A.weight", shapeA), b: a.add(t.param, module+".lora_B.weight", shapeB)}
		a.made[t.param.Name] = pair
		a.ctx.Adapters = append(a.ctx.Adapters, plan.Adapter{Weight: t.param.Name, A: pair.a.Name, B: pair.b.Name, Scale: spec.Scale(), InOut: t.inOut})
		if file != nil {
			misfit = append(misfit, content32(pair.a, file.A, spec.Init)...)
			misfit = append(misfit, content32(pair.b, file.B, spec.Init)...)
			continue
		}
		h := fnv.New64a()
		h.Write([]byte(module))
		pair.a.Init = ir.Init{Kind: ir.InitUniform, Fill: 1 / math.Sqrt(float64(shapeA[1:].Elems())), Seed: h.Sum64() ^ uint64(a.ctx.Options.Seed)*0x9e3779b97f4a7c15}
	}
	switch {
	case len(missing) > 0:
		return ir.Errorf(ir.Usage, ir.Origin{}, "--lora: no adapter for %s", strings.Join(missing, ", "))
	case len(misfit) > 0:
		return ir.Errorf(ir.Usage, ir.Origin{}, "--lora: %s", strings.Join(misfit, "; "))
	}
	return nil
}

func (a *adapting) add(weight *ir.Param, name string, s ir.Shape) *ir.Param {
	p := a.g.AddParam(freeName(a.g, name), ir.T(ir.F32, s...))
	p.Role, p.Trainable, p.Of, p.Reason = ir.Weight, true, weight.Name, "adapter of "+weight.Name
	a.elems += s.Elems()
	return p
}

// tellShared marks weights that something reads which their adapter does not follow, as the embedding does that is tied to the last layer: with
// the adapter added to them they would be other weights there.
func (a *adapting) tellShared(targets []loraTarget) {
	params := make([]*ir.Param, a.g.NumValues())
	for _, p := range a.g.Params {
		params[p.ID] = p
	}
	for _, n := range a.g.Nodes {
		if slices.ContainsFunc(targets, func(t loraTarget) bool { return t.node == n }) || weightPasses(n.Op) {
			continue
		}
		for _, v := range n.In {
			p, _ := weightBehind(v, params)
			i := slices.IndexFunc(a.ctx.Adapters, func(x plan.Adapter) bool { return p != nil && x.Weight == p.Name })
			if i >= 0 && !a.ctx.Adapters[i].Shared {
				a.ctx.Adapters[i].Shared = true
				a.ctx.Note(fmt.Sprintf("the adapter of %q is not for %s %q, which reads the weight too: it cannot be merged", p.Name, ir.OpName(n.Op), n.Origin.Node))
			}
		}
	}
}

// insert adds the deltas.
func (a *adapting) insert(targets []loraTarget) {
	byNode := make(map[*ir.Node]*loraTarget, len(targets))
	for i := range targets {
		byNode[targets[i].node] = &targets[i]
	}
	nodes := a.g.Nodes
	a.g.Nodes = nil
	for _, n := range nodes {
		for i, v := range n.In {
			if int(v.ID) < len(a.sub) && a.sub[v.ID] != nil {
				n.In[i] = a.sub[v.ID]
			}
		}
		a.g.Nodes = append(a.g.Nodes, n)
		if t := byNode[n]; t != nil && a.made[t.param.Name] != nil {
			a.b = &ir.Builder{G: a.g, Phase: n.Phase, Origin: n.Origin}
			a.b.Origin.Node, a.b.Origin.OpType = "adapter of "+t.param.Name, ""
			y := n.Out[0]
			a.sub[y.ID] = a.b.Add(op.Add{}, y, a.delta(t))
		}
	}
	for i, r := range a.g.Results {
		if int(r.Value.ID) < len(a.sub) && a.sub[r.Value.ID] != nil {
			a.g.Results[i].Value = a.sub[r.Value.ID]
		}
	}
}

// delta is scale * B(A(x)).
func (a *adapting) delta(t *loraTarget) *ir.Value {
	spec, pair, b := a.specs[t.param.Name], a.made[t.param.Name], a.b
	d := t.node.Out[0].Type.DType
	cast := func(v *ir.Value) *ir.Value {
		if v.Type.DType == d {
			return v
		}
		return b.Add(op.Cast{To: d}, v)
	}
	wa, wb := cast(pair.a.Value), cast(pair.b.Value)
	x := t.node.In[1-t.operand]
	if spec.Dropout > 0 {
		x = b.Add(op.Dropout{Ratio: spec.Dropout, StreamID: a.stream}, x, reservedInput(a.g, "$seed"), reservedInput(a.g, "$step"), reservedInput(a.g, "$micro"))
		a.stream++
	}
	scaled := func(h *ir.Value) *ir.Value {
		if s := spec.Scale(); s != 1 {
			return b.Add(op.Mul{}, h, b.Scalar(d, s))
		}
		return h
	}
	switch o := t.node.Op.(type) {
	case op.Conv:
		h := scaled(b.Add(op.Conv{Strides: o.Strides, Dilations: o.Dilations, Pads: o.Pads, Group: 1}, x, wa))
		n := len(t.kernel)
		return b.Add(op.Conv{Strides: slices.Repeat([]int64{1}, n), Dilations: slices.Repeat([]int64{1}, n), Pads: make([]int64, 2*n), Group: 1}, h, wb)
	case op.MatMul:
		if t.operand == 1 {
			h := scaled(b.Add(op.MatMul{TransA: o.TransA, TransB: true}, x, wa))
			return b.Add(op.MatMul{TransB: true}, h, wb)
		}
		h := scaled(b.Add(op.MatMul{TransB: o.TransB}, wa, x))
		return b.Add(op.MatMul{}, wb, h)
	}
	panic(ir.Bugf("adapter at %s", ir.OpName(t.node.Op)))
}

// freeStream is a random stream that no node of the graph draws from.
func freeStream(g *ir.Graph) uint64 {
	free := uint64(1)
	for _, n := range g.Nodes {
		if e, ok := n.Op.(ir.Effects); ok && e.Stream() != op.ShuffleStream {
			free = max(free, e.Stream()+1)
		}
	}
	return free
}

// reservedInput is an input that the training loop feeds.
func reservedInput(g *ir.Graph, name string) *ir.Value {
	if v := g.Input(name); v != nil {
		return v
	}
	return g.AddInput(name, ir.T(ir.I64))
}

// content32 gives an adapter's parameter the tensor of a file, or says why not.
func content32(p *ir.Param, t AdapterTensor, file string) []string {
	if !t.Type.DType.IsFloat() || !t.Type.Shape.Equal(p.Type.Shape) {
		return []string{fmt.Sprintf("%q is %v in %s, --lora asks for %v", p.Name, t.Type, file, p.Type)}
	}
	p.Init = t.Init
	if t.Type.DType != p.Type.DType {
		p.Init.Pack = ir.Packing{Source: t.Type, Format: quant.Cast, Part: quant.PartCodes}
	}
	return nil
}
