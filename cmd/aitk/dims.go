package main

import (
	"fmt"
	"slices"
	"strconv"

	"aitk/importer"
	"aitk/ir"
	"aitk/runtime/train/data"
)

// defaultBatch is the batch where neither the model, the data nor the user says one.
const defaultBatch = 32

// binding collects sizes of symbolic dimensions with where they come from.
type binding struct {
	sizes map[string]int64
	from  map[string]string
}

// bind adds a size, which must agree with what is known.
func (b *binding) bind(dim string, size int64, from string) error {
	if old, ok := b.sizes[dim]; ok && old != size {
		return usagef("dimension %q is %d by %s and %d by %s", dim, old, b.from[dim], size, from)
	}
	if _, ok := b.sizes[dim]; !ok {
		b.sizes[dim], b.from[dim] = size, from
	}
	return nil
}

// bindDims gives symbolic dimensions their sizes: those of --dim, then what the data fixes, then the batch. What stays unbound is for the
// importer to list.
func (b *builder) bindDims(m *importer.Model) (*binding, error) {
	c := b.c
	bound := &binding{sizes: map[string]int64{}, from: map[string]string{}}
	for _, d := range c.dims {
		bound.sizes[d.name], bound.from[d.name] = d.size, "--dim" // of two, the later one wins
	}
	symbolic := map[string]bool{}
	for _, d := range m.Dims {
		symbolic[d.Name] = true
	}
	fed := slices.DeleteFunc(slices.Clone(m.Inputs), func(in importer.ValueInfo) bool {
		return slices.ContainsFunc(c.inputs, func(f namedFile) bool { return f.name == in.Name })
	})
	if b.source != nil && len(fed) > 0 {
		b.source.NameInput(fed[0].Name)
	}
	if err := b.checkCounts(fed); err != nil {
		return nil, err
	}
	for i, in := range fed {
		if err := b.bindInput(bound, symbolic, in, i == 0); err != nil {
			return nil, err
		}
	}
	return bound, nil
}

// checkCounts refuses data none of whose inputs has as many samples as the target: without one that counts them no batch can be taken.
func (b *builder) checkCounts(fed []importer.ValueInfo) error {
	if b.source == nil || b.source.Layout() != data.Samples {
		return nil
	}
	var other *data.Tensor
	for _, in := range fed {
		t, ok := b.source.Tensor(in.Name)
		switch {
		case !ok || len(t.Type.Shape) == 0:
		case t.Type.Shape[0] == b.source.Samples():
			return nil
		case other == nil:
			other = &t
		}
	}
	if other == nil {
		return nil
	}
	return usagef("data %s: tensor %q %v has %d samples, %q has %d: each input needs one for every target", b.source.Path(), other.Name, other.Type, other.Type.Shape[0], data.Target, b.source.Samples())
}

// bindInput binds the dimensions of one input. The first axis counts samples unless the data says otherwise.
func (b *builder) bindInput(bound *binding, symbolic map[string]bool, in importer.ValueInfo, first bool) error {
	if len(in.Shape) == 0 {
		return nil
	}
	t, inData := data.Tensor{}, false
	if b.source != nil {
		t, inData = b.source.Tensor(in.Name)
	}
	batchAxis := first
	if inData && b.source.Layout() == data.Samples {
		batchAxis = len(t.Type.Shape) > 0 && t.Type.Shape[0] == b.source.Samples()
	}
	if inData && (b.source.Layout() == data.Batches || len(t.Type.Shape) == len(in.Shape)) {
		for a, dim := range in.Shape {
			if !symbolic[dim] || a == 0 && batchAxis && b.source.Layout() == data.Samples || a >= len(t.Type.Shape) {
				continue
			}
			if err := bound.bind(dim, t.Type.Shape[a], fmt.Sprintf("the data's tensor %q", in.Name)); err != nil {
				return err
			}
		}
	}
	if !batchAxis {
		return nil
	}
	return b.bindBatch(bound, symbolic[in.Shape[0]], in)
}

// bindBatch settles how many samples the first axis of an input has.
func (b *builder) bindBatch(bound *binding, symbolic bool, in importer.ValueInfo) error {
	c, dim := b.c, in.Shape[0]
	if !symbolic {
		n, err := strconv.ParseInt(dim, 10, 64)
		if err != nil {
			return nil
		}
		if c.batch > 0 && c.batch != n {
			return usagef("--batch %d: the batch of the model is fixed at %d by input %q", c.batch, n, in.Name)
		}
		b.batch = n
		return nil
	}
	switch _, known := bound.sizes[dim]; {
	case c.batch > 0:
		if err := bound.bind(dim, c.batch, "--batch"); err != nil {
			return err
		}
	case !known && b.source != nil && b.source.Layout() == data.Samples:
		usual := min(defaultBatch, b.usableSamples())
		if err := bound.bind(dim, usual, "the default batch"); err != nil {
			return err
		}
		b.choose("batch", strconv.FormatInt(usual, 10), fmt.Sprintf("binds dimension %q", dim))
	}
	b.batch = bound.sizes[dim]
	return nil
}

// usableSamples are those that a batch may come from: what is held out is not trained on.
func (b *builder) usableSamples() int64 {
	all := b.source.Samples()
	if b.forward || b.c.evalData != "" {
		return all
	}
	return data.NewOrder(all, b.c.split(), 0).Train()
}

// targetType is the type of the target in one batch; Invalid where the data has none.
func (b *builder) targetType() ir.Type {
	if b.source == nil {
		return ir.Type{}
	}
	t, ok := b.source.BatchType(data.Target, b.batch)
	if !ok {
		return ir.Type{}
	}
	return t
}
