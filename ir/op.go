package ir

import "reflect"

// Op is one operation with its attributes: the struct type is the op, its exported fields are the attributes, and the zero field
// is the default that the text form leaves out. Ops are plain values and never change.
//
// Infer gives the output types, or says in lower case what is wrong with the operands; the caller adds node and file.
type Op interface {
	Infer(in []Type) ([]Type, error)
}

// Evaluator gives the meaning of an op: out tensors are allocated with the inferred types, floats are float64 whatever their dtype
// and the caller rounds them (Tensor.Round), integers and bools are int64. Slow and obviously right.
type Evaluator interface {
	Op
	Eval(in, out []Tensor)
}

// Decomposer gives the meaning by simpler ops: the oracle, fallback gradient and fallback kernel of a fused op.
type Decomposer interface {
	Op
	Decompose(b *Builder, in []*Value) []*Value
}

// Differentiable builds the gradient: dOut has one entry per output (nil where no gradient arrives; never all nil), the result one
// per operand, nil where no gradient flows. Each non-nil entry has the type of its operand.
type Differentiable interface {
	Op
	Grad(b *Builder, n *Node, dOut []*Value) []*Value
}

// NoGrad is implemented by ops without a gradient and says why in a phrase ("piecewise constant", "integer result").
type NoGrad interface {
	Op
	NoGradReason() string
}

// Work is what one run of an op costs, from which a device profile makes time.
type Work struct {
	FLOPs        int64
	ReadBytes    int64
	WrittenBytes int64
	ScratchBytes int64 // planned beside the operands while the op runs; kernels of the CPU and CUDA devices get at least this much
	PartialBytes int64 // planned as more scratch on a GPU, whose kernels leave partial sums from one launch to the next
}

// Coster tells the work; ops without it cost their operands' and results' bytes and one FLOP an element.
type Coster interface {
	Op
	Cost(in, out []Type) Work
}

// Sample is a case that generic tests run. Good samples have tensors for every operand; a bad sample has types only and Err a part of the message
// that Infer must give.
type Sample struct {
	Op    Op
	In    []Tensor
	Types []Type // bad samples
	Err   string // bad samples
	// NoDiff lists operands at which finite differences make no sense for this sample (kinks, integers).
	NoDiff []int
}

// Sampler brings samples, good and bad.
type Sampler interface {
	Op
	Samples() []Sample
}

// AliasPair says how an output may share an operand's bytes.
type AliasPair struct {
	Out, In int
	View    bool // true: the output is the operand's bytes under another type; false: the op may write the output over the operand
}

// Effects tells what the planner must know beyond types. Ops without it share nothing and hold no state.
type Effects interface {
	Op
	Alias() []AliasPair // in-place pairs hold only where operand and output have equal Bytes
	Stateful() bool     // runs exactly once a step, is never recomputed (updates of parameters and statistics)
	Stream() uint64     // number of its random stream; 0 for deterministic ops
}

// Vocabulary is the list of ops that readers of text and plan files accept: name -> zero value. op.Vocabulary builds it.
type Vocabulary map[string]reflect.Type

// NewVocabulary names each op by its struct type.
func NewVocabulary(ops []Op) Vocabulary {
	v := make(Vocabulary, len(ops))
	for _, o := range ops {
		v[OpName(o)] = reflect.TypeOf(o)
	}
	return v
}

// OpName is the struct type's name, as printed.
func OpName(o Op) string { return reflect.TypeOf(o).Name() }

// AliasesOf returns the alias pairs of any op.
func AliasesOf(o Op) []AliasPair {
	if e, ok := o.(Effects); ok {
		return e.Alias()
	}
	return nil
}

// ViewOf returns the operand of which n's only output is a view, or nil.
func ViewOf(n *Node) *Value {
	for _, a := range AliasesOf(n.Op) {
		if a.View && a.Out == 0 && len(n.Out) == 1 {
			return n.In[a.In]
		}
	}
	return nil
}

// IsStateful tells whether o must run exactly once a step.
func IsStateful(o Op) bool {
	e, ok := o.(Effects)
	return ok && e.Stateful()
}

// WorkOf is the op's own Cost or the default of Coster.
func WorkOf(o Op, in, out []Type) Work {
	if c, ok := o.(Coster); ok {
		return c.Cost(in, out)
	}
	var w Work
	for _, t := range in {
		w.ReadBytes += t.Bytes()
	}
	for _, t := range out {
		w.WrittenBytes += t.Bytes()
		w.FLOPs += t.Elems()
	}
	return w
}
