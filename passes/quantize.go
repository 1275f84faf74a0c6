package passes

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"aitk/internal/quant"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
)

// quantize stores frozen weights in 8 or 4 bits and dequantizes them where they are read.
//
//	%1 = param "fc.weight" frozen weight : f32[128,784] init=file(...)
//	%3 = MatMul{transB=true} %0 %1
//
// becomes
//
//	%4 = param "fc.weight" frozen weight : i8[128,784] pack=("int8","codes",f32[128,784]) init=file(...)
//	%5 = param "fc.weight$scales" frozen weight : f32[128] pack=("int8","scales",f32[128,784]) init=file(...)
//	%6 = Dequantize{format="int8",to=f32} %4 %5
//	%3 = MatMul{transB=true} %0 %6
//
// Nothing is packed here: the parameter carries the recipe, and whoever loads it packs slab by slab (internal/weights). The format is fixed
// here, before autodiff, so that the loss, its gradients and every later pass see the weight as it will be. At this point one Dequantize
// serves all readers; pass "dequantize" parts them when nothing merges nodes any more.
//
// Scales belong to output channels, blocks lie along the input dimension; which is which is read off the op that takes the weight. A weight of
// more than two axes is stored as a matrix and reshaped, which is free.
//
// What a glob hits and keeps its format is told with the reason: what trains, vectors (norms, biases), embeddings unless asked by name, what no
// matrix product or convolution reads, what would save too little.
func quantize() Pass {
	return Pass{
		Name:      "quantize",
		Doc:       "store the frozen weights that --quantize names in fewer bits",
		Preserves: Changes,
		Run: func(ctx *Context, g *ir.Graph) error {
			if len(ctx.Options.Quantize) == 0 {
				return nil
			}
			q := &quantizing{ctx: ctx, g: g, uses: weightUses(g)}
			if err := q.idleGlobs(); err != nil {
				return err
			}
			if err := q.choose(); err != nil {
				return err
			}
			q.replace()
			q.tell()
			return nil
		},
	}
}

// smallestQuantized is the least number of elements that is worth instructions of its own.
const smallestQuantized = 512

// weightUse is how a weight is read.
type weightUse struct {
	linear    bool // by a product or a convolution
	inOut     bool // a matrix stored [in, out]
	embedding bool
}

// weightUses finds, by value ID, how parameters are read, through ops that only move elements.
func weightUses(g *ir.Graph) []weightUse {
	uses := make([]weightUse, g.NumValues())
	type origin struct {
		param  *ir.Value
		turned bool
	}
	from := make([]origin, g.NumValues()) // by value ID: the parameter that is moved
	for _, p := range g.Params {
		from[p.ID] = origin{p.Value, false}
	}
	for _, n := range g.Nodes {
		if moves(n.Op) {
			o := from[n.In[0].ID]
			if t, ok := n.Op.(op.Transpose); ok && o.param != nil {
				k := len(t.Perm)
				o.turned = o.turned != (k >= 2 && t.Perm[k-1] == int64(k-2))
			}
			from[n.Out[0].ID] = o
			continue
		}
		for i, v := range n.In {
			o := from[v.ID]
			if o.param == nil {
				continue
			}
			u := &uses[o.param.ID]
			switch x := n.Op.(type) {
			case op.MatMul:
				inOut := i == 1 && x.TransB == o.turned || i == 0 && x.TransA != o.turned
				if !u.linear {
					u.inOut = inOut
				}
				u.linear = true
			case op.Conv:
				u.linear = u.linear || i == 1
			case op.ConvGradInput:
				u.linear = u.linear || i == 0
			case op.Gather:
				u.embedding = u.embedding || i == 0
			}
		}
	}
	return uses
}

// moves tells ops whose result is their only float operand, moved about.
func moves(o ir.Op) bool {
	switch o.(type) {
	case op.Reshape, op.Transpose, op.Slice, op.Expand, op.Cast:
		return true
	}
	return false
}

// quantizing carries the pass.
type quantizing struct {
	ctx    *Context
	g      *ir.Graph
	uses   []weightUse
	chosen []*quant.Scheme // by parameter index; nil: kept
	report []plan.Quantized
	total  quant.Loss // of what was measured
}

func (q *quantizing) idleGlobs() error {
	var idle []string
	for _, s := range q.ctx.Options.Quantize {
		if !slices.ContainsFunc(q.g.Params, func(p *ir.Param) bool { return p.Role == ir.Weight && s.hits(p.Name) }) {
			idle = append(idle, s.Glob)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	return ir.Errorf(ir.Usage, ir.Origin{}, "--quantize: no weight is named like %s; `aitk inspect` lists them", strings.Join(idle, ", "))
}

// choose decides for each parameter and reports on those that were asked for.
func (q *quantizing) choose() error {
	q.chosen = make([]*quant.Scheme, len(q.g.Params))
	var problems []string
	for i, p := range q.g.Params {
		spec, byName, hit := MatchQuantize(q.ctx.Options.Quantize, p.Name)
		if !hit || spec.Format == formatNone || p.Role != ir.Weight || p.Trainable && p.Of != "" { // the last is an adapter
			continue
		}
		entry := plan.Quantized{Name: p.Name, WasBytes: p.Type.Bytes(), Bytes: p.Type.Bytes(), RelL2: plan.NotMeasured, WorstBlock: plan.NotMeasured}
		if entry.Skipped = q.reason(p, byName); entry.Skipped == "" && spec.Format == formatAuto && q.ctx.Options.MeasureAuto {
			if err := q.content(p); err != nil {
				problems = append(problems, err.Error())
			} else if err := q.measureAuto(p, spec); err != nil {
				problems = append(problems, err.Error())
			}
			continue
		}
		if entry.Skipped == "" {
			s, loss, err := q.scheme(p, spec)
			switch {
			case err != nil:
				problems = append(problems, err.Error())
			case s == nil:
				entry.Skipped = "no format stays within max-error=" + formatFloat(spec.MaxError)
			case 4*s.Bytes() > 3*p.Type.Bytes():
				entry.Skipped = "too small: " + schemeName(s) + " would save less than a quarter"
			default:
				q.chosen[i] = s
				entry.Format, entry.Bytes = schemeName(s), s.Bytes()
				if loss != nil {
					entry.RelL2, entry.WorstBlock = loss.RelL2, loss.WorstGroup
					q.total.ErrSquares += loss.ErrSquares
					q.total.SumSquares += loss.SumSquares
				}
			}
		}
		q.report = append(q.report, entry)
	}
	if len(problems) > 0 {
		return ir.Errorf(ir.Failed, ir.Origin{}, "--quantize: %s", strings.Join(problems, "; "))
	}
	return nil
}

// reason says why a weight keeps its format, "" if nothing speaks against another.
func (q *quantizing) reason(p *ir.Param, byName bool) string {
	u := q.uses[p.ID]
	switch {
	case p.Trainable:
		return "it trains"
	case p.Init.Packed() && p.Init.Pack.Format != quant.Cast: // floats of another type than the file's are packed from the file's
		return "it is packed already"
	case !p.Type.DType.IsFloat():
		return "it holds no floats"
	case len(p.Type.Shape) < 2:
		return vectorReason
	case u.embedding && !byName:
		return "an embedding, which is quantized only when it is asked for by its full name"
	case !u.linear && !u.embedding:
		return "no matrix product or convolution reads it"
	case p.Type.Elems() < smallestQuantized:
		return fmt.Sprintf("too small: %d elements", p.Type.Elems())
	}
	return ""
}

// matrix is a weight's type as it is packed: rows are output channels where the first axis tells them.
func matrix(t ir.Type) ir.Type {
	if len(t.Shape) <= 2 {
		return t
	}
	return ir.T(t.DType, t.Shape[0], t.Shape[1:].Elems())
}

// schemeOf is how spec packs a weight in a format.
func (q *quantizing) schemeOf(p *ir.Param, spec QuantizeSpec, f quant.Format) *quant.Scheme {
	t := matrix(p.Type)
	s := &quant.Scheme{Format: f, Rows: t.Shape[0], Cols: t.Shape[1]}
	inOut := q.uses[p.ID].inOut && len(p.Type.Shape) == 2
	if f.Blocked() {
		s.Block, s.Double = spec.Block, spec.Double
		if !inOut {
			s.Axis = 1
		}
	} else if inOut {
		s.Axis = 1
	}
	return s
}

// content refuses a weight that auto cannot measure.
func (q *quantizing) content(p *ir.Param) error {
	if q.ctx.Options.Weights == nil || p.Init.Kind == ir.InitAbsent {
		return fmt.Errorf("auto needs the content of %q, which the model does not have: give the weights with --weights, or a format", p.Name)
	}
	return nil
}

// scheme is how spec packs a weight, and what that loses where the content can be read. A nil scheme: auto finds none within the error.
func (q *quantizing) scheme(p *ir.Param, spec QuantizeSpec) (*quant.Scheme, *quant.Loss, error) {
	if spec.Format != formatAuto {
		s := q.schemeOf(p, spec, quant.Format(spec.Format))
		loss, err := q.measure(p, s)
		return s, loss, err
	}
	if err := q.content(p); err != nil {
		return nil, nil, err
	}
	var best *quant.Scheme
	var bestLoss *quant.Loss
	for _, f := range []quant.Format{quant.NF4, quant.Int4, quant.Int8, quant.FP8} { // the smallest first
		s := q.schemeOf(p, spec, f)
		if best != nil && s.Bytes() > best.Bytes() {
			break
		}
		loss, err := q.measure(p, s)
		if err != nil {
			return nil, nil, err
		}
		if loss.RelL2 <= spec.MaxError && (best == nil || s.Bytes() < best.Bytes() || loss.RelL2 < bestLoss.RelL2) {
			best, bestLoss = s, loss
		}
	}
	return best, bestLoss, nil
}

// measure packs and unpacks a weight slab by slab; nil where its content cannot be read now.
func (q *quantizing) measure(p *ir.Param, s *quant.Scheme) (*quant.Loss, error) {
	r := q.ctx.Options.Weights
	if r == nil || p.Init.Kind == ir.InitAbsent {
		return nil, nil
	}
	t, in := matrix(p.Init.Described(p.Type)), p.Init
	in.Pack = ir.Packing{}
	loss, err := s.Measure(func(x []float32, row int64) error { return r.Floats(p.Name, t, &in, x, row) })
	if err != nil {
		if !strings.Contains(err.Error(), p.Name) {
			err = fmt.Errorf("parameter %q: %w", p.Name, err)
		}
		return nil, err
	}
	return &loss, nil
}

// replace puts packed parameters in the place of the chosen ones and dequantizes each before its first reader.
func (q *quantizing) replace() {
	g := q.g
	wanted := make([]*dequantized, g.NumValues()) // by value ID of the old parameter
	var params []*ir.Param
	for i, p := range g.Params {
		s := q.chosen[i]
		if s == nil {
			params = append(params, p)
			continue
		}
		d := &dequantized{old: p, scheme: s}
		for _, part := range s.Parts() {
			k := packedParam(g, p, s, part)
			d.parts = append(d.parts, k.Value)
			params = append(params, k)
		}
		wanted[p.ID] = d
	}
	g.Params = params
	nodes := g.Nodes
	g.Nodes = nil
	for _, n := range nodes {
		for i, v := range n.In {
			if int(v.ID) < len(wanted) && wanted[v.ID] != nil {
				n.In[i] = wanted[v.ID].value(g, n)
			}
		}
		g.Nodes = append(g.Nodes, n)
	}
	for i, r := range g.Results {
		if int(r.Value.ID) < len(wanted) && wanted[r.Value.ID] != nil {
			g.Results[i].Value = wanted[r.Value.ID].value(g, &ir.Node{})
		}
	}
}

// packedParam makes the parameter that holds one part of a packed weight. It is not in g.Params yet.
func packedParam(g *ir.Graph, p *ir.Param, s *quant.Scheme, part string) *ir.Param {
	t, err := quant.PartType(s, part)
	if err != nil {
		panic(ir.Bugf("quantize: %v", err))
	}
	name := p.Name
	if part != quant.PartCodes {
		name += "$" + part
	}
	k := &ir.Param{Value: g.NewValue(name, t), Role: ir.Weight, Init: p.Init, Reason: "frozen, " + part + " of " + schemeName(s)}
	k.Init.Pack = ir.Packing{Source: p.Init.Described(p.Type), Format: string(s.Format), Part: part, Axis: int64(s.Axis), Block: s.Block, Double: s.Double}
	if part == quant.PartCodes {
		k.Aliases = p.Aliases
	} else {
		k.Of = p.Name
	}
	return k
}

// dequantized is a weight on its way from parts to floats.
type dequantized struct {
	old    *ir.Param
	scheme *quant.Scheme
	parts  []*ir.Value
	made   *ir.Value
}

// value is the weight as floats, made before node n where it is the first to ask.
func (d *dequantized) value(g *ir.Graph, n *ir.Node) *ir.Value {
	if d.made == nil {
		b := &ir.Builder{G: g, Phase: n.Phase, Origin: ir.Origin{Node: "dequantize " + d.old.Name, File: n.Origin.File}}
		d.made = b.Add(op.Dequantize{Format: string(d.scheme.Format), To: d.old.Type.DType, Axis: int64(d.scheme.Axis), Block: d.scheme.Block}, d.parts...)
		if !d.made.Type.Equal(d.old.Type) {
			d.made = b.Add(op.Reshape{Shape: d.old.Type.Shape}, d.made)
		}
	}
	return d.made
}

// tell records what was done, and says it in sentences.
func (q *quantizing) tell() {
	var was, is, n int64
	measured := true
	var reasons []string
	names := map[string][]string{}
	for _, x := range q.report {
		if x.Skipped != "" {
			if names[x.Skipped] == nil {
				reasons = append(reasons, x.Skipped)
			}
			names[x.Skipped] = append(names[x.Skipped], x.Name)
			continue
		}
		n, was, is = n+1, was+x.WasBytes, is+x.Bytes
		measured = measured && x.RelL2 != plan.NotMeasured
	}
	q.ctx.Quantized = append(q.ctx.Quantized, q.report...)
	q.ctx.QuantizedRelL2 = plan.NotMeasured
	q.ctx.Count("weights quantized", n)
	q.ctx.Count("bytes saved", was-is)
	sentence := fmt.Sprintf("quantized %d of %d weights asked for, from %d to %d bytes", n, len(q.report), was, is)
	if measured && n > 0 {
		if q.total.SumSquares > 0 {
			q.total.RelL2 = math.Sqrt(q.total.ErrSquares / q.total.SumSquares)
		}
		q.ctx.QuantizedRelL2 = q.total.RelL2
		sentence += fmt.Sprintf(", relative error %.3g", q.total.RelL2)
	}
	q.ctx.Note(sentence)
	for _, r := range reasons {
		q.ctx.Note(fmt.Sprintf("not quantized (%s): %s", r, someNames(names[r])))
	}
}

// someNames is a list of names, cut where it grows long.
func someNames(names []string) string {
	const most = 8
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}
