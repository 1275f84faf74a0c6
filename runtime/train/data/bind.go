package data

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"aitk/ir"
)

// Port is an input of a program.
type Port struct {
	Name string
	Type ir.Type
}

// Labels says what the integers of the target may be. The zero value allows all.
type Labels struct {
	Classes   int64 // labels are below it; 0: not known
	Ignore    int64 // a label that is left out and may lie outside; meaningful with HasIgnore
	HasIgnore bool
}

// Feed fills the inputs of one program. After Bind it allocates nothing.
type Feed struct {
	src    *Source
	labels Labels
	batch  int64 // samples of a batch
	ports  []bound
	notes  []string
}

// bound is a port with its tensor.
type bound struct {
	Port
	tensor     string
	names      []string // layout Batches: the tensor's name in each batch
	from       ir.DType
	shared     bool  // no sample axis: filled once
	readBytes  int64 // one sample as stored (the whole tensor if shared or in layout Batches)
	writeBytes int64 // the same as the input has it
	stage      []byte
	buf        []byte
}

// Bind holds the source against a program's inputs. Ports whose names begin with $ are not data's business. Everything that does not fit is
// listed in one *ir.Error of kind Usage; tensors that no input takes are noted, see Notes.
func (s *Source) Bind(ports []Port, labels Labels) (*Feed, error) {
	ports = slices.DeleteFunc(slices.Clone(ports), func(p Port) bool { return strings.HasPrefix(p.Name, "$") })
	if i := slices.IndexFunc(ports, func(p Port) bool { return p.Name != Target }); i >= 0 {
		s.NameInput(ports[i].Name)
	}
	f := &Feed{src: s, labels: labels}
	var problems []error
	for _, p := range ports {
		b, err := s.bind(p)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		if !b.shared {
			switch n := p.Type.Shape[0]; {
			case f.batch == 0:
				f.batch = n
			case f.batch != n && s.layout == Samples:
				problems = append(problems, fmt.Errorf("input %q %v takes %d samples, another input takes %d", p.Name, p.Type, n, f.batch))
			}
		}
		f.ports = append(f.ports, b)
	}
	if s.layout == Batches {
		f.batch = s.BatchSamples()
	}
	switch {
	case len(problems) == 0 && len(ports) == 0:
		problems = append(problems, errors.New("the program takes no data"))
	case len(problems) == 0 && f.batch == 0:
		problems = append(problems, errors.New("no input has a sample axis, or the batch is empty"))
	}
	if len(problems) > 0 {
		return nil, &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("data %s does not fit the model: %w", s.path, joined(problems))}
	}
	f.note(ports)
	return f, f.fillShared()
}

// joined lists problems on one line or on a line each.
func joined(problems []error) error {
	if len(problems) == 1 {
		return problems[0]
	}
	lines := make([]string, len(problems))
	for i, p := range problems {
		lines[i] = "\n  " + p.Error()
	}
	return errors.New(strings.Join(lines, ""))
}

// note says which tensors nobody takes.
func (f *Feed) note(ports []Port) {
	var left []string
	for _, x := range f.src.tensors {
		if !slices.ContainsFunc(ports, func(p Port) bool { return p.Name == x.Name }) {
			left = append(left, fmt.Sprintf("%q", x.Name))
		}
	}
	if len(left) > 0 {
		f.notes = append(f.notes, fmt.Sprintf("data %s: no input takes tensor %s", f.src.path, strings.Join(left, ", ")))
	}
}

// bind finds a port's tensor and checks it.
func (s *Source) bind(p Port) (bound, error) {
	x, ok := s.Tensor(p.Name)
	if !ok {
		names := make([]string, len(s.tensors))
		for i, t := range s.tensors {
			names[i] = fmt.Sprintf("%q %v", t.Name, t.Type)
		}
		return bound{}, fmt.Errorf("there is no tensor for input %q %v; there are %s", p.Name, p.Type, strings.Join(names, ", "))
	}
	b := bound{Port: p, tensor: x.Name, from: x.Type.DType}
	have, want := x.Type.Shape, p.Type.Shape
	switch {
	case s.layout == Batches:
		if !have.Equal(want) {
			return b, fmt.Errorf("tensor %q of a batch is %v, input %q is %v", x.Name, x.Type, p.Name, p.Type)
		}
		b.shared = len(want) == 0
		for k := range s.batches {
			b.names = append(b.names, stored(k, x.Name))
		}
	case len(have) > 0 && have[0] == s.samples && len(want) > 0 && s.samplesFit(x, have[1:], want[1:]):
	case have.Equal(want):
		b.shared = true
	case len(have) > 0 && have[0] == s.samples && len(want) > 0:
		return b, fmt.Errorf("tensor %q has samples of shape %v, input %q %v takes samples of shape %v", x.Name, have[1:], p.Name, p.Type, want[1:])
	case len(have) > 0 && len(want) > 0 && have[1:].Equal(want[1:]):
		return b, fmt.Errorf("tensor %q %v has %d samples, %s %d: each input needs one for every sample", x.Name, x.Type, have[0], s.counted(), s.samples)
	default:
		return b, fmt.Errorf("tensor %q %v has neither the %d samples of the data nor the shape of input %q %v", x.Name, x.Type, s.samples, p.Name, p.Type)
	}
	if !castable(x.Type.DType, p.Type.DType) {
		return b, fmt.Errorf("tensor %q is %v and input %q takes %v: only u8 to f32, u8 to i64 and i32 to i64 are cast", x.Name, x.Type.DType, p.Name, p.Type.DType)
	}
	if s.layout == Samples && !b.shared && want[0] == 0 {
		return b, fmt.Errorf("input %q %v takes no samples", p.Name, p.Type)
	}
	b.readBytes, b.writeBytes = x.Type.Bytes(), p.Type.Bytes()
	if s.layout == Samples && !b.shared {
		b.readBytes, b.writeBytes = b.readBytes/s.samples, b.writeBytes/want[0]
	}
	return b, nil
}

// counted names what the number of samples was taken from.
func (s *Source) counted() string {
	if t, ok := s.Tensor(Target); ok && len(t.Type.Shape) > 0 {
		return fmt.Sprintf("%q has", Target)
	}
	return "another tensor has"
}

// samplesFit compares the shapes of a sample; IDX files know no channels and no flattening, so there the number of elements counts.
func (s *Source) samplesFit(x Tensor, have, want ir.Shape) bool {
	return have.Equal(want) || s.unnamed && x.Name != Target && have.Elems() == want.Elems()
}

// fillShared makes the buffers and fills what is the same in every batch.
func (f *Feed) fillShared() error {
	for i := range f.ports {
		b := &f.ports[i]
		b.buf = make([]byte, b.Type.Bytes())
		if b.from != b.Type.DType {
			b.stage = make([]byte, b.readBytes)
		}
		if b.shared && f.src.layout == Samples {
			if err := f.fill(b, b.tensor, b.buf, 0, 0, 0); err != nil {
				return err
			}
		}
	}
	return nil
}

// BatchSamples is the number of samples of a batch.
func (f *Feed) BatchSamples() int64 { return f.batch }

// Notes are sentences that the user should read.
func (f *Feed) Notes() []string { return f.notes }

// Ports is the number of inputs that the feed fills.
func (f *Feed) Ports() int { return len(f.ports) }

// Name is the name of input i.
func (f *Feed) Name(i int) string { return f.ports[i].Name }

// Bytes is the content of input i as last filled. It is the feed's memory.
func (f *Feed) Bytes(i int) []byte { return f.ports[i].buf }

// Fill reads samples by their numbers. step is for messages; below 0 it is an evaluation. Where fewer than a batch are given, the last one is repeated to the end: a
// content that the program has seen to be harmless. It is for layout Samples.
func (f *Feed) Fill(samples []int64, step int64) error {
	if f.src.layout != Samples || len(samples) == 0 || int64(len(samples)) > f.batch {
		panic(ir.Bugf("%d samples for a batch of %d, layout %v", len(samples), f.batch, f.src.layout))
	}
	for i := range f.ports {
		b := &f.ports[i]
		if b.shared {
			continue
		}
		for k, sample := range samples {
			if err := f.fill(b, b.tensor, b.buf[int64(k)*b.writeBytes:][:b.writeBytes], sample*b.readBytes, sample, step); err != nil {
				return err
			}
		}
		given := int64(len(samples)) * b.writeBytes
		for at := given; at < int64(len(b.buf)); at += b.writeBytes {
			copy(b.buf[at:], b.buf[given-b.writeBytes:given])
		}
	}
	return nil
}

// FillBatch reads a given batch. It is for layout Batches.
func (f *Feed) FillBatch(batch, step int64) error {
	if f.src.layout != Batches || batch < 0 || batch >= f.src.batches {
		panic(ir.Bugf("batch %d of %d, layout %v", batch, f.src.batches, f.src.layout))
	}
	for i := range f.ports {
		b := &f.ports[i]
		if err := f.fill(b, b.names[batch], b.buf, 0, batch*f.batch, step); err != nil {
			return err
		}
	}
	return nil
}

// fill reads, casts and checks a stretch of a tensor; first is the number of its first sample.
func (f *Feed) fill(b *bound, tensor string, dst []byte, offset, first, step int64) error {
	src := dst
	if b.stage != nil {
		src = b.stage
	}
	if err := f.src.read(tensor, src, offset); err != nil {
		return &ir.Error{Cause: fmt.Errorf("data: %w", err)}
	}
	if b.stage != nil {
		cast(dst, b.Type.DType, src, b.from)
	}
	d := b.Type.DType
	if i := FirstNotFinite(d, dst); i >= 0 {
		e := ir.Errorf(ir.Numeric, ir.Origin{}, "data %s: tensor %q, %s, holds NaN or an infinity (used in %s)", f.src.path, tensor, f.where(b, i, first), when(step))
		e.Remedy = "correct the data"
		return e
	}
	if d == ir.Bool {
		if i := badBool(dst); i >= 0 {
			return ir.Errorf(ir.Failed, ir.Origin{}, "data %s: tensor %q, %s, holds a bool that is neither 0 nor 1", f.src.path, tensor, f.where(b, i, first))
		}
	}
	if b.Name == Target && f.labels.Classes > 0 && (d == ir.I64 || d == ir.I32) {
		if i, v := badLabel(d, dst, &f.labels); i >= 0 {
			e := ir.Errorf(ir.Failed, ir.Origin{}, "data %s: tensor %q, %s, holds label %d, but the model has %d classes, numbered from 0", f.src.path, tensor, f.where(b, i, first), v, f.labels.Classes)
			e.Remedy = "correct the data, or name a label that is to be left out (--loss cross-entropy:ignore-index=...)"
			return e
		}
	}
	return nil
}

// when names the moment of a Fill.
func when(step int64) string {
	if step < 0 {
		return "evaluation"
	}
	return fmt.Sprintf("step %d", step)
}

// where names the place of element i of what fill has read. In a given batch sample numbers count within the batch.
func (f *Feed) where(b *bound, i, first int64) string {
	switch {
	case b.shared:
		return fmt.Sprintf("element %d", i)
	case f.src.layout == Batches:
		per := b.Type.Elems()
		if n := b.Type.Shape[0]; n > 0 {
			per /= n
		}
		return fmt.Sprintf("sample %d", i/max(per, 1))
	}
	return fmt.Sprintf("sample %d", first)
}
