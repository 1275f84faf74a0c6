package importer

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aitk/importer/onnxpb"
	"aitk/internal/regular"
	"aitk/ir"
)

// file is an open ONNX file: its decoded skeleton, and access to the bytes of its tensors, in the file itself or beside it.
type file struct {
	path  string   // as the user named it
	f     *os.File // nil where the model is in memory
	raw   []byte   // the model in memory
	model *onnxpb.ModelProto
	root  *os.Root // the model's folder; opened when the first external tensor asks for it

	linked map[string]uint64 // data files with several names, and how many
}

// open reads everything of the file but the data of its tensors.
func open(path string) (*file, error) {
	f, err := regular.Open(path)
	if err != nil {
		return nil, &ir.Error{Cause: err}
	}
	info, err := f.Stat()
	var m *onnxpb.ModelProto
	if err == nil {
		m, err = onnxpb.Read(f, info.Size(), onnxpb.Limits{})
	}
	if err == nil && m.Graph == nil {
		err = errors.New("not an ONNX file: it holds no graph")
	}
	if err != nil {
		f.Close()
		return nil, &ir.Error{Origin: ir.Origin{File: path}, Cause: err}
	}
	return &file{path: path, f: f, model: m}, nil
}

// Close closes the file and its folder. What ir.Location names is opened anew by whoever reads it.
func (f *file) Close() {
	if f.f != nil {
		f.f.Close()
	}
	if f.root != nil {
		f.root.Close()
	}
}

// external finds the bytes of a tensor that lies beside the model.
//
// Only regular files below the model's folder are reached: os.Root resolves each step of the path and refuses absolute paths, ".."
// and symbolic links that lead out, whatever the spelling. Offset and length are held against the file's size. A missing file is
// no error here: a graph without its weights can still be planned, so the tensor is recorded as absent.
func (f *file) external(entries []*onnxpb.StringStringEntryProto, want int64) (ir.Init, error) {
	var location string
	offset, length := int64(0), want
	for _, e := range entries {
		var err error
		switch e.GetKey() {
		case "location":
			location = e.GetValue()
		case "offset":
			offset, err = parseInt(e.GetValue())
		case "length":
			length, err = parseInt(e.GetValue())
		}
		if err != nil {
			return ir.Init{}, fmt.Errorf("external data: %s: %w", e.GetKey(), err)
		}
	}
	switch {
	case location == "":
		return ir.Init{}, errors.New("external data without a location")
	case f.f == nil:
		return ir.Init{}, fmt.Errorf("external data in %q: a model in memory has no folder", location)
	case !filepath.IsLocal(filepath.FromSlash(location)) || slices.Contains(strings.Split(location, "/"), ".."):
		// os.Root says so too, but only of a path whose parts exist.
		return ir.Init{}, fmt.Errorf("external data in %q: the path leads out of the model's folder", location)
	case offset < 0 || length != want:
		return ir.Init{}, fmt.Errorf("external data in %q: offset %d and length %d for a tensor of %d bytes", location, offset, length, want)
	}
	size, err := f.externalSize(location)
	if errors.Is(err, fs.ErrNotExist) {
		at := filepath.Join(filepath.Dir(f.path), filepath.FromSlash(location))
		return ir.Init{Kind: ir.InitAbsent, File: ir.Location{Path: at, Offset: offset, Bytes: length}}, nil
	}
	if err != nil {
		return ir.Init{}, fmt.Errorf("external data in %q: %w", location, err)
	}
	if offset > size || length > size-offset {
		return ir.Init{}, fmt.Errorf("external data in %q: bytes %d to %d of a file of %d", location, offset, uint64(offset)+uint64(length), size)
	}
	return ir.Init{Kind: ir.InitFile, File: ir.Location{
		Path: filepath.Join(filepath.Dir(f.path), filepath.FromSlash(location)), Offset: offset, Bytes: length}}, nil
}

// externalSize is the size of a regular file below the model's folder.
func (f *file) externalSize(location string) (int64, error) {
	if f.root == nil {
		root, err := os.OpenRoot(filepath.Dir(f.path))
		if err != nil {
			return 0, err
		}
		f.root = root
	}
	// Stat before opening: opening a pipe or a device may block or act.
	info, err := f.root.Stat(filepath.FromSlash(location))
	if err != nil {
		return 0, err
	}
	if !info.Mode().IsRegular() {
		return 0, errors.New("is no regular file")
	}
	if n := linkCount(info); n > 1 {
		if f.linked == nil {
			f.linked = map[string]uint64{}
		}
		f.linked[location] = n
	}
	return info.Size(), nil
}

// bytes reads the content of a tensor.
func (f *file) bytes(init ir.Init) ([]byte, error) {
	switch init.Kind {
	case ir.InitLiteral:
		return init.Literal, nil
	case ir.InitFile:
		from := f.f
		if init.File.Path != f.path {
			location, err := filepath.Rel(filepath.Dir(f.path), init.File.Path)
			if err != nil {
				return nil, err
			}
			if from, err = f.root.Open(location); err != nil {
				return nil, err
			}
			defer from.Close()
		}
		b := make([]byte, init.File.Bytes)
		if _, err := from.ReadAt(b, init.File.Offset); err != nil && !errors.Is(err, io.EOF) {
			return nil, err
		}
		return b, nil
	}
	return nil, errors.New("its data is absent")
}
