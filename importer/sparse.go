package importer

import (
	"encoding/binary"
	"errors"
	"fmt"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// maxSparse is how many bytes a sparse tensor may have once it is dense: the file declares its size and need not hold it.
const maxSparse = 16 << 20

// sparse makes a dense tensor of a sparse one: values at indices, zeros elsewhere. Indices are positions in row-major order, or one coordinate an
// axis; they ascend.
func (f *file) sparse(p *onnxpb.SparseTensorProto) (*tensor, error) {
	if p.Values == nil || p.Indices == nil {
		return nil, errors.New("a sparse tensor needs values and indices")
	}
	values, err := f.tensor(p.Values)
	if err != nil {
		return nil, fmt.Errorf("values: %w", err)
	}
	indices, err := f.tensor(p.Indices)
	if err != nil {
		return nil, fmt.Errorf("indices: %w", err)
	}
	t := &tensor{name: p.Values.GetName(), typ: ir.Type{DType: values.typ.DType, Shape: append(ir.Shape{}, p.Dims...)}, init: ir.Init{Kind: ir.InitLiteral}}
	if err := t.typ.Shape.Check(); err != nil {
		return nil, err
	}
	rank, n := int64(len(p.Dims)), values.typ.Elems()
	switch s := indices.typ.Shape; {
	case values.elem != 0 || len(values.typ.Shape) != 1 || indices.typ.DType != ir.I64:
		return nil, fmt.Errorf("sparse values %v and indices %v", values.typ, indices.typ)
	case !(len(s) == 1 && s[0] == n) && !(len(s) == 2 && s[0] == n && s[1] == rank):
		return nil, fmt.Errorf("%d sparse values and indices %v for %d axes", n, indices.typ, rank)
	case t.typ.Bytes() > maxSparse:
		return nil, &ir.Error{Kind: ir.Unsupported, Cause: fmt.Errorf("a sparse tensor %v of more than %d bytes", t.typ, int64(maxSparse))}
	}
	raw, err := f.bytes(values.init)
	if err != nil {
		return nil, err
	}
	where, err := f.bytes(indices.init)
	if err != nil {
		return nil, err
	}
	size := t.typ.DType.Bits() / 8
	t.init.Literal = make([]byte, t.typ.Bytes())
	last := int64(-1)
	for i := range n {
		at, err := position(where, i, t.typ.Shape, len(indices.typ.Shape) == 2)
		if err != nil {
			return nil, err
		}
		if at <= last {
			return nil, fmt.Errorf("sparse index %d does not come after the one before", i)
		}
		last = at
		copy(t.init.Literal[at*size:(at+1)*size], raw[i*size:])
	}
	return t, nil
}

// position is where index i points in row-major order.
func position(raw []byte, i int64, s ir.Shape, coordinates bool) (int64, error) {
	read := func(k int64) int64 { return int64(binary.LittleEndian.Uint64(raw[8*k:])) }
	if !coordinates {
		at := read(i)
		if at < 0 || at >= s.Elems() {
			return 0, fmt.Errorf("sparse index %d is %d, outside of %d elements", i, at, s.Elems())
		}
		return at, nil
	}
	at := int64(0)
	for a, d := range s {
		x := read(i*int64(len(s)) + int64(a))
		if x < 0 || x >= d {
			return 0, fmt.Errorf("sparse index %d is %d on axis %d of extent %d", i, x, a, d)
		}
		at = at*d + x
	}
	return at, nil
}
