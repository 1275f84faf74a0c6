package safetensors

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"maps"

	"aitk/internal/regular"
)

// File is an open file. Its methods may be called from several goroutines.
type File struct {
	path     string
	r        io.ReaderAt
	close    func() error
	infos    []Info // file order
	byName   map[string]int
	metadata map[string]string
}

// Open reads a file's header and keeps the file open until Close.
func Open(path string) (*File, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	st, err := f.Stat()
	if err == nil {
		var x *File
		if x, err = New(f, st.Size()); err == nil {
			x.path, x.close = path, f.Close
			return x, nil
		}
		err = fmt.Errorf("%s: %w", path, err)
	}
	return nil, errors.Join(err, f.Close())
}

// New reads the header of r, which holds size bytes. Closing r stays with the caller.
func New(r io.ReaderAt, size int64) (*File, error) {
	var length [8]byte
	if size < 8 {
		return nil, fmt.Errorf("not a safetensors file: %d bytes, shorter than the length of a header", size)
	}
	if _, err := r.ReadAt(length[:], 0); err != nil {
		return nil, fmt.Errorf("reading the header's length: %w", err)
	}
	n := binary.LittleEndian.Uint64(length[:])
	switch {
	case n > uint64(size-8):
		return nil, fmt.Errorf("not a safetensors file, or cut off: header of %d bytes in a file of %d", n, size)
	case n > MaxHeaderBytes:
		return nil, fmt.Errorf("header of %d bytes is longer than the %d that are read", n, MaxHeaderBytes)
	}
	raw := make([]byte, n)
	if _, err := r.ReadAt(raw, 8); err != nil && !(errors.Is(err, io.EOF) && n == uint64(size-8)) {
		return nil, fmt.Errorf("reading the header: %w", err)
	}
	entries, metadata, err := parseHeader(raw)
	if err != nil {
		return nil, err
	}
	start := 8 + int64(n)
	infos, err := layout(entries, start, size-start)
	if err != nil {
		return nil, err
	}
	f := &File{r: r, infos: infos, byName: make(map[string]int, len(infos)), metadata: metadata}
	for i, x := range infos {
		f.byName[x.Name] = i
	}
	return f, nil
}

// Names lists the tensors in file order.
func (f *File) Names() []string {
	names := make([]string, len(f.infos))
	for i, x := range f.infos {
		names[i] = x.Name
	}
	return names
}

// Infos lists the tensors in file order.
func (f *File) Infos() []Info { return append([]Info{}, f.infos...) }

// Info finds a tensor by name.
func (f *File) Info(name string) (Info, bool) {
	i, ok := f.byName[name]
	if !ok {
		return Info{}, false
	}
	return f.infos[i], true
}

// Metadata is a copy of the header's free text; nil if it has none.
func (f *File) Metadata() map[string]string { return maps.Clone(f.metadata) }

// Path is what Open was given; empty for New.
func (f *File) Path() string { return f.path }

// ReadTensor fills dst with a tensor's little-endian elements. dst must be exactly Info.Bytes long.
func (f *File) ReadTensor(name string, dst []byte) error {
	x, ok := f.Info(name)
	if !ok {
		return fmt.Errorf("%sno tensor %q", f.where(), name)
	}
	if int64(len(dst)) != x.Bytes {
		return fmt.Errorf("%stensor %q has %d bytes, the buffer %d", f.where(), name, x.Bytes, len(dst))
	}
	return f.ReadAt(name, dst, 0)
}

// ReadAt fills dst with a stretch of a tensor's bytes that begins at offset.
func (f *File) ReadAt(name string, dst []byte, offset int64) error {
	x, ok := f.Info(name)
	if !ok {
		return fmt.Errorf("%sno tensor %q", f.where(), name)
	}
	if offset < 0 || offset > x.Bytes || int64(len(dst)) > x.Bytes-offset {
		return fmt.Errorf("%stensor %q: %d bytes at %d are outside its %d", f.where(), name, len(dst), offset, x.Bytes)
	}
	if len(dst) == 0 {
		return nil
	}
	// A ReaderAt may report io.EOF along with the last byte of its data.
	if n, err := f.r.ReadAt(dst, x.Offset+offset); n < len(dst) {
		return fmt.Errorf("%sreading tensor %q: %w", f.where(), name, err)
	}
	return nil
}

// Close closes the file that Open opened.
func (f *File) Close() error {
	if f.close == nil {
		return nil
	}
	return f.close()
}

func (f *File) where() string {
	if f.path == "" {
		return ""
	}
	return f.path + ": "
}
