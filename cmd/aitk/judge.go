package main

import (
	"fmt"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/runtime/train"
	"aitk/runtime/train/data"
)

// judgement is how a run is judged: what labels there may be and what is measured. It follows from the plan alone, so that `aitk run` of a
// plan says what `aitk train` of its model would.
type judgement struct {
	labels data.Labels
	metric train.Metric
	why    string // of the metric; empty: the user named it
}

// judge reads loss and output from the plan's settings and the output's type from its programs.
func judge(p *plan.Plan, asked string) (judgement, error) {
	var j judgement
	spec, err := passes.ParseLoss(p.Option("loss"))
	if err != nil {
		return j, fmt.Errorf("the plan's setting: %w", err)
	}
	overClasses := spec.Name == "cross-entropy" || spec.Name == "nll"
	if overClasses {
		j.labels.Ignore, j.labels.HasIgnore = spec.IgnoreIndex, spec.HasIgnore
		if t, ok := judgedOutput(p); ok {
			j.labels.Classes = classesOf(t, spec)
		}
	}
	switch {
	case asked != "":
		if j.metric, err = train.ParseMetric(asked); err != nil {
			return j, err
		}
	case overClasses:
		j.metric.Name, j.why = "accuracy", "the loss is over classes"
	default:
		j.metric.Name, j.why = "loss", "the loss is not over classes"
	}
	j.metric.Output = p.Option("output")
	if overClasses {
		j.metric.Axis, j.metric.HasAxis, j.metric.Shift = spec.Axis, spec.HasAxis, spec.Shift
		j.metric.Ignore, j.metric.HasIgnore = spec.IgnoreIndex, spec.HasIgnore
	}
	return j, nil
}

// judgedOutput is the type of the output that feeds the loss, as program eval gives it.
func judgedOutput(p *plan.Plan) (ir.Type, bool) {
	eval, _ := p.Program("eval")
	if eval == nil {
		return ir.Type{}, false
	}
	want := p.Option("output")
	for _, r := range eval.Results {
		if r.Name == want || want == "" && r.Name != "loss" {
			return r.Ref.Type, true
		}
	}
	return ir.Type{}, false
}

// classesOf is the extent of the class axis; 0 where there is none.
func classesOf(t ir.Type, l passes.LossSpec) int64 {
	axis := int64(len(t.Shape)) - 1
	if l.HasAxis {
		if axis = l.Axis; axis < 0 {
			axis += int64(len(t.Shape))
		}
	}
	if axis < 0 || axis >= int64(len(t.Shape)) {
		return 0
	}
	return t.Shape[axis]
}
