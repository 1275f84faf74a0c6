package safetensors

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"aitk/internal/durable"
	"aitk/ir"
)

// Writer fills a file tensor by tensor. It is for one goroutine.
type Writer struct {
	path   string // target
	f      *durable.File
	infos  []Info
	byName map[string]int
	filled []int64 // bytes written of each tensor
}

// Create begins a file that will hold exactly these tensors. It makes a temporary file in path's folder and writes the header; path
// itself is touched by Commit alone. The order in the file is canonical: wider elements first, then by name, which also keeps every
// tensor aligned to its elements; the data begin at a multiple of 8.
func Create(path string, metadata map[string]string, tensors []Spec) (*Writer, error) {
	infos, header, err := encodeHeader(metadata, tensors)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	f, err := durable.Create(path)
	if err != nil {
		return nil, err
	}
	w := &Writer{path: path, f: f, infos: infos, byName: map[string]int{}, filled: make([]int64, len(infos))}
	for i, x := range infos {
		w.byName[x.Name] = i
	}
	if _, err := f.Write(header); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// WriteFile is Create, each tensor's whole content, and Commit. content is called once for each tensor, in file order.
func WriteFile(path string, metadata map[string]string, tensors []Spec, content func(Spec) ([]byte, error)) (err error) {
	w, err := Create(path, metadata, tensors)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for _, x := range w.infos {
		raw, err := content(x.Spec)
		if err != nil {
			return err
		}
		if err := w.WriteAt(x.Name, raw, 0); err != nil {
			return err
		}
	}
	return w.Commit()
}

// Infos lists the tensors in file order.
func (w *Writer) Infos() []Info { return append([]Info{}, w.infos...) }

// WriteAt writes a stretch of a tensor's little-endian elements. Tensors may be filled in any order and in turns, each from its start
// without gaps: offset, in bytes from the tensor's start, is where its last stretch ended.
func (w *Writer) WriteAt(name string, p []byte, offset int64) error {
	i, ok := w.byName[name]
	switch {
	case !ok:
		return fmt.Errorf("%s: no tensor %q was announced", w.path, name)
	case offset != w.filled[i]:
		return fmt.Errorf("%s: tensor %q is filled up to byte %d, cannot go on at %d", w.path, name, w.filled[i], offset)
	case int64(len(p)) > w.infos[i].Bytes-offset:
		return fmt.Errorf("%s: tensor %q: %d bytes at %d are outside its %d", w.path, name, len(p), offset, w.infos[i].Bytes)
	}
	if _, err := w.f.WriteAt(p, w.infos[i].Offset+offset); err != nil {
		return err
	}
	w.filled[i] += int64(len(p))
	return nil
}

// Commit makes the file durable and puts it in the place of path. It fails, and leaves path alone, if a tensor is incomplete.
func (w *Writer) Commit() error {
	for i, x := range w.infos {
		if w.filled[i] != x.Bytes {
			return fmt.Errorf("%s: tensor %q has %d of its %d bytes", w.path, x.Name, w.filled[i], x.Bytes)
		}
	}
	return w.f.Commit()
}

// Close removes the temporary file unless Commit has put it in place. It may be called at any time and twice.
func (w *Writer) Close() error { return w.f.Close() }

// encodeHeader gives the tensors their places, and the bytes that come before them.
func encodeHeader(metadata map[string]string, tensors []Spec) ([]Info, []byte, error) {
	specs := slices.Clone(tensors)
	slices.SortFunc(specs, func(a, b Spec) int {
		return cmp.Or(cmp.Compare(b.Type.DType.Bits(), a.Type.DType.Bits()), strings.Compare(a.Name, b.Name))
	})
	var b strings.Builder
	field := func(key string, value any) error {
		if b.Len() > 1 {
			b.WriteByte(',')
		}
		k, err := json.Marshal(key)
		if err != nil {
			return err
		}
		v, err := json.Marshal(value)
		b.Write(k)
		b.WriteByte(':')
		b.Write(v)
		return err
	}
	b.WriteByte('{')
	if len(metadata) != 0 {
		for _, k := range slices.Sorted(maps.Keys(metadata)) {
			if !roundTrips(k) || !roundTrips(metadata[k]) {
				return nil, nil, fmt.Errorf("metadata %q is not UTF-8", k)
			}
		}
		if err := field(metadataKey, metadata); err != nil { // json sorts the keys
			return nil, nil, err
		}
	}
	infos := make([]Info, len(specs))
	seen := make(map[string]bool, len(specs))
	at := int64(0)
	for i, s := range specs {
		d, ok := nameOf(s.Type.DType)
		switch {
		case s.Name == metadataKey || !roundTrips(s.Name):
			return nil, nil, fmt.Errorf("%q cannot be the name of a tensor", s.Name)
		case seen[s.Name]:
			return nil, nil, fmt.Errorf("tensor %q stands twice", s.Name)
		case !ok:
			return nil, nil, fmt.Errorf("tensor %q: %v has no safetensors type", s.Name, s.Type.DType)
		}
		if err := s.Type.Shape.Check(); err != nil {
			return nil, nil, fmt.Errorf("tensor %q: %w", s.Name, err)
		}
		seen[s.Name] = true
		s.Type.Space = ir.Device
		infos[i] = Info{Spec: s, Offset: at, Bytes: s.Type.Bytes()}
		at += infos[i].Bytes
		if at < 0 {
			return nil, nil, errors.New("the tensors together are larger than any file")
		}
		err := field(s.Name, struct {
			DType   string   `json:"dtype"`
			Shape   []int64  `json:"shape"`
			Offsets [2]int64 `json:"data_offsets"`
		}{d, s.Type.Shape.Clone(), [2]int64{infos[i].Offset, at}})
		if err != nil {
			return nil, nil, err
		}
	}
	b.WriteByte('}')
	for b.Len()%8 != 0 {
		b.WriteByte(' ')
	}
	if b.Len() > MaxHeaderBytes {
		return nil, nil, fmt.Errorf("header of %d bytes is longer than the %d that can be read back", b.Len(), MaxHeaderBytes)
	}
	for i := range infos {
		infos[i].Offset += 8 + int64(b.Len())
	}
	return infos, append(binary.LittleEndian.AppendUint64(nil, uint64(b.Len())), b.String()...), nil
}

// roundTrips tells whether JSON can hold s: it replaces what is not UTF-8.
func roundTrips(s string) bool { return strings.ToValidUTF8(s, "\uFFFD") == s }
