package quant

import (
	"fmt"

	"aitk/ir"
)

// Cast is the format of a packing (ir.Packing) that only changes the element type; its one part is the codes.
const Cast = "cast"

// The parts of a packed weight, each a parameter of its own:
//
//	codes        i8, u8 or i4 [rows, cols]
//	scales       f32 (of channels or blocks), or i8 where they are packed again, then with
//	steps        f32 [scales/256, rounded up] and
//	offset       f32 []
const (
	PartCodes  = "codes"
	PartScales = "scales"
	PartSteps  = "steps"
	PartOffset = "offset"
)

// Parts lists those that a scheme has, codes first.
func (s *Scheme) Parts() []string {
	if s.Double {
		return []string{PartCodes, PartScales, PartSteps, PartOffset}
	}
	return []string{PartCodes, PartScales}
}

// SchemeOf reads a packing as a scheme: a source of more than two axes is a matrix of its first axis and all others. It refuses what no weight can be packed by.
func SchemeOf(k *ir.Packing) (Scheme, error) {
	s := Scheme{Format: Format(k.Format), Rows: 1, Axis: int(k.Axis), Block: k.Block, Double: k.Double}
	if err := k.Source.Shape.Check(); err != nil {
		return s, err
	}
	if len(k.Source.Shape) < 2 {
		return s, fmt.Errorf("%v is no matrix", k.Source)
	}
	s.Rows, s.Cols = k.Source.Shape[0], k.Source.Shape[1:].Elems()
	if k.Axis < 0 || k.Axis > 1 {
		return s, fmt.Errorf("axis %d of a matrix", k.Axis)
	}
	return s, s.Check()
}

// PartType is the type of one part of a packed tensor.
func PartType(s *Scheme, part string) (ir.Type, error) {
	switch part {
	case PartCodes:
		switch {
		case s.Format.Bits() == 4:
			return ir.T(ir.I4, s.Rows, s.Cols), nil
		case s.Format == FP8:
			return ir.T(ir.U8, s.Rows, s.Cols), nil
		}
		return ir.T(ir.I8, s.Rows, s.Cols), nil
	case PartScales:
		if s.Double {
			return ir.T(ir.I8, s.ScaleShape()...), nil
		}
		return ir.T(ir.F32, s.ScaleShape()...), nil
	case PartSteps:
		if s.Double {
			return ir.T(ir.F32, (s.Groups()+DoubleBlock-1)/DoubleBlock), nil
		}
	case PartOffset:
		if s.Double {
			return ir.T(ir.F32), nil
		}
	}
	return ir.Type{}, fmt.Errorf("a weight packed as %s has no part %q", s.Format, part)
}
