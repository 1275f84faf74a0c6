package memory

import "math/bits"

// random is a small generator of its own, so that plans depend on nothing but the seed: splitmix64.
type random struct{ x uint64 }

func (r *random) next() uint64 {
	r.x += 0x9e3779b97f4a7c15
	z := r.x
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// below draws from [0, n), n > 0.
func (r *random) below(n int) int {
	hi, _ := bits.Mul64(r.next(), uint64(n))
	return int(hi)
}

// patience draws from the exponential distribution with mean 1, in units of 1/65536: how much worse than the temperature a move may be
// and still be accepted. The logarithm is that of base 2, interpolated between powers, times ln 2.
func (r *random) patience() int64 {
	x := r.next() | 1
	zeros := bits.LeadingZeros64(x)
	fraction := int64((x << zeros << 1) >> 48) // what follows the leading one, 16 bits
	log2 := int64(zeros+1)<<16 - fraction
	return log2 * 45426 >> 16
}
