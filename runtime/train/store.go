package train

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"aitk/internal/safetensors"
	"aitk/internal/weights"
	"aitk/ir"
	"aitk/ir/plan"
)

// Store is the disk space of a plan: it implements runtime.Storage. Parameters come from where the plan says (a model file, whose bytes are
// held against their SHA-256 while they pass, a fill, a literal), those that programs change from a checkpoint after Restore. What program
// save stores goes to whoever asked for it.
//
// Devices call it on their read and write lanes.
type Store struct {
	mu      sync.Mutex
	params  []plan.Param
	reader  *weights.Reader
	restore *safetensors.File // nil: first contents
	sink    func(param int32, src []byte, offset int64) error
}

// NewStore makes the storage of a plan.
func NewStore(p *plan.Plan) *Store { return &Store{params: p.Params, reader: weights.NewReader()} }

// Restore makes all parameters that programs change come from a file of logical tensors, until Release. The file must hold exactly those,
// with their types; everything else is listed in one error of kind Usage.
func (s *Store) Restore(f *safetensors.File) error {
	var problems []error
	want := map[string]bool{}
	for i := range s.params {
		p := &s.params[i]
		if !p.Mutable {
			continue
		}
		want[p.Name] = true
		switch x, ok := f.Info(p.Name); {
		case !ok:
			problems = append(problems, fmt.Errorf("%v %q %v is missing", p.Role, p.Name, p.Type))
		case !x.Type.Equal(p.Type):
			problems = append(problems, fmt.Errorf("%v %q is %v, the plan has %v", p.Role, p.Name, x.Type, p.Type))
		}
	}
	for _, name := range f.Names() {
		if !want[name] {
			problems = append(problems, fmt.Errorf("tensor %q belongs to no parameter that this plan trains", name))
		}
	}
	if len(problems) > 0 {
		return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("checkpoint %s does not fit the plan: %w", f.Path(), errors.Join(problems...))}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restore = f
	return nil
}

// Release closes the model's files and the checkpoint after program init has run. Files that are needed again are opened again.
func (s *Store) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.restore != nil {
		_ = s.restore.Close() // only read from
		s.restore = nil
	}
	_ = s.reader.Close()           // only read from
	s.reader = weights.NewReader() // what is read again is held against its digest again
}

// ReadParam implements runtime.Storage.
func (s *Store) ReadParam(param int32, dst []byte, offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := &s.params[param]
	if p.Mutable && s.restore != nil {
		return s.restore.ReadAt(p.Name, dst, offset)
	}
	return s.reader.ReadAt(p.Name, p.Type, &p.Init, dst, offset)
}

// WriteParam implements runtime.Storage.
func (s *Store) WriteParam(param int32, src []byte, offset int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.sink == nil {
		return fmt.Errorf("parameter %q is saved although nobody asked", s.params[param].Name)
	}
	return s.sink(param, src, offset)
}

// collect runs save, which stores parameters, and hands their bytes to sink: stretches of each parameter in order.
func (s *Store) collect(save func() error, sink func(p *plan.Param, src []byte, offset int64) error) error {
	s.mu.Lock()
	s.sink = func(param int32, src []byte, offset int64) error { return sink(&s.params[param], src, offset) }
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		s.sink = nil
		s.mu.Unlock()
	}()
	return save()
}

// notFinite runs save and lists the weights, statistics and moments that hold NaN or an infinity.
func (s *Store) notFinite(save func() error) ([]string, error) {
	var bad []string
	err := s.collect(save, func(p *plan.Param, src []byte, _ int64) error {
		if p.Role == ir.Accumulator || finite(p.Type.DType, src) { // gradients are what failed, not what made it fail
			return nil
		}
		if !slices.Contains(bad, p.Name) {
			bad = append(bad, p.Name)
		}
		return nil
	})
	return bad, err
}

// refuseNotFinite is the error of saving what is no number.
func refuseNotFinite(p *plan.Param, step int64) error {
	e := ir.Errorf(ir.Numeric, ir.Origin{}, "%v %q holds NaN or an infinity after step %d: nothing is saved", p.Role, p.Name, step-1)
	e.Remedy = "lower the learning rate"
	return e
}

// some lists up to five names.
func some(names []string) string {
	if len(names) > 5 {
		return strings.Join(names[:5], ", ") + fmt.Sprintf(" and %d more", len(names)-5)
	}
	return strings.Join(names, ", ")
}
