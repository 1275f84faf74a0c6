package train

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"

	"aitk/internal/safetensors"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
)

// copyBytes is how much of a frozen weight is copied at once.
const copyBytes = 1 << 20

// Save writes the model's weights and statistics, trained and frozen, under their authors' names to a safetensors file; steps is the number of
// optimizer steps done. Optimizer state, buffers and literals are left out. A tied weight stands once, under its first name; the metadata map its other names to that,
// beside "format", "model", "graph_sha256" and "step". The same run gives the same bytes, whatever its budget. The file is
// replaced as a whole or not at all. A weight that is not finite is refused with Kind Numeric.
//
// Where adapters train beside frozen weights, they alone are saved, each with its alpha (scale times rank) as "<module>.alpha" where that is
// not the rank. A frozen weight that the plan holds in fewer bits is saved as the model has it.
func Save(exe *runtime.Executable, store *Store, path string, steps int64) (err error) {
	p := exe.Plan()
	adapters, err := plan.Adapters(p.Options)
	if err != nil {
		return err
	}
	var specs []safetensors.Spec
	metadata := map[string]string{"format": "pt", "model": p.Model, "graph_sha256": p.GraphSum, "step": strconv.FormatInt(steps, 10)}
	exported := map[string]bool{}
	for i := range p.Params {
		q := &p.Params[i]
		t, ok := savedType(q, len(adapters) > 0)
		if !ok {
			continue
		}
		specs = append(specs, safetensors.Spec{Name: q.Name, Type: t})
		exported[q.Name] = true
		for _, alias := range q.Aliases {
			metadata[alias] = q.Name
		}
	}
	alphas := alphasOf(p, adapters)
	for _, a := range alphas {
		specs = append(specs, safetensors.Spec{Name: a.name, Type: ir.T(ir.F32)})
	}
	w, err := safetensors.Create(path, metadata, specs)
	if err != nil {
		return &ir.Error{Cause: fmt.Errorf("saving: %w", err)}
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	err = store.collect(func() error { return exe.Run(context.Background(), "save") }, func(q *plan.Param, src []byte, offset int64) error {
		if !exported[q.Name] {
			return nil
		}
		if !finite(q.Type.DType, src) {
			return refuseNotFinite(q, steps)
		}
		return w.WriteAt(q.Name, src, offset)
	})
	if err != nil {
		return err
	}
	if err := store.copyFrozen(w, exported); err != nil {
		return err
	}
	for _, a := range alphas {
		if err := w.WriteAt(a.name, binary.LittleEndian.AppendUint32(nil, math.Float32bits(a.value)), 0); err != nil {
			return err
		}
	}
	store.Release()
	return w.Commit()
}

// savedType is what a parameter is saved as; ok is false for what is not saved.
func savedType(q *plan.Param, adapters bool) (t ir.Type, ok bool) {
	switch {
	case q.Role != ir.Weight && q.Role != ir.Statistic, adapters && !q.Mutable:
		return t, false
	case q.Type.DType == ir.I4 && !q.Init.Packed(): // came in 4 bits, which the file format has not
		return t, false
	case !q.Mutable && q.Init.Packed():
		return q.Init.Pack.Source, q.Of == "" // scales and the like belong to the codes
	}
	return q.Type, true
}

// alpha is a number that other tools read beside an adapter's tensors.
type alpha struct {
	name  string
	value float32
}

func alphasOf(p *plan.Plan, adapters []plan.Adapter) []alpha {
	var list []alpha
	for _, a := range adapters {
		for i := range p.Params {
			q := &p.Params[i]
			if q.Name != a.A {
				continue
			}
			if rank := float64(q.Type.Shape[0]); a.Scale != 1 {
				list = append(list, alpha{a.Module() + ".alpha", float32(a.Scale * rank)})
			}
		}
	}
	return list
}

// copyFrozen writes the parameters that no program changes, from where they came.
func (s *Store) copyFrozen(w *safetensors.Writer, exported map[string]bool) error {
	block := make([]byte, copyBytes)
	for i := range s.params {
		p := &s.params[i]
		if p.Mutable || !exported[p.Name] {
			continue
		}
		t, in := p.Init.Described(p.Type), p.Init
		in.Pack = ir.Packing{} // a weight in fewer bits is saved as the model has it
		for offset, size := int64(0), t.Bytes(); offset < size; {
			part := block[:min(copyBytes, size-offset)]
			s.mu.Lock()
			err := s.reader.ReadAt(p.Name, t, &in, part, offset)
			s.mu.Unlock()
			if err != nil {
				return fmt.Errorf("saving frozen %w", err)
			}
			if err := w.WriteAt(p.Name, part, offset); err != nil {
				return err
			}
			offset += int64(len(part))
		}
	}
	return nil
}
