package ir

import (
	"errors"
	"fmt"
)

// Verify holds a graph against the invariants in the package comment and returns one error that lists every breach, each with the line of
// its node; nil if there is none. It runs every op's Infer again.
//
// What it does not check: that values are used; that a stateful node stands once; that swaps come in pairs and recomputes are
// legal where they stand (the plan checker proves that on bytes); that gradients are right; that files of weights exist.
func Verify(g *Graph) error {
	v := verifier{g: g, defined: map[*Value]bool{}, owner: map[ID]*Value{}}
	v.leaves()
	v.nodes()
	v.ends()
	if len(v.problems) == 0 {
		return nil
	}
	return &Error{Cause: fmt.Errorf("graph %q breaks %d rules:\n%w", g.Name, len(v.problems), errors.Join(v.problems...))}
}

type verifier struct {
	g        *Graph
	problems []error
	defined  map[*Value]bool
	owner    map[ID]*Value
}

func (v *verifier) failf(format string, args ...any) {
	v.problems = append(v.problems, fmt.Errorf(format, args...))
}

// node reports a breach at a node.
func (v *verifier) node(n *Node, format string, args ...any) {
	v.failf("%s\n\t%s", fmt.Sprintf(format, args...), n.Line())
}

// define checks what holds for every value; what says where it is defined.
func (v *verifier) define(what string, x *Value, def *Node, index int) {
	switch {
	case x == nil:
		v.failf("%s: the value is missing", what)
		return
	case v.defined[x]:
		v.failf("%s: %%%d is defined twice", what, x.ID)
		return
	case x.ID < 0 || x.ID >= v.g.numValues:
		v.failf("%s: %%%d is not below %d, the number of values", what, x.ID, v.g.numValues)
	case v.owner[x.ID] != nil:
		v.failf("%s: number %%%d is taken by another value", what, x.ID)
	}
	v.defined[x] = true
	v.owner[x.ID] = x
	if x.Def != def || def != nil && int(x.Index) != index {
		v.failf("%s: %%%d does not point back at its definition", what, x.ID)
	}
	v.typ(what, x.Type)
}

func (v *verifier) typ(what string, t Type) {
	if t.DType == Invalid || t.DType >= numDTypes {
		v.failf("%s: %v is no element type", what, t.DType)
	}
	if t.Space >= NumSpaces {
		v.failf("%s: %v is no space", what, t.Space)
	}
	if err := t.Shape.Check(); err != nil {
		v.failf("%s: %w", what, err)
	}
}

func (v *verifier) leaves() {
	names := map[string]bool{}
	name := func(what, name string) {
		switch {
		case name == "":
			v.failf("%s has no name", what)
		case names[name]:
			v.failf("%s: another input or parameter has the same name", what)
		}
		names[name] = true
	}
	for i, x := range v.g.Inputs {
		what := fmt.Sprintf("input %d", i)
		if x != nil {
			what = fmt.Sprintf("input %q", x.Name)
			name(what, x.Name)
		}
		v.define(what, x, nil, 0)
	}
	for i, p := range v.g.Params {
		if p == nil || p.Value == nil {
			v.failf("parameter %d: the value is missing", i)
			continue
		}
		what := fmt.Sprintf("parameter %q", p.Name)
		name(what, p.Name)
		v.define(what, p.Value, nil, 0)
		v.param(what, p)
	}
	for i, c := range v.g.Consts {
		what := fmt.Sprintf("constant %d", i)
		if c == nil || c.Value == nil {
			v.failf("%s: the value is missing", what)
			continue
		}
		v.define(what, c.Value, nil, 0)
		if c.Type.Shape.Check() == nil && int64(len(c.Data)) != c.Type.Bytes() {
			v.failf("%s: %v needs %d bytes, its data has %d", what, c.Type, c.Type.Bytes(), len(c.Data))
		}
	}
}

func (v *verifier) param(what string, p *Param) {
	if p.Role >= NumRoles {
		v.failf("%s: unknown role %d", what, p.Role)
	}
	if p.Trainable && (p.Role != Weight || !p.Type.DType.IsFloat()) {
		v.failf("%s: trainable, but %v of type %v", what, roleNames[min(p.Role, NumRoles-1)], p.Type)
	}
	described := p.Init.Described(p.Type)
	if p.Type.Shape.Check() != nil {
		return
	}
	if err := described.Shape.Check(); err != nil {
		v.failf("%s: packed from %v: %v", what, described, err)
		return
	}
	need := described.Bytes()
	switch in := &p.Init; {
	case in.Packed() && (!described.DType.IsFloat() || described.Space != Device):
		v.failf("%s: packed from %v", what, described)
	case in.Kind > InitUniform:
		v.failf("%s: unknown kind %d of first content", what, in.Kind)
	case in.Kind == InitLiteral && int64(len(in.Literal)) != need:
		v.failf("%s: %v needs %d bytes, its literal has %d", what, described, need, len(in.Literal))
	case in.Kind == InitFile && (in.File.Bytes != need || in.File.Offset < 0):
		v.failf("%s: %v needs %d bytes, its place in the file has %d at %d", what, described, need, in.File.Bytes, in.File.Offset)
	case in.Kind == InitFile && in.File.Transposed && len(described.Shape) != 2:
		v.failf("%s: %v cannot be stored transposed", what, described)
	case in.Kind == InitUniform && !described.DType.IsFloat():
		v.failf("%s: %v cannot be drawn evenly", what, described)
	}
}

func (v *verifier) nodes() {
	ids := map[ID]bool{}
	passed := map[*Node]bool{}
	for i, n := range v.g.Nodes {
		if n == nil || n.Op == nil {
			v.failf("node at position %d has no operation", i)
			if n != nil {
				for j, x := range n.Out {
					v.define(fmt.Sprintf("node at position %d", i), x, n, j)
				}
			}
			continue
		}
		if n.ID < 0 || n.ID >= v.g.numNodes || ids[n.ID] {
			v.node(n, "node number %d is taken or not below %d", n.ID, v.g.numNodes)
		}
		if n.Phase >= NumPhases {
			v.node(n, "unknown phase %d", n.Phase)
		}
		ids[n.ID] = true
		sound := true
		for j, x := range n.In {
			switch {
			case x == nil:
				v.node(n, "operand %d is missing", j)
				sound = false
			case !v.defined[x]:
				v.node(n, "operand %d, %%%d, is not defined before this node", j, x.ID)
				sound = x.Type.Shape.Check() == nil && sound
			}
		}
		for j, x := range n.Out {
			v.define(fmt.Sprintf("output %d of node %d (%s)", j, n.ID, OpName(n.Op)), x, n, j)
		}
		if sound {
			v.infer(n)
		}
		if n.CopyOf != nil {
			v.copyOf(n, passed)
		}
		passed[n] = true
	}
}

func (v *verifier) infer(n *Node) {
	in := make([]Type, len(n.In))
	for i, x := range n.In {
		in[i] = x.Type
		if x.Type.Shape.Check() != nil {
			return // reported where it is defined
		}
	}
	outs, err := n.Op.Infer(in)
	switch {
	case err != nil:
		v.node(n, "%v", err)
		return
	case len(outs) != len(n.Out):
		v.node(n, "%s has %d outputs, the node %d", OpName(n.Op), len(outs), len(n.Out))
		return
	}
	for i, t := range outs {
		if n.Out[i] != nil && !t.Equal(n.Out[i].Type) {
			v.node(n, "output %d is %v, the operation gives %v", i, n.Out[i].Type, t)
		}
	}
}

// copyOf checks a recompute: the same op as a node that stands before it and is no recompute itself. Its operands may be other values.
func (v *verifier) copyOf(n *Node, passed map[*Node]bool) {
	switch o := n.CopyOf; {
	case !passed[o]:
		v.node(n, "recomputes a node that does not stand before it")
	case o.CopyOf != nil:
		v.node(n, "recomputes a recompute")
	case len(o.Out) == 0:
		v.node(n, "recomputes a node without outputs")
	case o.Op != nil && !SameOp(n.Op, o.Op):
		v.node(n, "recomputes another operation: %s", o.Line())
	}
}

// ends checks what leaves the graph: results and new contents of parameters.
func (v *verifier) ends() {
	names := map[string]bool{}
	for i, r := range v.g.Results {
		if r.Name == "" || names[r.Name] {
			v.failf("result %d: the name %q is empty or taken", i, r.Name)
		}
		names[r.Name] = true
		if r.Value == nil || !v.defined[r.Value] {
			v.failf("result %q: its value is not in the graph", r.Name)
		}
	}
	for _, p := range v.g.Params {
		if p == nil || p.Value == nil || p.Next == nil {
			continue
		}
		switch {
		case !v.defined[p.Next]:
			v.failf("parameter %q: its new content %%%d is not in the graph", p.Name, p.Next.ID)
		case !p.Next.Type.Equal(p.Type):
			v.failf("parameter %q is %v, its new content %%%d is %v", p.Name, p.Type, p.Next.ID, p.Next.Type)
		}
	}
}
