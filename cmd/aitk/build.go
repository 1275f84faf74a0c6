package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"aitk/importer"
	"aitk/internal/weights"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/cost"
	"aitk/runtime/train"
	"aitk/runtime/train/data"
)

// builder brings a model to a plan: inspect, bind, import, passes, plan. It keeps what was chosen on the user's behalf.
type builder struct {
	c        *call
	path     string
	source   *data.Source // nil without --data
	batch    int64        // samples of a batch; 0: not known
	forward  bool         // evaluation only: no gradients, no updates
	unread   bool         // weights are not looked at, so that what quantizing loses is not measured
	choices  []choice
	ctx      *passes.Context
	profile  *cost.Profile
	dims     []importer.Dim
	lastPass bool // --stop-after left programs and no plan
}

// choice is a setting that the user did not give.
type choice struct{ name, value, why string }

func (b *builder) choose(name, value, why string) {
	b.choices = append(b.choices, choice{name, value, why})
}

// build plans a model. With a *passes.FitError the plan is the smallest one. It is nil with --stop-after.
func (b *builder) build() (*plan.Plan, error) {
	if b.choosesFormats() {
		if err := b.chooseFormats(); err != nil {
			return nil, err
		}
	}
	if err := b.resumeFormats(); err != nil {
		return nil, err
	}
	if err := b.prepare(); err != nil || b.lastPass {
		return nil, err
	}
	begin := time.Now()
	p, err := b.c.compileMemory(b.ctx, b.profile)
	b.c.printStats(b.ctx)
	b.c.detail("planned in %.3f s for %s", time.Since(begin).Seconds(), b.profile.Name)
	if p == nil {
		return nil, err
	}
	b.describe(p)
	if fit, ok := errors.AsType[*passes.FitError](err); ok {
		fit.Advice = b.advise(fit)
		p.Report.Advice = fit.Advice
	}
	return p, err
}

// prepare brings a model to scheduled programs, or to where --stop-after says.
func (b *builder) prepare() error {
	if _, err := train.ParseSchedule(cmp.Or(b.c.schedule, "constant")); err != nil {
		return err
	}
	g, err := b.importModel()
	if err != nil {
		return err
	}
	if b.profile, err = b.c.deviceProfile(); err != nil {
		return err
	}
	if err := b.runPasses(g); err != nil {
		return err
	}
	if b.lastPass {
		b.c.printStats(b.ctx)
		return nil
	}
	return b.checkData()
}

// importModel gives the forward graph with every dimension bound.
func (b *builder) importModel() (*ir.Graph, error) {
	c := b.c
	seen, err := importer.Inspect(b.path)
	if err != nil {
		return nil, err
	}
	bound, err := b.bindDims(seen)
	if err != nil {
		return nil, err
	}
	inputs, err := c.readInputs()
	if err != nil {
		return nil, err
	}
	m, err := importer.Import(b.path, importer.Options{Dims: bound.sizes, Inputs: inputs, BatchNorm: c.batchNorm, Eval: b.forward, Select: c.selection, Outputs: c.inner(seen)})
	if err != nil {
		return nil, err
	}
	b.dims = m.Dims
	if !b.forward {
		c.noteLost(m.Lost)
	}
	c.detail("%s: %d nodes, %d in the graph, %d folded, %d literals of %s", b.path, m.Nodes, m.Stats.Nodes, m.Stats.Folded, m.Stats.Literals, plan.FormatBytes(m.Stats.LiteralBytes))
	if c.weights != "" {
		if err := c.replaceWeights(m.Graph); err != nil {
			return nil, err
		}
	}
	if n := normsInInference(m.Graph); n > 0 && c.batchNorm == "" && !b.forward {
		b.choose("batch-norm", importer.BatchNormAsExported, fmt.Sprintf("%d in inference form, their running statistics do not move: --batch-norm %s trains as the module does, %s says that this is meant",
			n, importer.BatchNormTrain, importer.BatchNormFrozen))
	}
	return m.Graph, nil
}

// noteLost says which parameters of the module training goes on without, because the export destroyed them.
func (c *call) noteLost(lost []importer.Finding) {
	words := []struct{ code, text string }{
		{importer.DroppedParameter, "the export left out %s: training goes on without them"},
		{importer.FoldedParameter, "the export folded %s into tensors of another form: training goes on without them, with those instead"},
		{importer.FoldedBatchNorm, "the export merged batch norms into the layers before them (%s): training goes on without them"},
	}
	for _, w := range words {
		var names []string
		for _, f := range lost {
			if f.Code == w.code {
				names = append(names, cmp.Or(f.Parameter, f.Node))
			}
		}
		if len(names) > 0 {
			c.note(w.text+"; `aitk lint` says how to export instead", listed(names))
		}
	}
}

// normsInInference counts the batch norms that train their scale but not their statistics.
func normsInInference(g *ir.Graph) int {
	trains := map[*ir.Value]bool{}
	for _, p := range g.Params {
		trains[p.Value] = p.Trainable
	}
	count := 0
	for _, n := range g.Nodes {
		if _, ok := n.Op.(op.BatchNormInference); ok && trains[n.In[1]] {
			count++
		}
	}
	return count
}

// inner is --output where it names a tensor that is no output of the model: the graph is then computed up to there only.
func (c *call) inner(m *importer.Model) []string {
	name := c.passes.Output
	if name == "" || slices.ContainsFunc(m.Outputs, func(v importer.ValueInfo) bool { return v.Name == name }) {
		return nil
	}
	return []string{name}
}

// runPasses makes the programs and orders them.
func (b *builder) runPasses(g *ir.Graph) error {
	c := b.c
	b.ctx = &passes.Context{Options: c.passes, Profile: b.profile}
	o := &b.ctx.Options
	if len(o.LoRA) > 0 && slices.ContainsFunc(c.selection, func(s importer.Selection) bool { return s.Train }) {
		return usagef("--train and --lora: beside adapters all weights of the model are frozen, so --train would do nothing; leave one of them out")
	}
	o.Target = b.targetType()
	o.MaskEval = true
	o.VerifyEach = c.verify == "each"
	o.CrashDir = os.TempDir()
	o.Print = c.stderr
	o.Seed, o.AdapterInit = c.seed, c.adapterInit()
	if !b.unread {
		reader := weights.NewReader()
		c.closing(reader)
		o.Weights = reader
	}
	if b.forward { // nothing trains, so everything may be quantized
		for _, p := range g.Params {
			p.Trainable = false
		}
	}
	if err := b.defaultLoss(g); err != nil {
		return err
	}
	if o.Optimizer.Name == "" && !b.forward {
		spec, err := passes.ParseOptimizer("adamw")
		if err != nil {
			return err
		}
		o.Optimizer = spec
		b.choose("optimizer", spec.String(), "the default")
	}
	pipeline, order := passes.Pipeline(), passes.Order()
	if b.forward {
		pipeline = slices.DeleteFunc(pipeline, func(p passes.Pass) bool { return slices.Contains(trainingPasses(), p.Name) })
	}
	back, err := frontOptions(o)
	if err != nil {
		return err
	}
	b.lastPass = o.StopAfter != ""
	if err := passes.Run(b.ctx, g, pipeline, order); err != nil {
		c.printStats(b.ctx)
		if c.adapterErr != nil {
			return c.adapterErr
		}
		return b.named(err)
	}
	c.tellUnusedAdapters()
	for _, n := range b.ctx.Notes {
		c.note("%s", n)
	}
	o.PrintAfter, o.Disable, o.StopAfter = back.PrintAfter, back.Disable, back.StopAfter
	if back.StopAfter != "" { // the back half keeps its programs to itself and prints them on its way
		o.PrintAfter, o.Print = append(o.PrintAfter, back.StopAfter), c.stdout
	}
	return nil
}

// frontOptions leaves in o the passes of the front half that --print-after, --disable and --stop-after name, and returns those of the back half. Names that
// neither half has are refused.
func frontOptions(o *passes.Options) (back passes.Options, err error) {
	front := passNames(passes.Pipeline())
	late := passNames(passes.Back())
	split := func(names []string) (early, behind []string) {
		for _, n := range names {
			switch {
			case n == "all":
				early, behind = append(early, n), append(behind, n)
			case slices.Contains(late, n):
				behind = append(behind, n)
			case slices.Contains(front, n):
				early = append(early, n)
			case err == nil:
				err = usagef("no pass is named %q%s; `aitk passes` lists them", n, didYouMean(n, slices.Concat(front, late)))
			}
		}
		return early, behind
	}
	o.PrintAfter, back.PrintAfter = split(o.PrintAfter)
	o.Disable, back.Disable = split(o.Disable)
	if o.StopAfter != "" {
		if _, behind := split([]string{o.StopAfter}); len(behind) > 0 {
			o.StopAfter, back.StopAfter = "", o.StopAfter
		}
	}
	return back, err
}

func passNames(list []passes.Pass) []string {
	var names []string
	for _, p := range list {
		names = append(names, p.Name)
	}
	return names
}

// checkData holds the data against the inputs of the programs, before time is spent on a plan.
func (b *builder) checkData() error {
	if b.source == nil {
		return nil
	}
	var ports []data.Port
	for _, v := range b.ctx.Programs[0].Inputs {
		ports = append(ports, data.Port{Name: v.Name, Type: v.Type})
	}
	_, err := b.source.Bind(ports, data.Labels{})
	return err
}

// trainingPasses are those that a forward program does without.
func trainingPasses() []string { return []string{"average", "autodiff", "optimizer"} }

// named puts the model's name before an error that has no file of its own.
func (b *builder) named(err error) error {
	if e, ok := err.(*ir.Error); ok && e.Origin.File == "" {
		e.Origin.File = b.path
		return e
	}
	return err
}

// outputType is the type of the output that feeds the loss, before the loss is there; the zero Type if there is none.
func outputType(g *ir.Graph, o *passes.Options) ir.Type {
	for i, r := range g.Results {
		if r.Name == o.Output || o.Output == "" && i == 0 {
			return r.Value.Type
		}
	}
	return ir.Type{}
}

// defaultLoss chooses a loss where neither the user nor a target says which. With a target the pass chooses.
func (b *builder) defaultLoss(g *ir.Graph) error {
	o := &b.ctx.Options
	if o.Loss.Name != "" || o.Target.DType != ir.Invalid {
		return nil
	}
	t := outputType(g, o)
	name, why := "", ""
	switch {
	case t.DType == ir.Invalid || !t.DType.IsFloat():
		return nil // the pass says what is wrong
	case t.Elems() == 1:
		name, why = "output", "the output is one number"
	case b.source != nil:
		return &ir.Error{Origin: ir.Origin{File: b.source.Path()}, Kind: ir.Usage, Cause: fmt.Errorf("the data has no tensor %q and the model's output %v is no loss", data.Target, t),
			Remedy: "add the target to the data, or say with --loss output:NAME which output is the loss"}
	case len(t.Shape) >= 2:
		name, why = "cross-entropy", fmt.Sprintf("there is no data to choose by, and the output is %v", t)
	default:
		name, why = "mse", fmt.Sprintf("there is no data to choose by, and the output is %v", t)
	}
	spec, err := passes.ParseLoss(name)
	if err != nil {
		return err
	}
	o.Loss = spec
	b.choose("loss", spec.String(), why)
	return nil
}

// describe fills in what only the command line knows: tool, model, dims and the settings that shape the run.
func (b *builder) describe(p *plan.Plan) {
	c := b.c
	p.Tool, p.Model = toolVersion(), filepath.Base(b.path)
	for _, d := range b.dims {
		if d.Size > 0 || d.Bound {
			p.Dims = append(p.Dims, plan.Dim{Name: d.Name, Size: d.Size})
		}
	}
	var list []plan.Option
	add := func(key, value string) {
		if value != "" {
			list = append(list, plan.Option{Key: key, Value: value})
		}
	}
	for _, s := range b.ctx.Options.Settings() {
		if s.Key != "mask-eval" && s.Key != "seed" && !(b.forward && s.Key == "optimizer") {
			add(s.Key, s.Value)
		}
	}
	add("batch-norm", c.batchNorm)
	if !b.forward {
		add("schedule", cmp.Or(c.schedule, "constant"))
		add("seed", strconv.FormatInt(c.seed, 10))
	}
	for _, s := range c.selection {
		if s.Train {
			add("train", s.Glob)
		} else {
			add("freeze", s.Glob)
		}
	}
	list = append(list, p.Options...) // the adapters
	slices.SortStableFunc(list, func(x, y plan.Option) int { return cmp.Compare(x.Key, y.Key) })
	p.Options = list
}
