package importer

import (
	"fmt"

	"aitk/ir"
)

// tie is what classification found out about tensors that stand for more or for less than one parameter.
type tie struct {
	lost   bool   // one weight in two tensors; else two weights in one tensor
	param  *param // the parameter that the tensors make, or that got one of its own
	tensor string // the copy, or the shared tensor
	of     *param // false ties: the other parameter
}

// tied tells whether a tensor is one of several that hold one weight.
func (w *weights) tied(tensor string) bool {
	for _, t := range w.ties {
		if t.lost && t.tensor == tensor {
			return true
		}
	}
	return false
}

// tieBytes bounds the tensors that are compared where no metadata says that they are one.
const tieBytes = 256 << 20

func (l *linter) ties() {
	for _, t := range l.w.ties {
		if t.lost {
			l.kept(t.param.Name, t.tensor, LostTie, LintInfo, remedyExport, "the exporter stored it twice, the second time transposed; both train as one again")
			continue
		}
		l.kept(t.param.Name, t.tensor, FalseTie, LintInfo, remedyExport, "it shares the tensor of %q because their values were equal when exported; they are two parameters again", t.of.Name)
	}
	l.copies()
	if !l.src.meta.known() {
		l.shared()
	}
}

// copies finds an embedding and a head that hold the same values in two tensors: a tie that the export lost.
func (l *linter) copies() {
	tables, heads := l.matrices("Gather"), l.matrices("MatMul", "Gemm")
	for _, a := range tables {
		for _, b := range heads {
			va, vb := l.w.views[a], l.w.views[b]
			if a == b || va.param == vb.param || va.shape.Elems() != vb.shape.Elems() || l.src.tensors[a].typ.Bytes() > tieBytes {
				continue
			}
			same, _, err := l.w.equalMatrices(l.src.tensors[a], l.src.tensors[b])
			if err == nil && same {
				l.of(vb.param.Name, LostTie, LintWarning, "export so that the tie survives (optimize=False, do_constant_folding=False), or freeze one of them: --freeze "+shellWord(vb.param.Name),
					"%q holds the values of %q in a tensor of its own: if the module ties them, training drives them apart", vb.param.Name, va.param.Name)
			}
		}
	}
}

// matrices lists weights of rank 2 that nodes of the given ops read.
func (l *linter) matrices(ops ...string) []string {
	var names []string
	for _, name := range l.src.order {
		v := l.w.views[name]
		if v == nil || v.param.Role != ir.Weight || len(v.shape) != 2 || v.shape.Elems() < 16 {
			continue
		}
		for _, u := range l.src.uses[name] {
			if n := l.src.graph.Node[u.node]; contains(ops, n.GetOpType()) && (n.GetOpType() != "Gather" || u.operand == 0) {
				names = append(names, name)
				break
			}
		}
	}
	return names
}

// uniform tells whether all elements of so many bytes are equal.
func uniform(raw []byte, width int) bool {
	for at := width; at+width <= len(raw); at += width {
		if string(raw[at:at+width]) != string(raw[:width]) {
			return false
		}
	}
	return len(raw) > 0
}

// shared finds scales and biases of equal elements that several modules read: optimizers merge equal tensors.
func (l *linter) shared() {
	for _, name := range l.src.order {
		v, t := l.w.views[name], l.src.tensors[name]
		if v == nil || v.param.Role != ir.Weight || len(t.typ.Shape) != 1 || len(l.src.uses[name]) < 2 || t.typ.Bytes() > 1<<20 {
			continue
		}
		var readers []string
		for _, u := range l.src.uses[name] {
			n := l.src.graph.Node[u.node]
			switch n.GetOpType() {
			case "LayerNormalization", "BatchNormalization", "InstanceNormalization", "GroupNormalization", "Conv", "Gemm", "Add", "Mul":
				if u.operand > 0 || n.GetOpType() == "Add" || n.GetOpType() == "Mul" {
					readers = append(readers, nodeLabel(n))
				}
			}
		}
		if len(readers) < 2 {
			continue
		}
		raw, err := l.src.file.bytes(t.init)
		if t.init.Kind != ir.InitFill && (err != nil || !uniform(raw, int(t.typ.DType.Bits()/8))) {
			continue
		}
		l.add(Finding{Code: FalseTie, Severity: LintWarning, Node: readers[0], Parameter: v.param.Name, Remedy: "export without merging equal initializers; " + remedyTraining,
			Message: fmt.Sprintf("%d nodes read this tensor, all of whose elements are equal: an optimizer that merges equal tensors made one parameter of several, which now train as one", len(readers))})
	}
}

func contains(list []string, s string) bool {
	for _, x := range list {
		if x == s {
			return true
		}
	}
	return false
}
