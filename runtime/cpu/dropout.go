package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// dropoutKernel serves Dropout and Uniform, which draw the same bits.
func dropoutKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.Dropout)
	if !ok {
		return uniformKernel(b)
	}
	in, out, err := b.floatsAt(0)
	if err != nil {
		return nil, err
	}
	var counters [3]ints // seed, step, micro
	for i := range counters {
		if counters[i], err = b.intIn(i + 1); err != nil {
			return nil, err
		}
	}
	x, y := in[0], out[0]
	drop, scale := op.DropoutThreshold(o.Ratio), 1/(1-o.Ratio)
	return b.ranges(int(b.outType(0).Elems()), rangeElems, func(w *worker, lo, hi int) error {
		key := op.StepKey(counters[0].at(0), counters[1].at(0), counters[2].at(0))
		for i := lo; i < hi; i += blockElems { // blocks begin at multiples of four
			block := w.f64(0)[:min(blockElems, hi-i)]
			x.load(block, i)
			for k := 0; k < len(block); k += 4 {
				bits := op.StreamBits(key, o.StreamID, uint64((i+k)/4))
				for j := range min(4, len(block)-k) {
					if uint64(bits[j]) < drop {
						block[k+j] = 0
					} else {
						block[k+j] *= scale
					}
				}
			}
			y.store(i, block)
		}
		return nil
	}), nil
}

func uniformKernel(b *builder) (runtime.Kernel, error) {
	o, ok := b.x.Op.(op.Uniform)
	if !ok {
		return nil, nil
	}
	var counters [3]ints // seed, step, micro
	var err error
	for i := range counters {
		if counters[i], err = b.intIn(i); err != nil {
			return nil, err
		}
	}
	y, err := b.floatOut(0)
	if err != nil {
		return nil, err
	}
	bits := o.Mantissa()
	scale := 1 / float64(uint64(1)<<bits) // a power of two: exact
	return b.ranges(int(b.outType(0).Elems()), rangeElems, func(w *worker, lo, hi int) error {
		key := op.StepKey(counters[0].at(0), counters[1].at(0), counters[2].at(0))
		for i := lo; i < hi; i += blockElems { // blocks begin at multiples of four
			block := w.f64(0)[:min(blockElems, hi-i)]
			for k := 0; k < len(block); k += 4 {
				words := op.StreamBits(key, o.StreamID, uint64((i+k)/4))
				for j := range min(4, len(block)-k) {
					block[k+j] = float64(words[j]>>(32-bits)) * scale
				}
			}
			y.store(i, block)
		}
		return nil
	}), nil
}
