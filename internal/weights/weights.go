// Package weights reads the first content of parameters, as ir.Init describes it: from raw bytes in a file, from memory, or made up of
// one value or of random numbers; and it packs floats into fewer bits while they are read. It knows neither models nor the formats of the
// files: an ir.Location is a stretch of bytes and nothing more.
//
// A parameter is read in stretches of any size, so that loading needs no memory of its own beyond a block, and its stored bytes are held
// against the recorded SHA-256 while they pass. Where they pass in order and as stored (every loader does that) this costs no second
// reading; otherwise the digest is taken in a reading of its own before the first stretch is handed out.
//
// Invariants: at most maxOpen files are open; nothing outside a Location's bytes is read; content that the digest disproves is never
// handed out to its end.
package weights

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"hash"
	"io"

	"aitk/ir"
)

// blockBytes is how much is read at once where the bytes do not go straight to the caller.
const blockBytes = 1 << 20

// Reader keeps files open between reads. Its methods are for one goroutine.
type Reader struct {
	files  files
	check  map[string]*digest // by parameter
	scaled *scaled            // of the packed weight that was read last
}

// digest follows the bytes of one parameter.
type digest struct {
	h    hash.Hash
	at   int64 // bytes seen in order
	done bool
}

// NewReader returns a Reader without open files.
func NewReader() *Reader { return &Reader{check: map[string]*digest{}} }

// Close closes all files.
func (r *Reader) Close() error { return r.files.close() }

// ReadAt fills dst with the bytes of parameter name from offset on: row-major little-endian elements of type t, whatever the order in
// which they are stored. Errors name the parameter and the file.
func (r *Reader) ReadAt(name string, t ir.Type, in *ir.Init, dst []byte, offset int64) error {
	if err := t.Shape.Check(); err != nil {
		return fmt.Errorf("parameter %q: %w", name, err)
	}
	if err := in.Described(t).Shape.Check(); err != nil {
		return fmt.Errorf("parameter %q: %w", name, err)
	}
	size := t.Bytes()
	if offset < 0 || offset > size || int64(len(dst)) > size-offset {
		return fmt.Errorf("parameter %q: %d bytes at %d are outside its %d", name, len(dst), offset, size)
	}
	read := r.readAt
	if in.Packed() {
		read = r.readPacked
	}
	if err := read(name, t, in, dst, offset); err != nil {
		return fmt.Errorf("parameter %q: %w", name, err)
	}
	return nil
}

func (r *Reader) readAt(name string, t ir.Type, in *ir.Init, dst []byte, offset int64) error {
	switch in.Kind {
	case ir.InitZero:
		clear(dst)
		return nil
	case ir.InitFill:
		return fill(t, in.Fill, dst, offset)
	case ir.InitLiteral:
		if int64(len(in.Literal)) != t.Bytes() {
			return fmt.Errorf("%v needs %d bytes, its literal has %d", t, t.Bytes(), len(in.Literal))
		}
		copy(dst, in.Literal[offset:])
		return nil
	case ir.InitFile:
		return r.readFile(name, t, &in.File, dst, offset)
	case ir.InitUniform:
		return uniform(t, in, dst, offset)
	case ir.InitAbsent:
		if in.File.Path != "" {
			return &ir.Error{Cause: fmt.Errorf("the model keeps its content in %s, which does not exist", in.File.Path), Remedy: "put the file there, or give the weights with --weights"}
		}
		return &ir.Error{Cause: fmt.Errorf("the model says its shape %v but not its content", t), Remedy: "give the weights with --weights"}
	}
	return fmt.Errorf("unknown kind %d of first content", in.Kind)
}

func (r *Reader) readFile(name string, t ir.Type, loc *ir.Location, dst []byte, offset int64) error {
	if err := checkLocation(t, loc); err != nil {
		return err
	}
	f, err := r.files.open(loc.Path, loc)
	if err != nil {
		return err
	}
	c := r.check[name]
	if c == nil {
		c = &digest{h: sha256.New(), done: loc.SHA256 == ""}
		r.check[name] = c
	}
	if !c.done && (loc.Transposed || offset != c.at) {
		sum, err := sumReader(io.NewSectionReader(f, loc.Offset, loc.Bytes))
		if err != nil {
			return fmt.Errorf("%s: %w", loc.Path, err)
		}
		if err := compare(loc, sum); err != nil {
			return err
		}
		c.done = true
	}
	if loc.Transposed {
		err = readTransposed(f, t, loc, dst, offset)
	} else {
		err = readFull(f, dst, loc.Offset+offset)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", loc.Path, err)
	}
	if c.done {
		return nil
	}
	c.h.Write(dst)
	if c.at += int64(len(dst)); c.at < loc.Bytes {
		return nil
	}
	if err := compare(loc, hex.EncodeToString(c.h.Sum(nil))); err != nil {
		delete(r.check, name) // a second try reads and compares anew
		clear(dst)
		return err
	}
	c.done = true
	return nil
}

// checkLocation holds what the location says against the parameter's type; the file is looked at by files.open.
func checkLocation(t ir.Type, loc *ir.Location) error {
	switch {
	case loc.Bytes != t.Bytes():
		return fmt.Errorf("%v needs %d bytes, %s gives %d", t, t.Bytes(), loc.Path, loc.Bytes)
	case loc.Transposed && (len(t.Shape) != 2 || t.DType.Bits()%8 != 0):
		return fmt.Errorf("%v cannot be stored transposed", t)
	}
	return nil
}

func compare(loc *ir.Location, sum string) error {
	if sum == loc.SHA256 {
		return nil
	}
	return &ir.Error{
		Cause:  fmt.Errorf("%s holds other bytes at %d than when the plan was made (SHA-256 %.12s, expected %.12s)", loc.Path, loc.Offset, sum, loc.SHA256),
		Remedy: "restore the file or plan again",
	}
}

// Bytes reads a parameter as a whole.
func (r *Reader) Bytes(name string, t ir.Type, in *ir.Init) ([]byte, error) {
	// The file is looked at before memory for what it declares is made.
	if err := r.ReadAt(name, t, in, nil, 0); err != nil {
		return nil, err
	}
	raw := make([]byte, t.Bytes())
	return raw, r.ReadAt(name, t, in, raw, 0)
}

// Tensor reads a parameter as a whole, decoded.
func (r *Reader) Tensor(name string, t ir.Type, in *ir.Init) (ir.Tensor, error) {
	raw, err := r.Bytes(name, t, in)
	if err != nil {
		return ir.Tensor{}, err
	}
	return ir.DecodeTensor(t, raw)
}

// SHA256 is the hex digest of a parameter's bytes as stored: of the location's bytes where a file holds them (before any transposition),
// else of the elements; for packed content, of what it is made from. It reads block by block and ignores a digest that the location has.
func (r *Reader) SHA256(name string, t ir.Type, in *ir.Init) (string, error) {
	if in.Packed() {
		source := *in
		source.Pack = ir.Packing{}
		return r.SHA256(name, in.Pack.Source, &source)
	}
	if in.Kind == ir.InitFile {
		sum, err := r.sumFile(t, &in.File)
		if err != nil {
			return "", fmt.Errorf("parameter %q: %w", name, err)
		}
		return sum, nil
	}
	h := sha256.New()
	if err := r.ReadAt(name, t, in, nil, 0); err != nil {
		return "", err
	}
	size := t.Bytes()
	block := make([]byte, min(size, blockBytes))
	for at := int64(0); at < size; at += int64(len(block)) {
		block = block[:min(size-at, blockBytes)]
		if err := r.ReadAt(name, t, in, block, at); err != nil {
			return "", err
		}
		h.Write(block)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func (r *Reader) sumFile(t ir.Type, loc *ir.Location) (string, error) {
	if err := checkLocation(t, loc); err != nil {
		return "", err
	}
	f, err := r.files.open(loc.Path, loc)
	if err != nil {
		return "", err
	}
	sum, err := sumReader(io.NewSectionReader(f, loc.Offset, loc.Bytes))
	if err != nil {
		err = fmt.Errorf("%s: %w", loc.Path, err)
	}
	return sum, err
}

func sumReader(r io.Reader) (string, error) {
	h := sha256.New()
	if _, err := io.CopyBuffer(h, r, make([]byte, 64<<10)); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
