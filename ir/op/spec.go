package op

import "aitk/ir"

// ---- elementwise.go: one operand, same type out (Cast: dtype To; IsNaN: bool). In place allowed where bytes agree.
type (
	Neg         struct{}
	Abs         struct{} // gradient 0 at 0
	Sign        struct{}
	Floor       struct{}
	Ceil        struct{}
	Round       struct{} // half to even
	Exp         struct{}
	Log         struct{}
	Sqrt        struct{}
	Rsqrt       struct{}
	Reciprocal  struct{}
	Sin         struct{}
	Cos         struct{}
	Tanh        struct{} // gradient from the output
	Erf         struct{}
	Sigmoid     struct{} // gradient from the output
	Relu        struct{} // gradient from the output: x>0
	Softplus    struct{}
	Gelu        struct{ Tanh bool } // erf form, or the tanh approximation; GeluGrad(x, dy)
	GeluGrad    struct{ Tanh bool }
	LeakyRelu   struct{ Alpha float64 }
	Clip        struct{ Min, Max float64 } // gradient 1 inside and on the bounds, 0 outside
	Cast        struct{ To ir.DType }      // gradient: Cast back when both are float
	Not         struct{}                   // bool
	IsNaN       struct{}
	IsInf       struct{}
	ReluGrad    struct{} // (y, dy) -> dx; may write over dy
	TanhGrad    struct{} // (y, dy)
	SigmoidGrad struct{} // (y, dy)
)

// ---- binary.go: two operands of one dtype, numpy broadcasting, gradients summed over broadcast axes (SumTo helper).
type (
	Add       struct{}
	Sub       struct{}
	Mul       struct{}
	Div       struct{} // integers: truncated, division by zero gives 0
	Pow       struct{} // gradient to both; exponent's where base > 0
	Max       struct{} // gradient shared equally at ties
	Min       struct{}
	Mod       struct{ Fmod bool } // ONNX Mod
	Equal     struct{}            // -> bool
	Less      struct{}
	LessEqual struct{}
	And       struct{} // bool
	Or        struct{}
	Xor       struct{}
	Where     struct{} // (cond bool, x, y), all broadcast
)

// ---- shape.go
type (
	Reshape   struct{ Shape ir.Shape } // view
	Transpose struct{ Perm []int64 }
	Expand    struct{ Shape ir.Shape }              // numpy broadcast to exactly Shape
	Concat    struct{ Axis int64 }                  // any number of operands
	Slice     struct{ Starts, Ends, Steps []int64 } // one entry per axis; normalised: 0<=start<=dim; step != 0; for step<0 start is the first index read, end exclusive may be -1
	Unslice   struct {                              // adjoint of Slice: writes x into zeros of Shape at Starts + i*Steps
		Shape         ir.Shape
		Starts, Steps []int64
	}
	Pad struct { // constant padding, all entries >= 0
		Before, After []int64
		Value         float64
	}
	Fill struct { // no operands: every element is Value
		DType ir.DType
		Shape ir.Shape
		Value float64
	}
	Iota struct { // no operands: Start + i*Step along Axis of Shape
		DType       ir.DType
		Shape       ir.Shape
		Axis        int64
		Start, Step float64
	}
	Trilu struct {
		Upper bool
		K     int64
	}
	CumSum struct {
		Axis               int64
		Exclusive, Reverse bool
	}
)

// ---- index.go: indices are i64 or i32, negative ones count from the end; an index out of range is an error of the data, found by devices and ref
type (
	Gather     struct{ Axis int64 } // (data, indices) numpy take
	ScatterAdd struct {             // adjoint of Gather: (indices, dy) -> zeros with extent Size at Axis, in index order
		Axis, Size int64
	}
	GatherElements  struct{ Axis int64 } // (data, indices)
	ScatterElements struct {             // (data, indices, updates); Reduce: "" | "add" | "mul" | "min" | "max"
		Axis   int64
		Reduce string
	}
	GatherND     struct{ BatchDims int64 }
	ScatterND    struct{ Reduce string } // (data, indices, updates)
	GatherNDGrad struct {                // (indices, dy) -> Shape, adding in index order
		BatchDims int64
		Shape     ir.Shape
	}
	ArgMax struct { // -> i64; first on ties unless Last
		Axis           int64
		KeepDims, Last bool
		Min            bool // ArgMin
	}
)

// ---- reduce.go: Axes sorted, non-negative; empty Axes reduce nothing. Sums accumulate in a fixed order, in row-major index order.
type (
	ReduceSum struct {
		Axes     []int64
		KeepDims bool
	}
	ReduceMean struct {
		Axes     []int64
		KeepDims bool
	}
	ReduceMax struct { // gradient shared equally at ties
		Axes     []int64
		KeepDims bool
	}
	ReduceMin struct {
		Axes     []int64
		KeepDims bool
	}
	ReduceProd struct { // gradient exact with zeros
		Axes     []int64
		KeepDims bool
	}
)

// ---- matmul.go
type MatMul struct{ TransA, TransB bool } // ranks >= 2 after the importer; batch axes broadcast; f32 accumulation for f32/bf16/f16

// ---- conv.go: x [N,C,spatial...], w [O,C/Group,k...]; Pads: all begins then all ends; no bias operand
type (
	Conv struct {
		Strides, Dilations, Pads []int64
		Group                    int64
	}
	ConvGradInput struct { // (w, dy) -> x of Shape
		Strides, Dilations, Pads []int64
		Group                    int64
		Shape                    ir.Shape
	}
	ConvGradWeight struct { // (x, dy) -> w of Shape
		Strides, Dilations, Pads []int64
		Group                    int64
		Shape                    ir.Shape
	}
)

// ---- pool.go: cells outside the padded input never win a max; ceil_mode and auto_pad are resolved by the importer into Pads
type (
	MaxPool     struct{ Kernel, Strides, Dilations, Pads []int64 }
	MaxPoolGrad struct{ Kernel, Strides, Dilations, Pads []int64 } // (x, dy) -> dx; the first maximum in row-major order gets it all
	AvgPool     struct {
		Kernel, Strides, Dilations, Pads []int64
		CountPad                         bool
	}
	AvgPoolGrad struct { // (dy) -> dx of Shape
		Kernel, Strides, Dilations, Pads []int64
		CountPad                         bool
		Shape                            ir.Shape
	}
)

// ---- softmax.go
type (
	Softmax        struct{ Axis int64 }
	SoftmaxGrad    struct{ Axis int64 } // (y, dy)
	LogSoftmax     struct{ Axis int64 }
	LogSoftmaxGrad struct{ Axis int64 } // (y, dy)
)

// ---- norm.go: normalise over axes Axis.. to the last; statistics are recomputed in the backward
type (
	LayerNorm struct { // (x, scale) or (x, scale, bias); scale and bias have the normalised shape
		Axis int64
		Eps  float64
	}
	LayerNormGrad struct { // (x, scale, dy) -> dx, dscale, dbias
		Axis int64
		Eps  float64
	}
	RMSNorm struct { // (x, scale)
		Axis int64
		Eps  float64
	}
	RMSNormGrad struct { // (x, scale, dy) -> dx, dscale
		Axis int64
		Eps  float64
	}
	BatchNorm              struct{ Eps float64 }      // training: (x [N,C,...], scale, bias) -> y, mean [C], biased variance [C]
	BatchNormGrad          struct{ Eps float64 }      // (x, scale, mean, var, dy) -> dx, dscale, dbias
	BatchNormInference     struct{ Eps float64 }      // (x, scale, bias, mean, var) -> y; no gradient to mean and var
	BatchNormInferenceGrad struct{ Eps float64 }      // (x, scale, mean, var, dy) -> dx, dscale, dbias
	MovingAverage          struct{ Momentum float64 } // (running, batch) -> Momentum*running + (1-Momentum)*batch; stateful, in place
)

// ---- loss.go
type (
	SoftmaxCrossEntropy struct { // (logits with classes at Axis, target i64/i32 without that axis) -> scalar
		Axis           int64
		LabelSmoothing float64
		IgnoreIndex    int64
		HasIgnore      bool
		Reduction      string // "mean" (over kept labels) | "sum"
	}
	SoftmaxCrossEntropyGrad struct { // (logits, target, dloss) -> dlogits
		Axis           int64
		LabelSmoothing float64
		IgnoreIndex    int64
		HasIgnore      bool
		Reduction      string
	}
)

// ---- dropout.go: (x, seed i64[], step i64[], micro i64[]); keeps x/(1-Ratio) with probability 1-Ratio; the bits depend only on
// (seed, step, micro, StreamID, element): Philox4x32-10. The gradient is the same op on dy.
type Dropout struct {
	Ratio    float64
	StreamID uint64
}

// ---- optimizer.go: stateful, in place over parameter and state; ok is bool[]: false leaves everything as it was
type (
	SGD struct { // (p, g, lr f32[], step i64[], ok) -> p' ; with Momentum != 0: (p, g, buf, lr, step, ok) -> p', buf'. First step (step==0): buf = g
		Momentum, Dampening float64
		Nesterov            bool
		WeightDecay         float64
	}
	Adam struct { // (p, g, m, v, lr, step, ok) -> p', m', v'; step counts from 0, t = step+1
		Beta1, Beta2, Eps float64
		WeightDecay       float64
		Decoupled         bool // AdamW: p *= 1-lr*wd; else g += wd*p
	}
	SumSquares struct{} // x -> f32[] (f64[] for f64), fixed order
	AllFinite  struct{} // (ok bool[], x) -> bool[]: ok and every element of x is finite; stateful, in place over ok
)

// ---- swap.go: structural, made by the memory pass alone
type (
	SwapOut  struct{ To ir.Space } // x -> the same type in space To; issued here, complete at the latest at the SwapWait that reads it
	SwapWait struct{}              // (x, host copy) -> nothing: compute waits until the copy has left; x lives until here
	SwapIn   struct{}              // host copy -> device type; issued here, waited for before its first reader
)
