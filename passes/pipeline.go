package passes

import (
	"fmt"
	"slices"
	"strings"

	"aitk/ir"
)

// Pipeline is the passes of the front half in the order in which they run: from the importer's forward graph to scheduled programs. Back has
// those that lead on to the plan.
func Pipeline() []Pass {
	return []Pass{
		canonicalize("canonicalize"),
		fold("fold"),
		cse("cse"),
		raise(),
		dce("dce"),
		lora(),
		quantize(),
		loss(),
		eval(),
		average(),
		autodiff(),
		optimizer(),
		canonicalize("late-canonicalize"), // gradients multiply by ones, expand scalars and transpose twice
		fold("late-fold"),
		cse("late-cse"),
		dce("late-dce"),
		dequantize(),
		keepOnce(),
		schedule(),
		// No pass below this line may merge or reorder nodes.
	}
}

// OrderPair says that every pass named First stands before every pass named Then, and why.
type OrderPair struct{ First, Then, Reason string }

// Order is what may not be swapped, with reasons. CheckPipeline holds each pipeline to the pairs whose passes it has.
func Order() []OrderPair {
	return []OrderPair{
		{"canonicalize", "fold", "a removed Expand or Transpose leaves smaller constants to fold"},
		{"fold", "cse", "folded constants of equal content are merged"},
		{"cse", "dce", "merging leaves nodes without readers"},
		{"cse", "raise", "a form is recognised where equal things are one: the two operands of a square"},
		{"canonicalize", "raise", "forms are canonical: no identity and no transpose that a product can take stands between"},
		{"raise", "dce", "the pieces have no reader any more"},
		{"raise", "autodiff", "the gradient of the pieces keeps the scores of an attention"},
		{"canonicalize", "lora", "a Transpose between a weight and its MatMul becomes an attribute, which tells the weight's orientation"},
		{"dce", "lora", "what no output needs gets no adapter"},
		{"lora", "quantize", "lora looks for weights beside MatMul and Conv, where quantize puts Dequantize; and only frozen weights are quantized"},
		{"quantize", "loss", "program eval sees the same weights"},
		{"late-cse", "dequantize", "cse would merge the copies back"},
		{"late-dce", "dequantize", "a copy is made for each reader, needed or not"},
		{"late-cse", "keep-once", "cse would merge what is made again with its first"},
		{"late-dce", "keep-once", "a dead reader is none for whose sake something is kept"},
		{"dequantize", "keep-once", "a quantized weight's floats are made for each reader and are kept for none"},
		{"keep-once", "schedule", "what is kept, and how long, decides the peak"},
		{"dequantize", "schedule", "a copy lives for one op only if it is one node for each reader"},
		{"dce", "loss", "what no output needs must not be differentiated"},
		{"loss", "eval", "program eval reports the loss"},
		{"eval", "average", "the loss of program eval is not divided by the number of microbatches"},
		{"eval", "autodiff", "program eval is the forward half alone"},
		{"average", "autodiff", "gradients are those of the divided loss"},
		{"autodiff", "optimizer", "an update needs its gradient"},
		{"optimizer", "late-dce", "a gradient is dead until an update reads it"},
		{"late-canonicalize", "late-fold", "a removed Expand or Transpose leaves smaller constants to fold"},
		{"late-fold", "late-cse", "folded constants of equal content are merged"},
		{"late-cse", "late-dce", "merging leaves nodes without readers"},
		{"late-cse", "schedule", "cse keeps the earlier of two nodes, which lengthens lives that schedule has shortened"},
		{"late-dce", "schedule", "dead nodes count in the peak"},
		{"late-cse", "memory", "cse would merge a recompute with its original"},
		{"schedule", "memory", "what is idle, and for how long, is a matter of the order"},
		{"memory", "place", "a storage's life ends where its value is dropped or swapped"},
		{"place", "lower", "instructions name bytes"},
	}
}

// CheckPipeline follows the properties and the order pairs through a pipeline that starts with have, and reports every breach. A
// breach is a bug in the pipeline or a choice of passes that makes no sense (aitk opt), so the error is of kind Usage.
func CheckPipeline(have Property, pipeline []Pass, order []OrderPair) error {
	var problems []string
	for i, p := range pipeline {
		if j := slices.IndexFunc(pipeline[:i], func(q Pass) bool { return q.Name == p.Name }); j >= 0 {
			problems = append(problems, fmt.Sprintf("pass %s stands at %d and %d", p.Name, j, i))
		}
		if missing := p.Needs &^ have; missing != 0 {
			problems = append(problems, fmt.Sprintf("pass %s needs %v, and no pass before it gives that", p.Name, missing))
		}
		have = have&^p.Takes | p.Gives
	}
	at := func(name string) int {
		return slices.IndexFunc(pipeline, func(p Pass) bool { return p.Name == name })
	}
	for _, o := range order {
		if a, b := at(o.First), at(o.Then); a >= 0 && b >= 0 && a > b {
			problems = append(problems, fmt.Sprintf("pass %s must run before %s: %s", o.First, o.Then, o.Reason))
		}
	}
	if len(problems) == 0 {
		return nil
	}
	return ir.Errorf(ir.Usage, ir.Origin{}, "pipeline: %s", strings.Join(problems, "; "))
}
