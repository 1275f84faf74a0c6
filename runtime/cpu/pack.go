package cpu

import "aitk/ir"

// matrix is a stack of matrices of which each line, or each column of lines, is contiguous: lineStep or kStep is 1.
type matrix struct {
	v               floats
	at              []int // first element of each matrix of the batch
	lineStep, kStep int
}

// packBlock is the worker's block that packers use on the way from narrow floats.
const packBlock = numBlocks - 1

// pack is a packer.
func (m *matrix) pack(w *worker, dst []float64, width, p, r0, r1, k0, k1 int) {
	n := k1 - k0
	if tail := (r1 - r0) % width; tail != 0 {
		clear(dst[(r1-r0)/width*width*n:])
	}
	at := m.at[p] + r0*m.lineStep + k0*m.kStep
	if m.kStep == 1 {
		for r := range r1 - r0 {
			m.line(w, dst[r/width*width*n+r%width:], width, at+r*m.lineStep, n)
		}
		return
	}
	for k := range n {
		m.across(w, dst[k*width:], width, n*width, at+k*m.kStep, r1-r0)
	}
}

// line spreads n contiguous elements width apart.
func (m *matrix) line(w *worker, dst []float64, width, at, n int) {
	switch m.v.d {
	case ir.F32:
		spread(dst, width, m.v.f32[at:at+n])
	case ir.F64:
		spread(dst, width, m.v.f64[at:at+n])
	default:
		for i := 0; i < n; i += blockElems {
			block := w.f64(packBlock)[:min(blockElems, n-i)]
			m.v.load(block, at+i)
			spread(dst[i*width:], width, block)
		}
	}
}

// across deals n contiguous elements out to strips, width to each, which lie strip apart.
func (m *matrix) across(w *worker, dst []float64, width, strip, at, n int) {
	switch m.v.d {
	case ir.F32:
		deal(dst, width, strip, m.v.f32[at:at+n])
	case ir.F64:
		deal(dst, width, strip, m.v.f64[at:at+n])
	default:
		block := w.f64(packBlock)[:n] // a tile's edge is shorter than a block
		m.v.load(block, at)
		deal(dst, width, strip, block)
	}
}

func spread[T float32 | float64](dst []float64, width int, src []T) {
	if width == rowStrip {
		for len(src) >= 4 && len(dst) >= 7 {
			dst[0], dst[2], dst[4], dst[6] = float64(src[0]), float64(src[1]), float64(src[2]), float64(src[3])
			src = src[4:]
			dst = dst[min(8, len(dst)):]
		}
	}
	for i, x := range src {
		dst[i*width] = float64(x)
	}
}

func deal[T float32 | float64](dst []float64, width, strip int, src []T) {
	at := 0
	if width == colStrip {
		for ; len(src) >= 4; src = src[4:] {
			d := dst[at : at+4 : at+4]
			d[0], d[1], d[2], d[3] = float64(src[0]), float64(src[1]), float64(src[2]), float64(src[3])
			at += strip
		}
	}
	for ; len(src) >= width; src = src[width:] {
		for i, x := range src[:width] {
			dst[at+i] = float64(x)
		}
		at += strip
	}
	for i, x := range src {
		dst[at+i] = float64(x)
	}
}
