package networks

import "aitk/passes/memory"

// FluxConfig is a diffusion transformer: Double blocks with a stream for the image and one for the text, which meet in attention, then Single blocks of one stream with
// attention and MLP side by side.
type FluxConfig struct {
	Double, Single, Batch, ImageTokens, TextTokens, Width, Heads int64
}

// Flux makes the step of one.
func Flux(c FluxConfig, o Options) *memory.Problem {
	b := newBuilder(o)
	w := c.Width
	imageRows, textRows := c.Batch*c.ImageTokens, c.Batch*c.TextTokens
	x, y := b.input(2*imageRows*w), b.input(2*textRows*w)
	b.free[x], b.free[y] = false, false
	vec := b.input(2 * c.Batch * w) // of time and text
	rows := imageRows + textRows
	join := attention{rows: rows, keys: c.ImageTokens + c.TextTokens, width: w, heads: c.Heads}
	for range c.Double {
		b.group()
		modX := b.product(vec, 2*c.Batch*6*w, 2*c.Batch*6*w*w, 6*w*w)
		modY := b.product(vec, 2*c.Batch*6*w, 2*c.Batch*6*w*w, 6*w*w)
		qkvX := b.product(b.times(b.norm(x), modX), 6*imageRows*w, 6*imageRows*w*w, 3*w*w)
		qkvY := b.product(b.times(b.norm(y), modY), 6*textRows*w, 6*textRows*w*w, 3*w*w)
		a := b.attention(join, b.norm(b.concat(qkvY, qkvX)))
		parts := b.split(a, 2*textRows*w, 2*imageRows*w)
		x = b.fluxStream(x, parts[1], modX, imageRows, w)
		y = b.fluxStream(y, parts[0], modY, textRows, w)
	}
	z := b.concat(y, x)
	for range c.Single {
		b.group()
		mod := b.product(vec, 2*c.Batch*3*w, 2*c.Batch*3*w*w, 3*w*w)
		n := b.times(b.norm(z), mod)
		both := b.product(n, 2*rows*7*w, 2*rows*7*w*w, 7*w*w)
		parts := b.split(both, 2*rows*3*w, 2*rows*4*w)
		a := b.attention(join, b.norm(parts[0]))
		out := b.product(b.concat(a, b.norm(parts[1])), 2*rows*w, 2*rows*5*w*w, 5*w*w)
		z = b.add(b.times(out, mod), z)
	}
	return b.backward(b.norm(b.split(z, 2*textRows*w, 2*imageRows*w)[1]))
}

// fluxStream adds attention's part and the MLP of a double block to a stream.
func (b *builder) fluxStream(x, part, mod int32, rows, w int64) int32 {
	hidden := 2 * rows * w
	x = b.add(b.times(b.product(part, hidden, 2*rows*w*w, w*w), mod), x)
	up := b.product(b.times(b.norm(x), mod), 4*hidden, 2*rows*4*w*w, 4*w*w)
	down := b.product(b.norm(up), hidden, 2*rows*4*w*w, 4*w*w)
	return b.add(b.times(down, mod), x)
}
