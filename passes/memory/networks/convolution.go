package networks

import "aitk/passes/memory"

// image is a value of batch x channels x size x size elements.
type image struct {
	v                     int32
	batch, channels, size int64
}

func (b *builder) conv(x image, channels, kernel, stride int64) image {
	y := image{batch: x.batch, channels: channels, size: x.size / stride}
	elements := y.batch * channels * y.size * y.size
	params := kernel * kernel * x.channels * channels
	y.v = b.product(x.v, 2*elements, 2*elements*kernel*kernel*x.channels, params)
	return y
}

func (x image) with(v int32) image {
	x.v = v
	return x
}

// ResNet makes the step of a ResNet of 18 or 50 layers on images of 224 x 224: convolution, batch norm and ReLU are ops of their own.
func ResNet(layers, batch int64, o Options) *memory.Problem {
	b := newBuilder(o)
	counts, bottleneck := []int64{2, 2, 2, 2}, false
	if layers == 50 {
		counts, bottleneck = []int64{3, 4, 6, 3}, true
	}
	in := image{batch: batch, channels: 3, size: 224}
	in.v = b.input(2 * batch * 3 * 224 * 224)
	b.group()
	x := b.conv(in, 64, 7, 2)
	x.v = b.relu(b.norm(x.v))
	pooled := x
	pooled.size /= 2
	pooled.v = b.layer(work{}, []int32{x.v}, 2*batch*64*56*56, func(int32) []int32 { return []int32{x.v} })
	x = pooled
	for stage, count := range counts {
		width := int64(64) << stage
		for k := range count {
			b.group()
			stride := int64(1)
			if k == 0 && stage > 0 {
				stride = 2
			}
			x = b.residual(x, width, stride, bottleneck)
		}
	}
	b.group()
	mean := b.linear(x.v, 2*batch*x.channels)
	return b.backward(b.product(mean, 2*batch*1000, 2*batch*x.channels*1000, x.channels*1000))
}

func (b *builder) residual(x image, width, stride int64, bottleneck bool) image {
	var y image
	out := width
	if bottleneck {
		out = 4 * width
		y = b.conv(x, width, 1, 1)
		y.v = b.relu(b.norm(y.v))
		y = b.conv(y, width, 3, stride)
		y.v = b.relu(b.norm(y.v))
		y = b.conv(y, out, 1, 1)
	} else {
		y = b.conv(x, width, 3, stride)
		y.v = b.relu(b.norm(y.v))
		y = b.conv(y, width, 3, 1)
	}
	y.v = b.norm(y.v)
	if x.channels != out || stride != 1 {
		x = b.conv(x, out, 1, stride)
		x.v = b.norm(x.v)
	}
	return y.with(b.relu(b.add(y.v, x.v)))
}

// UNetConfig is the U-Net of a latent diffusion model: four levels of Width, 2, 4 and 4 times Width, with transformers at the first three, and long skips.
type UNetConfig struct {
	Batch, Size, Width int64
}

// UNet makes the step of one.
func UNet(c UNetConfig, o Options) *memory.Problem {
	b := newBuilder(o)
	in := image{batch: c.Batch, channels: 4, size: c.Size}
	in.v = b.input(2 * c.Batch * 4 * c.Size * c.Size)
	text := b.input(2 * c.Batch * 77 * 768)
	b.group()
	x := b.conv(in, c.Width, 3, 1)
	skips := []image{x}
	widths := []int64{c.Width, 2 * c.Width, 4 * c.Width, 4 * c.Width}
	for level, w := range widths {
		for range 2 {
			b.group()
			if x = b.resBlock(x, w); level < 3 {
				x = b.spatial(x, text)
			}
			skips = append(skips, x)
		}
		if level < 3 {
			x = b.conv(x, w, 3, 2)
			skips = append(skips, x)
		}
	}
	b.group()
	x = b.resBlock(b.spatial(b.resBlock(x, x.channels), text), x.channels)
	for level := 3; level >= 0; level-- {
		for range 3 {
			b.group()
			skip := skips[len(skips)-1]
			skips = skips[:len(skips)-1]
			x = image{b.concat(x.v, skip.v), x.batch, x.channels + skip.channels, x.size}
			if x = b.resBlock(x, widths[level]); level < 3 {
				x = b.spatial(x, text)
			}
		}
		if level > 0 {
			big := image{b.linear(x.v, 4*b.bytes(x.v)), x.batch, x.channels, 2 * x.size}
			x = b.conv(big, x.channels, 3, 1)
		}
	}
	b.group()
	x.v = b.norm(b.norm(x.v))
	return b.backward(b.conv(x, 4, 3, 1).v)
}

// resBlock is two normalised convolutions beside a shortcut.
func (b *builder) resBlock(x image, channels int64) image {
	y := x.with(b.norm(b.norm(x.v)))
	y = b.conv(y, channels, 3, 1)
	y.v = b.norm(b.norm(y.v))
	y = b.conv(y, channels, 3, 1)
	if x.channels != channels {
		x = b.conv(x, channels, 1, 1)
	}
	return y.with(b.add(y.v, x.v))
}

// spatial is a transformer block over the pixels: self attention, attention to the text, a gated MLP.
func (b *builder) spatial(x image, text int32) image {
	tokens := x.size * x.size
	rows, w := x.batch*tokens, x.channels
	hidden := 2 * rows * w
	y := b.product(b.norm(x.v), hidden, 2*rows*w*w, w*w)
	n := b.norm(y)
	qkv := b.product(n, 3*hidden, 2*rows*3*w*w, 3*w*w)
	a := b.attention(attention{rows: rows, keys: tokens, width: w, heads: 8}, qkv)
	y = b.add(b.product(a, hidden, 2*rows*w*w, w*w), y)
	q := b.product(b.norm(y), hidden, 2*rows*w*w, w*w)
	kv := b.product(text, 2*x.batch*77*2*w, 2*x.batch*77*768*2*w, 768*2*w)
	a = b.attention(attention{rows: rows, keys: 77, width: w, heads: 8}, q, kv)
	y = b.add(b.product(a, hidden, 2*rows*w*w, w*w), y)
	y = b.add(b.gated(b.norm(y), rows, w, 4*w, 1), y)
	return x.with(b.add(b.product(y, hidden, 2*rows*w*w, w*w), x.v))
}
