// Package data reads training data and fills batches. It knows files, samples and the types that a program's inputs have; it must not know
// programs, plans, devices or how a run goes on.
//
// A Source is opened once and is either of
//
//	samples   one tensor per input of the model and "target"; the first dimension counts samples. Samples are shuffled, split and batched
//	          here. A tensor without a sample axis is legal if its shape is exactly the input's: every batch gets it whole.
//	batches   tensors "step0.<input>", "step0.target", "step1.<input>" ...: given batches, used in order and cycled, never shuffled or split.
//
// Source.Bind holds a Source against the inputs of a program and lists every mismatch at once; the Feed that it returns fills batches into
// memory of its own without allocating. Bytes are little-endian and row-major as everywhere. Allowed casts are u8 to f32, u8 to i64 and
// i32 to i64, as numbers and without scaling; all others are refused. An Order tells which sample comes when, as a pure
// function of seed, epoch and position.
//
// Formats: a safetensors file in either layout, a folder that holds one, IDX files (MNIST) plain or .gz with the target in the labels file
// beside the images file, and a folder that holds those.
//
// Invariants: a file is never changed; nothing is allocated because a file declares it; content that is NaN or infinite, and a label
// outside the classes, is reported with tensor, sample and step before a device sees it.
package data

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aitk/internal/safetensors"
	"aitk/ir"
)

// Target is the name of the tensor that the loss compares with.
const Target = "target"

// Layout says how a source is organised.
type Layout uint8

// The layouts, see the package comment.
const (
	Samples Layout = iota
	Batches
)

func (l Layout) String() string {
	if l == Batches {
		return "batches in order"
	}
	return "samples"
}

// Tensor is one tensor of a source. In layout Samples its first dimension counts samples (or it has no sample axis); in layout Batches it is
// the type of each batch.
type Tensor struct {
	Name string
	Type ir.Type
}

// Source is an open data set. Its methods are for one goroutine.
type Source struct {
	path    string
	layout  Layout
	tensors []Tensor // by name
	samples int64    // layout Samples
	batches int64    // layout Batches
	unnamed bool     // the one input has no name of its own and may be reshaped: IDX
	read    func(tensor string, dst []byte, offset int64) error
	close   func() error
}

// supported is what Open reads, for messages.
const supported = "a .safetensors file, IDX files (…-images-idx3-ubyte with …-labels-idx1-ubyte, plain or .gz), or a folder that holds either"

// Open opens a data set. What it cannot read is refused by name with the list of what it can; the error is of kind Usage.
func Open(path string) (*Source, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, usage("data", err)
	}
	if st.IsDir() {
		if path, err = inFolder(path); err != nil {
			return nil, err
		}
	}
	var s *Source
	switch base := filepath.Base(path); {
	case strings.HasSuffix(base, ".safetensors"):
		s, err = openSafetensors(path)
	case isIDX(base):
		s, err = openIDX(path)
	default:
		return nil, &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("data %s: files of this kind cannot be read", path), Remedy: "give " + supported}
	}
	if err != nil {
		return nil, usage("data", err)
	}
	return s, nil
}

func usage(what string, err error) error {
	return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("%s: %w", what, err)}
}

// inFolder chooses the one file of a folder that Open reads; of the two halves of MNIST the training half.
func inFolder(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", usage("data", err)
	}
	var tensors, images []string
	for _, e := range entries {
		switch name := e.Name(); {
		case e.IsDir() || strings.HasPrefix(name, "."):
		case strings.HasSuffix(name, ".safetensors"):
			tensors = append(tensors, name)
		case isIDX(name) && strings.Contains(name, "images"):
			images = append(images, name)
		}
	}
	if len(images) > 1 {
		if train := slices.DeleteFunc(slices.Clone(images), func(s string) bool { return !strings.HasPrefix(s, "train") }); len(train) == 1 {
			images = train
		}
	}
	found := append(tensors, images...)
	switch len(found) {
	case 1:
		return filepath.Join(dir, found[0]), nil
	case 0:
		return "", &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("data %s: the folder holds no file that can be read", dir), Remedy: "give " + supported}
	}
	return "", &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("data %s: the folder holds %s", dir, strings.Join(found, ", ")), Remedy: "name one of them"}
}

// openSafetensors reads the header and finds out the layout.
func openSafetensors(path string) (*Source, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, err
	}
	s := &Source{path: path, read: f.ReadAt, close: f.Close}
	if err := s.arrange(f.Infos()); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return s, nil
}

// arrange sorts tensors into samples or batches.
func (s *Source) arrange(infos []safetensors.Info) error {
	inOrder := 0
	for _, x := range infos {
		if _, _, ok := cutStep(x.Name); ok {
			inOrder++
		}
	}
	switch {
	case len(infos) == 0:
		return errors.New("the file holds no tensor")
	case inOrder == len(infos):
		return s.arrangeBatches(infos)
	case inOrder > 0:
		return fmt.Errorf("%d of %d tensors are named step<i>.<input>: either all of them are, or none", inOrder, len(infos))
	}
	for _, x := range infos {
		s.tensors = append(s.tensors, Tensor{x.Name, x.Type})
	}
	s.sortTensors()
	return s.countSamples()
}

func (s *Source) sortTensors() {
	slices.SortFunc(s.tensors, func(a, b Tensor) int { return strings.Compare(a.Name, b.Name) })
}

// countSamples takes the first dimension of the target, or without a target the largest one.
func (s *Source) countSamples() error {
	for _, x := range s.tensors {
		if len(x.Type.Shape) == 0 {
			continue
		}
		if x.Name == Target {
			s.samples = x.Type.Shape[0]
			break
		}
		s.samples = max(s.samples, x.Type.Shape[0])
	}
	if s.samples == 0 {
		return errors.New("the data holds no sample")
	}
	return nil
}

// cutStep takes step12.name apart.
func cutStep(name string) (step int64, input string, ok bool) {
	digits, input, ok := strings.Cut(name, ".")
	digits, isStep := strings.CutPrefix(digits, "step")
	if !ok || !isStep || input == "" || digits == "" || len(digits) > 9 || len(digits) > 1 && digits[0] == '0' {
		return 0, "", false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, "", false
		}
		step = step*10 + int64(c-'0')
	}
	return step, input, true
}

// arrangeBatches checks that batches are numbered from 0 without a gap and are all alike.
func (s *Source) arrangeBatches(infos []safetensors.Info) error {
	s.layout = Batches
	steps := map[int64]int{}
	first := map[string]ir.Type{}
	for _, x := range infos {
		step, input, _ := cutStep(x.Name)
		steps[step]++
		s.batches = max(s.batches, step+1)
		if step == 0 {
			first[input] = x.Type
			s.tensors = append(s.tensors, Tensor{input, x.Type})
		}
	}
	s.sortTensors()
	if int64(len(steps)) != s.batches {
		for k := int64(0); ; k++ {
			if steps[k] == 0 {
				return fmt.Errorf("there are batches up to step%d but none of step%d", s.batches-1, k)
			}
		}
	}
	var problems []error
	for _, x := range infos {
		step, input, _ := cutStep(x.Name)
		want, ok := first[input]
		switch {
		case !ok:
			problems = append(problems, fmt.Errorf("tensor %q has no counterpart in step0", x.Name))
		case !want.Equal(x.Type):
			problems = append(problems, fmt.Errorf("tensor %q is %v, that of step0 %v", x.Name, x.Type, want))
		case steps[step] < len(first):
			problems = append(problems, fmt.Errorf("step%d has %d tensors, step0 has %d", step, steps[step], len(first)))
			steps[step] = len(first) // said once
		}
	}
	return errors.Join(problems...)
}

// stored is the name under which a tensor of a batch lies in the file.
func stored(batch int64, name string) string { return fmt.Sprintf("step%d.%s", batch, name) }

// Path is the file that is read.
func (s *Source) Path() string { return s.path }

// Layout tells samples from batches.
func (s *Source) Layout() Layout { return s.layout }

// Tensors lists the tensors by name.
func (s *Source) Tensors() []Tensor { return slices.Clone(s.tensors) }

// Samples is the number of samples; 0 in layout Batches.
func (s *Source) Samples() int64 { return s.samples }

// Batches is the number of given batches; 0 in layout Samples.
func (s *Source) Batches() int64 { return s.batches }

// BatchSamples is how many samples a given batch holds: the first dimension of its target or, without one, the largest first dimension. It
// is 0 in layout Samples, where the batch is the user's to choose.
func (s *Source) BatchSamples() int64 {
	if s.layout == Samples {
		return 0
	}
	n := int64(0)
	for _, x := range s.tensors {
		if len(x.Type.Shape) == 0 {
			continue
		}
		if x.Name == Target {
			return x.Type.Shape[0]
		}
		n = max(n, x.Type.Shape[0])
	}
	return n
}

// NameInput gives the one input of IDX data the name of the model's first input; data with names of its own keeps them.
func (s *Source) NameInput(name string) {
	if !s.unnamed {
		return
	}
	read := s.read
	for i := range s.tensors {
		if old := s.tensors[i].Name; old != Target {
			s.tensors[i].Name = name
			s.read = func(tensor string, dst []byte, offset int64) error {
				if tensor == name {
					tensor = old
				}
				return read(tensor, dst, offset)
			}
		}
	}
	s.sortTensors()
}

// Tensor finds a tensor by name.
func (s *Source) Tensor(name string) (Tensor, bool) {
	for _, x := range s.tensors {
		if x.Name == name {
			return x, true
		}
	}
	return Tensor{}, false
}

// BatchType is the type that a tensor has in a batch of so many samples: the stored type with its first dimension replaced if that counts
// samples. In layout Batches it is the stored type.
func (s *Source) BatchType(name string, batch int64) (ir.Type, bool) {
	x, ok := s.Tensor(name)
	if !ok || s.layout == Batches || len(x.Type.Shape) == 0 || x.Type.Shape[0] != s.samples {
		return x.Type, ok
	}
	t := x.Type
	t.Shape = t.Shape.Clone()
	t.Shape[0] = batch
	return t, true
}

// IntRange reads all of an integer tensor and tells its least and greatest element. With the target it says how many classes there are.
func (s *Source) IntRange(name string) (lo, hi int64, err error) {
	x, ok := s.Tensor(name)
	if !ok || !x.Type.DType.IsInt() || x.Type.DType == ir.I4 {
		return 0, 0, fmt.Errorf("data %s has no integer tensor %q", s.path, name)
	}
	size := x.Type.DType.Bits() / 8
	block := make([]byte, min(x.Type.Bytes(), 1<<16))
	seen := false
	for k := range max(s.batches, 1) {
		at := name
		if s.layout == Batches {
			at = stored(k, name)
		}
		for offset := int64(0); offset < x.Type.Bytes(); offset += int64(len(block)) {
			block = block[:min(int64(cap(block)), x.Type.Bytes()-offset)]
			if err := s.read(at, block, offset); err != nil {
				return 0, 0, err
			}
			for i := int64(0); i < int64(len(block)); i += size {
				v := intAt(x.Type.DType, block[i:])
				if !seen {
					lo, hi, seen = v, v, true
				}
				lo, hi = min(lo, v), max(hi, v)
			}
		}
	}
	return lo, hi, nil
}

// intAt decodes one integer. u64 beyond the range of i64 wraps to a negative number, which no label is.
func intAt(d ir.DType, raw []byte) int64 {
	le := binary.LittleEndian
	switch d {
	case ir.I64, ir.U64:
		return int64(le.Uint64(raw))
	case ir.I32:
		return int64(int32(le.Uint32(raw)))
	case ir.U32:
		return int64(le.Uint32(raw))
	case ir.I16:
		return int64(int16(le.Uint16(raw)))
	case ir.U16:
		return int64(le.Uint16(raw))
	case ir.I8:
		return int64(int8(raw[0]))
	}
	return int64(raw[0])
}

// Close closes the files.
func (s *Source) Close() error { return s.close() }
