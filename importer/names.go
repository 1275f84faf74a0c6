package importer

import "aitk/ir"

// Stored says which parameter a tensor of the file holds, and how: what a writer needs to put trained weights back into the file.
type Stored struct {
	Tensor     string // initializer, or output of the node that makes it
	Param      string
	Transposed bool     // the file holds the transpose
	Shape      ir.Shape // as the file has it; as many elements as the parameter
	// Where one tensor stands for several parameters, which had equal values when exported, Node and Operand (from 0) say which use is
	// this parameter's; both are -1 for all other uses.
	Node, Operand int
}

// stored lists the tensors in file order, then the uses that stand for a parameter of their own.
func (w *weights) stored() []Stored {
	var out []Stored
	add := func(tensor string, v *view, u use) {
		out = append(out, Stored{Tensor: tensor, Param: v.param.Name, Transposed: v.transposed, Shape: v.shape.Clone(), Node: u.node, Operand: u.operand})
	}
	for _, name := range w.src.order {
		if v := w.views[name]; v != nil {
			add(name, v, use{-1, -1})
		}
	}
	for i, n := range w.src.graph.Node {
		if len(n.Output) == 1 && w.src.tensors[n.Output[0]] == nil && w.views[n.Output[0]] != nil {
			add(n.Output[0], w.views[n.Output[0]], use{-1, -1})
		}
		for k, name := range n.Input {
			if v := w.byUse[use{i, k}]; v != nil {
				add(name, v, use{i, k})
			}
		}
	}
	return out
}
