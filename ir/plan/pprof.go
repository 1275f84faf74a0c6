package plan

import (
	"compress/gzip"
	"io"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"aitk/ir"
)

// WritePprof writes a profile for `go tool pprof` (profile.proto of github.com/google/pprof, gzipped) with two kinds of samples: peak, the bytes of the device's buffers that
// are alive at its peak, by category, place in the model and name; and time, the predicted nanoseconds of program step, by phase or lane, place in the model and
// op. The place is cut at dots and slashes, so that a flame graph folds layers.
func WritePprof(w io.Writer, p *Plan) error {
	b := &pprof{ids: map[string]uint64{}, text: map[string]uint64{"": 0}, table: []string{""}}
	b.peak(p)
	b.time(p)
	z := gzip.NewWriter(w)
	if _, err := z.Write(b.bytes()); err != nil {
		return err
	}
	return z.Close()
}

// pprof builds a profile. A function and its location have the same number.
type pprof struct {
	ids     map[string]uint64 // of functions, from 1
	names   []string
	text    map[string]uint64 // numbers of strings
	table   []string
	samples []byte
}

func (b *pprof) string(s string) uint64 {
	n, ok := b.text[s]
	if !ok {
		n = uint64(len(b.table))
		b.text[s] = n
		b.table = append(b.table, s)
	}
	return n
}

// sample adds a stack, its root first.
func (b *pprof) sample(stack []string, bytes, nanos int64) {
	var locations, values []byte
	for i := len(stack) - 1; i >= 0; i-- {
		id, ok := b.ids[stack[i]]
		if !ok {
			id = uint64(len(b.names)) + 1
			b.ids[stack[i]] = id
			b.names = append(b.names, stack[i])
		}
		locations = protowire.AppendVarint(locations, id)
	}
	values = protowire.AppendVarint(protowire.AppendVarint(values, uint64(bytes)), uint64(nanos))
	var s []byte
	s = message(s, 1, locations)
	s = message(s, 2, values)
	b.samples = message(b.samples, 2, s)
}

func message(dst []byte, field protowire.Number, raw []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(dst, field, protowire.BytesType), raw)
}

func number(dst []byte, field protowire.Number, n uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(dst, field, protowire.VarintType), n)
}

// placeParts cuts a place in the model into its parts.
func placeParts(place string) []string {
	return strings.FieldsFunc(plain(place), func(r rune) bool { return r == '.' || r == '/' })
}

func (b *pprof) peak(p *Plan) {
	peak := PeakOf(p, ir.Device)
	if peak.Program < 0 {
		return
	}
	for _, id := range Alive(p, peak.Program, peak.At, ir.Device) {
		x := &p.Buffers[id]
		b.sample(append([]string{x.Category.String()}, placeParts(x.Name)...), x.Bytes, 0)
	}
}

func (b *pprof) time(p *Plan) {
	step, prog := p.Program("step")
	if step == nil {
		return
	}
	run := Timeline(p, prog)
	for pc, i := range step.Instrs {
		nanos := (run.End[pc] - run.Start[pc]) / 1000
		if nanos == 0 {
			continue
		}
		switch x := i.(type) {
		case *Exec:
			root := x.Phase.String()
			if x.Recompute {
				root = "recompute"
			}
			b.sample(append(append([]string{root}, placeParts(from(x.Origin))...), ir.OpName(x.Op)), 0, nanos)
		case *Copy:
			b.sample(append([]string{x.Kind.String()}, placeParts(p.symbolName(p.Buffers[x.Src.Buffer].Holds))...), 0, nanos)
		case *Wait:
			b.sample([]string{x.Lane.String() + " waits"}, 0, nanos)
		}
	}
}

// bytes is the profile.
func (b *pprof) bytes() []byte {
	var out []byte
	for _, kind := range [][2]string{{"peak", "bytes"}, {"time", "nanoseconds"}} {
		out = message(out, 1, number(number(nil, 1, b.string(kind[0])), 2, b.string(kind[1])))
	}
	out = append(out, b.samples...)
	for i, name := range b.names {
		id := uint64(i) + 1
		out = message(out, 4, message(number(nil, 1, id), 4, number(nil, 1, id)))
		out = message(out, 5, number(number(nil, 1, id), 2, b.string(name)))
	}
	first := b.string("peak")
	for _, s := range b.table {
		out = message(out, 6, []byte(s))
	}
	return number(out, 14, first)
}
