package ir

import (
	"fmt"
	"strconv"
)

// This file is what Init says beyond bytes as they are: floats that become fewer bits, and random numbers. Both are recipes that whoever
// loads the parameter carries out, so neither the graph nor the plan holds the result.

// Packing says that Init describes floats of type Source, and that the parameter holds one part of what they become in fewer bits. The zero
// value is no packing. What formats and parts there are is known to whoever reads contents, not to this package.
type Packing struct {
	Source Type
	Format string // how the floats are packed
	Part   string // which of the tensors that this makes the parameter holds
	Axis   int64
	Block  int64
	Double bool
}

// Packed tells whether the content is made from other floats than the parameter holds.
func (in *Init) Packed() bool { return in.Pack.Format != "" }

// Described is the type that Init describes: the parameter's own, or the one that it is packed from.
func (in *Init) Described(t Type) Type {
	if in.Packed() {
		return in.Pack.Source
	}
	return t
}

// UniformAt is element i of a content of kind InitUniform before scaling, in [-1,1): the top 24 bits of splitmix64's output number i.
func UniformAt(seed uint64, i int64) float32 {
	z := seed + (uint64(i)+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	z ^= z >> 31
	return float32(z>>40)/(1<<23) - 1
}

// pack stands before init, whose literal is of the source's type.
func (p *printer) pack(in *Init) {
	if !in.Packed() {
		return
	}
	k := &in.Pack
	fmt.Fprintf(&p.b, " pack=(%q,%q,%v", k.Format, k.Part, k.Source)
	if k.Axis != 0 {
		fmt.Fprintf(&p.b, ",axis=%d", k.Axis)
	}
	if k.Block != 0 {
		fmt.Fprintf(&p.b, ",block=%d", k.Block)
	}
	if k.Double {
		p.b.WriteString(",double")
	}
	p.b.WriteByte(')')
}

// packing reads ("format","part",type,axis=1,block=64,double).
func (s *scanner) packing() (k Packing) {
	s.expect('(')
	start := s.at
	k.Format = s.quoted()
	if s.err == nil && k.Format == "" {
		s.at = start
		s.failf("a packing needs a format")
	}
	s.expect(',')
	k.Part = s.quoted()
	s.expect(',')
	k.Source = s.typ()
	seen := map[string]bool{}
	for s.accept(',') {
		start := s.at
		key := s.word("axis, block or double")
		if seen[key] {
			s.at = start
			s.failf("%s stands twice", key)
		}
		seen[key] = true
		switch key {
		case "double":
			k.Double = true
		case "axis":
			s.expect('=')
			k.Axis = s.integer()
		case "block":
			s.expect('=')
			k.Block = s.integer()
		default:
			s.at = start
			s.failf("found %q where axis, block or double was expected", key)
		}
	}
	s.expect(')')
	return k
}

// uniform reads (bound,seed).
func (s *scanner) uniform() Init {
	in := Init{Kind: InitUniform}
	s.expect('(')
	in.Fill = s.float()
	s.expect(',')
	s.space()
	start := s.at
	w := s.word("a seed")
	seed, err := strconv.ParseUint(w, 10, 64)
	if s.err == nil && err != nil {
		s.at = start
		s.failf("%q is not a seed", w)
	}
	in.Seed = seed
	s.expect(')')
	return in
}
