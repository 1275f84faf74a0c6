package importer

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"aitk/importer/onnxpb"
)

func formatNumber(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }

// form checks the graph's ends: a fixed batch, caches, outputs that no loss can use.
func (l *linter) form() {
	l.fixedBatch()
	l.caches()
	l.ends()
	l.links()
}

// links tells data files that have a second name. A path can be contained and a symbolic link refused; a hard link is the file itself, and whoever unpacked
// the model's folder may have put a name of another file there.
func (l *linter) links() {
	for _, location := range slices.Sorted(maps.Keys(l.src.file.linked)) {
		l.add(Finding{Code: LinkedData, Severity: LintInfo,
			Message: fmt.Sprintf("the data file %q has %d names (hard links): it is read like any other, and may be one from outside the model's folder", location, l.src.file.linked[location]),
			Remedy:  "if the model comes from others, see that the file is what it should be; a copy of it has one name"})
	}
}

// fixedBatch finds models of which no input has a free first axis.
func (l *linter) fixedBatch() {
	var fixed []string
	for _, in := range l.src.inputs {
		if _, bound := l.opt.Inputs[in.GetName()]; bound {
			continue
		}
		dims := in.GetType().GetTensorType().GetShape().GetDim()
		if len(dims) == 0 {
			continue
		}
		if symbolic(dims[0]) {
			return
		}
		fixed = append(fixed, fmt.Sprintf("%s: %d", in.GetName(), dims[0].GetDimValue()))
	}
	if len(fixed) == 0 {
		return
	}
	name, _, _ := strings.Cut(fixed[0], ":")
	l.add(Finding{Code: FixedBatch, Severity: LintWarning, Message: fmt.Sprintf("the first axis of every input has a size (%s): the model trains with this batch and no other", strings.Join(fixed, ", ")),
		Remedy: fmt.Sprintf("export with a dynamic batch: torch.onnx.export(..., dynamic_shapes={%q: {0: \"batch\"}}), older exporter dynamic_axes={%q: {0: \"batch\"}}", name, name)})
}

// caches finds keys and values of earlier tokens among inputs and outputs: the form for generating.
func (l *linter) caches() {
	cached := func(list []*onnxpb.ValueInfoProto) (names []string) {
		for _, v := range list {
			name := strings.ToLower(v.GetName())
			if strings.Contains(name, "past") || strings.Contains(name, "present") || strings.Contains(name, "cache") {
				names = append(names, v.GetName())
			}
		}
		return names
	}
	in, out := cached(l.src.inputs), cached(l.src.graph.Output)
	if len(in) == 0 && len(out) == 0 {
		return
	}
	l.add(Finding{Code: InferenceOnly, Severity: LintWarning, Parameter: append(in, out...)[0],
		Message: fmt.Sprintf("%d inputs and %d outputs are caches of keys and values: the form for generating text, one token at a time", len(in), len(out)),
		Remedy:  "export without them (use_cache=False), or bind the inputs (--input NAME=FILE)"})
}

// ends looks at what computes the output that feeds the loss.
func (l *linter) ends() {
	name := l.opt.Output
	if name == "" {
		outs := l.opt.Outputs
		if len(outs) == 0 {
			outs = l.src.outputs()
		}
		name = first(outs)
	}
	i, ok := l.src.def[name]
	for range 16 {
		if !ok {
			return
		}
		n := l.src.graph.Node[i]
		switch n.GetOpType() {
		case "Softmax", "Sigmoid":
			loss := cmp.Or(l.opt.Loss, "cross-entropy")
			if n.GetOpType() == "Sigmoid" {
				if loss == "bce-logits" {
					l.at(i, InferenceOnly, LintWarning, "feed the loss from before it: --output "+shellWord(first(n.Input)), "output %q is a sigmoid: bce-logits takes logits, and would take the sigmoid of a sigmoid", name)
				}
				return
			}
			if loss != "cross-entropy" {
				return
			}
			l.at(i, InferenceOnly, LintWarning, "feed the loss from before it: --output "+shellWord(first(n.Input)), "output %q is a softmax: cross-entropy takes logits, and would take the softmax of a softmax", name)
			return
		case "ArgMax", "ArgMin", "TopK", "NonMaxSuppression", "Multinomial", "ZipMap", "ArrayFeatureExtractor", "TreeEnsembleClassifier", "LinearClassifier", "SVMClassifier":
			l.at(i, InferenceOnly, LintWarning, "feed the loss from before it: --output "+shellWord(first(n.Input)), "output %q is made by %s: a decision, which has no gradient", name, n.GetOpType())
			return
		case "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze", "Flatten", "Transpose":
			i, ok = l.src.def[first(n.Input)]
		default:
			return
		}
	}
}
