package train

import (
	"context"
	"errors"
	"fmt"
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
func Save(exe *runtime.Executable, store *Store, path string, steps int64) (err error) {
	p := exe.Plan()
	var specs []safetensors.Spec
	metadata := map[string]string{"format": "pt", "model": p.Model, "graph_sha256": p.GraphSum, "step": strconv.FormatInt(steps, 10)}
	exported := map[string]bool{}
	for i := range p.Params {
		q := &p.Params[i]
		if q.Role != ir.Weight && q.Role != ir.Statistic {
			continue
		}
		specs = append(specs, safetensors.Spec{Name: q.Name, Type: q.Type})
		exported[q.Name] = true
		for _, alias := range q.Aliases {
			metadata[alias] = q.Name
		}
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
	store.Release()
	return w.Commit()
}

// copyFrozen writes the parameters that no program changes, from where they came.
func (s *Store) copyFrozen(w *safetensors.Writer, exported map[string]bool) error {
	block := make([]byte, copyBytes)
	for i := range s.params {
		p := &s.params[i]
		if p.Mutable || !exported[p.Name] {
			continue
		}
		for offset, size := int64(0), p.Type.Bytes(); offset < size; {
			part := block[:min(copyBytes, size-offset)]
			if err := s.ReadParam(int32(i), part, offset); err != nil {
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
