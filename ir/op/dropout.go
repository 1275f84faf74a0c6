package op

import (
	"fmt"

	"aitk/ir"
)

// Dropout sets elements to zero with probability Ratio in [0,1) and multiplies the others by 1/(1-Ratio).
//
//	x [...], seed i64[], step i64[], micro i64[] -> like x
//
// Which elements go depends on (seed, step, micro, StreamID, index of the element) alone: see DropoutKeeps. So a recompute gives the same
// bits, and the gradient is the same op on dy. StreamID tells the dropouts of a graph apart; 0 is refused, since it marks deterministic ops.
type Dropout struct {
	Ratio    float64
	StreamID uint64
}

// Infer gives x's type.
func (o Dropout) Infer(in []ir.Type) ([]ir.Type, error) {
	if err := wantOperands(in, "x", "seed", "step", "micro"); err != nil {
		return nil, err
	}
	if err := wantFloats(in, 0); err != nil {
		return nil, err
	}
	for i, name := range []string{"seed", "step", "micro"} {
		if err := wantScalar(in, i+1, name, ir.I64); err != nil {
			return nil, err
		}
	}
	if !(o.Ratio >= 0 && o.Ratio < 1) {
		return nil, fmt.Errorf("ratio must lie in [0,1), got %v", o.Ratio)
	}
	if o.StreamID == 0 {
		return nil, fmt.Errorf("stream id 0 is reserved for ops without randomness; number the dropouts of a graph from 1")
	}
	return []ir.Type{in[0]}, nil
}
