package onnxpb

import (
	"errors"
	"fmt"
	"io"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Limits bound what Read accepts. The zero value of a field stands for its default.
type Limits struct {
	Depth         int   // nested messages; default 64
	Messages      int64 // messages in all; default 4,194,304
	SkeletonBytes int64 // everything but the located tensor data; default 512 MiB
}

func (l Limits) withDefaults() Limits {
	set := func(p *int64, d int64) {
		if *p == 0 {
			*p = d
		}
	}
	if l.Depth == 0 {
		l.Depth = 64
	}
	set(&l.Messages, 1<<22)
	set(&l.SkeletonBytes, 512<<20)
	return l
}

// Read decodes a model of size bytes. It works in two passes:
//
//  1. walk the wire format and copy the *skeleton*: the same message without unknown fields, without doc strings and without
//     raw_data, of which raw_offset and raw_bytes say where it lies;
//  2. hand the skeleton, whose shape is proven by then, to the protobuf library.
//
// An error names the byte offset at which the file stops making sense.
func Read(r io.ReaderAt, size int64, limits Limits) (*ModelProto, error) {
	w := &walker{r: r, size: size, limits: limits.withDefaults(), tensor: (*TensorProto)(nil).ProtoReflect().Descriptor()}
	if err := w.message((*ModelProto)(nil).ProtoReflect().Descriptor(), size, 0); err != nil {
		return nil, err
	}
	m := &ModelProto{}
	if err := (proto.UnmarshalOptions{DiscardUnknown: true, RecursionLimit: w.limits.Depth + 8}).Unmarshal(w.out, m); err != nil {
		return nil, fmt.Errorf("not an ONNX file: %w", err)
	}
	return m, nil
}

// walker reads forward through a window of the file and appends the skeleton to out.
type walker struct {
	r        io.ReaderAt
	size     int64
	limits   Limits
	tensor   protoreflect.MessageDescriptor
	pos      int64
	window   []byte // file bytes from windowAt on
	windowAt int64
	messages int64
	out      []byte
}

const windowBytes = 64 << 10

// message copies one message that ends at file offset end.
func (w *walker) message(md protoreflect.MessageDescriptor, end int64, depth int) error {
	if depth > w.limits.Depth {
		return w.errorf("messages nest deeper than %d", w.limits.Depth)
	}
	if w.messages++; w.messages > w.limits.Messages {
		return w.errorf("more than %d messages", w.limits.Messages)
	}
	for w.pos < end {
		num, typ, err := w.tag(end)
		if err != nil {
			return err
		}
		fd := md.Fields().ByNumber(num)
		if md == w.tensor && num > 1000 || fd != nil && fd.Name() == "doc_string" {
			fd = nil
		}
		if err := w.field(md, fd, num, typ, end, depth); err != nil {
			return err
		}
		if int64(len(w.out)) > w.limits.SkeletonBytes {
			return w.errorf("more than %d bytes beside the tensors' data", w.limits.SkeletonBytes)
		}
	}
	return nil
}

// field copies one field, or skips it where fd is nil.
func (w *walker) field(md protoreflect.MessageDescriptor, fd protoreflect.FieldDescriptor, num protowire.Number, typ protowire.Type, end int64, depth int) error {
	if fd != nil && !wireTypeFits(fd, typ) {
		return w.errorf("field %s.%s has wire type %d", md.Name(), fd.Name(), typ)
	}
	switch typ {
	case protowire.VarintType:
		v, err := w.varint(end)
		if err != nil || fd == nil {
			return err
		}
		w.out = protowire.AppendVarint(protowire.AppendTag(w.out, num, typ), v)
		return nil
	case protowire.Fixed32Type, protowire.Fixed64Type:
		n := int64(4)
		if typ == protowire.Fixed64Type {
			n = 8
		}
		if fd == nil {
			return w.skip(n, end)
		}
		w.out = protowire.AppendTag(w.out, num, typ)
		return w.copy(n, end)
	case protowire.BytesType:
		n, err := w.length(end)
		if err != nil {
			return err
		}
		switch {
		case fd == nil:
			return w.skip(n, end)
		case fd.Message() != nil:
			start := len(w.out)
			if err := w.message(fd.Message(), w.pos+n, depth+1); err != nil {
				return err
			}
			w.prefix(start, num)
			return nil
		case md == w.tensor && fd.Name() == "raw_data":
			w.out = protowire.AppendVarint(protowire.AppendTag(w.out, 1001, protowire.VarintType), uint64(w.pos))
			w.out = protowire.AppendVarint(protowire.AppendTag(w.out, 1002, protowire.VarintType), uint64(n))
			return w.skip(n, end)
		}
		if int64(len(w.out))+n > w.limits.SkeletonBytes {
			return w.errorf("more than %d bytes beside the tensors' data", w.limits.SkeletonBytes)
		}
		w.out = protowire.AppendVarint(protowire.AppendTag(w.out, num, typ), uint64(n))
		return w.copy(n, end)
	}
	return w.errorf("wire type %d", typ)
}

// wireTypeFits tells whether a field may be written so. Repeated numbers come one by one or packed.
func wireTypeFits(fd protoreflect.FieldDescriptor, typ protowire.Type) bool {
	own := protowire.VarintType
	switch fd.Kind() {
	case protoreflect.FloatKind:
		own = protowire.Fixed32Type
	case protoreflect.DoubleKind:
		own = protowire.Fixed64Type
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.MessageKind:
		own = protowire.BytesType
	}
	return typ == own || typ == protowire.BytesType && fd.IsList()
}

// prefix puts tag and length in front of the message that begins at start of out.
func (w *walker) prefix(start int, num protowire.Number) {
	n := len(w.out) - start
	var head [20]byte
	h := protowire.AppendVarint(protowire.AppendTag(head[:0], num, protowire.BytesType), uint64(n))
	w.out = append(w.out, h...)
	copy(w.out[start+len(h):], w.out[start:start+n])
	copy(w.out[start:], h)
}

func (w *walker) tag(end int64) (protowire.Number, protowire.Type, error) {
	v, err := w.varint(end)
	if err != nil {
		return 0, 0, err
	}
	num, typ := protowire.DecodeTag(v)
	if num < protowire.MinValidNumber {
		return 0, 0, w.errorf("field number %d", num)
	}
	return num, typ, nil
}

func (w *walker) length(end int64) (int64, error) {
	v, err := w.varint(end)
	if err != nil {
		return 0, err
	}
	if v > uint64(end-w.pos) {
		return 0, w.errorf("a field declares %d bytes where %d are left", v, end-w.pos)
	}
	return int64(v), nil
}

func (w *walker) varint(end int64) (uint64, error) {
	b, err := w.peek(min(10, end-w.pos))
	if err != nil {
		return 0, err
	}
	v, n := protowire.ConsumeVarint(b)
	if n < 0 {
		return 0, w.errorf("broken or cut number")
	}
	w.pos += int64(n)
	return v, nil
}

func (w *walker) skip(n, end int64) error {
	if n > end-w.pos {
		return w.errorf("a field of %d bytes where %d are left", n, end-w.pos)
	}
	w.pos += n
	return nil
}

// copy appends n bytes of the file to the skeleton.
func (w *walker) copy(n, end int64) error {
	if n > end-w.pos {
		return w.errorf("a field of %d bytes where %d are left", n, end-w.pos)
	}
	for n > 0 {
		b, err := w.peek(min(n, windowBytes))
		if err != nil {
			return err
		}
		w.out = append(w.out, b...)
		w.pos += int64(len(b))
		n -= int64(len(b))
	}
	return nil
}

// peek returns the next n bytes, n <= windowBytes, without moving on.
func (w *walker) peek(n int64) ([]byte, error) {
	if n <= 0 || w.pos+n > w.size {
		return nil, w.errorf("the file ends early")
	}
	at := w.pos - w.windowAt
	if at < 0 || at+n > int64(len(w.window)) {
		if w.window == nil {
			w.window = make([]byte, windowBytes)
		}
		w.window = w.window[:min(windowBytes, w.size-w.pos)]
		if _, err := w.r.ReadAt(w.window, w.pos); err != nil && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read at byte %d: %w", w.pos, err)
		}
		w.windowAt, at = w.pos, 0
	}
	return w.window[at : at+n], nil
}

func (w *walker) errorf(format string, args ...any) error {
	return fmt.Errorf("not an ONNX file: byte %d: %s", w.pos, fmt.Sprintf(format, args...))
}
