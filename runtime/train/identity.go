package train

import (
	"fmt"

	"aitk/internal/weights"
	"aitk/ir"
	"aitk/runtime/train/checkpoint"
)

// identity is what a run computes from and no program changes: the content of its data, and that of the parameters it does not train.
type identity struct {
	data   string
	frozen []checkpoint.Content
}

// identify reads data and frozen parameters once. Only a run that writes checkpoints or goes on from one pays for it.
func (t *trainer) identify() error {
	if t.o.Checkpoints == "" && t.o.Resume == "" {
		return nil
	}
	var err error
	if t.identity.data, err = t.o.Data.SHA256(t.ctx); err != nil {
		return err
	}
	r := weights.NewReader()
	defer r.Close() // only read from
	for i := range t.plan.Params {
		p := &t.plan.Params[i]
		if p.Mutable || p.Init.Kind == ir.InitAbsent { // program init says of a parameter without content how to give it one
			continue
		}
		if err := t.ctx.Err(); err != nil {
			return err
		}
		in := &p.Init
		sum := in.File.SHA256 // what is loaded is held against it
		if in.Kind != ir.InitFile || sum == "" {
			if sum, err = r.SHA256(p.Name, p.Type, in); err != nil {
				return fmt.Errorf("frozen parameters: %w", err)
			}
		}
		t.identity.frozen = append(t.identity.frozen, checkpoint.Content{Name: p.Name, SHA256: sum})
	}
	return nil
}
