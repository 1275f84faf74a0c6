package passes

import (
	"aitk/ir"
	"aitk/ir/op"
)

// average divides the loss by the number of microbatches, so that gradients added up over them are the gradient of the mean, and so that the
// losses of the microbatches of one optimizer step add up to the loss that is reported.
//
//	result "loss" %9      ->     %10 = Div %9 4
//	                             result "loss" %10
func average() Pass {
	return Pass{
		Name:      "average",
		Doc:       "divide the loss by the number of microbatches",
		Needs:     HasLoss | Split,
		Preserves: Changes,
		Required:  true,
		Run: func(ctx *Context, g *ir.Graph) error {
			n := ctx.Options.Micro()
			if n == 1 {
				return nil
			}
			b := &ir.Builder{G: g, Origin: ir.Origin{Node: "loss"}}
			for i := range g.Results {
				if r := &g.Results[i]; r.Name == "loss" {
					r.Value = b.Add(op.Div{}, r.Value, b.Scalar(r.Value.Type.DType, float64(n)))
				}
			}
			return nil
		},
	}
}
