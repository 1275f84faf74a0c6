package op

import "aitk/ir"

// The types of this file are embedded, without a name of their own in the text form, by ops that share bytes the same way and hold
// no state. They have no exported field and so are no attribute.

// over0 lets the output be written over operand 0.
type over0 struct{}

func (over0) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 0}} }
func (over0) Stateful() bool        { return false }
func (over0) Stream() uint64        { return 0 }

// over01 lets the output be written over either of the first two operands.
type over01 struct{}

func (over01) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 0}, {Out: 0, In: 1}} }
func (over01) Stateful() bool        { return false }
func (over01) Stream() uint64        { return 0 }

// over12 lets the output be written over operand 1 or 2.
type over12 struct{}

func (over12) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 1}, {Out: 0, In: 2}} }
func (over12) Stateful() bool        { return false }
func (over12) Stream() uint64        { return 0 }

// viewOf0 makes the output operand 0's bytes under another type.
type viewOf0 struct{}

func (viewOf0) Alias() []ir.AliasPair { return []ir.AliasPair{{Out: 0, In: 0, View: true}} }
func (viewOf0) Stateful() bool        { return false }
func (viewOf0) Stream() uint64        { return 0 }

// piecewiseConstant is embedded by ops whose gradient is zero wherever it exists.
type piecewiseConstant struct{}

func (piecewiseConstant) NoGradReason() string { return "piecewise constant" }

// boolResult is embedded by ops that answer a question.
type boolResult struct{}

func (boolResult) NoGradReason() string { return "boolean result" }

// firstOrder is embedded by the ops that gradients are made of.
type firstOrder struct{}

func (firstOrder) NoGradReason() string {
	return "part of a gradient; second derivatives are not built"
}

// transcendental is embedded by element-wise functions that cost a polynomial or two an element.
type transcendental struct{}

func (transcendental) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	w.FLOPs = 16 * out[0].Elems()
	return w
}

// mover is embedded by ops that read their operands, write their result and compute nothing.
type mover struct{}

func (mover) Cost(in, out []ir.Type) ir.Work { return moved(in, out) }

// picker is embedded by ops that read of operand 0 as much as they write, and all of the others.
type picker struct{}

func (picker) Cost(in, out []ir.Type) ir.Work {
	w := moved(in, out)
	w.ReadBytes += w.WrittenBytes - in[0].Bytes()
	return w
}
