package adapter

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aitk/internal/safetensors"
	"aitk/ir"
)

// Tensor is what it is and where its bytes lie.
type Tensor struct {
	Type ir.Type
	Init ir.Init
}

// Module is the adapter of one layer.
type Module struct {
	Name  string // as the file has it, prefix included
	A, B  Tensor
	Alpha float64 // the rank where the file has none
}

// Rank is the extent that A and B share.
func (m *Module) Rank() int64 { return m.A.Type.Shape[0] }

// File is an adapter file. Tensors are read when their Init is used; the file may be moved or changed until then at the user's risk, as with weights.
type File struct {
	Path    string
	Modules []Module // in file order
	byName  map[string]int
	byFlat  map[string]int
	used    []bool
}

// maxTensors bounds the alphas that are read, one number each.
const maxTensors = 1 << 20

// Open reads the names and shapes of an adapter file and its alphas. Every tensor must belong to a module, every module must have A and B that
// fit; all problems are listed at once. A folder is PEFT's; alphas that its file does not hold are in adapter_config.json beside it.
func Open(path string) (*File, error) {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		path = filepath.Join(path, peftFile)
	}
	s, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	f := &File{Path: path, byName: map[string]int{}, byFlat: map[string]int{}}
	var problems []error
	if len(s.Names()) > maxTensors {
		return nil, fmt.Errorf("%s: %d tensors are too many for an adapter", path, len(s.Names()))
	}
	at := map[string]int{}
	for _, x := range s.Infos() {
		name, p := split(x.Name)
		if p == partNone {
			problems = append(problems, fmt.Errorf("tensor %q is no part of an adapter", x.Name))
			continue
		}
		i, ok := at[name]
		if !ok {
			i = len(f.Modules)
			at[name] = i
			f.Modules = append(f.Modules, Module{Name: name})
		}
		m := &f.Modules[i]
		t := Tensor{x.Type, ir.Init{Kind: ir.InitFile, File: ir.Location{Path: path, Offset: x.Offset, Bytes: x.Bytes}}}
		switch p {
		case partA:
			m.A = t
		case partB:
			m.B = t
		default:
			if m.Alpha, err = number(s, x); err != nil {
				problems = append(problems, err)
			}
		}
	}
	conf, err := readConfig(path)
	if err != nil {
		problems = append(problems, err)
	}
	for i := range f.Modules {
		m := &f.Modules[i]
		if err := m.check(); err != nil {
			problems = append(problems, err)
			continue
		}
		if m.Alpha == 0 {
			m.Alpha = conf.alpha(m.Name, m.Rank())
		}
		f.index(i)
	}
	if len(f.Modules) == 0 && len(problems) == 0 {
		problems = append(problems, errors.New("it holds no adapter"))
	}
	if len(problems) > 0 {
		return nil, &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("adapter %s: %w", path, errors.Join(problems...))}
	}
	f.used = make([]bool, len(f.Modules))
	return f, nil
}

func (m *Module) check() error {
	a, b := m.A.Type, m.B.Type
	switch {
	case a.Shape == nil || b.Shape == nil:
		return fmt.Errorf("module %q has not both A and B", m.Name)
	case !a.DType.IsFloat() || !b.DType.IsFloat():
		return fmt.Errorf("module %q: A is %v and B %v, want floats", m.Name, a, b)
	case len(a.Shape) < 2 || len(b.Shape) != len(a.Shape) || a.Shape[0] < 1 || b.Shape[1] != a.Shape[0] || b.Shape[2:].Elems() != 1:
		return fmt.Errorf("module %q: A %v and B %v do not multiply", m.Name, a.Shape, b.Shape)
	}
	return nil
}

// number reads a tensor of one element.
func number(s *safetensors.File, x safetensors.Info) (float64, error) {
	if !x.Type.DType.IsFloat() || x.Type.Elems() != 1 {
		return 0, fmt.Errorf("%q is %v, want one float", x.Name, x.Type)
	}
	raw := make([]byte, x.Bytes)
	if err := s.ReadTensor(x.Name, raw); err != nil {
		return 0, err
	}
	t, err := ir.DecodeTensor(x.Type, raw)
	if err != nil {
		return 0, err
	}
	if v := t.F[0]; v == 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("%q is %v, want a number other than 0", x.Name, v)
	}
	return t.F[0], nil
}

// index files a module under its names: as they stand, and without prefixes.
func (f *File) index(i int) {
	add := func(m map[string]int, name string) {
		if _, taken := m[name]; !taken {
			m[name] = i
		}
	}
	name := f.Modules[i].Name
	if short, ok := unkohya(name); ok {
		add(f.byFlat, short)
		return
	}
	for _, s := range stripped(name) {
		add(f.byName, s)
	}
}

// Find is the adapter of a layer, by the author's name. It is then no longer Unused.
func (f *File) Find(module string) (*Module, bool) {
	for _, name := range stripped(module) {
		if i, ok := f.byName[name]; ok {
			f.used[i] = true
			return &f.Modules[i], true
		}
		if i, ok := f.byFlat[flat(name)]; ok {
			f.used[i] = true
			return &f.Modules[i], true
		}
	}
	return nil, false
}

// Unused lists the modules that nobody asked for.
func (f *File) Unused() []string {
	var list []string
	for i, u := range f.used {
		if !u {
			list = append(list, f.Modules[i].Name)
		}
	}
	return list
}

// Uniform tells rank and alpha where all modules have the same.
func (f *File) Uniform() (rank int64, alpha float64, ok bool) {
	rank, alpha = f.Modules[0].Rank(), f.Modules[0].Alpha
	differs := slices.ContainsFunc(f.Modules, func(m Module) bool { return m.Rank() != rank || m.Alpha != alpha })
	return rank, alpha, !differs
}

// String names the file and what it holds.
func (f *File) String() string {
	rank, alpha, ok := f.Uniform()
	if !ok {
		return fmt.Sprintf("%s: %d modules of several ranks", f.Path, len(f.Modules))
	}
	return fmt.Sprintf("%s: %d modules, rank %d, alpha %s", f.Path, len(f.Modules), rank, strings.TrimSuffix(fmt.Sprintf("%g", alpha), ".0"))
}
