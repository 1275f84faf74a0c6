package weights

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"aitk/internal/regular"
	"aitk/ir"
)

// maxOpen bounds the open files: exporters write models with a file for each of thousands of tensors.
const maxOpen = 64

// files are kept open in the order of their opening; the oldest makes room.
type files struct{ list []opened }

type opened struct {
	path string
	f    *os.File
	size int64
}

// open returns the file at path after holding the location against its size.
func (s *files) open(path string, loc *ir.Location) (io.ReaderAt, error) {
	o, err := s.find(path)
	if err != nil {
		return nil, err
	}
	if loc.Offset < 0 || loc.Bytes < 0 || loc.Offset > o.size || loc.Bytes > o.size-loc.Offset {
		return nil, fmt.Errorf("%s has %d bytes, %d at %d are outside", path, o.size, loc.Bytes, loc.Offset)
	}
	return o.f, nil
}

func (s *files) find(path string) (opened, error) {
	for _, o := range s.list {
		if o.path == path {
			return o, nil
		}
	}
	f, err := regular.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return opened{}, &ir.Error{Cause: fmt.Errorf("the file of its content is not there: %w", err),
			Remedy: "put the file back there (a plan looks for weights from its own folder), or compile again; with --embed-weights a plan keeps them itself"}
	}
	if err != nil {
		return opened{}, err
	}
	st, err := f.Stat()
	if err == nil && len(s.list) == maxOpen {
		err = s.list[0].f.Close()
		s.list = s.list[1:]
	}
	if err != nil {
		return opened{}, errors.Join(err, f.Close())
	}
	o := opened{path, f, st.Size()}
	s.list = append(s.list, o)
	return o, nil
}

func (s *files) close() error {
	var errs []error
	for _, o := range s.list {
		errs = append(errs, o.f.Close())
	}
	s.list = nil
	return errors.Join(errs...)
}

// readFull fills dst. The file's size was looked at, so an early end means that someone cut the file meanwhile.
func readFull(f io.ReaderAt, dst []byte, offset int64) error {
	if n, err := f.ReadAt(dst, offset); n < len(dst) {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return err
	}
	return nil
}

// readTransposed fills dst, a stretch of the row-major [rows, cols] tensor t from offset on, from a file that holds [cols, rows].
//
// Row c of the file holds column c of the tensor, so the stretch needs a segment of every row of the file: the rows of the tensor that
// it touches. Segments are read one by one where they are long or sparse, else as blocks of whole rows.
func readTransposed(f io.ReaderAt, t ir.Type, loc *ir.Location, dst []byte, offset int64) error {
	if len(dst) == 0 {
		return nil
	}
	size := t.DType.Bits() / 8
	rows, cols := t.Shape[0], t.Shape[1]
	end := offset + int64(len(dst))
	r0, r1 := offset/size/cols, (end-1)/size/cols+1
	segment, stride := (r1-r0)*size, rows*size
	group := int64(1)
	if segment < 4096 || segment*4 >= stride {
		group = min(cols, max(1, blockBytes/stride))
	}
	buf := make([]byte, (group-1)*stride+segment)
	for c0 := int64(0); c0 < cols; c0 += group {
		n := min(group, cols-c0)
		block := buf[:(n-1)*stride+segment]
		if err := readFull(f, block, loc.Offset+c0*stride+r0*size); err != nil {
			return err
		}
		for r := r0; r < r1; r++ {
			for c := c0; c < c0+n; c++ {
				put(dst, (r*cols+c)*size-offset, block[(c-c0)*stride+(r-r0)*size:][:size])
			}
		}
	}
	return nil
}

// put copies the part of elements at position at that lies inside dst; a stretch may begin and end inside an element.
func put(dst []byte, at int64, elem []byte) {
	if at < 0 {
		if -at >= int64(len(elem)) {
			return
		}
		elem, at = elem[-at:], 0
	}
	if at < int64(len(dst)) {
		copy(dst[at:], elem)
	}
}

// fill repeats one element; offset may lie inside one.
func fill(t ir.Type, value float64, dst []byte, offset int64) error {
	if !t.DType.IsFloat() && value != float64(int64(value)) {
		return fmt.Errorf("%v cannot be filled with %v", t, value)
	}
	// Two elements: a packed i4 pair makes a whole byte.
	two := ir.NewTensor(ir.T(t.DType, 2))
	for i := range 2 {
		if t.DType.IsFloat() {
			two.F[i] = value
		} else {
			two.I[i] = int64(value)
		}
	}
	raw := two.Encode()
	for i := range dst {
		dst[i] = raw[(offset+int64(i))%int64(len(raw))]
	}
	if t.DType == ir.I4 && t.Elems()%2 == 1 && len(dst) > 0 && offset+int64(len(dst)) == t.Bytes() {
		dst[len(dst)-1] &= 15 // the unused nibble is zero in every tensor that Encode writes
	}
	return nil
}

// uniform draws elements; offset and the end of dst may lie inside one.
func uniform(t ir.Type, in *ir.Init, dst []byte, offset int64) error {
	if !t.DType.IsFloat() {
		return fmt.Errorf("%v cannot be drawn evenly", t)
	}
	size := t.DType.Bits() / 8
	block := ir.NewTensor(ir.T(t.DType, 1024))
	n := int64(len(block.F))
	for first := offset / size; first*size < offset+int64(len(dst)); first += n {
		for i := range block.F {
			block.F[i] = float64(ir.UniformAt(in.Seed, first+int64(i))) * in.Fill
		}
		put(dst, first*size-offset, block.Encode())
	}
	return nil
}
