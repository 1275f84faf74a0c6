package passes

import (
	"fmt"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"aitk/ir"
)

// Run runs a pipeline on the training graph g. It is the one place that recovers *ir.Bug: the error then names the pass and the
// program, and with Options.CrashDir a reproducer lies beside it. Errors of the user's making are returned as the pass gave them.
func Run(ctx *Context, g *ir.Graph, pipeline []Pass, order []OrderPair) error {
	if err := checkNames(&ctx.Options, pipeline); err != nil {
		return err
	}
	if err := CheckPipeline(ctx.have, selected(&ctx.Options, pipeline), order); err != nil {
		return err
	}
	if len(ctx.Programs) == 0 {
		ctx.Programs = []*ir.Graph{g}
	}
	if err := ctx.verify("input"); err != nil {
		return err
	}
	for _, p := range selected(&ctx.Options, pipeline) {
		if err := ctx.runPass(&p); err != nil {
			return err
		}
	}
	return nil
}

// selected is the pipeline less what is disabled and what stands behind StopAfter.
func selected(o *Options, pipeline []Pass) []Pass {
	var run []Pass
	for _, p := range pipeline {
		if !slices.Contains(o.Disable, p.Name) {
			run = append(run, p)
		}
		if p.Name == o.StopAfter {
			break
		}
	}
	return run
}

// checkNames refuses names that no pass has, and disabling what the rest stands on.
func checkNames(o *Options, pipeline []Pass) error {
	var problems []string
	pipeline = slices.Concat(pipeline, Pipeline(), Back()) // a command names passes of both halves at once
	known := func(name string) *Pass {
		if i := slices.IndexFunc(pipeline, func(p Pass) bool { return p.Name == name }); i >= 0 {
			return &pipeline[i]
		}
		problems = append(problems, fmt.Sprintf("no pass is named %q", name))
		return nil
	}
	for _, name := range o.Disable {
		if p := known(name); p != nil && p.Required {
			problems = append(problems, fmt.Sprintf("pass %s is required and cannot be disabled", name))
		}
	}
	if o.StopAfter != "" {
		known(o.StopAfter)
	}
	for _, name := range o.PrintAfter {
		if name != "all" {
			known(name)
		}
	}
	if len(problems) > 0 {
		return ir.Errorf(ir.Usage, ir.Origin{}, "%s", strings.Join(problems, "; "))
	}
	return nil
}

// runPass runs one pass on the programs that it is for.
func (ctx *Context) runPass(p *Pass) error {
	programs := ctx.Programs[:1]
	if p.Each {
		programs = ctx.Programs
	}
	for _, g := range slices.Clone(programs) {
		ctx.Stats = append(ctx.Stats, Stat{Pass: p.Name, Program: g.Name, NodesBefore: len(g.Nodes), BytesBefore: valueBytes(g)})
		at := len(ctx.Stats) - 1
		begin := time.Time{}
		if ctx.Options.TimePasses {
			begin = time.Now()
		}
		if err := ctx.guard(p, g); err != nil {
			return err
		}
		s := &ctx.Stats[at]
		s.NodesAfter, s.BytesAfter = len(g.Nodes), valueBytes(g)
		if ctx.Options.TimePasses {
			s.Seconds = time.Since(begin).Seconds()
		}
	}
	ctx.have = ctx.have&^p.Takes | p.Gives
	if err := ctx.verify("pass " + p.Name); err != nil {
		return err
	}
	return ctx.print(p)
}

// guard calls the pass and turns a Bug into an error that names it.
func (ctx *Context) guard(p *Pass, g *ir.Graph) (err error) {
	ctx.pass = p.Name
	before := ""
	if ctx.Options.CrashDir != "" {
		before = g.String()
	}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case *ir.Bug:
			err = ctx.crashed(p, g, before, r, debug.Stack())
		default:
			panic(r)
		}
	}()
	return p.Run(ctx, g)
}

func (ctx *Context) crashed(p *Pass, g *ir.Graph, before string, bug *ir.Bug, stack []byte) error {
	err := fmt.Errorf("pass %s on program %s: %w", p.Name, g.Name, bug)
	if ctx.Options.CrashDir == "" {
		return err
	}
	r := Reproducer{Passes: []string{p.Name}, Options: ctx.Options.Settings(), Graph: before, Failure: err.Error() + "\n" + string(stack)}
	path, werr := r.Write(ctx.Options.CrashDir)
	if werr != nil {
		return fmt.Errorf("%w (and the reproducer could not be written: %v)", err, werr)
	}
	return fmt.Errorf("%w; reproducer in %s", err, path)
}

// verify checks every program; a graph that a pass broke is a bug of ours, one that came in broken is the caller's.
func (ctx *Context) verify(after string) error {
	if !ctx.Options.VerifyEach {
		return nil
	}
	for _, g := range ctx.Programs {
		if err := ir.Verify(g); err != nil {
			return fmt.Errorf("program %s is broken after %s: %w", g.Name, after, err)
		}
	}
	return nil
}

func (ctx *Context) print(p *Pass) error {
	o := &ctx.Options
	if o.Print == nil || !slices.Contains(o.PrintAfter, p.Name) && !slices.Contains(o.PrintAfter, "all") {
		return nil
	}
	for _, g := range ctx.Programs {
		if _, err := fmt.Fprintf(o.Print, "# after %s\n%s\n", p.Name, g.String()); err != nil {
			return fmt.Errorf("printing after %s: %w", p.Name, err)
		}
	}
	return nil
}

// valueBytes is what all nodes define and all constants hold, each once and nothing shared.
func valueBytes(g *ir.Graph) int64 {
	var total int64
	for _, c := range g.Consts {
		total += c.Type.Bytes()
	}
	for _, n := range g.Nodes {
		for _, v := range n.Out {
			total += v.Type.Bytes()
		}
	}
	return total
}
