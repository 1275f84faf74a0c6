package quant

import "math"

// DoubleBlock is how many scales share a scale of their own.
const DoubleBlock = 256

// Double is scales packed again: scale i is float32(code[i]*step[i/256]) + offset. offset is the mean of all scales (added up in float64 in
// order, divided, rounded once), step the largest distance from it among 256 neighbours over 127, and a code is rint of the distance over
// step. This is the scheme of QLoRA's second quantization with linear steps in the place of an 8-bit float.
//
// Codes of weights are made with the scales as they were before.
type Double struct {
	Codes  []int8
	Steps  []float32
	Offset float32
}

// PackScales packs scales.
func PackScales(scale []float32) Double {
	d := Double{Codes: make([]int8, len(scale)), Steps: make([]float32, ceil(int64(len(scale)), DoubleBlock))}
	if len(scale) == 0 {
		return d
	}
	sum := 0.0
	for _, s := range scale {
		sum += float64(s)
	}
	d.Offset = float32(sum / float64(len(scale)))
	for b := range d.Steps {
		group := scale[b*DoubleBlock : min((b+1)*DoubleBlock, len(scale))]
		m := float32(0)
		for _, s := range group {
			m = max(m, float32(math.Abs(float64(s-d.Offset))))
		}
		step := m / 127
		d.Steps[b] = step
		if step == 0 {
			continue
		}
		for i, s := range group {
			d.Codes[b*DoubleBlock+i] = int8(clamp(math.RoundToEven(float64((s-d.Offset)/step)), 127))
		}
	}
	return d
}

// UnpackScale gives one scale back.
func UnpackScale(code int8, step, offset float32) float32 {
	return float32(float32(code)*step) + offset
}

// Unpack gives all scales back.
func (d Double) Unpack() []float32 {
	out := make([]float32, len(d.Codes))
	for i, c := range d.Codes {
		out[i] = UnpackScale(c, d.Steps[i/DoubleBlock], d.Offset)
	}
	return out
}
