// Package ir is the graph: what to compute. It knows no operation by name (package op holds the vocabulary) and nothing of
// memory, devices or files. A Graph is SSA: every value is defined once, by a leaf (input, parameter, constant) or by a node, and
// nodes stand in an order in which every operand comes first. Nothing is mutable in the graph: an update of a parameter is a new
// value, and Param.Next says which value holds the parameter's content when the program ends.
//
// Facts that a pass works out live in slices indexed by ID, never in the graph (Graph.Users is the most used one).
//
// Invariants (Verify reports every breach at once): IDs are unique and below NumValues and NumNodes; operands are defined before use; types
// equal what Op.Infer says; names of inputs and parameters, and those of results, are unique; Param.Next has its parameter's type.
//
//	g := ir.NewGraph("g")
//	b := ir.Builder{G: g}
//	y := b.Add(op.Relu{}, g.AddInput("x", ir.T(ir.F32, 2, 3)))
//	g.Results = []ir.Result{{Name: "y", Value: y}}
//	err := ir.Verify(g) // and ir.Parse(g.String(), op.Vocabulary()) gives it again
package ir

// ID numbers a value or a node within its graph. Value and node IDs are counted apart; both are dense from 0 after Renumber.
type ID int32

// Phase says to which part of a training step a node belongs.
type Phase uint8

// The phases of a node, in the order of a step.
const (
	Forward Phase = iota
	Backward
	Update
	NumPhases
)

var phaseNames = [NumPhases]string{"forward", "backward", "update"}

func (p Phase) String() string { return phaseNames[p] }

// Value is one SSA value. Leaves have no Def.
type Value struct {
	ID    ID
	Type  Type
	Name  string // unique for leaves; for the rest the exporter's name or empty
	Def   *Node
	Index int32 // which output of Def
}

// Node is one application of an op.
type Node struct {
	ID      ID
	Op      Op
	In, Out []*Value
	Phase   Phase
	Origin  Origin
	CopyOf  *Node // set on a recompute: the node that it runs again
}

// Role says what a parameter is for.
type Role uint8

// The roles of persistent values.
const (
	Weight      Role = iota // the model's own parameter
	Statistic               // running mean or variance, updated by the forward half
	Moment                  // optimizer state of the weight named by Param.Of
	Accumulator             // gradient summed over microbatches, of the weight named by Param.Of
	Buffer                  // other float or integer tensor of the model, never changed (inv_freq, position ids)
	Literal                 // a constant of the graph, made a parameter so that it is placed like one; named by its content
	Shadow                  // host copy of the unchanged parameter named by Param.Of, from which it is swapped in
	NumRoles
)

var roleNames = [NumRoles]string{"weight", "statistic", "moment", "accumulator", "buffer", "literal", "shadow"}

func (r Role) String() string { return roleNames[r] }

// Param is a persistent value: it keeps its content from one run of a program to the next.
type Param struct {
	*Value             // Value.Name is the author's name
	Role      Role     // what it is for
	Trainable bool     // a Weight that receives a gradient; others are frozen
	Of        string   // Moment, Accumulator: the weight it belongs to; Shadow: the parameter whose content it has
	Next      *Value   // what it holds when the program ends; nil: unchanged ("clean")
	Init      Init     // what it holds before the first step
	Reason    string   // why it was classified so, shown by inspect
	Aliases   []string // other names of a tied weight
}

// Const is a literal that the graph carries.
type Const struct {
	*Value
	Data []byte // little-endian elements, exactly Type.Bytes() long
}

// InitKind says where a parameter's first content comes from.
type InitKind uint8

// The sources of initial content.
const (
	InitZero    InitKind = iota
	InitFill             // every element is Init.Fill
	InitFile             // bytes of a file, see Location
	InitLiteral          // bytes held in memory
	InitAbsent           // shape known, content missing: planning works, running does not
	InitUniform          // drawn evenly from [-Init.Fill, Init.Fill) by counter from Init.Seed, see UniformAt
)

// Init is the first content of a parameter, as Kind says. Large weights stay in their file until they are loaded.
type Init struct {
	Kind    InitKind
	Fill    float64  // InitFill: every element; InitUniform: the bound
	File    Location // InitFile
	Literal []byte   // InitLiteral: little-endian elements
	Seed    uint64   // InitUniform
	Pack    Packing  // where the content is floats that become fewer bits; else the zero value
}

// Location names raw little-endian elements inside a file.
type Location struct {
	Path       string // absolute, or relative to the process's folder
	Offset     int64
	Bytes      int64
	Transposed bool   // the file holds the transpose of the rank-2 tensor
	SHA256     string // hex, of the Bytes as stored; empty while unknown
}

// Result is a named value that the caller sees when the program ends.
type Result struct {
	Name  string
	Value *Value
}

// Graph is one program before planning.
type Graph struct {
	Name    string
	Inputs  []*Value // fed anew for every run: batch data, then the reserved $step $micro $lr $seed where used
	Params  []*Param
	Consts  []*Const
	Nodes   []*Node
	Results []Result

	numValues, numNodes ID
}

// NewGraph returns an empty graph.
func NewGraph(name string) *Graph { return &Graph{Name: name} }

// NumValues is one more than the largest value ID ever given: the length of a slice of facts about values.
func (g *Graph) NumValues() int { return int(g.numValues) }

// NumNodes is one more than the largest node ID ever given.
func (g *Graph) NumNodes() int { return int(g.numNodes) }

// NewValue makes a value that nothing defines yet; leaves and node constructors use it.
func (g *Graph) NewValue(name string, t Type) *Value {
	v := &Value{ID: g.numValues, Type: t, Name: name}
	g.numValues++
	return v
}

// NewNode makes a node with fresh outputs of the inferred types, not yet in Nodes.
// It returns what op.Infer says against the operands.
func (g *Graph) NewNode(op Op, in ...*Value) (*Node, error) {
	types := make([]Type, len(in))
	for i, v := range in {
		types[i] = v.Type
	}
	outs, err := op.Infer(types)
	if err != nil {
		return nil, err
	}
	n := &Node{ID: g.numNodes, Op: op, In: append([]*Value{}, in...)}
	g.numNodes++
	for i, t := range outs {
		v := g.NewValue("", t)
		v.Def, v.Index = n, int32(i)
		n.Out = append(n.Out, v)
	}
	return n, nil
}

// AddInput appends an input.
func (g *Graph) AddInput(name string, t Type) *Value {
	v := g.NewValue(name, t)
	g.Inputs = append(g.Inputs, v)
	return v
}

// Input finds an input by name; nil if there is none.
func (g *Graph) Input(name string) *Value {
	for _, v := range g.Inputs {
		if v.Name == name {
			return v
		}
	}
	return nil
}

// AddParam appends a parameter; the caller fills Role, Init and the rest.
func (g *Graph) AddParam(name string, t Type) *Param {
	p := &Param{Value: g.NewValue(name, t)}
	g.Params = append(g.Params, p)
	return p
}

// Param finds a parameter by name; nil if there is none.
func (g *Graph) Param(name string) *Param {
	for _, p := range g.Params {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// AddConst appends a literal. data is little-endian and exactly t.Bytes() long.
func (g *Graph) AddConst(t Type, data []byte) *Value {
	if int64(len(data)) != t.Bytes() {
		panic(Bugf("constant of type %v has %d bytes", t, len(data)))
	}
	c := &Const{Value: g.NewValue("", t), Data: data}
	g.Consts = append(g.Consts, c)
	return c.Value
}

// Result finds a result by name; nil if there is none.
func (g *Graph) Result(name string) *Value {
	for _, r := range g.Results {
		if r.Name == name {
			return r.Value
		}
	}
	return nil
}

// Users returns, for each value ID, the nodes that read it, in node order, once for each operand position.
func (g *Graph) Users() [][]*Node {
	users := make([][]*Node, g.numValues)
	for _, n := range g.Nodes {
		for _, v := range n.In {
			users[v.ID] = append(users[v.ID], n)
		}
	}
	return users
}

// Kept marks, by value ID, what must survive although no node reads it: results and new contents of parameters.
func (g *Graph) Kept() []bool {
	kept := make([]bool, g.numValues)
	for _, r := range g.Results {
		kept[r.Value.ID] = true
	}
	for _, p := range g.Params {
		if p.Next != nil {
			kept[p.Next.ID] = true
		}
	}
	return kept
}

// Replace substitutes values everywhere they are read: operands, results and new contents of parameters. sub is indexed by value
// ID; nil entries stay. Chains are followed.
func (g *Graph) Replace(sub []*Value) {
	find := func(v *Value) *Value {
		for int(v.ID) < len(sub) && sub[v.ID] != nil && sub[v.ID] != v {
			v = sub[v.ID]
		}
		return v
	}
	for _, n := range g.Nodes {
		for i, v := range n.In {
			n.In[i] = find(v)
		}
	}
	for i := range g.Results {
		g.Results[i].Value = find(g.Results[i].Value)
	}
	for _, p := range g.Params {
		if p.Next != nil {
			p.Next = find(p.Next)
		}
	}
}

// Renumber makes value and node IDs dense again: inputs, parameters, constants, then nodes in order.
func (g *Graph) Renumber() {
	g.numValues, g.numNodes = 0, 0
	g.eachValue(func(v *Value) { v.ID = g.numValues; g.numValues++ })
	for _, n := range g.Nodes {
		n.ID = g.numNodes
		g.numNodes++
	}
}

// eachValue visits every value once: inputs, parameters, constants, then what nodes define, in order.
func (g *Graph) eachValue(visit func(*Value)) {
	for _, v := range g.Inputs {
		visit(v)
	}
	for _, p := range g.Params {
		visit(p.Value)
	}
	for _, c := range g.Consts {
		visit(c.Value)
	}
	for _, n := range g.Nodes {
		for _, v := range n.Out {
			visit(v)
		}
	}
}
