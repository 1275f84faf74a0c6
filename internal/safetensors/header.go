package safetensors

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"aitk/ir"
)

// maxRank bounds lists of integers, so that a header of commas does not become eight times its size in memory.
const maxRank = 64

// entry is one tensor as the header declares it; begin and end count from the end of the header.
type entry struct {
	name, dtype string
	shape       ir.Shape
	begin, end  int64
	have        [3]bool // dtype, shape, data_offsets
}

// parseHeader reads the JSON by tokens: a decoder into maps would drop the earlier of two equal names silently.
func parseHeader(raw []byte) (entries []entry, metadata map[string]string, err error) {
	if len(raw) == 0 || raw[0] != '{' {
		return nil, nil, errors.New("header does not begin with {")
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	defer func() {
		// The decoder's errors speak of "EOF" and offsets of its own; say where in the header it happened.
		if err != nil {
			err = fmt.Errorf("header, near byte %d: %w", d.InputOffset(), err)
		}
	}()
	if err := delim(d, '{'); err != nil {
		return nil, nil, err
	}
	seen := map[string]bool{}
	for d.More() {
		name, err := str(d)
		if err != nil {
			return nil, nil, err
		}
		if seen[name] {
			return nil, nil, fmt.Errorf("name %q stands twice", name)
		}
		seen[name] = true
		if name == metadataKey {
			metadata, err = parseMetadata(d)
		} else {
			var e entry
			e, err = parseEntry(d, name)
			entries = append(entries, e)
		}
		if err != nil {
			return nil, nil, err
		}
	}
	if err := delim(d, '}'); err != nil {
		return nil, nil, err
	}
	if rest := bytes.TrimRight(raw[d.InputOffset():], " \t\r\n"); len(rest) != 0 {
		return nil, nil, errors.New("bytes after the closing }")
	}
	return entries, metadata, nil
}

func parseMetadata(d *json.Decoder) (map[string]string, error) {
	if err := delim(d, '{'); err != nil {
		return nil, err
	}
	m := map[string]string{}
	for d.More() {
		k, err := str(d)
		if err != nil {
			return nil, err
		}
		if _, dup := m[k]; dup {
			return nil, fmt.Errorf("metadata key %q stands twice", k)
		}
		if m[k], err = str(d); err != nil {
			return nil, fmt.Errorf("metadata %q: %w", k, err)
		}
	}
	return m, delim(d, '}')
}

func parseEntry(d *json.Decoder, name string) (e entry, err error) {
	e.name = name
	defer func() {
		if err != nil {
			err = fmt.Errorf("tensor %q: %w", name, err)
		}
	}()
	if err := delim(d, '{'); err != nil {
		return e, err
	}
	for d.More() {
		key, err := str(d)
		if err != nil {
			return e, err
		}
		which := slices.Index([]string{"dtype", "shape", "data_offsets"}, key)
		switch {
		case which < 0:
			return e, fmt.Errorf("unknown field %q", key)
		case e.have[which]:
			return e, fmt.Errorf("field %q stands twice", key)
		}
		e.have[which] = true
		switch key {
		case "dtype":
			e.dtype, err = str(d)
		case "shape":
			var xs []int64
			xs, err = ints(d)
			e.shape = xs
		case "data_offsets":
			var xs []int64
			if xs, err = ints(d); err == nil && len(xs) != 2 {
				err = fmt.Errorf("data_offsets has %d entries, want 2", len(xs))
			}
			if err == nil {
				e.begin, e.end = xs[0], xs[1]
			}
		}
		if err != nil {
			return e, err
		}
	}
	for i, have := range e.have {
		if !have {
			return e, fmt.Errorf("field %q is missing", []string{"dtype", "shape", "data_offsets"}[i])
		}
	}
	return e, delim(d, '}')
}

// layout holds what was declared against dataBytes, the bytes that follow the header, and returns the tensors in file order. Every
// tensor that is wrong in itself is listed; the first hole or overlap ends the search, since the rest would follow from it.
func layout(entries []entry, dataStart, dataBytes int64) ([]Info, error) {
	slices.SortFunc(entries, func(a, b entry) int {
		return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(a.end, b.end), strings.Compare(a.name, b.name))
	})
	infos := make([]Info, 0, len(entries))
	var problems []error
	unsupported := map[string][]string{}
	for _, e := range entries {
		d, ok := dtypeOf(e.dtype)
		switch {
		case e.begin < 0 || e.end < e.begin || e.end > dataBytes:
			problems = append(problems, fmt.Errorf("tensor %q: bytes %d to %d are outside the file's %d bytes of data", e.name, e.begin, e.end, dataBytes))
		case !ok:
			unsupported[e.dtype] = append(unsupported[e.dtype], e.name)
		case e.shape.Check() != nil:
			problems = append(problems, fmt.Errorf("tensor %q: %w", e.name, e.shape.Check()))
		default:
			t := ir.Type{DType: d, Shape: e.shape}
			if t.Bytes() != e.end-e.begin {
				problems = append(problems, fmt.Errorf("tensor %q: %v needs %d bytes, the header gives %d", e.name, t, t.Bytes(), e.end-e.begin))
			}
			infos = append(infos, Info{Spec: Spec{e.name, t}, Offset: dataStart + e.begin, Bytes: t.Bytes()})
		}
	}
	names := make([]string, 0, len(unsupported))
	for n := range unsupported {
		names = append(names, n)
	}
	slices.Sort(names)
	for _, n := range names {
		problems = append(problems, fmt.Errorf("element type %q of %s is not supported (supported: %s)", n, quoted(unsupported[n]), strings.Join(supported(), " ")))
	}
	if len(problems) != 0 {
		return nil, errors.Join(problems...)
	}
	at, last := int64(0), "the header"
	for _, e := range entries {
		switch {
		case e.begin < at:
			return nil, fmt.Errorf("tensors %s and %q overlap", last, e.name)
		case e.begin > at:
			return nil, fmt.Errorf("%d bytes between %s and %q belong to no tensor", e.begin-at, last, e.name)
		}
		at, last = e.end, fmt.Sprintf("%q", e.name)
	}
	if at != dataBytes {
		return nil, fmt.Errorf("%d bytes after %s belong to no tensor", dataBytes-at, last)
	}
	return infos, nil
}

// quoted shows up to five names.
func quoted(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i == 5 {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%q", n)
	}
	return b.String()
}

func token(d *json.Decoder) (json.Token, error) {
	t, err := d.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return t, err
}

func delim(d *json.Decoder, want json.Delim) error {
	t, err := token(d)
	if err != nil {
		return err
	}
	if t != want {
		return fmt.Errorf("found %v where %v was expected", t, want)
	}
	return nil
}

func str(d *json.Decoder) (string, error) {
	t, err := token(d)
	if err != nil {
		return "", err
	}
	s, ok := t.(string)
	if !ok {
		return "", fmt.Errorf("found %v where a string was expected", t)
	}
	return s, nil
}

func ints(d *json.Decoder) ([]int64, error) {
	if err := delim(d, '['); err != nil {
		return nil, err
	}
	xs := []int64{}
	for d.More() {
		t, err := token(d)
		if err != nil {
			return nil, err
		}
		n, ok := t.(json.Number)
		if !ok {
			return nil, fmt.Errorf("found %v where an integer was expected", t)
		}
		x, err := n.Int64()
		if err != nil || x < 0 {
			return nil, fmt.Errorf("%v is not an integer between 0 and 2^63-1", n)
		}
		if len(xs) == maxRank {
			return nil, fmt.Errorf("more than %d entries", maxRank)
		}
		xs = append(xs, x)
	}
	return xs, delim(d, ']')
}
