package quant

import "math"

// Loss is what packing a tensor loses.
type Loss struct {
	RelL2      float64 // L2 of the differences over L2 of the tensor; 0 for a tensor of zeros
	WorstGroup float64 // the largest such figure of one group
	SumSquares float64 // of the tensor
	ErrSquares float64 // of the differences
}

// Measure packs and unpacks a matrix in slabs of about slabElems elements and adds up what is lost. read fills x with n whole rows from row
// on; it is called twice for each slab. A NaN or an infinity is an error.
func (s *Scheme) Measure(read func(x []float32, row int64) error) (Loss, error) {
	var l Loss
	n := s.Groups()
	scale := make([]float32, n)
	if err := s.slabs(read, func(x []float32, row int64) error { return s.Absmax(scale, x, row) }); err != nil {
		return l, err
	}
	s.Scales(scale)
	back := scale
	if s.Double {
		back = PackScales(scale).Unpack()
	}
	var codes []byte
	var y []float32
	errs, sums := make([]float64, n), make([]float64, n)
	err := s.slabs(read, func(x []float32, row int64) error {
		if codes == nil {
			codes, y = make([]byte, len(x)), make([]float32, len(x))
		}
		c, y := codes[:len(x)], y[:len(x)]
		s.Encode(c, x, row, scale)
		s.Decode(y, c, row, back)
		s.run(row, int64(len(x))/s.Cols, func(g, lo, hi int64) {
			for i := lo; i < hi; i++ {
				d, v := float64(x[i])-float64(y[i]), float64(x[i])
				errs[g] += d * d
				sums[g] += v * v
			}
		})
		return nil
	})
	for g, e := range errs {
		l.ErrSquares += e
		l.SumSquares += sums[g]
		if sums[g] > 0 {
			l.WorstGroup = max(l.WorstGroup, math.Sqrt(e/sums[g]))
		}
	}
	if l.SumSquares > 0 {
		l.RelL2 = math.Sqrt(l.ErrSquares / l.SumSquares)
	}
	return l, err
}

// slabElems bounds the elements of a slab, unless a single row has more.
const slabElems = 1 << 20

// SlabRows is how many rows make a slab: at least one, and even, so that nibbles of different slabs share no byte.
func (s *Scheme) SlabRows() int64 {
	rows := max(slabElems/max(s.Cols, 1), 1)
	return (rows + 1) / 2 * 2
}

func (s *Scheme) slabs(read, visit func(x []float32, row int64) error) error {
	if s.Rows == 0 || s.Cols == 0 {
		return nil
	}
	x := make([]float32, min(s.SlabRows(), s.Rows)*s.Cols)
	for row := int64(0); row < s.Rows; row += s.SlabRows() {
		part := x[:min(s.SlabRows(), s.Rows-row)*s.Cols]
		if err := read(part, row); err != nil {
			return err
		}
		if err := visit(part, row); err != nil {
			return err
		}
	}
	return nil
}
