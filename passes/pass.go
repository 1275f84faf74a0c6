// Package passes turns a model's forward graph into a plan: it simplifies, appends loss, gradients and updates, orders the nodes for a low
// peak (the front half, Pipeline), decides what is kept, recomputed or swapped, places every byte and lowers the result to plan.Plan (the
// back half, Back). A pass is one function over ir.Graph with a row in one of the two; the driver in run.go is the only caller.
//
// The package must not know ONNX, devices' code or the run time: it imports neither importer nor runtime. It reads no environment,
// no flags and no clock (but for Options.TimePasses), so the same graph and options give the same programs everywhere.
//
// Invariants: a pass leaves a graph that ir.Verify accepts; nothing depends on the order of a map; below the row "schedule" the slice
// order is a promise and no pass may merge or reorder nodes; a rewrite is directional and never makes the graph larger in bytes.
//
//	ctx := &passes.Context{Options: opts}
//	err := passes.Run(ctx, g, passes.Pipeline(), passes.Order())
//	step, update, eval := ctx.Program("step"), ctx.Program("update"), ctx.Program("eval") // update: nil where the step updates
//	p, err := passes.Compile(ctx, passes.MemoryOptions{Profile: cost.CPUGeneric(), BudgetBytes: 1 << 30, HostBudgetBytes: -1, Recompute: true})
package passes

import (
	"io"
	"strings"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes/cost"
)

// Property is a set of facts that hold for a graph between passes.
type Property uint32

// The properties. A pass says which it needs, gives and takes away; CheckPipeline follows them without running anything.
const (
	Canonical      Property = 1 << iota // no rule of canonicalize applies
	HasLoss                             // the result "loss" is a scalar
	Split                               // program eval is made; the step's results are its own
	Differentiated                      // Context.Grads is filled
	Updating                            // parameters have their Next, results "ok" and "grad_norm" exist
	Scheduled                           // node order is the issue order
	WithinBudget                        // the memory decision is written into the graph
	Placed                              // every storage has a place
	Lowered                             // the plan exists
)

var propertyNames = [...]string{"canonical", "loss", "split", "differentiated", "updating", "scheduled", "within-budget", "placed", "lowered"}

func (p Property) String() string {
	var names []string
	for i, n := range propertyNames {
		if p&(1<<i) != 0 {
			names = append(names, n)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "+")
}

// Contract says what a pass leaves as it was; tests hold every pass to it over random graphs.
type Contract uint8

// The contracts, strongest first.
const (
	Bits    Contract = iota // all results and new contents of parameters are equal bit by bit
	Values                  // equal within the rounding of one operation (a constant rounded early, the sign of a zero)
	Extends                 // old results are unchanged, new ones and new parameters are added
	Changes                 // results are taken away or differ
)

var contractNames = [...]string{"bits", "values", "extends", "changes"}

func (c Contract) String() string { return contractNames[c] }

// Pass is one step of the pipeline.
type Pass struct {
	Name      string // a verb or the thing it appends; unique in a pipeline
	Doc       string // first line: what it does, shown by `aitk passes`
	Needs     Property
	Gives     Property
	Takes     Property // no longer known to hold afterwards
	Preserves Contract
	Required  bool // may not be disabled: what follows makes no sense without it
	Each      bool // runs on every program; otherwise once, on the training step
	Run       func(*Context, *ir.Graph) error
}

// Synopsis is the first line of Doc.
func (p *Pass) Synopsis() string {
	line, _, _ := strings.Cut(p.Doc, "\n")
	return line
}

// Options are all settings of all passes and of the driver. The zero value trains with the loss that the output's type suggests.
type Options struct {
	Loss       LossSpec      // Name "": ChooseLoss by Target
	Target     ir.Type       // of the data's target where it is known; used to choose the loss
	Output     string        // graph output that feeds the loss; "": the first
	Optimizer  OptimizerSpec // Name "": adamw
	NoDecay    []string      // globs of parameters without weight decay
	ClipNorm   float64       // 0: no clipping
	Accumulate int64         // microbatches of one optimizer step; 0 and 1: one
	NoEval     bool          // make no program eval
	MaskEval   bool          // program eval has the input "$valid" i64[]: its loss counts the first so many samples only
	GradResult bool          // autodiff adds each gradient as result "grad/<parameter>"

	LoRA     []LoRASpec     // adapters; the last glob that hits a weight wins
	Quantize []QuantizeSpec // frozen weights in fewer bits; likewise
	// MeasureAuto: weights whose format is auto are measured in every format (Context.Auto) and kept as they are.
	MeasureAuto bool
	Seed        int64        // of what is drawn when a plan is made: first contents of adapters
	Weights     WeightReader // contents, to measure what quantizing loses; nil: not measured
	// AdapterInit gives a module's adapter from a file that a LoRASpec names; ok is false where the file has none. nil: no file is named.
	AdapterInit func(file, module string) (t AdapterTensors, ok bool)

	VerifyEach bool      // verify every program after every pass
	Disable    []string  // passes not to run
	StopAfter  string    // last pass to run
	PrintAfter []string  // passes after which Print gets the programs' text; "all" for every pass
	Print      io.Writer // nil: nothing is printed
	CrashDir   string    // where a reproducer is written when a pass breaks; "": nowhere
	TimePasses bool      // fill Stat.Seconds
}

// Micro is the number of microbatches of one optimizer step.
func (o *Options) Micro() int64 { return max(o.Accumulate, 1) }

// SeparateUpdate tells whether updates are a program of their own, because they must see all gradients first.
func (o *Options) SeparateUpdate() bool { return o.Micro() > 1 || o.ClipNorm > 0 }

// Context is what passes share while one model is compiled.
type Context struct {
	Options  Options
	Programs []*ir.Graph          // the training step first; "update" and "eval" are added by optimizer and eval
	Profile  *cost.Profile        // of the target device; nil where no pass asks
	Grads    map[string]*ir.Value // by parameter name: its complete gradient in the step; autodiff fills it, optimizer uses it up
	Stats    []Stat               // one for each pass and program, in the order they ran
	Adapters []plan.Adapter       // what lora put beside weights, in the order of the graph
	// What quantize did to each weight that was asked for, and the relative L2 error of all that were quantized (plan.NotMeasured: not known).
	Quantized      []plan.Quantized
	QuantizedRelL2 float64
	Auto           []AutoWeight // with Options.MeasureAuto, in the order of the graph
	Notes          []string     // what the user should know and no pass can decide: sentences, in the order they came up

	back *compiler // shared by the passes of Back
	pass string    // name of the pass that runs
	have Property
}

// Program finds a program by name; nil if the context has none of that name.
func (c *Context) Program(name string) *ir.Graph {
	for _, g := range c.Programs {
		if g.Name == name {
			return g
		}
	}
	return nil
}

// Assume declares that a graph which did not come through the pipeline (text given to aitk opt) has these properties.
func (c *Context) Assume(p Property) { c.have |= p }

// Stat says what a pass did to a program.
type Stat struct {
	Pass, Program           string
	NodesBefore, NodesAfter int
	BytesBefore, BytesAfter int64 // of all values that nodes define and all constants
	PeakBytes               int64 // of the order, where a pass knows it
	Counts                  []Count
	Seconds                 float64 // wall-clock, only with Options.TimePasses
}

// Count is one figure of a pass: what it counted and how often.
type Count struct {
	What string
	N    int64
}

// Count adds n to a figure of the pass that runs. Zero is recorded by the driver as nothing.
func (c *Context) Count(what string, n int64) {
	if len(c.Stats) == 0 || n == 0 {
		return
	}
	s := &c.Stats[len(c.Stats)-1]
	for i := range s.Counts {
		if s.Counts[i].What == what {
			s.Counts[i].N += n
			return
		}
	}
	s.Counts = append(s.Counts, Count{what, n})
}

// Note records a sentence for the user.
func (c *Context) Note(sentence string) { c.Notes = append(c.Notes, sentence) }
