package importer

import (
	"fmt"
	"slices"
	"strings"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// slots is what the readers of a tensor take it for.
type slots struct {
	kind      string // the first reader's word: "MatMul takes a weight"; empty if nobody takes it as a weight
	strong    bool   // a reader that takes nothing else there: a convolution's kernel, not a term of an addition
	statistic bool   // mean or variance of a batch normalization
	linear    bool   // the second operand of a matrix product that stands for a linear layer
	module    string // scope of the first reader that takes it as a weight
	leaf      string // "weight" or "bias" within that module
	class     string
}

// scopeName is the parameter's name as the reader's module would have it; empty without a scope.
func (s slots) scopeName() string {
	if s.module == "" || s.leaf == "" {
		return ""
	}
	return s.module + "." + s.leaf
}

// slots follows a tensor through ops that only move data to those that compute with it.
func (w *weights) slots(name string) slots {
	var out slots
	seen := map[string]bool{name: true}
	queue := []string{name}
	for len(queue) > 0 && len(seen) < 64 {
		name, queue = queue[0], queue[1:]
		for _, u := range w.src.uses[name] {
			n := w.src.graph.Node[u.node]
			switch domainOf(n.GetDomain()) {
			case "":
			case "com.microsoft":
				if n.GetOpType() == "QuantizeLinear" || n.GetOpType() == "DequantizeLinear" {
					break
				}
				out.take(n, fusedLeaf(n.GetOpType(), u.operand), true)
				continue
			default:
				continue
			}
			if moves(n.GetOpType(), u.operand) {
				for _, o := range n.Output {
					if o != "" && !seen[o] {
						seen[o] = true
						queue = append(queue, o)
					}
				}
				continue
			}
			out.meet(n, u.operand)
		}
	}
	return out
}

// moves tells ops through which a weight is still that weight.
func moves(op string, operand int) bool {
	switch op {
	case "Identity", "Transpose", "Squeeze", "Unsqueeze", "Reshape", "Flatten", "Expand", "Cast", "CastLike", "Slice", "Split",
		"QuantizeLinear", "DequantizeLinear": // training aware of quantization rounds the weight on its way, and trains it
		return operand == 0
	case "Concat":
		return true
	}
	return false
}

// meet notes that a node takes the tensor as one of its operands.
func (s *slots) meet(n *onnxpb.NodeProto, operand int) {
	leaf, strong := "", true
	switch n.GetOpType() {
	case "BatchNormalization":
		if operand == 3 || operand == 4 {
			s.statistic = true
			return
		}
		leaf = pick(operand, "", "weight", "bias")
	case "Conv", "ConvTranspose", "LayerNormalization", "InstanceNormalization", "GroupNormalization":
		leaf = pick(operand, "", "weight", "bias")
	case "RMSNormalization", "SimplifiedLayerNormalization", "PRelu":
		leaf = pick(operand, "", "weight")
	case "Gemm":
		leaf = pick(operand, "weight", "weight", "bias")
	case "MatMul":
		leaf = "weight"
		sc := scopeOf(n)
		// The older exporter names its node after the op, so that only MatMul says it; the module's class says it where it is known.
		linear := strings.Contains(sc.call, "linear") || strings.HasSuffix(sc.class, ".Linear") || sc.call == "MatMul" && sc.class == ""
		s.linear = s.linear || operand == 1 && linear
	case "Gather", "GatherND", "GatherElements":
		leaf = pick(operand, "weight")
	case "LSTM", "GRU", "RNN":
		leaf = pick(operand, "", "weight_ih", "weight_hh", "bias")
	case "Einsum":
		leaf = "weight"
	case "Add", "Sub":
		leaf, strong = "bias", false
	case "Mul", "Div":
		leaf, strong = "weight", false
	case "Where": // a mask token
		leaf, strong = pick(operand, "", "weight", "weight"), false
	}
	s.take(n, leaf, strong)
}

// fusedLeaf is what an operand is to an op that ONNX Runtime's optimizer makes of several; empty if no weight.
func fusedLeaf(opType string, operand int) string {
	switch opType {
	case "FusedConv", "NhwcConv", "GroupNorm", "SkipGroupNorm", "Attention":
		return pick(operand, "", "weight", "bias")
	case "FusedGemm":
		return pick(operand, "weight", "weight", "bias")
	case "FusedMatMul", "TransposeMatMul":
		return "weight"
	case "SkipLayerNormalization":
		return pick(operand, "", "", "weight", "bias", "bias")
	case "SkipSimplifiedLayerNormalization":
		return pick(operand, "", "", "weight", "bias")
	case "SimplifiedLayerNormalization":
		return pick(operand, "", "weight")
	case "BiasGelu", "FastGelu", "BiasAdd", "BiasSplitGelu":
		return pick(operand, "", "bias")
	case "MultiHeadAttention":
		return pick(operand, "", "", "", "bias")
	case "EmbedLayerNormalization":
		return pick(operand, "", "", "weight", "weight", "weight", "weight", "bias")
	}
	return ""
}

// take notes that a node takes the tensor as its weight or bias; an empty leaf: as neither.
func (s *slots) take(n *onnxpb.NodeProto, leaf string, strong bool) {
	if leaf == "" {
		return
	}
	if s.kind == "" || strong && !s.strong {
		sc := scopeOf(n)
		s.kind, s.module, s.class = fmt.Sprintf("%s takes a %s", n.GetOpType(), leaf), sc.module, sc.class
		s.leaf = leaf
	}
	s.strong = s.strong || strong
}

// pick is the i-th word, or none.
func pick(i int, words ...string) string {
	if i < len(words) {
		return words[i]
	}
	return ""
}

// besideBias is the name of the bias of the linear layer that a nameless matrix belongs to: what is added to the matrix product, and nothing else reads. An
// optimizer that took names and metadata off a transposed weight leaves the bias its own. Empty if there is none, or if the layer has a weight already.
//
// turned tells that the file has the transpose: a module keeps a row for each output, a product wants a column.
func (w *weights) besideBias(t *tensor) (bias string, turned bool) {
	uses := w.src.uses[t.name]
	if len(t.typ.Shape) != 2 || len(uses) != 1 || uses[0].operand != 1 {
		return "", false
	}
	n := w.src.graph.Node[uses[0].node]
	outputs := t.typ.Shape[1]
	switch op := n.GetOpType(); {
	case op == "Gemm" || op == "FusedGemm":
		if len(n.Input) > 2 {
			bias = n.Input[2]
		}
		if turned = intAttr(n, "transB") == 0; !turned {
			outputs = t.typ.Shape[0]
		}
	case op == "MatMul" && len(n.Output) == 1 && len(w.src.uses[n.Output[0]]) == 1:
		bias, turned = w.addedBias(w.src.uses[n.Output[0]][0]), true
	}
	b := w.src.tensors[bias]
	if b == nil || len(b.typ.Shape) != 1 || b.typ.Shape[0] != outputs || !strings.HasSuffix(bias, ".bias") || w.taken(strings.TrimSuffix(bias, "bias")+"weight") {
		return "", false
	}
	return bias, turned
}

// addedBias is the tensor that the reader of a product adds to it, be it one of ONNX Runtime's ops that do more at once; empty if there is none.
func (w *weights) addedBias(product use) string {
	n := w.src.graph.Node[product.node]
	at := len(n.Input)
	switch op := n.GetOpType(); {
	case op == "Add":
		at = 1 - product.operand
	case op == "SkipLayerNormalization" && product.operand < 2:
		at = 4
	case op == "SkipSimplifiedLayerNormalization" && product.operand < 2:
		at = 3
	case (op == "BiasGelu" || op == "FastGelu" || op == "BiasAdd") && product.operand == 0:
		at = 1
	}
	if at >= len(n.Input) {
		return ""
	}
	return n.Input[at]
}

// Selection freezes or trains the parameters whose name a pattern matches.
type Selection struct {
	Glob  string // "*" is any run of characters, "?" any one
	Train bool
}

// choose applies the user's selections in order; the last match wins. A pattern that hits nothing is returned in missed.
//
// A buffer becomes a weight only where it is named outright, or by a pattern that begins with letters of its name where it stands in a weight's place:
// "*" means all weights and no table of frequencies.
func (w *weights) choose(selections []Selection) (missed []string) {
	for _, sel := range selections {
		hit := false
		for _, p := range w.params {
			if !matchAny(sel.Glob, append([]string{p.Name}, p.Aliases...)) {
				continue
			}
			word := "frozen by "
			if sel.Train {
				word = "trained by "
			}
			switch {
			case p.Role == ir.Weight:
				p.Trainable, p.Reason = sel.Train, word+sel.Glob
			case sel.Train && w.promote(p, sel.Glob):
				p.Reason = word + sel.Glob
			case sel.Train:
				continue
			}
			hit = true
		}
		if !hit && !(sel.Train && w.raise(sel.Glob)) {
			missed = append(missed, sel.Glob)
		}
	}
	return missed
}

// promote makes a weight of a float buffer that the user names.
func (w *weights) promote(p *param, glob string) bool {
	t := w.src.tensors[p.Name]
	if p.Role != ir.Buffer || t == nil || t.elem != 0 || !t.typ.DType.IsFloat() {
		return false
	}
	if glob != p.Name && (strings.IndexAny(glob, "*?") == 0 || !w.slots(p.Name).strong) {
		return false
	}
	p.Role, p.Trainable = ir.Weight, true
	w.views[p.Name] = &view{param: p, shape: t.typ.Shape}
	return true
}

// raise makes a weight of the float content of a Constant node, or of a float scalar, that the user names.
func (w *weights) raise(name string) bool {
	t := w.src.tensors[name]
	if t == nil || !w.fromNode(name) && len(t.typ.Shape) > 0 || w.views[name] != nil || w.named[name] != nil || t.elem != 0 || !t.typ.DType.IsFloat() {
		return false
	}
	w.add(t, param{ParamInfo: ParamInfo{Name: name, Type: t.typ, Role: ir.Weight, Trainable: true, Reason: "trained by " + name}}, view{})
	return true
}

func matchAny(glob string, names []string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return ir.MatchGlob(glob, n) })
}
