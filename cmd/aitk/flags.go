package main

import (
	"math"
	"strconv"
	"strings"

	"aitk/importer"
)

// option is a flag. Each has one row below: what it is called, what help says of it, which verbs know it and where its value goes.
type option struct {
	name   string
	value  string // what the value is called in help; empty: a switch; "=FILE": a switch that may have a value
	help   string // with unit and default
	verbs  string // separated by blanks
	repeat bool   // may be given more than once
	shapes bool   // says something about a model before planning, and is refused where the argument is a plan
	set    func(s *settings, value string) error
}

// options is the table of all flags in the order of help.
func options() []option {
	all := modelOptions()
	all = append(all, planOptions()...)
	all = append(all, solveOptions()...)
	all = append(all, viewOptions()...)
	all = append(all, dataOptions()...)
	all = append(all, runOptions()...)
	return append(all, passOptions()...)
}

const (
	planning = "plan compile train estimate"
	fromData = "plan compile run train estimate eval"
	running  = "run train"
)

// modelOptions say what is computed.
func modelOptions() []option {
	pass := func(name string) func(*settings, string) error {
		return func(s *settings, v string) error { return s.passes.Set(name, v) }
	}
	return []option{
		{"dim", "NAME=SIZE", "bind a symbolic dimension; what the data fixes is bound from it", planning + " eval lint", true, true, setDim},
		{"weights", "FILE|FOLDER", "weights by parameter name from safetensors, or a folder or index of several files (default the model's own)", planning + " eval lint export", false, true,
			text(func(s *settings) *string { return &s.weights })},
		{"loss", "NAME[:k=v,...]", "cross-entropy[:axis=,shift=,label-smoothing=,ignore-index=,reduction=] nll mse l1 huber[:delta=1] bce-logits output[:NAME] (default by the data)", planning + " eval lint opt", false, true,
			pass("loss")},
		{"output", "NAME", "output that feeds the loss, or another tensor of the graph (default the first output)", planning + " eval lint opt", false, true, pass("output")},
		{"optimizer", "NAME[:k=v,...]", "sgd[:lr,momentum,dampening,nesterov,weight-decay] adam adamw[:lr,beta1,beta2,eps,weight-decay] (default adamw:lr=0.001)", planning + " opt", false, true,
			pass("optimizer")},
		{"schedule", "NAME[:k=v,...]", "of the learning rate: constant linear cosine[:warmup=,steps=,min=] (default constant)", planning, false, true,
			text(func(s *settings) *string { return &s.schedule })},
		{"clip-norm", "F", "scale gradients so that their global norm is at most F (default no clipping)", planning + " opt", false, true, pass("clip-norm")},
		{"accumulate", "N", "microbatches of one optimizer step (default 1)", planning + " opt", false, true, pass("accumulate")},
		{"seed", "N", "of everything random: the order of samples, dropout (default 0)", planning, false, true, whole("seed", math.MinInt64, func(s *settings) *int64 { return &s.seed })},
		{"train", "GLOB", "parameters to train, by name; the last match of --train and --freeze wins (default the model's weights)", planning + " lint", true, true, choose(true)},
		{"freeze", "GLOB", "parameters to leave as they are", planning + " lint", true, true, choose(false)},
		{"lora", "GLOB[:k=v,...]", "adapters beside these weights; all others freeze. rank=16 alpha=16 dropout=0 rslora=false init=FILE.safetensors (rank and alpha then are the file's; rank=0: none); the last match wins", planning + " eval opt", true, true,
			pass("lora")},
		{"quantize", "GLOB:FORMAT", "frozen weights in fewer bits: int8 fp8, int4 or nf4[,block=32|64|128,double=true], auto[,max-error=0.05] for the smallest within the error, none; auto[:max-error=E] alone is for all; the last match wins", planning + " eval opt", true, true,
			pass("quantize")},
		{"no-decay", "GLOB", "parameters without weight decay", planning + " opt", true, true, pass("no-decay")},
		{"batch-norm", "train|frozen|as-exported", "train: batch statistics, running ones updated; frozen: running ones used, not updated (default as-exported)", planning + " lint", false, true,
			oneOf("batch-norm", func(s *settings) *string { return &s.batchNorm }, "train", "frozen", "as-exported")},
		{"input", "NAME=FILE", "graph input bound to a constant from a safetensors file, for inputs that steer shapes", planning + " eval lint", true, true, setInput},
		{"config", "FILE.yaml", "flags from a file, their names as keys; flags on the command line win", fromData, false, false, text(func(s *settings) *string { return &s.config })},
	}
}

// planOptions say where bytes may lie.
func planOptions() []option {
	return []option{
		{"budget", "SIZE|PERCENT|none|auto", "device memory: 8GiB, 900MB, bytes, percent of the unlimited plan's arena; auto is 94 % of the memory of the card, what driver and display leave, with --device cuda what is free on this one (default none)", planning + " solve", false, true,
			sized("budget", func(s *settings) *size { return &s.budget })},
		{"host-budget", "SIZE|none", "host memory for swapping (default: none on a card; on the cpu, where both are the same memory, swapping is off unless it is given)", planning, false, true,
			sized("host-budget", func(s *settings) *size { return &s.hostBudget })},
		{"recompute", "auto|none|all", "run forward nodes again in the backward half; all: whatever lowers the peak, at any cost (default auto)", planning, false, true,
			oneOf("recompute", func(s *settings) *string { return &s.recompute }, "auto", "none", "all")},
		{"swap", "auto|none", "move idle tensors to host memory and back (default auto, see --host-budget)", planning, false, true,
			oneOf("swap", func(s *settings) *string { return &s.swap }, "auto", "none")},
		{"device", "cpu|cuda|null", "where it runs; null computes nothing, cuda is a build with the tag cuda (default cpu; run: the plan's own)", fromData + " calibrate", false, false,
			oneOf("device", func(s *settings) *string { return &s.device }, "cpu", "cuda", "null")},
		{"gpu", "NAME", "plan with the cost model of that card (see `aitk doctor`)", planning, false, true, text(func(s *settings) *string { return &s.gpu })},
		{"profile", "FILE", "rates of the device as `aitk calibrate` measured them (default built in)", planning, false, true, text(func(s *settings) *string { return &s.profile })},
		{"effort", "N", "search moves of the planner (default chosen by the solver); solve pack: nodes of the exact search", planning + " solve", false, true,
			whole("effort", 0, func(s *settings) *int64 { return &s.effort })},
		{"adapter", "peft|diffusers|kohya", "only the adapters, in the keys of that tool (peft: with adapter_config.json beside the file)", "export", false, false,
			oneOf("adapter", func(s *settings) *string { return &s.adapter }, "peft", "diffusers", "kohya")},
		{"merge", "", "weights with their adapters added", "export", false, false, on(func(s *settings) *bool { return &s.merge })},
		{"o", "FILE", "file to write; - is standard output", "compile export opt calibrate", false, false, text(func(s *settings) *string { return &s.out })},
		{"training-form", "", "keep batch norm in training mode and dropout in an exported ONNX model (default the form for inference)", "export", false, true,
			on(func(s *settings) *bool { return &s.training })},
		{"embed-weights", "", "put the weights into the plan file (default: they stay where they are)", "compile", false, true,
			on(func(s *settings) *bool { return &s.embedWeights })},
	}
}

// viewOptions choose what is shown, and where if not on standard output.
func viewOptions() []option {
	show := func(name string) func(*settings, string) error {
		return func(s *settings, file string) error {
			s.views = append(s.views, view{name, file})
			return nil
		}
	}
	return []option{
		{"onnx", "", "the operators of ONNX instead: opsets, import, gradient (docs/ops.md is this)", "ops", false, false, on(func(s *settings) *bool { return &s.onnx })},
		{"json", "=FILE", "all figures for programs", "plan diff estimate inspect lint ops passes solve doctor version", false, false, show("json")},
		{"dot", "=FILE", "the schedule as a graph for Graphviz", "plan", false, false, show("dot")},
		{"csv", "=FILE", "the buffers, one row for each stretch of life", "plan", false, false, show("csv")},
		{"svg", "=FILE", "the arenas over time, a rectangle for each stretch of life", "plan", false, false, show("svg")},
		{"html", "=FILE", "a page: the summary, that picture, and what became of every tensor and why", "plan", false, false, show("html")},
		{"pprof", "=FILE", "bytes at the peak and predicted time for go tool pprof", "plan", false, false, show("pprof")},
		{"trace", "=FILE", "the predicted timeline for chrome://tracing and Perfetto", "plan", false, false, show("trace")},
		{"explain", "=FILE", "every instruction with its reads, writes and live bytes", "plan", false, false, show("explain")},
	}
}

// dataOptions say what is learnt from.
func dataOptions() []option {
	return []option{
		{"data", "FILE|FOLDER", "safetensors: a tensor per input plus `target`, first dimension = samples; or step0.<input>, step0.target, step1...", fromData, false, false,
			text(func(s *settings) *string { return &s.data })},
		{"batch", "N", "samples of a batch: binds the batch dimension of a model; must be the plan's own (default 32, for data in steps theirs)", fromData, false, false,
			whole("batch", 1, func(s *settings) *int64 { return &s.batch })},
		{"eval-data", "FILE", "held-out data (default a split of --data)", running, false, false, text(func(s *settings) *string { return &s.evalData })},
		{"eval-split", "F", "share of the samples that is held out, in [0,1) (default 0.2; eval: judge that share only, default all)", running + " eval", false, false, setSplit},
		{"eval-every", "N", "evaluate every N optimizer steps (default once an epoch)", running, false, false,
			whole("eval-every", 1, func(s *settings) *int64 { return &s.evalEvery })},
		{"metric", "accuracy|loss|perplexity|mse|l1", "what is measured on held-out data (default accuracy for classes, else loss)", running + " eval", false, false,
			text(func(s *settings) *string { return &s.metric })},
	}
}

// runOptions say how long and where to write.
func runOptions() []option {
	return []option{
		{"steps", "N", "optimizer steps", running, false, false, whole("steps", 0, func(s *settings) *int64 { return &s.steps })},
		{"epochs", "N", "passes over the data (default chosen by the number of samples, and printed)", running, false, false,
			whole("epochs", 0, func(s *settings) *int64 { return &s.epochs })},
		{"threads", "N", "workers (default the number of cores); results do not depend on it", running + " eval calibrate solve", false, false,
			whole("threads", 1, func(s *settings) *int64 { return &s.threads })},
		{"metrics", "FILE.jsonl", "one JSON object for each optimizer step; - is standard output", running, false, false, text(func(s *settings) *string { return &s.metrics })},
		{"save", "FILE.safetensors", "trained parameters", running, false, false, text(func(s *settings) *string { return &s.save })},
		{"checkpoint", "DIR", "folder for checkpoints", running + " eval export", false, false, text(func(s *settings) *string { return &s.checkpoint })},
		{"every", "N", "optimizer steps between checkpoints (default once an epoch)", running, false, false, whole("every", 1, func(s *settings) *int64 { return &s.every })},
		{"keep", "N", "checkpoints to keep (default 3)", running, false, false, whole("keep", 1, func(s *settings) *int64 { return &s.keep })},
		{"resume", "DIR|latest", "go on from a checkpoint, or judge and export it; latest: the newest of --checkpoint", running + " eval export", false, false,
			text(func(s *settings) *string { return &s.resume })},
		{"quiet", "", "no progress, no plan, no choices: results and failures only", fromData, false, false, on(func(s *settings) *bool { return &s.quiet })},
		{"v", "", "say what was imported and how long planning took", fromData, false, false, func(s *settings, _ string) error { s.verbosity = max(s.verbosity, 1); return nil }},
		{"vv", "", "and what each pass counted", fromData, false, false, func(s *settings, _ string) error { s.verbosity = 2; return nil }},
	}
}

// passOptions are for looking into the pipeline.
func passOptions() []option {
	list := func(dst func(*settings) *[]string) func(*settings, string) error {
		return func(s *settings, v string) error {
			for _, name := range strings.Split(v, ",") {
				if name = strings.TrimSpace(name); name != "" {
					*dst(s) = append(*dst(s), name)
				}
			}
			return nil
		}
	}
	return []option{
		{"passes", "NAME,...", "passes to run, in this order (default what a reproducer names)", "opt", true, false, list(func(s *settings) *[]string { return &s.passNames })},
		{"print-after", "PASS|all", "print every program after a pass, on standard error", "plan opt", true, true, list(func(s *settings) *[]string { return &s.passes.PrintAfter })},
		{"disable", "PASS", "leave a pass out", "plan opt", true, true, list(func(s *settings) *[]string { return &s.passes.Disable })},
		{"stop-after", "PASS", "print the programs as they are after a pass, and plan nothing", "plan opt", false, true, text(func(s *settings) *string { return &s.passes.StopAfter })},
		{"time-passes", "", "print how long each pass took, on standard error", "plan opt", false, true, on(func(s *settings) *bool { return &s.passes.TimePasses })},
		{"stats", "", "print what each pass counted, on standard error", "plan opt", false, true, on(func(s *settings) *bool { return &s.stats })},
		{"verify", "each|none", "check every program after every pass (default none)", "plan opt", false, true, oneOf("verify", func(s *settings) *string { return &s.verify }, "each", "none")},
	}
}

func text(dst func(*settings) *string) func(*settings, string) error {
	return func(s *settings, v string) error { *dst(s) = v; return nil }
}

func on(dst func(*settings) *bool) func(*settings, string) error {
	return func(s *settings, _ string) error { *dst(s) = true; return nil }
}

func whole(name string, least int64, dst func(*settings) *int64) func(*settings, string) error {
	return func(s *settings, v string) error {
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil || n < least {
			if least == math.MinInt64 {
				return usagef("--%s %s: want a whole number", name, v)
			}
			return usagef("--%s %s: want a whole number of at least %d", name, v, least)
		}
		*dst(s) = n
		return nil
	}
}

func oneOf(name string, dst func(*settings) *string, words ...string) func(*settings, string) error {
	return func(s *settings, v string) error {
		for _, w := range words {
			if v == w {
				*dst(s) = v
				return nil
			}
		}
		return usagef("--%s %s: want %s", name, v, strings.Join(words, " or "))
	}
}

func sized(name string, dst func(*settings) *size) func(*settings, string) error {
	return func(s *settings, v string) (err error) {
		*dst(s), err = parseSize(name, v)
		return err
	}
}

func choose(train bool) func(*settings, string) error {
	return func(s *settings, v string) error {
		s.selection = append(s.selection, importer.Selection{Glob: v, Train: train})
		return nil
	}
}

// setDim splits at the last =, since a dimension's name may hold anything.
func setDim(s *settings, v string) error {
	i := strings.LastIndexByte(v, '=')
	if i < 1 {
		return usagef("--dim %s: want NAME=SIZE", v)
	}
	n, err := strconv.ParseInt(v[i+1:], 10, 64)
	if err != nil || n < 0 {
		return usagef("--dim %s: want a whole number of at least 0 behind the =", v)
	}
	s.dims = append(s.dims, dimension{v[:i], n})
	return nil
}

func setInput(s *settings, v string) error {
	name, file, ok := strings.Cut(v, "=")
	if !ok || name == "" || file == "" {
		return usagef("--input %s: want NAME=FILE", v)
	}
	s.inputs = append(s.inputs, namedFile{name, file})
	return nil
}

func setSplit(s *settings, v string) error {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x >= 0 && x < 1) {
		return usagef("--eval-split %s: want a number of at least 0 and below 1", v)
	}
	s.evalSplit, s.evalSplitGiven = x, true
	return nil
}
