package cpu

import (
	"aitk/ir/op"
	"aitk/runtime"
)

// whereKernel serves Where, which moves elements without looking at them.
func whereKernel(b *builder) (runtime.Kernel, error) {
	if _, ok := b.x.Op.(op.Where); !ok {
		return nil, nil
	}
	switch b.outType(0).DType.Bits() {
	case 8:
		return whereWords[uint8](b), nil
	case 16:
		return whereWords[uint16](b), nil
	case 32:
		return whereWords[uint32](b), nil
	}
	return whereWords[uint64](b), nil
}

func whereWords[T word](b *builder) runtime.Kernel {
	s := b.broadcast()
	c, x, y, z := view[uint8](b.in[0]), view[T](b.in[1]), view[T](b.in[2]), view[T](b.out[0])
	return s.over(b, func(_ *worker, n int, at [maxLists]int) {
		dst := z[at[0] : at[0]+n]
		if s.step[1] == 0 { // one condition for the whole run
			if c[at[1]] != 0 {
				copyRun(dst, x, at[2], s.step[2])
			} else {
				copyRun(dst, y, at[3], s.step[3])
			}
			return
		}
		cond := c[at[1]:][:n]
		i, j := at[2], at[3]
		for k, take := range cond {
			v, w := x[i], y[j]
			if take != 0 { // both are loaded, so that this is a conditional move: masks are hard to predict
				w = v
			}
			dst[k] = w
			i += s.step[2]
			j += s.step[3]
		}
	})
}

// copyRun copies elements that follow one another, or one again and again where step is 0.
func copyRun[T word](dst, src []T, i, step int) {
	if step == 0 {
		fillWords(dst, src[i])
		return
	}
	copy(dst, src[i:i+len(dst)])
}
