package importer

import "fmt"

// DataError says that a shape, an axis or another attribute of the graph is computed from the model's inputs, so that it is not known before the model
// runs. With these inputs bound to constants (Options.Inputs) it is.
type DataError struct {
	What   string   // `shape (operand 1, "s")`
	Inputs []string // of the graph, on which it depends; empty where it depends on weights alone
}

func (e *DataError) Error() string {
	s := e.What + " is computed from the model's data; only what follows from constants and shapes is supported"
	if len(e.Inputs) > 0 {
		s += fmt.Sprintf("; it depends on %q", e.Inputs)
	}
	return s
}

// inputsBehind lists the graph inputs that a tensor is computed from.
func (s *source) inputsBehind(name string) []string {
	reads := map[string]bool{name: true}
	seen := map[int]bool{}
	stack := []string{name}
	for len(stack) > 0 {
		name := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		reads[name] = true
		i, ok := s.def[name]
		if !ok {
			i, ok = s.owner[name] // input of a body: what its node reads
		}
		if ok && (s.graph.Node[i].GetOpType() == "Shape" || s.graph.Node[i].GetOpType() == "Size") {
			continue // what they give is known whatever the data are
		}
		if ok && !seen[i] {
			seen[i] = true
			stack = append(stack, s.reads(i)...)
		}
	}
	var out []string
	for _, in := range s.inputs {
		if reads[in.GetName()] {
			out = append(out, in.GetName())
		}
	}
	return out
}
