package importer

import (
	"fmt"
	"slices"
	"strings"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// This file holds what an export did to parameters: dropped, folded, renamed, hidden, made integer or coarse.

func (l *linter) parameters() {
	folded := l.foldedBatchNorms()
	l.dropped(folded)
	l.renamed()
	l.hidden()
	l.integers()
	l.lowPrecision()
}

// lost lists the parameters that an export destroyed, each with what became of it.
func lost(src *source, w *weights) []Finding {
	l := &linter{opt: &LintOptions{}, src: src, w: w, seen: map[Finding]bool{}}
	l.dropped(l.foldedBatchNorms())
	return l.out
}

// foldedBatchNorms finds batch norms that an optimizer merged into the op before them, and returns the modules that they were. Three traces
// are left: the rewriter's mark on the node; running statistics in the module's signature that no batch norm reads; and names, where an
// exporter has no metadata.
func (l *linter) foldedBatchNorms() map[string]bool {
	const consequence = "its scale, shift and statistics are part of the weight before it, so it cannot train as a batch norm"
	modules := map[string]bool{}
	normalised := map[string]bool{} // modules and statistics that a batch norm node stands for
	for i, n := range l.src.graph.Node {
		m := scopeOf(n).module
		switch {
		case n.GetOpType() == "BatchNormalization" && len(n.Input) > 3:
			normalised[m], normalised[n.Input[3]] = true, true
		case foldsBatchNorm(n) && m != "":
			modules[m] = true
			l.add(Finding{Code: FoldedBatchNorm, Severity: LintWarning, Node: nodeLabel(n), Parameter: m + ".weight", Remedy: remedyExport,
				Message: fmt.Sprintf("batch norm %q was folded into this node: %s", m, consequence)})
		case modules[m] || !isConv(n):
		case foldedByName(n):
			l.at(i, FoldedBatchNorm, LintWarning, remedyTraining, "the names of its weight %q and bias %q are those of a folded batch norm: %s", n.Input[1], n.Input[2], consequence)
		}
	}
	for _, target := range l.src.meta.order {
		m, ok := strings.CutSuffix(target, "running_mean")
		if l.src.meta.kind[target] != "BUFFER" || !ok {
			continue
		}
		if m = strings.TrimSuffix(m, "."); !modules[m] && !normalised[m] && !normalised[target] {
			modules[m] = true
			l.of(strings.TrimPrefix(m+".weight", "."), FoldedBatchNorm, LintWarning, remedyExport, "the module has a batch norm %q and the graph has none: %s", m, consequence)
		}
	}
	return modules
}

func isConv(n *onnxpb.NodeProto) bool {
	switch n.GetOpType() {
	case "Conv", "ConvTranspose", "Gemm", "FusedConv", "NhwcConv", "FusedGemm":
		return len(n.Input) > 2
	}
	return false
}

// foldedByName knows how optimizers call what they merged: PyTorch's older exporter and onnxsim number both tensors (onnx::Conv_17, _v_15), onnxscript's
// names the bias after the weight, those of ONNX Runtime, TensorFlow and onnxslim say so.
func foldedByName(n *onnxpb.NodeProto) bool {
	w, b := n.Input[1], n.Input[2]
	linear := n.GetOpType() == "Gemm" || n.GetOpType() == "FusedGemm"
	if b == w+"_bias" || !linear && isTemporary(w) && isTemporary(b) {
		return true
	}
	// onnxslim calls both after the output of the batch norm, which PyTorch's exporter calls getitem: a part of what the call returned.
	if stem, ok := strings.CutSuffix(w, "_weight"); ok && b == stem+"_bias" && strings.TrimRight(stem, "_0123456789") == "getitem" {
		return true
	}
	return slices.ContainsFunc([]string{w, b}, func(name string) bool {
		name = strings.ToLower(name)
		return slices.ContainsFunc([]string{"convbnfusion", "bn_fold", "fused_bn", "bn_fusion", "batchnorm"}, func(s string) bool { return strings.Contains(name, s) })
	})
}

// dropped lists parameters of the module's signature for which the file has no tensor.
func (l *linter) dropped(folded map[string]bool) {
	within := map[string]string{} // parameter -> tensor that was folded from it
	for _, t := range l.src.order {
		for _, p := range l.src.meta.parameters(l.src.meta.foldedFrom[t]) {
			within[p] = t
		}
	}
	for _, name := range l.src.meta.order {
		if l.src.meta.kind[name] != "PARAMETER" || l.w.named[name] != nil {
			continue
		}
		module, _, _ := cutLast(name, ".")
		switch {
		case folded[module] || l.quantized(name): // another finding says it
		case within[name] != "":
			l.kept(name, within[name], FoldedParameter, LintWarning, remedyExport, "the exporter folded it into a tensor and kept nothing else of it: what is left trains as one weight of another form")
		default:
			l.of(name, DroppedParameter, LintWarning, remedyExport, "the exporter left this parameter out: its value changed nothing when it ran (a bias of zeros); training goes on without it")
		}
	}
}

// quantized tells whether the file has integers whose name begins with a parameter's.
func (l *linter) quantized(param string) bool {
	return slices.ContainsFunc(l.src.order, func(t string) bool {
		return strings.HasPrefix(t, param+"_") && !l.src.tensors[t].typ.DType.IsFloat()
	})
}

func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return "", s, false
}

// renamed lists weights that are stored under another name or turned, and those of which only a computed form is stored.
func (l *linter) renamed() {
	for _, t := range l.src.order {
		v := l.w.views[t]
		if v == nil || v.param.Role != ir.Weight || l.w.tied(t) {
			continue
		}
		from := l.src.meta.parameters(l.src.meta.foldedFrom[t])
		switch {
		case v.transposed:
			l.kept(v.param.Name, t, RenamedParameter, LintInfo, "", "the file holds its transpose under another name; it is shown, trained and saved under its author's name and orientation")
		case len(from) > 1:
			l.of(v.param.Name, FoldedParameter, LintWarning, remedyExport, "folded from %s: they train as one weight of another form", strings.Join(from, ", "))
		case len(from) == 1 && strings.Contains(v.param.Reason, "part"):
			l.kept(from[0], t, FoldedParameter, LintInfo, remedyExport, "the file holds what the exporter computed from it, perhaps only a part of it; that is what trains")
		case t == v.param.Name && ofNode(t):
			l.of(t, RenamedParameter, LintInfo, remedyExport, "it is called after the node that computed it from the module's weights; what that made of them trains and is saved under this name")
		case t != v.param.Name && l.src.meta.kind[t] == "":
			l.kept(v.param.Name, t, RenamedParameter, LintInfo, "", "the file holds it under another name; it is shown, trained and saved under its author's name")
		}
	}
}

// ofNode tells names that PyTorch's older exporter gives to outputs of nodes: /rnn/Unsqueeze_3_output_0.
func ofNode(name string) bool {
	stem := strings.TrimRight(name, "0123456789")
	return strings.HasPrefix(name, "/") && stem != name && strings.HasSuffix(stem, "_output_")
}

// hidden lists tensors that stand where a weight stands and are none, and weights in Constant nodes.
func (l *linter) hidden() {
	for _, name := range l.src.order {
		t, v := l.src.tensors[name], l.w.views[name]
		if !t.typ.DType.IsFloat() || len(t.typ.Shape) == 0 || t.typ.Elems() < 2 {
			continue
		}
		_, isNode := l.src.def[name]
		switch {
		case v != nil && v.param.Role == ir.Weight && isNode:
			l.of(v.param.Name, HiddenWeight, LintInfo, "", "it lies in node %q and not among the initializers; it trains all the same", nodeLabel(l.src.graph.Node[l.src.def[name]]))
		case v != nil || l.src.meta.kind[name] == "BUFFER" || strings.Contains(name, "inv_freq"):
		case l.weightLike(t):
			remedy := "if it is a weight, train it: --train " + shellWord(name)
			if isTemporary(name) {
				remedy = "if they are weights, train them by name, or all of a kind: --train " + shellWord(strings.TrimRight(name, "0123456789")+"*")
			}
			l.of(name, HiddenWeight, LintWarning, remedy+"; in PyTorch make it an nn.Parameter before the export", "a float tensor in the place of a weight that is no parameter: %s; it stays as it is", l.whyBuffer(name))
		}
	}
}

func (l *linter) whyBuffer(name string) string {
	if p := l.w.named[name]; p != nil {
		return p.Reason
	}
	return "no exporter says that it is one"
}

// weightLike tells whether an op that computes with weights reads the tensor as one: as matrix of a product, kernel, scale or bias of a norm or layer.
func (l *linter) weightLike(t *tensor) bool {
	matrix := len(t.typ.Shape) == 2 && min(t.typ.Shape[0], t.typ.Shape[1]) > 1
	_, vector := vectorOf(t.typ)
	_, isNode := l.src.def[t.name]
	for _, u := range l.readers(t.name) {
		n := l.src.graph.Node[u.node]
		if domainOf(n.GetDomain()) != "" {
			if fusedLeaf(n.GetOpType(), u.operand) != "" {
				return true
			}
			continue
		}
		switch n.GetOpType() {
		case "MatMul", "Gemm":
			if matrix && u.operand < 2 {
				return true
			}
		case "Conv", "ConvTranspose":
			if u.operand == 1 && len(t.typ.Shape) > 2 || u.operand == 2 && vector {
				return true
			}
		case "LSTM", "GRU", "RNN":
			if u.operand >= 1 && u.operand <= 3 {
				return true
			}
		case "LayerNormalization", "GroupNormalization", "RMSNormalization", "SimplifiedLayerNormalization", "PRelu":
			if u.operand > 0 && vector {
				return true
			}
		case "Add":
			if isNode && l.afterLayer(n, u.operand) && len(t.typ.Shape) == 1 || vector && l.afterNorm(n, u.operand) {
				return true
			}
		case "Mul":
			if vector && l.afterNorm(n, u.operand) {
				return true
			}
		}
	}
	return false
}

// readers lists the uses of a tensor, through ops that leave its elements where they are or turn them.
func (l *linter) readers(name string) (out []use) {
	queue := []string{name}
	for len(queue) > 0 && len(out) < 64 {
		name, queue = queue[0], queue[1:]
		for _, u := range l.src.uses[name] {
			n := l.src.graph.Node[u.node]
			switch n.GetOpType() {
			case "Identity", "Cast", "CastLike", "Transpose", "Unsqueeze", "Squeeze":
				if u.operand == 0 {
					queue = append(queue, first(n.Output))
				}
			default:
				out = append(out, u)
			}
		}
	}
	return out
}

// afterNorm tells whether the other operand of a product or sum is a normalised tensor, perhaps scaled: then this one is its scale or bias.
func (l *linter) afterNorm(n *onnxpb.NodeProto, operand int) bool {
	if len(n.Input) != 2 {
		return false
	}
	name := n.Input[1-operand]
	for range 8 {
		i, ok := l.src.def[name]
		if !ok {
			return false
		}
		m := l.src.graph.Node[i]
		switch m.GetOpType() {
		case "InstanceNormalization", "LayerNormalization", "GroupNormalization", "BatchNormalization":
			return true
		case "Div":
			j, ok := l.src.def[m.Input[len(m.Input)-1]]
			return ok && l.src.graph.Node[j].GetOpType() == "Sqrt"
		case "Reshape", "Transpose", "Cast":
			name = m.Input[0]
		case "Mul":
			x, scale := m.Input[0], m.Input[len(m.Input)-1]
			if _, t := l.origin(x); t != nil {
				x, scale = scale, x
			}
			if _, t := l.origin(scale); t == nil {
				return false
			}
			name = x
		default:
			return false
		}
	}
	return false
}

// afterLayer tells whether the other operand of an addition is the output of a layer.
func (l *linter) afterLayer(n *onnxpb.NodeProto, operand int) bool {
	if len(n.Input) != 2 {
		return false
	}
	i, ok := l.src.def[n.Input[1-operand]]
	if !ok {
		return false
	}
	switch l.src.graph.Node[i].GetOpType() {
	case "MatMul", "Conv", "ConvTranspose":
		return true
	}
	return false
}

// integers lists integer tensors that ops take as weights.
func (l *linter) integers() {
	for i, n := range l.src.graph.Node {
		for _, k := range integerSlots(n) {
			if k >= len(n.Input) {
				continue
			}
			name, t := l.origin(n.Input[k])
			if t == nil || len(t.typ.Shape) == 0 {
				continue
			}
			l.add(Finding{Code: IntegerWeight, Severity: LintWarning, Node: nodeLabel(l.src.graph.Node[i]), Parameter: name,
				Message: fmt.Sprintf("%s takes %q as a quantized weight: it has no gradient and stays as it is", n.GetOpType(), name),
				Remedy:  "train adapters beside it (--lora), or train the model from before quantization"})
		}
	}
}

// integerSlots are the operands that an op takes as quantized weights.
func integerSlots(n *onnxpb.NodeProto) []int {
	switch n.GetOpType() {
	case "MatMulInteger", "ConvInteger", "MatMulNBits", "MatMulBnb4", "DynamicQuantizeMatMul", "MatMulIntegerToFloat", "MatMulInteger16":
		return []int{1}
	case "QLinearMatMul", "QLinearConv", "QGemm":
		return []int{3}
	case "DequantizeLinear":
		return []int{0}
	}
	return nil
}

// origin follows a name through ops that only move data to the tensor of the file that it comes from.
func (l *linter) origin(name string) (string, *tensor) {
	for range 64 {
		if t := l.src.tensors[name]; t != nil {
			return name, t
		}
		i, ok := l.src.def[name]
		if !ok || !moves(l.src.graph.Node[i].GetOpType(), 0) || len(l.src.graph.Node[i].Input) == 0 {
			return "", nil
		}
		name = l.src.graph.Node[i].Input[0]
	}
	return "", nil
}

// lowPrecision counts trainable weights of 16 bits, one finding a type.
func (l *linter) lowPrecision() {
	names := map[ir.DType][]string{}
	for _, p := range l.w.params {
		if p.Trainable && (p.Type.DType == ir.F16 || p.Type.DType == ir.BF16) {
			names[p.Type.DType] = append(names[p.Type.DType], p.Name)
		}
	}
	for _, d := range []ir.DType{ir.F16, ir.BF16} {
		if list := names[d]; len(list) > 0 {
			l.of(list[0], LowPrecisionWeights, LintWarning, "export in float32 (model.float()), or train adapters beside frozen weights (--lora)",
				"%d trainable weights are stored as %v: small updates vanish when they are rounded", len(list), d)
		}
	}
}
