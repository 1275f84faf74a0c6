package passes

import (
	"cmp"
	"slices"

	"aitk/internal/quant"
	"aitk/ir"
	"aitk/ir/op"
)

// The joint choice of formats and plan. Quantizing a frozen weight saves its bytes for good and costs the time of dequantizing it where it is read; recomputing and
// swapping save bytes of activations for a time of their own. So the formats are chosen with the budget in view:
//
//  1. Every weight that a spec with format auto hits is measured in every format; what loses more than the spec's error or saves too little is out.
//  2. Of a weight's formats those on the convex hull of time over bytes saved are steps, each dearer per byte than the one before. All steps of all weights in the order
//     of their price are the ladder: its first k steps save what they save at the least time (the greedy of the multiple-choice knapsack; Sinha and Zoltners, 1979).
//  3. The planner tries rungs of the ladder and takes the one whose step is fastest within the budget (cmd/aitk).
//
// The choice is written into the options as specs with full names, which win over the glob that they come from: from then on formats are fixed, and with them results.

// AutoFormat is a format that a weight may be stored in.
type AutoFormat struct {
	Spec  QuantizeSpec // for this weight alone
	Bytes int64        // codes and scales
	Picos int64        // of dequantizing it once
	RelL2 float64      // L2 of the error over L2 of the weight, measured
}

// AutoWeight is a weight whose format the planner may choose. The first format is the smallest by bytes.
type AutoWeight struct {
	Name     string
	WasBytes int64
	Formats  []AutoFormat
}

// HasAuto tells whether some weights' formats are left to the planner.
func (o *Options) HasAuto() bool {
	return slices.ContainsFunc(o.Quantize, func(q QuantizeSpec) bool { return q.Format == formatAuto })
}

// measureAuto measures a weight in every format that spec allows.
func (q *quantizing) measureAuto(p *ir.Param, spec QuantizeSpec) error {
	w := AutoWeight{Name: p.Name, WasBytes: p.Type.Bytes()}
	for _, f := range []quant.Format{quant.NF4, quant.Int4, quant.Int8, quant.FP8} {
		s := q.schemeOf(p, spec, f)
		if 4*s.Bytes() > 3*p.Type.Bytes() {
			continue
		}
		loss, err := q.measure(p, s)
		if err != nil {
			return err
		}
		if loss.RelL2 > spec.MaxError {
			continue
		}
		one := QuantizeSpec{Glob: p.Name, Format: string(f), Block: spec.Block, Double: spec.Double, MaxError: defaultMaxError}
		if !f.Blocked() {
			one.Block, one.Double = defaultBlock, false
		}
		w.Formats = append(w.Formats, AutoFormat{Spec: one, Bytes: s.Bytes(), Picos: q.dequantizePicos(p, s), RelL2: loss.RelL2})
	}
	if len(w.Formats) > 0 {
		slices.SortStableFunc(w.Formats, func(a, b AutoFormat) int { return cmp.Compare(a.Bytes, b.Bytes) })
		q.ctx.Auto = append(q.ctx.Auto, w)
	}
	return nil
}

// dequantizePicos is the time of one dequantization; 0 without a device.
func (q *quantizing) dequantizePicos(p *ir.Param, s *quant.Scheme) int64 {
	if q.ctx.Profile == nil {
		return 0
	}
	var in []ir.Type
	for _, part := range s.Parts() {
		t, err := quant.PartType(s, part)
		if err != nil {
			panic(ir.Bugf("quantize: %v", err))
		}
		in = append(in, t)
	}
	return q.ctx.Profile.ExecPicos(op.Dequantize{Format: string(s.Format), To: p.Type.DType, Axis: int64(s.Axis), Block: s.Block}, in, []ir.Type{matrix(p.Type)})
}

// Ladder is the order in which weights are best quantized.
type Ladder struct {
	weights []AutoWeight
	rungs   []rung
	// SavedBytes is what all rungs together save.
	SavedBytes int64
}

// rung takes a weight from the format before it to one that saves more.
type rung struct {
	weight, format int // indices
	saves, picos   int64
	loses          float64 // squared error more
}

// NewLadder orders the choices by their price per byte.
func NewLadder(weights []AutoWeight) *Ladder {
	l := &Ladder{weights: weights}
	for i := range weights {
		l.climb(i)
	}
	slices.SortStableFunc(l.rungs, func(a, b rung) int {
		x, y := float64(a.picos)/float64(a.saves), float64(b.picos)/float64(b.saves)
		return cmp.Or(cmp.Compare(x, y), cmp.Compare(a.loses/float64(a.saves), b.loses/float64(b.saves)))
	})
	for _, r := range l.rungs {
		l.SavedBytes += r.saves
	}
	return l
}

// climb adds the rungs of one weight: from what is kept, always the format with the least time for each byte more, of two the one that loses less.
func (l *Ladder) climb(i int) {
	w := &l.weights[i]
	bytes, picos, loss := w.WasBytes, int64(0), 0.0
	for {
		best := rung{format: -1}
		for k := range w.Formats {
			f := &w.Formats[k]
			r := rung{weight: i, format: k, saves: bytes - f.Bytes, picos: f.Picos - picos, loses: f.RelL2*f.RelL2 - loss}
			if r.saves <= 0 {
				continue
			}
			x, y := float64(r.picos)*float64(best.saves), float64(best.picos)*float64(r.saves)
			if best.format < 0 || x < y || x == y && r.loses < best.loses {
				best = r
			}
		}
		if best.format < 0 {
			return
		}
		l.rungs = append(l.rungs, best)
		f := &w.Formats[best.format]
		bytes, picos, loss = f.Bytes, f.Picos, f.RelL2*f.RelL2
	}
}

// Specs are those of a stretch of the ladder that saves at least so many bytes, one for each weight: a format, or none where it is kept.
func (l *Ladder) Specs(savedBytes int64) (specs []QuantizeSpec, saved int64) {
	chosen := make([]int, len(l.weights))
	for i := range chosen {
		chosen[i] = -1
	}
	for _, r := range l.rungs {
		if saved >= savedBytes {
			break
		}
		chosen[r.weight] = r.format
		saved += r.saves
	}
	for i, k := range chosen {
		if k >= 0 {
			specs = append(specs, l.weights[i].Formats[k].Spec)
		} else {
			specs = append(specs, QuantizeSpec{Glob: l.weights[i].Name, Format: formatNone, Block: defaultBlock, MaxError: defaultMaxError})
		}
	}
	return specs, saved
}
