package weights

import (
	"fmt"
	"slices"
	"strings"

	"aitk/internal/quant"
	"aitk/ir"
)

// Tensor is a tensor of a weights file.
type Tensor struct {
	Name string
	Type ir.Type
	At   ir.Location
}

// Filled says what became of weights that were looked up by name.
type Filled struct {
	Used       int      // parameters that got content
	Transposed []string // parameters of which the file holds the transpose
	Cast       []string // parameters of which the file holds other floats
	Prefix     string   // what stands before a parameter's name in the file; "-x" where the parameters have x more
	Left       []string // tensors of the file that no parameter is called after, in the file's order
	Missing    []string // parameters that still have no content, in the graph's order
}

// FillGraph gives the parameters of a graph the content that files have under their names, or under one of their aliases.
//
// Names are the authors'. Where no name fits, one that all names of the file or all names of the graph have in front is left out ("model.",
// "transformer."). A matrix may lie transposed, as tools that multiply from the other side keep it; axes of extent 1 do not count; floats
// are cast to the parameter's type while they load. What fits in none of these ways is an error, all of it at once, of kind Usage.
func FillGraph(g *ir.Graph, have []Tensor) (*Filled, error) {
	r := &Filled{}
	byName := make(map[string]*Tensor, len(have))
	for i := range have {
		byName[have[i].Name] = &have[i]
	}
	find := func(p *ir.Param) *Tensor {
		for _, name := range append([]string{p.Name}, p.Aliases...) {
			if rest, ok := strings.CutPrefix(r.Prefix, "-"); ok {
				name = strings.TrimPrefix(name, rest)
			} else {
				name = r.Prefix + name
			}
			if t := byName[name]; t != nil {
				return t
			}
		}
		return nil
	}
	if !slices.ContainsFunc(g.Params, func(p *ir.Param) bool { return find(p) != nil }) {
		r.Prefix = commonPrefix(g, have)
	}
	used := map[string]bool{}
	var problems []string
	for _, p := range g.Params {
		t := find(p)
		if t == nil {
			if p.Init.Kind == ir.InitAbsent {
				r.Missing = append(r.Missing, p.Name)
			}
			continue
		}
		used[t.Name] = true
		if err := r.fill(p, t); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if len(problems) > 0 {
		return nil, ir.Errorf(ir.Usage, ir.Origin{}, "%s", strings.Join(problems, "; "))
	}
	r.Used = len(used)
	for _, t := range have {
		if !used[t.Name] {
			r.Left = append(r.Left, t.Name)
		}
	}
	return r, nil
}

// fill gives a parameter a tensor's content.
func (r *Filled) fill(p *ir.Param, t *Tensor) error {
	in := ir.Init{Kind: ir.InitFile, File: t.At}
	s, want := t.Type.Shape, p.Type.Shape
	switch {
	case s.Equal(want) || withoutOnes(s).Equal(withoutOnes(want)):
	case len(s) == 2 && len(want) == 2 && s[0] == want[1] && s[1] == want[0]:
		in.File.Transposed = true
		r.Transposed = append(r.Transposed, p.Name)
	default:
		return fmt.Errorf("tensor %q is %v, the parameter %v", t.Name, t.Type, p.Type)
	}
	if t.Type.DType != p.Type.DType {
		if !t.Type.DType.IsFloat() || !p.Type.DType.IsFloat() {
			return fmt.Errorf("tensor %q is %v, the parameter %v", t.Name, t.Type, p.Type)
		}
		in.Pack = ir.Packing{Format: quant.Cast, Part: quant.PartCodes, Source: ir.Type{DType: t.Type.DType, Shape: want.Clone()}}
		r.Cast = append(r.Cast, p.Name)
	}
	p.Init = in
	return nil
}

func withoutOnes(s ir.Shape) ir.Shape {
	return slices.DeleteFunc(s.Clone(), func(n int64) bool { return n == 1 })
}

// commonPrefix finds what stands in front of the names on one side only: the longest part up to a dot, by the name of the first parameter or tensor
// that ends like one of the other side.
func commonPrefix(g *ir.Graph, have []Tensor) string {
	for _, p := range g.Params {
		if p.Role != ir.Weight {
			continue
		}
		for _, t := range have {
			if rest, ok := strings.CutSuffix(t.Name, "."+p.Name); ok {
				return rest + "."
			}
			if rest, ok := strings.CutSuffix(p.Name, "."+t.Name); ok {
				return "-" + rest + "."
			}
		}
	}
	return ""
}
