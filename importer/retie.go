package importer

import (
	"bytes"
	"slices"

	"aitk/ir"
)

// This file joins what an export made two tensors of: the head of a language model and its embedding.

// retie joins a weight that the exporter stored twice, once transposed: the head of a language model and its embedding. Metadata
// gave both the same name; the bytes decide.
func (w *weights) retie() error {
	for _, p := range slices.Clone(w.params) {
		from := w.src.meta.parameters(w.src.meta.foldedFrom[p.Name])
		v := w.views[p.Name]
		if v == nil || !v.transposed || len(from) != 1 || w.named[from[0]] == nil || w.named[from[0]] == p {
			continue
		}
		first := w.named[from[0]]
		same, err := w.sameContent(first, p)
		if err != nil {
			return err
		}
		if !same {
			p.Reason += ", but its values differ"
			continue
		}
		w.ties = append(w.ties, tie{lost: true, param: first, tensor: p.Name})
		first.Aliases = append(first.Aliases, p.Name)
		v.param = first
		w.params = slices.DeleteFunc(w.params, func(q *param) bool { return q == p })
		delete(w.named, p.Name)
	}
	return nil
}

// sameContent compares the values of two parameters.
func (w *weights) sameContent(a, b *param) (bool, error) {
	if !a.Type.Equal(b.Type) || a.Init.Kind == ir.InitAbsent || b.Init.Kind == ir.InitAbsent {
		return false, nil
	}
	var raw [2][]byte
	for i, p := range []*param{a, b} {
		var err error
		if raw[i], err = w.src.file.bytes(p.Init); err != nil {
			return false, w.src.fail(ir.Failed, "parameter %q: %w", p.Name, err)
		}
		if p.Init.File.Transposed {
			raw[i] = transposeBytes(raw[i], ir.T(p.Type.DType, p.Type.Shape[1], p.Type.Shape[0]))
		}
	}
	return bytes.Equal(raw[0], raw[1]), nil
}

// retieNameless does it where an optimizer has taken the metadata off: a nameless matrix of a product that holds the values of an embedding, turned or not,
// is that embedding.
func (w *weights) retieNameless() error {
	for _, p := range slices.Clone(w.params) {
		t := w.src.tensors[p.Name]
		if p.Role != ir.Buffer || t == nil || !isTemporary(p.Name) || len(t.typ.Shape) != 2 || t.typ.Bytes() > tieBytes || !w.readBy(t.name, 1, "MatMul", "Gemm", "FusedMatMul", "FusedGemm") {
			continue
		}
		for _, table := range w.params {
			of := w.src.tensors[table.Name]
			if table.Role != ir.Weight || of == nil || !w.readBy(of.name, 0, "Gather") {
				continue
			}
			same, turned, err := w.equalMatrices(of, t)
			if err != nil {
				return w.src.fail(ir.Failed, "parameter %q: %w", table.Name, err)
			}
			if !same {
				continue
			}
			w.ties = append(w.ties, tie{lost: true, param: table, tensor: t.name})
			table.Aliases = append(table.Aliases, t.name)
			w.views[t.name] = &view{param: table, transposed: turned, shape: t.typ.Shape}
			w.params = slices.DeleteFunc(w.params, func(q *param) bool { return q == p })
			w.named[t.name] = table
			break
		}
	}
	return nil
}

// readBy tells whether one of these ops has the tensor as its operand k.
func (w *weights) readBy(name string, k int, ops ...string) bool {
	return slices.ContainsFunc(w.src.uses[name], func(u use) bool {
		return u.operand == k && slices.Contains(ops, w.src.graph.Node[u.node].GetOpType())
	})
}

// equalMatrices compares two matrices as they are and turned, and takes no matrix of equal elements for a copy of another.
func (w *weights) equalMatrices(a, b *tensor) (same, turned bool, err error) {
	if len(a.typ.Shape) != 2 || len(b.typ.Shape) != 2 {
		return false, false, nil
	}
	plain := a.typ.Shape.Equal(b.typ.Shape)
	across := a.typ.Shape[0] == b.typ.Shape[1] && a.typ.Shape[1] == b.typ.Shape[0]
	inFile := func(t *tensor) bool { return t.init.Kind == ir.InitFile || t.init.Kind == ir.InitLiteral }
	if a.typ.DType != b.typ.DType || !plain && !across || !inFile(a) || !inFile(b) {
		return false, false, nil
	}
	ra, err := w.src.file.bytes(a.init)
	if err != nil || uniform(ra, int(a.typ.DType.Bits()/8)) {
		return false, false, err
	}
	rb, err := w.src.file.bytes(b.init)
	if err != nil {
		return false, false, err
	}
	if plain && bytes.Equal(ra, rb) {
		return true, false, nil
	}
	return across && bytes.Equal(transposeBytes(ra, a.typ), rb), true, nil
}
