// Package tracegen makes synthetic packing problems in the shape of training steps, for tests and benchmarks of package pack. It draws with
// whole numbers from one seeded source only, so a seed gives the same problem on every machine. It must not know how problems are solved.
//
// The trace is that of one pipeline stage under the 1F1B schedule: some micro-batches are in flight, so lifetimes are not nested. Sequence
// lengths are ragged, experts get uneven loads, a third of the layers recompute, parameters are gathered per layer and gradients go out in
// buckets that are released late. Without that raggedness every order packs perfectly and the problem says nothing.
package tracegen

import (
	"math/rand/v2"

	"aitk/passes/pack"
)

// Config is the shape of a trace. Every buffer that is not live all the time lives in the arena of the step.
type Config struct {
	Layers       int
	MicroBatches int
	InFlight     int   // micro-batches whose forward half has run and whose backward half has not
	Align        int64 // of every buffer; 0: 1
	Persistent   bool  // weights and their gradients are live all the time
	Optimizer    bool  // a step at the end brings optimizer state in and out, layer by layer
	Offload      bool  // every fourth kept tensor leaves after its last forward use and comes back as another buffer
	EqualSizes   bool  // one size for all: interval colouring then reaches the load
}

// Sized is the config whose trace has about n buffers.
func Sized(n int) Config {
	c := Config{Layers: 24, InFlight: 4, Align: 512}
	switch {
	case n < 2_000:
		c.Layers = 8
	case n > 200_000:
		c.Layers, c.InFlight = 48, 8
	}
	c.MicroBatches = max(1, n/(19*c.Layers))
	return c
}

// tensor sizes in bytes per token, by what a layer's forward half makes in order: hidden, 3x hidden (queries, keys, values), statistics of the norm, two of the
// feed-forward (scaled by the expert's load), residual, scalars per token, mask.
var shapes = [...]struct {
	bytes  int64
	expert bool
}{{4096, false}, {12288, false}, {8, false}, {16384, true}, {16384, true}, {4096, false}, {4, false}, {1024, false}}

const (
	gathered  = 48 << 20 // bytes of a layer's parameters
	recompute = 3        // every third layer keeps its input only
	bucket    = 4        // layers that share a gradient bucket
)

// trace collects buffers as time goes on, one step per operation.
type trace struct {
	config Config
	rng    *rand.Rand
	now    int64
	out    []pack.Buffer
}

// Make draws a trace.
func (c Config) Make(seed uint64) []pack.Buffer {
	t := &trace{config: c, rng: rand.New(rand.NewPCG(seed, 0x5eed))}
	kept := make([][][]int, c.MicroBatches) // by micro-batch and layer: buffers that wait for the backward half
	length := make([]int64, c.MicroBatches)
	flight := max(1, min(c.InFlight, c.MicroBatches))
	for m := range c.MicroBatches + flight - 1 {
		if m < c.MicroBatches {
			length[m] = 1024 + t.rng.Int64N(3072)
			kept[m] = t.forward(length[m])
		}
		if b := m - flight + 1; b >= 0 {
			t.backward(length[b], kept[b])
			kept[b] = nil
		}
	}
	if c.Optimizer {
		for range c.Layers {
			for range 3 { // two moments and a copy of the weights
				t.add(gathered, 2+t.rng.Int64N(3))
			}
			t.now += 2
		}
	}
	if c.Persistent {
		for range 2 * c.Layers {
			t.out = append(t.out, pack.Buffer{Bytes: gathered, Align: c.Align, Spans: []pack.Span{{Start: 0, End: t.now + 20}}})
		}
	}
	return t.out
}

// add makes a buffer that is live for so many operations from now on.
func (t *trace) add(bytes, life int64) int {
	if t.config.EqualSizes {
		bytes = 1 << 20
	}
	t.out = append(t.out, pack.Buffer{Bytes: bytes, Align: t.config.Align, Spans: []pack.Span{{Start: t.now, End: t.now + life}}})
	return len(t.out) - 1
}

// free ends the life of a buffer after so many more operations.
func (t *trace) free(i int, after int64) { t.out[i].Spans[0].End = t.now + after }

func (t *trace) forward(length int64) [][]int {
	kept := make([][]int, t.config.Layers)
	for l := range kept {
		t.add(gathered, 8+t.rng.Int64N(5))
		load := 512 + t.rng.Int64N(1536) // of the expert, in 1024ths
		for k, s := range shapes {
			bytes := s.bytes * length
			if s.expert && l%2 == 1 {
				bytes = bytes * load / 1024
			}
			i := t.add(bytes, 1+t.rng.Int64N(3))
			if l%recompute != 0 && k != 1 || k == 0 {
				kept[l] = append(kept[l], i)
			}
			if t.rng.IntN(6) == 0 {
				t.add(1+t.rng.Int64N(32<<20), 1)
			}
			t.now++
		}
	}
	return kept
}

func (t *trace) backward(length int64, kept [][]int) {
	grads := -1
	for l := len(kept) - 1; l >= 0; l-- {
		t.add(gathered, 8+t.rng.Int64N(5))
		if grads < 0 || l%bucket == bucket-1 {
			grads = t.add(gathered*bucket, 1)
		}
		if l%recompute == 0 {
			for k, s := range shapes[1:7] {
				t.add(s.bytes*length, int64(8-k)+t.rng.Int64N(3))
				t.now++
			}
		}
		for k := len(kept[l]) - 1; k >= 0; k-- {
			i := kept[l][k]
			if t.config.Offload && i%4 == 0 {
				left := t.out[i].Spans[0].Start + 4
				t.out[i].Spans[0].End = left
				if back := max(left, t.now-3); back < t.now+1 {
					t.out = append(t.out, t.out[i])
					t.out[len(t.out)-1].Spans = []pack.Span{{Start: back, End: t.now + 1}}
				}
			} else {
				t.free(i, 1+t.rng.Int64N(2))
			}
			t.add(t.out[i].Bytes, 1+t.rng.Int64N(4)) // its gradient
			if t.rng.IntN(6) == 0 {
				t.add(1+t.rng.Int64N(32<<20), 1)
			}
			t.now++
		}
		t.free(grads, 6+t.rng.Int64N(12))
	}
}

// Full is an adversarial problem: a rectangle of the height and duration cut at random into n buffers, so that a perfect packing exists and
// no moment has a byte to spare. The buffers come shuffled.
func Full(seed uint64, n int, height, duration int64) []pack.Buffer {
	rng := rand.New(rand.NewPCG(seed, 0xf111))
	type block struct{ start, end, low, high int64 }
	all := []block{{0, duration, 0, height}}
	for tries := 0; len(all) < n && tries < 20*n; tries++ {
		k := rng.IntN(len(all))
		for range 3 { // prefer large blocks
			if j := rng.IntN(len(all)); (all[j].end-all[j].start)*(all[j].high-all[j].low) > (all[k].end-all[k].start)*(all[k].high-all[k].low) {
				k = j
			}
		}
		b := all[k]
		if rng.IntN(2) == 0 && b.end-b.start > 1 {
			at := b.start + 1 + rng.Int64N(b.end-b.start-1)
			all[k].end = at
			all = append(all, block{at, b.end, b.low, b.high})
		} else if b.high-b.low > 1 {
			at := b.low + 1 + rng.Int64N(b.high-b.low-1)
			all[k].high = at
			all = append(all, block{b.start, b.end, at, b.high})
		}
	}
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	out := make([]pack.Buffer, len(all))
	for i, b := range all {
		out[i] = pack.Buffer{Bytes: b.high - b.low, Spans: []pack.Span{{Start: b.start, End: b.end}}}
	}
	return out
}
