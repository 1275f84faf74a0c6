package passes

import (
	"slices"
	"strings"

	"aitk/ir"
	"aitk/ir/op"
)

// optimizer appends the updates. Where nothing speaks against it an update stands in the backward half, right after its gradient is
// complete and the last node has read the old weight, so that the gradient's bytes are free again at once:
//
//	%20 =b MatMul{transA=true} %0 %19        the gradient of "w", complete
//	%21 =u AllFinite %18 %20                 the flag falls with the first gradient that is not finite
//	%22 =u SumSquares %20
//	%23 =u Add %15 %22
//	%24 =u SGD %1 %20 %lr %step %21          the new content of "w"
//
// The flag is true at first, takes in the loss and then each gradient in the order in which they complete, and each update reads it after
// its own gradient: once it has fallen, no later update changes anything. Results are "ok" (the flag after all gradients) and "grad_norm" (the root of the
// sum of all squares).
//
// With clipping or accumulation no update may run before all gradients are there. Then the step adds each gradient to a parameter
// "<weight>.grad", and the updates stand in a program of their own, see update.go.
func optimizer() Pass {
	return Pass{
		Name:      "optimizer",
		Doc:       "append updates where gradients complete, or accumulate gradients for program update",
		Needs:     Differentiated,
		Gives:     Updating,
		Takes:     Differentiated,
		Preserves: Extends,
		Required:  true,
		Run: func(ctx *Context, g *ir.Graph) error {
			if err := checkGlobs("no-decay", ctx.Options.NoDecay, g); err != nil {
				return err
			}
			if ctx.Options.Optimizer.Name == "" {
				ctx.Options.Optimizer, _ = ParseOptimizer("adamw")
			}
			if ctx.Options.SeparateUpdate() {
				u, err := separateUpdate(ctx, g)
				if err != nil {
					return err
				}
				ctx.Programs = slices.Insert(ctx.Programs, 1, u)
			} else if err := updateInStep(ctx, g); err != nil {
				return err
			}
			ctx.Grads = nil
			return nil
		},
	}
}

// checkGlobs reports the patterns that no parameter fits.
func checkGlobs(flag string, globs []string, g *ir.Graph) error {
	var idle []string
	for _, glob := range globs {
		if !slices.ContainsFunc(g.Params, func(p *ir.Param) bool { return ir.MatchGlob(glob, p.Name) }) {
			idle = append(idle, glob)
		}
	}
	if len(idle) == 0 {
		return nil
	}
	return ir.Errorf(ir.Usage, ir.Origin{}, "--%s: no parameter is named like %s", flag, strings.Join(idle, ", "))
}

// completed is a weight with its gradient and the position in the step at which the gradient is complete.
type completed struct {
	param *ir.Param
	grad  *ir.Value
	at    int // index of the node that makes the gradient; -1: a leaf
	free  int // index of the last node that makes the gradient or reads the weight
}

// completions lists the weights with a gradient by the order in which the gradients complete.
func completions(ctx *Context, g *ir.Graph) []completed {
	pos := make(map[*ir.Node]int, len(g.Nodes))
	storages := StoragesOf(g)
	lastRead := make([]int, len(storages.All))
	for i, n := range g.Nodes {
		pos[n] = i
		for _, v := range n.In {
			lastRead[storages.Of[v.ID]] = i
		}
	}
	var done []completed
	for _, p := range g.Params {
		v := ctx.Grads[p.Name]
		if v == nil || !p.Trainable {
			continue
		}
		c := completed{param: p, grad: v, at: -1}
		if v.Def != nil {
			c.at = pos[v.Def]
		}
		c.free = max(c.at, lastRead[storages.Of[p.ID]])
		done = append(done, c)
	}
	slices.SortStableFunc(done, func(a, b completed) int { return a.at - b.at })
	return done
}

// inserter puts nodes behind nodes of a graph without disturbing what is there.
type inserter struct {
	b     *ir.Builder
	after [][]*ir.Node // by node index + 1
	base  []*ir.Node
}

func newInserter(g *ir.Graph) *inserter {
	return &inserter{b: &ir.Builder{G: g, Phase: ir.Update}, base: g.Nodes, after: make([][]*ir.Node, len(g.Nodes)+1)}
}

// at lets build append nodes, which then stand behind base node i (-1: at the start), after what was put there before.
func (s *inserter) at(i int, origin string, build func(b *ir.Builder)) {
	g := s.b.G
	g.Nodes = nil
	s.b.Origin = ir.Origin{Node: origin}
	build(s.b)
	s.after[i+1] = append(s.after[i+1], g.Nodes...)
}

// done gives the graph its nodes back.
func (s *inserter) done() {
	nodes := s.after[0]
	for i, n := range s.base {
		nodes = append(nodes, n)
		nodes = append(nodes, s.after[i+1]...)
	}
	s.b.G.Nodes = nodes
}

// watch appends the flag and the squares of one tensor to their chains.
type watch struct {
	ok, squares *ir.Value
}

func newWatch(b *ir.Builder) *watch {
	return &watch{ok: b.G.AddConst(ir.T(ir.Bool), []byte{1})}
}

func (w *watch) finite(b *ir.Builder, x *ir.Value) {
	w.ok = b.Add(op.AllFinite{}, w.ok, x)
}

// sum adds the squares of g. The sum is f32 until an f64 comes, f64 from there on.
func (w *watch) sum(b *ir.Builder, g *ir.Value) {
	s := b.Add(op.SumSquares{}, g)
	switch {
	case w.squares == nil:
		w.squares = s
		return
	case s.Type.DType == ir.F64 && w.squares.Type.DType != ir.F64:
		w.squares = b.Add(op.Cast{To: ir.F64}, w.squares)
	case s.Type.DType != ir.F64 && w.squares.Type.DType == ir.F64:
		s = b.Add(op.Cast{To: ir.F64}, s)
	}
	w.squares = b.Add(op.Add{}, w.squares, s)
}

// updateInStep is the optimizer without a program of its own.
func updateInStep(ctx *Context, g *ir.Graph) error {
	done := completions(ctx, g)
	s := newInserter(g)
	w := newWatch(s.b)
	loss := g.Result("loss")
	lossAt := slices.Index(s.base, loss.Def)
	s.at(lossAt, "finite loss", func(b *ir.Builder) { w.finite(b, loss) })
	u := newUpdater(ctx, g)
	// The chain of flags orders the updates: each stands no earlier than the flag before it.
	flag := lossAt
	for _, c := range done {
		flag = max(flag, c.at)
		s.at(flag, "finite grad of "+c.param.Name, func(b *ir.Builder) {
			w.finite(b, c.grad)
			w.sum(b, c.grad)
		})
		s.at(max(flag, c.free), "update of "+c.param.Name, func(b *ir.Builder) { u.update(b, c.param, c.grad, w.ok) })
	}
	s.at(len(s.base)-1, "grad norm", func(b *ir.Builder) {
		g.Results = append(g.Results,
			ir.Result{Name: "ok", Value: w.ok},
			ir.Result{Name: "grad_norm", Value: b.Add(op.Sqrt{}, w.squares)})
	})
	s.done()
	ctx.Count("updates", int64(len(done)))
	return nil
}
