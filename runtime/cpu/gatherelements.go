package cpu

import (
	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// gatherElementsKernel serves the ops whose indices name single elements.
func gatherElementsKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.GatherElements:
		switch b.outType(0).DType.Bits() {
		case 8:
			return gatherElements[uint8](b, o)
		case 16:
			return gatherElements[uint16](b, o)
		case 32:
			return gatherElements[uint32](b, o)
		}
		return gatherElements[uint64](b, o)
	case op.ScatterElements:
		return scatterElements(b, o)
	}
	return nil, nil
}

// named is the space of indices: list 0 the indices themselves, list 1 the element of data at each index's place with the coordinate of the
// axis 0. along is how far apart entries of that axis lie.
func named(data, idx ir.Shape, axis int64) (s *space, along int) {
	strides := rowMajor(data)
	along = strides[axis]
	strides[axis] = 0
	return newSpace(idx, rowMajor(idx), strides), along
}

func gatherElements[T word](b *builder, o op.GatherElements) (runtime.Kernel, error) {
	data := b.inType(0).Shape
	idx, err := b.indicesAt(1, int(data[o.Axis]), o.Axis)
	if err != nil {
		return nil, err
	}
	s, along := named(data, b.inType(1).Shape, o.Axis)
	x, y := view[T](b.in[0]), view[T](b.out[0])
	return b.ranges(s.n, rangeElems, func(_ *worker, lo, hi int) (err error) {
		s.walk(lo, hi, func(n int, at [maxLists]int) {
			for i := at[0]; i < at[0]+n && err == nil; i++ {
				var e int
				if e, err = idx.entry(i); err == nil {
					y[i] = x[at[1]+e*along]
				}
				at[1] += s.step[1]
			}
		})
		return err
	}), nil
}

// combiner writes an update to an element.
type combiner func(to, from int)

// combine makes a combiner of the updates, operand 2, with the output. Each step is rounded to the dtype.
func (b *builder) combine(reduce string) (combiner, error) {
	if b.outType(0).DType.IsFloat() {
		x, err := b.floatIn(2)
		if err != nil {
			return nil, err
		}
		y, err := b.floatOut(0)
		if err != nil {
			return nil, err
		}
		return combineInto(reduce, &y, &x), nil
	}
	x, err := b.intIn(2)
	if err != nil {
		return nil, err
	}
	y, err := b.intOut(0)
	if err != nil {
		return nil, err
	}
	return combineInto(reduce, &y, &x), nil
}

func combineInto[A float64 | int64](reduce string, y, x elements[A]) combiner {
	switch reduce {
	case "add":
		return func(to, from int) { y.set(to, y.at(to)+x.at(from)) }
	case "mul":
		return func(to, from int) { y.set(to, y.at(to)*x.at(from)) }
	case "min":
		return func(to, from int) { y.set(to, min(y.at(to), x.at(from))) }
	case "max":
		return func(to, from int) { y.set(to, max(y.at(to), x.at(from))) }
	}
	return func(to, from int) { y.set(to, x.at(from)) }
}

// scatterElements runs on one worker: where a place is named twice, order counts.
func scatterElements(b *builder, o op.ScatterElements) (runtime.Kernel, error) {
	data := b.inType(0).Shape
	idx, err := b.indicesAt(1, int(data[o.Axis]), o.Axis)
	if err != nil {
		return nil, err
	}
	put, err := b.combine(o.Reduce)
	if err != nil {
		return nil, err
	}
	s, along := named(data, b.inType(1).Shape, o.Axis)
	return b.sequence(b.copyAll(b.out[0], b.in[0]), b.serial(func(*worker) (err error) {
		s.walk(0, s.n, func(n int, at [maxLists]int) {
			for i := at[0]; i < at[0]+n && err == nil; i++ {
				var e int
				if e, err = idx.entry(i); err == nil {
					put(at[1]+e*along, i)
				}
				at[1] += s.step[1]
			}
		})
		return err
	})), nil
}
