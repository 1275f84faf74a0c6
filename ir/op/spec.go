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
