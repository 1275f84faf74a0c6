package weights

import (
	"encoding/binary"
	"fmt"
	"math"

	"aitk/internal/quant"
	"aitk/ir"
)

// This file makes packed content from the floats that an Init describes (ir.Packing), by the formats and into the parts of package quant.
//
// A source of more than two axes is a matrix of its first axis and all others.
//
// The source is read twice, slab by slab: once for the scales, while its digest is taken, once for the codes. So whatever the tensor's size
// this takes a slab of memory and the tensor's scales, which are kept until another weight is asked for: loaders ask for the parts of a
// weight one after another.

// slabBytes is about how much of a source is read at once; a whole row at least.
const slabBytes = 4 << 20

// scaled is a source's scales.
type scaled struct {
	key    string
	scale  []float32
	double quant.Double // where the scheme asks for it
}

// readPacked fills dst with bytes of the part that the packing names.
func (r *Reader) readPacked(name string, t ir.Type, in *ir.Init, dst []byte, offset int64) error {
	source := *in
	source.Pack = ir.Packing{}
	if in.Pack.Format == quant.Cast {
		if !in.Pack.Source.DType.IsFloat() || !t.DType.IsFloat() || !t.Shape.Equal(in.Pack.Source.Shape) {
			return fmt.Errorf("%v cannot be made from %v", t, in.Pack.Source)
		}
		return r.readCast(name, t, in.Pack.Source, &source, dst, offset)
	}
	s, err := quant.SchemeOf(&in.Pack)
	if err != nil {
		return err
	}
	want, err := quant.PartType(&s, in.Pack.Part)
	if err != nil {
		return err
	}
	if !want.Equal(t) {
		return fmt.Errorf("the %s of %v packed as %s are %v, not %v", in.Pack.Part, in.Pack.Source, s.Format, want, t)
	}
	p := &packer{r: r, name: name, t: in.Pack.Source, in: &source, s: s}
	if len(dst) == 0 {
		return p.probe()
	}
	k, err := p.scales()
	if err != nil {
		return err
	}
	switch {
	case in.Pack.Part == quant.PartCodes:
		return p.codes(dst, offset, k.scale)
	case in.Pack.Part == quant.PartSteps:
		copy(dst, encodeFloats(k.double.Steps)[offset:])
	case in.Pack.Part == quant.PartOffset:
		copy(dst, encodeFloats([]float32{k.double.Offset})[offset:])
	case s.Double:
		for i := range dst {
			dst[i] = byte(k.double.Codes[offset+int64(i)])
		}
	default:
		copy(dst, encodeFloats(k.scale[offset/4 : (offset+int64(len(dst))+3)/4])[offset%4:])
	}
	return nil
}

// packer packs one source.
type packer struct {
	r    *Reader
	name string
	t    ir.Type
	in   *ir.Init
	s    quant.Scheme
}

// probe looks whether the source is there without reading it.
func (p *packer) probe() error { return p.r.readAt(p.key(), p.t, p.in, nil, 0) }

// key names the source: its digest is followed under it, so that all parts of a weight share it.
func (p *packer) key() string {
	if p.in.Kind == ir.InitFile {
		return fmt.Sprintf("\x00%s\x00%d\x00%d", p.in.File.Path, p.in.File.Offset, p.in.File.Bytes)
	}
	return "\x00" + p.name
}

func (p *packer) scales() (*scaled, error) {
	id := fmt.Sprint(p.key(), p.s, p.t, p.in.File.Transposed)
	if k := p.r.scaled; k != nil && k.key == id && p.in.Kind == ir.InitFile {
		return k, nil
	}
	p.r.scaled = nil
	k := &scaled{key: id, scale: make([]float32, p.s.Groups())}
	if err := p.slabs(0, p.s.Rows, func(x []float32, row int64) error { return p.s.Absmax(k.scale, x, row) }); err != nil {
		return nil, err
	}
	p.s.Scales(k.scale)
	if p.s.Double {
		k.double = quant.PackScales(k.scale)
	}
	p.r.scaled = k
	return k, nil
}

// slabs reads rows [first, end) and shows them in slabs.
func (p *packer) slabs(first, end int64, visit func(x []float32, row int64) error) error {
	size := p.t.DType.Bits() / 8
	if p.s.Cols == 0 || first >= end {
		return nil
	}
	n := min(max(slabBytes/(p.s.Cols*size), 1), end-first)
	if err := p.probe(); err != nil { // before memory for what the file declares is made
		return err
	}
	raw, x := make([]byte, n*p.s.Cols*size), make([]float32, n*p.s.Cols)
	for row := first; row < end; row += n {
		k := min(n, end-row) * p.s.Cols
		if err := p.r.readAt(p.key(), p.t, p.in, raw[:k*size], row*p.s.Cols*size); err != nil {
			return err
		}
		decodeFloats(x[:k], raw[:k*size], p.t.DType)
		if err := visit(x[:k], row); err != nil {
			return err
		}
	}
	return nil
}

// codes fills dst with bytes of the codes from offset on.
func (p *packer) codes(dst []byte, offset int64, scale []float32) error {
	perByte := 8 / p.s.Format.Bits()
	total := p.s.Rows * p.s.Cols
	lo, hi := offset*perByte, min((offset+int64(len(dst)))*perByte, total)
	if p.s.Cols == 0 {
		return nil
	}
	if perByte == 2 && hi == total && total%2 == 1 {
		dst[len(dst)-1] = 0 // the unused nibble is zero in every tensor that Encode writes
	}
	var buf []byte
	return p.slabs(lo/p.s.Cols, (hi+p.s.Cols-1)/p.s.Cols, func(x []float32, row int64) error {
		if buf == nil {
			buf = make([]byte, len(x))
		}
		codes := buf[:len(x)]
		p.s.Encode(codes, x, row, scale)
		at := row * p.s.Cols
		from, to := max(lo, at), min(hi, at+int64(len(x)))
		if codes = codes[from-at : to-at]; perByte == 1 {
			copy(dst[from-lo:], codes)
		} else {
			quant.Pack4(dst, codes, from-lo) // lo is even
		}
		return nil
	})
}

// readCast fills dst with elements of type t made from those of type source; dst may begin and end inside an element.
func (r *Reader) readCast(name string, t, source ir.Type, in *ir.Init, dst []byte, offset int64) error {
	if len(dst) == 0 {
		return r.readAt(name, source, in, nil, 0)
	}
	size, was := t.DType.Bits()/8, source.DType.Bits()/8
	lo, hi := offset/size, (offset+int64(len(dst))+size-1)/size
	n := min(hi-lo, slabBytes/8)
	raw := make([]byte, n*was)
	for at := lo; at < hi; at += n {
		k := min(n, hi-at)
		if err := r.readAt(name, source, in, raw[:k*was], at*was); err != nil {
			return err
		}
		x, err := ir.DecodeTensor(ir.T(source.DType, k), raw[:k*was])
		if err != nil {
			return err
		}
		x.Type.DType = t.DType
		elems := x.Encode()
		for i := range k {
			put(dst, (at+i)*size-offset, elems[i*size:][:size])
		}
	}
	return nil
}

// Floats reads rows of a float parameter as float32, for whoever measures what packing would lose: n whole rows of the matrix that t is from
// row on, in x.
func (r *Reader) Floats(name string, t ir.Type, in *ir.Init, x []float32, row int64) error {
	if !t.DType.IsFloat() || len(t.Shape) == 0 || t.Shape.Check() != nil {
		return fmt.Errorf("parameter %q: %v holds no rows of floats", name, t)
	}
	size, cols := t.DType.Bits()/8, t.Shape[1:].Elems()
	raw := make([]byte, int64(len(x))*size)
	if err := r.ReadAt(name, t, in, raw, row*cols*size); err != nil {
		return err
	}
	decodeFloats(x, raw, t.DType)
	return nil
}

// decodeFloats narrows or widens to float32.
func decodeFloats(x []float32, raw []byte, d ir.DType) {
	le := binary.LittleEndian
	switch d {
	case ir.F64:
		for i := range x {
			x[i] = float32(math.Float64frombits(le.Uint64(raw[8*i:])))
		}
	case ir.F32:
		for i := range x {
			x[i] = math.Float32frombits(le.Uint32(raw[4*i:]))
		}
	case ir.F16:
		for i := range x {
			x[i] = ir.F16ToF32(le.Uint16(raw[2*i:]))
		}
	case ir.BF16:
		for i := range x {
			x[i] = ir.BF16ToF32(le.Uint16(raw[2*i:]))
		}
	}
}

func encodeFloats(x []float32) []byte {
	raw := make([]byte, 0, 4*len(x))
	for _, v := range x {
		raw = binary.LittleEndian.AppendUint32(raw, math.Float32bits(v))
	}
	return raw
}
