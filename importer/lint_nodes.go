package importer

import (
	"math"
	"strings"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// This file holds what nodes say: batch norm and dropout in inference mode, constants that overflow, opsets that cannot say what training needs.

func (l *linter) nodes() {
	old := map[string]bool{}
	opset := l.src.opsets[""]
	for i, n := range l.src.graph.Node {
		if domainOf(n.GetDomain()) != "" {
			continue
		}
		switch n.GetOpType() {
		case "BatchNormalization":
			l.batchNorm(i, n)
			if opset < 14 && !old["BatchNormalization"] {
				old["BatchNormalization"] = true
				l.at(i, OldOpset, LintInfo, "export at opset 14 or newer", "opset %d has no training mode for batch norm; --batch-norm train turns it on", opset)
			}
		case "Dropout":
			l.dropout(i, n)
			if opset < 12 && !old["Dropout"] {
				old["Dropout"] = true
				l.at(i, OldOpset, LintInfo, "export at opset 12 or newer", "opset %d has no training mode for dropout: it does nothing here", opset)
			}
		case "Identity":
			name := strings.ToLower(n.GetName() + "/" + scopeOf(n).class + "/" + scopeOf(n).call)
			if strings.Contains(name, "dropout") && !strings.Contains(name, "readvariable") {
				l.at(i, DropoutRemoved, LintWarning, remedyTraining, "dropout was exported as the identity: training goes on without it")
			}
		}
	}
	l.overflows()
}

func (l *linter) batchNorm(i int, n *onnxpb.NodeProto) {
	training := len(n.Output) > 1 && n.Output[1] != ""
	if l.src.opsets[""] >= 14 {
		training = intAttr(n, "training_mode") != 0
	}
	switch l.opt.BatchNorm {
	case BatchNormTrain, BatchNormFrozen: // the user has chosen
		return
	}
	scale := ""
	if len(n.Input) > 1 {
		scale = n.Input[1]
	}
	if !training {
		l.add(Finding{Code: InferenceBatchNorm, Severity: LintWarning, Node: nodeLabel(n), Parameter: scale,
			Message: "it normalises by its running statistics, which training does not move; scale and bias train",
			Remedy:  "--batch-norm train to train as the module does, --batch-norm frozen to say that this is meant"})
		return
	}
	if len(n.Output) < 3 || n.Output[1] == "" || n.Output[2] == "" {
		l.add(Finding{Code: StaleStatistics, Severity: LintInfo, Node: nodeLabel(n), Parameter: scale,
			Message: "it is in training mode and the file does not hand on its running statistics; they are moved all the same, and the trained model has the new ones",
			Remedy:  "in other tools the statistics of this file would stay at their first values"})
	}
}

func (l *linter) dropout(i int, n *onnxpb.NodeProto) {
	ratio, training := 0.5, false
	if l.src.opsets[""] < 12 {
		for _, a := range n.Attribute {
			if a.GetName() == "ratio" {
				ratio = float64(a.GetF())
			}
		}
	} else {
		if x, ok := l.number(n, 1); ok {
			ratio = x
		}
		x, ok := l.number(n, 2)
		training = ok && x != 0 || !ok && len(n.Input) > 2 && n.Input[2] != ""
	}
	if ratio > 0 && !training {
		l.at(i, DropoutRemoved, LintWarning, remedyTraining, "dropout of ratio %g is in inference mode: training goes on without it", ratio)
	}
}

// number is the one number that operand k holds.
func (l *linter) number(n *onnxpb.NodeProto, k int) (float64, bool) {
	if k >= len(n.Input) {
		return 0, false
	}
	_, t := l.origin(n.Input[k])
	if t == nil || t.typ.Elems() != 1 {
		return 0, false
	}
	x, ok := l.content(t)
	if !ok {
		return 0, false
	}
	if len(x.F) == 1 {
		return x.F[0], true
	}
	return float64(x.I[0]), true
}

// content reads a constant of the file, if it is small.
func (l *linter) content(t *tensor) (ir.Tensor, bool) {
	if t.typ.Bytes() > 1<<20 || t.init.Kind != ir.InitFile && t.init.Kind != ir.InitLiteral {
		return ir.Tensor{}, false
	}
	raw, err := l.src.file.bytes(t.init)
	if err != nil {
		return ir.Tensor{}, false
	}
	x, err := t.decode(raw)
	return x, err == nil
}

func intAttr(n *onnxpb.NodeProto, name string) int64 {
	for _, a := range n.Attribute {
		if a.GetName() == name {
			return a.GetI()
		}
	}
	return 0
}

// The largest finite numbers of the narrow types.
const (
	maxF16  = 65504
	maxBF16 = 3.3895313892515355e38
)

// overflows lists constants that are finite in the file and infinite in the type that training computes in. A mask of -3.4e38 becomes -inf
// in bf16, and a row that is masked whole becomes NaN in the softmax.
func (l *linter) overflows() {
	limit, name := 0.0, ""
	for _, p := range l.w.params {
		switch {
		case l.opt.DType == ir.F16 || l.opt.DType == ir.Invalid && p.Type.DType == ir.F16:
			limit, name = maxF16, "f16"
		case limit == 0 && (l.opt.DType == ir.BF16 || l.opt.DType == ir.Invalid && p.Type.DType == ir.BF16):
			limit, name = maxBF16, "bf16"
		}
	}
	if limit == 0 {
		return
	}
	for _, c := range l.src.order {
		t := l.src.tensors[c]
		if !t.typ.DType.IsFloat() || l.w.views[c] != nil && t.typ.Elems() > 64 || len(l.src.uses[c]) == 0 {
			continue
		}
		x, ok := l.content(t)
		if !ok {
			continue
		}
		for _, v := range x.F {
			if math.Abs(v) > limit && !math.IsInf(v, 0) {
				reader := l.src.graph.Node[l.src.uses[c][0].node]
				l.add(Finding{Code: MaskOverflow, Severity: LintWarning, Node: nodeLabel(reader), Parameter: c,
					Message: strings.Join([]string{"constant", formatNumber(v), "is beyond the range of", name, "and becomes infinite there: a row that is masked whole turns into NaN"}, " "),
					Remedy:  "export with a mask of -inf, or one that the type can hold (torch.finfo(dtype).min of the narrow type)"})
				break
			}
		}
	}
}
