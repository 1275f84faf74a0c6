package ir_test

import (
	"math"
	"testing"

	"aitk/ir"
)

func TestIntRange(t *testing.T) {
	for _, c := range []struct {
		d      ir.DType
		lo, hi int64
	}{
		{ir.I64, math.MinInt64, math.MaxInt64}, {ir.I32, math.MinInt32, math.MaxInt32}, {ir.I16, -32768, 32767}, {ir.I8, -128, 127}, {ir.I4, -8, 7},
		{ir.U64, 0, math.MaxInt64}, {ir.U32, 0, math.MaxUint32}, {ir.U16, 0, 65535}, {ir.U8, 0, 255}, {ir.Bool, 0, 1}, {ir.F32, 0, 0}, {ir.BF16, 0, 0},
	} {
		if lo, hi := c.d.IntRange(); lo != c.lo || hi != c.hi {
			t.Errorf("%v: %d to %d, want %d to %d", c.d, lo, hi, c.lo, c.hi)
		}
	}
}
