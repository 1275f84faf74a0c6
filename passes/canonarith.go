package passes

import (
	"aitk/ir"
	"aitk/ir/op"
)

// simplifyArithmetic removes neutral elements and pairs that cancel. x*0 stays, because x may be NaN.
func (r *rewriter) simplifyArithmetic(n *ir.Node) *ir.Value {
	switch o := n.Op.(type) {
	case op.Add:
		return r.simplifyAdd(n)
	case op.Sub:
		x, y := n.In[0], n.In[1]
		switch {
		case r.isSplat(y, 0):
			return sameAsOut(n, x)
		case r.isSplat(x, 0) && y.Type.Equal(n.Out[0].Type):
			return r.make(n, op.Neg{}, y)
		}
		if z := operandOf[op.Neg](y); z != nil {
			return r.make(n, op.Add{}, x, z)
		}
	case op.Mul:
		for i, x := range n.In {
			y := n.In[1-i]
			switch {
			case r.isSplat(y, 1):
				return sameAsOut(n, x)
			case r.isSplat(y, -1) && x.Type.Equal(n.Out[0].Type):
				return r.make(n, op.Neg{}, x)
			}
		}
	case op.Div:
		x, y := n.In[0], n.In[1]
		switch {
		case r.isSplat(y, 1):
			return sameAsOut(n, x)
		case r.isSplat(y, -1) && x.Type.Equal(n.Out[0].Type) && x.Type.DType.IsFloat():
			return r.make(n, op.Neg{}, x)
		}
	case op.Pow:
		x, y := n.In[0], n.In[1]
		switch {
		case !x.Type.Equal(n.Out[0].Type):
		case r.isSplat(y, 1):
			return x
		case r.isSplat(y, 2): // the derivative of Pow reads x, y and dy, that of Mul only x and dy
			return r.make(n, op.Mul{}, x, x)
		}
	case op.And:
		return r.neutral(n, 1)
	case op.Or, op.Xor:
		return r.neutral(n, 0)
	case op.Neg:
		return operandOf[op.Neg](n.In[0])
	case op.Not:
		return operandOf[op.Not](n.In[0])
	case op.Relu:
		if operandOf[op.Relu](n.In[0]) != nil {
			return n.In[0]
		}
	case op.Abs:
		if operandOf[op.Abs](n.In[0]) != nil {
			return n.In[0]
		}
	case op.Cast:
		return simplifyCast(n, o)
	case op.Where:
		return r.simplifyWhere(n)
	case op.Dropout:
		if o.Ratio == 0 {
			return n.In[0]
		}
	}
	return nil
}

func (r *rewriter) simplifyAdd(n *ir.Node) *ir.Value {
	for i, x := range n.In {
		y := n.In[1-i]
		if r.isSplat(y, 0) {
			if v := sameAsOut(n, x); v != nil {
				return v
			}
		}
		if z := operandOf[op.Neg](y); z != nil {
			return r.make(n, op.Sub{}, x, z)
		}
	}
	return nil
}

// neutral drops a boolean operand that is all unit.
func (r *rewriter) neutral(n *ir.Node, unit float64) *ir.Value {
	for i, x := range n.In {
		if r.isSplat(n.In[1-i], unit) {
			if v := sameAsOut(n, x); v != nil {
				return v
			}
		}
	}
	return nil
}

// simplifyWhere takes the branch that a constant condition picks.
func (r *rewriter) simplifyWhere(n *ir.Node) *ir.Value {
	if n.In[1] == n.In[2] {
		return sameAsOut(n, n.In[1])
	}
	c, ok := r.splat(n.In[0])
	if !ok {
		return nil
	}
	x := n.In[1]
	if c == 0 {
		x = n.In[2]
	}
	if v := sameAsOut(n, x); v != nil {
		return v
	}
	return r.make(n, op.Expand{Shape: n.Out[0].Type.Shape}, x)
}

// simplifyCast removes casts to the same type and the way back from a wider float.
func simplifyCast(n *ir.Node, o op.Cast) *ir.Value {
	x := n.In[0]
	if x.Type.DType == o.To {
		return x
	}
	if x.Def == nil {
		return nil
	}
	if _, ok := x.Def.Op.(op.Cast); ok {
		if y := x.Def.In[0]; y.Type.DType == o.To && holds(x.Type.DType, y.Type.DType) {
			return y
		}
	}
	return nil
}

// holds tells whether every number of the narrow type is one of the wide type.
func holds(wide, narrow ir.DType) bool {
	if wide.IsFloat() && narrow.IsFloat() {
		return wide == ir.F64 || wide == ir.F32 && narrow.Bits() == 16
	}
	return wide == ir.I64 && narrow.IsInt() || wide == ir.I32 && narrow.IsInt() && narrow.Bits() < 32
}

// sameAsOut is x if it can stand for n's output, else nil.
func sameAsOut(n *ir.Node, x *ir.Value) *ir.Value {
	if x.Type.Equal(n.Out[0].Type) {
		return x
	}
	return nil
}

// operandOf is the operand of v's node if its op is an O of one operand, else nil.
func operandOf[O ir.Op](v *ir.Value) *ir.Value {
	if v.Def == nil || len(v.Def.In) != 1 {
		return nil
	}
	if _, ok := v.Def.Op.(O); ok {
		return v.Def.In[0]
	}
	return nil
}
