package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"aitk/internal/regular"
	"aitk/ir"
)

// IDX is the format of MNIST: a big-endian magic number that holds element type and rank, the extents, the elements. Only unsigned bytes are
// read, which are one and the same in either byte order. The pair of files is held in memory; elements stay what they are, 0 to 255.

// maxIDXBytes bounds what a compressed file may grow to.
const maxIDXBytes = 4 << 30

// isIDX tells by the name whether a file is an IDX file.
func isIDX(base string) bool {
	return strings.Contains(base, "-idx") && strings.HasSuffix(strings.TrimSuffix(base, ".gz"), "-ubyte")
}

// openIDX reads an images file and the labels file that lies beside it.
func openIDX(path string) (*Source, error) {
	base := filepath.Base(path)
	if !strings.Contains(base, "images-idx3") {
		return nil, fmt.Errorf("%s: name the images file, …-images-idx3-ubyte; its labels are found beside it", path)
	}
	images, err := readIDX(path)
	if err != nil {
		return nil, err
	}
	labels, err := readIDX(filepath.Join(filepath.Dir(path), strings.Replace(base, "images-idx3", "labels-idx1", 1)))
	if err != nil {
		return nil, err
	}
	if len(images.t.Shape) < 2 || len(labels.t.Shape) != 1 || images.t.Shape[0] != labels.t.Shape[0] {
		return nil, fmt.Errorf("%s holds images %v and labels %v, which do not belong together", path, images.t.Shape, labels.t.Shape)
	}
	s := &Source{path: path, unnamed: true, close: func() error { return nil }}
	s.tensors = []Tensor{{"images", images.t}, {Target, labels.t}}
	s.read = func(tensor string, dst []byte, offset int64) error {
		from := images.raw
		if tensor == Target {
			from = labels.raw
		}
		if offset < 0 || offset > int64(len(from)) || copy(dst, from[offset:]) < len(dst) {
			return fmt.Errorf("%s: %d bytes at %d of tensor %q are outside its %d", path, len(dst), offset, tensor, len(from))
		}
		return nil
	}
	return s, s.countSamples()
}

type idx struct {
	t   ir.Type
	raw []byte
}

func readIDX(path string) (x idx, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return x, err
	}
	defer f.Close()
	var r io.Reader = f
	if strings.HasSuffix(path, ".gz") {
		z, err := gzip.NewReader(f)
		if err != nil {
			return x, fmt.Errorf("%s: %w", path, err)
		}
		defer z.Close()
		r = z
	}
	if x, err = parseIDX(r); err != nil {
		return x, fmt.Errorf("%s: %w", path, err)
	}
	return x, nil
}

// parseIDX grows its memory with the bytes that come, not with those announced.
func parseIDX(r io.Reader) (idx, error) {
	var magic [4]byte
	if _, err := io.ReadFull(r, magic[:]); err != nil {
		return idx{}, fmt.Errorf("reading the magic number: %w", err)
	}
	if magic[0] != 0 || magic[1] != 0 || magic[2] != 8 || magic[3] == 0 || magic[3] > 8 {
		return idx{}, fmt.Errorf("magic number %x is not that of an IDX file of unsigned bytes", magic)
	}
	t := ir.T(ir.U8)
	for range magic[3] {
		var extent [4]byte
		if _, err := io.ReadFull(r, extent[:]); err != nil {
			return idx{}, fmt.Errorf("reading the extents: %w", err)
		}
		t.Shape = append(t.Shape, int64(binary.BigEndian.Uint32(extent[:])))
	}
	if err := t.Shape.Check(); err != nil {
		return idx{}, err
	}
	want := t.Bytes()
	if want > maxIDXBytes {
		return idx{}, fmt.Errorf("%v is larger than the %d bytes that are read", t.Shape, int64(maxIDXBytes))
	}
	var b bytes.Buffer
	n, err := io.Copy(&b, io.LimitReader(r, want+1))
	switch {
	case err != nil && !errors.Is(err, io.ErrUnexpectedEOF):
		return idx{}, err
	case n < want:
		return idx{}, fmt.Errorf("%v needs %d bytes, the file has %d", t.Shape, want, n)
	case n > want:
		return idx{}, fmt.Errorf("there are bytes after the %d of %v", want, t.Shape)
	}
	return idx{t, b.Bytes()}, err
}
