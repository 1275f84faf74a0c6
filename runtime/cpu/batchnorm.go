package cpu

import (
	"math"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/runtime"
)

// batchNormKernel serves BatchNorm and BatchNormInference and their gradients. A tile is a channel: its sums are taken in (sample, position)
// order by one worker.
func batchNormKernel(b *builder) (runtime.Kernel, error) {
	switch o := b.x.Op.(type) {
	case op.BatchNorm:
		return batchNorm(b, o)
	case op.BatchNormGrad:
		return batchNormGrad(b, o.Eps, true)
	case op.BatchNormInference:
		return batchNormInference(b, o)
	case op.BatchNormInferenceGrad:
		return batchNormGrad(b, o.Eps, false)
	}
	return nil, nil
}

// planes are the elements of each channel of [N, C, ...]: runs of n elements step apart, the runs stride apart.
type planes struct {
	channels            int
	runs, n             int
	stride, step        int
	channelStep, number int // from one channel to the next; elements of a channel
}

// planesOf cuts a shape into channels. Without axes behind the channels a channel is one run over the samples.
func planesOf(s ir.Shape) planes {
	samples, channels, inner := int(s[0]), int(s[1]), int(s[2:].Elems())
	p := planes{channels: channels, runs: samples, n: inner, stride: channels * inner, step: 1, channelStep: inner, number: samples * inner}
	if inner == 1 {
		p.runs, p.n, p.step = 1, samples, channels
	}
	return p
}

// each loads the elements of channel c of a tensor in order, in blocks, and tells where each block begins.
func (p *planes) each(c int, buf []float64, v *floats, visit func(block []float64, at int)) {
	for r := range p.runs {
		first := c*p.channelStep + r*p.stride
		for lo := 0; lo < p.n; lo += len(buf) {
			block := buf[:min(len(buf), p.n-lo)]
			at := first + lo*p.step
			v.loadStep(block, at, p.step)
			visit(block, at)
		}
	}
}

func batchNorm(b *builder, o op.BatchNorm) (runtime.Kernel, error) {
	in, out, err := b.floatsAt(0, 1, 2)
	if err != nil {
		return nil, err
	}
	x, scale, bias := in[0], in[1], in[2]
	y, mean, variance := out[0], out[1], out[2]
	p := planesOf(b.inType(0).Shape)
	return b.tiles(p.channels, func(w *worker, c int) error {
		var sum, squares float64
		p.each(c, w.f64(0), &x, func(block []float64, _ int) {
			for _, v := range block {
				sum += v
			}
		})
		m := sum / float64(p.number)
		p.each(c, w.f64(0), &x, func(block []float64, _ int) {
			for _, v := range block {
				squares += float64((v - m) * (v - m))
			}
		})
		biased := squares / float64(p.number)
		mean.set(c, m)
		variance.set(c, biased)
		p.normalise(c, w, &x, &y, m, 1/math.Sqrt(biased+o.Eps)*scale.at(c), bias.at(c))
		return nil
	}), nil
}

// normalise writes (x - mean)*factor + bias for a channel.
func (p *planes) normalise(c int, w *worker, x, y *floats, mean, factor, bias float64) {
	p.each(c, w.f64(0), x, func(block []float64, at int) {
		for k, v := range block {
			block[k] = float64((v-mean)*factor) + bias
		}
		y.storeStep(at, p.step, block)
	})
}

func batchNormInference(b *builder, o op.BatchNormInference) (runtime.Kernel, error) {
	in, out, err := b.floatsAt(0, 1, 2, 3, 4)
	if err != nil {
		return nil, err
	}
	x, scale, bias, mean, variance, y := in[0], in[1], in[2], in[3], in[4], out[0]
	p := planesOf(b.inType(0).Shape)
	return b.tiles(p.channels, func(w *worker, c int) error {
		p.normalise(c, w, &x, &y, mean.at(c), 1/math.Sqrt(variance.at(c)+o.Eps)*scale.at(c), bias.at(c))
		return nil
	}), nil
}

// batchNormGrad is the gradient with the statistics' own share in dx (training), or with the statistics held fixed.
func batchNormGrad(b *builder, eps float64, training bool) (runtime.Kernel, error) {
	in, out, err := b.floatsAt(0, 1, 2, 3, 4)
	if err != nil {
		return nil, err
	}
	x, scale, mean, variance, dy := in[0], in[1], in[2], in[3], in[4]
	dx, dscale, dbias := out[0], out[1], out[2]
	p := planesOf(b.inType(0).Shape)
	return b.tiles(p.channels, func(w *worker, c int) error {
		m, rstd := mean.at(c), 1/math.Sqrt(variance.at(c)+eps)
		grads := w.f64(1)
		var sum, dot float64
		p.each(c, w.f64(0), &x, func(block []float64, at int) {
			gs := grads[:len(block)]
			dy.loadStep(gs, at, p.step)
			for k, g := range gs {
				sum += g
				dot += float64(g * (block[k] - m))
			}
		})
		dot *= rstd
		factor := scale.at(c) * rstd
		var meanShare, hatShare float64
		if training {
			meanShare, hatShare = sum/float64(p.number), dot/float64(p.number)*rstd
		}
		p.each(c, w.f64(0), &x, func(block []float64, at int) {
			gs := grads[:len(block)]
			dy.loadStep(gs, at, p.step)
			for k, g := range gs {
				gs[k] = factor * (g - meanShare - float64((block[k]-m)*hatShare))
			}
			dx.storeStep(at, p.step, gs)
		})
		dscale.set(c, dot)
		dbias.set(c, sum)
		return nil
	}), nil
}
