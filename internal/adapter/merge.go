package adapter

import "fmt"

// Delta is what an adapter adds to its weight.
type Delta struct {
	A, B          []float32 // [rank, in] and [out, rank], kernels flattened into in
	Out, In, Rank int64
	Scale         float64
	InOut         bool // the weight is stored [in, out]
}

// Add adds rows of Scale*B*A, or of its transpose, to whole rows of the weight that begin at row. Products are summed along the rank in order, in
// float64, and rounded once with the weight.
func (d *Delta) Add(w []float32, row int64) error {
	cols := d.In
	if d.InOut {
		cols = d.Out
	}
	if int64(len(d.A)) != d.Rank*d.In || int64(len(d.B)) != d.Out*d.Rank || cols == 0 || int64(len(w))%cols != 0 {
		return fmt.Errorf("A has %d numbers, B %d and the rows %d: not rank %d, %d in, %d out", len(d.A), len(d.B), len(w), d.Rank, d.In, d.Out)
	}
	for i := range w {
		r, c := row+int64(i)/cols, int64(i)%cols
		if d.InOut {
			r, c = c, r
		}
		sum := 0.0
		for k := range d.Rank {
			sum += float64(d.B[r*d.Rank+k]) * float64(d.A[k*d.In+c])
		}
		w[i] = float32(float64(w[i]) + float64(d.Scale*sum))
	}
	return nil
}
