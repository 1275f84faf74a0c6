//go:build cuda && linux

package cuda

import "aitk/ir/op"

// batchNormKernel serves the batch norms and their gradients.
func batchNormKernel(b *builder) (*kernel, error) {
	name, eps, through := "", 0.0, false
	switch o := b.x.Op.(type) {
	case op.BatchNorm:
		name, eps = "batchnorm", o.Eps
	case op.BatchNormGrad:
		name, eps, through = "batchnorm_grad", o.Eps, true
	case op.BatchNormInference:
		name, eps = "batchnorm_inference", o.Eps
	case op.BatchNormInferenceGrad:
		name, eps = "batchnorm_grad", o.Eps
	default:
		return nil, nil
	}
	t := b.inType(0)
	module, tail, ok := floatVariant("batchnorm", t.DType)
	if !ok {
		return nil, b.noKernel(t)
	}
	samples, channels, inner := t.Shape[0], t.Shape[1], t.Shape[2:].Elems()
	var args []any
	for _, s := range b.out {
		args = append(args, s)
	}
	for _, s := range b.in {
		args = append(args, s)
	}
	if name == "batchnorm_inference" {
		planes := samples * channels
		return b.k, b.launch(module, name, linesGrid(planes), lineBlock(inner), 0, append(append(args, planes, channels, inner, eps), tail...)...)
	}
	count := samples * inner
	args = append(args, count, channels, inner, eps)
	if name == "batchnorm_grad" {
		args = append(args, through)
	}
	return b.k, b.launch(module, name, linesGrid(channels), lineBlock(count), 0, append(args, tail...)...)
}
