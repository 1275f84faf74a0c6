package data

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
)

// Samples are ordered by a counter, not by a generator with a state: whoever knows seed, epoch and position knows the sample, so that a run
// resumes from those three numbers and nothing else, and no memory grows with the data set.
//
// A Permutation is a Feistel network over Z_a x Z_b (Black, Rogaway: Ciphers with arbitrary finite domains, CT-RSA 2002) with
// a*b just above n; numbers from n on are sent through again until they fall below n. Round functions are words of op.ShuffleStream.

// feistelRounds is an even number; small domains mix slowly.
const feistelRounds = 12

// Permutation is a bijection of the numbers below n.
type Permutation struct {
	n, a, b uint64
	key     [2]uint32
}

// NewPermutation makes the bijection of the numbers below n that belongs to a key.
func NewPermutation(n int64, key [2]uint32) Permutation {
	p := Permutation{n: uint64(n), key: key}
	p.a = uint64(math.Ceil(math.Sqrt(float64(n))))
	for p.a*p.a < p.n { // the square root may be rounded down
		p.a++
	}
	p.a = max(p.a, 1)
	p.b = (p.n + p.a - 1) / p.a
	return p
}

// At is where i goes; 0 <= i < n.
func (p Permutation) At(i int64) int64 {
	if i < 0 || uint64(i) >= p.n {
		panic(ir.Bugf("position %d of a permutation of %d", i, p.n))
	}
	x := uint64(i)
	for {
		if x = p.once(x); x < p.n {
			return int64(x)
		}
	}
}

func (p Permutation) once(x uint64) uint64 {
	l, r := x%p.a, x/p.a
	for round := uint64(0); round < feistelRounds; round += 2 {
		l = (l + p.word(round, r)%p.a) % p.a
		r = (r + p.word(round+1, l)%p.b) % p.b
	}
	return r*p.a + l
}

// word is 64 bits that depend on key, round and a half, which is below 2^32.
func (p Permutation) word(round, half uint64) uint64 {
	w := op.StreamBits(p.key, op.ShuffleStream, round<<40|half)
	return uint64(w[0]) | uint64(w[1])<<32
}

// Order says which samples are held out for evaluation and which sample stands where in an epoch. The samples held out do not depend on the
// seed, so that runs with different seeds are judged on the same ones.
type Order struct {
	samples, held int64
	seed          int64
	split         Permutation
	epoch         int64 // of shuffle
	shuffle       Permutation
}

// splitKey is the key of the one permutation that splits: seed 0 and microbatch 1, which no epoch has.
func splitKey() [2]uint32 { return op.StepKey(0, 0x73706c6974, 1) }

// NewOrder orders so many samples, of which the fraction held is held out: rounded, and at least one sample on each side where the fraction is
// above 0 and there are two. The fraction lies in [0,1).
func NewOrder(samples int64, held float64, seed int64) *Order {
	o := &Order{samples: samples, seed: seed, split: NewPermutation(samples, splitKey()), epoch: -1}
	if held > 0 {
		o.held = max(min(int64(math.Round(held*float64(samples))), samples-1), min(1, samples-1))
	}
	return o
}

// Train is the number of samples trained on in an epoch.
func (o *Order) Train() int64 { return o.samples - o.held }

// Held is the number of samples held out.
func (o *Order) Held() int64 { return o.held }

// HeldSample is the i-th sample held out, always the same one.
func (o *Order) HeldSample(i int64) int64 { return o.split.At(i) }

// Sample is the sample at position i of an epoch, i below Train.
func (o *Order) Sample(epoch, i int64) int64 {
	if epoch != o.epoch {
		o.epoch, o.shuffle = epoch, NewPermutation(o.Train(), op.StepKey(o.seed, epoch, 0))
	}
	i = o.shuffle.At(i)
	if o.held == 0 {
		return i
	}
	return o.split.At(o.held + i)
}
