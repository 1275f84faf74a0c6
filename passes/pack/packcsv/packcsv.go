// Package packcsv reads and writes packing problems as CSV, in the format of the public benchmarks (minimalloc, idealloc). It knows the
// format and package pack, and neither files nor flags.
//
// A header line names the columns, in any order; then one buffer a line:
//
//	id (buffer, buffer_id)   name
//	lower (begin, start)     first time at which it is live
//	upper                    first time at which it is no longer live; a column "end" holds the last time at which it is live instead
//	size                     bytes
//	alignment                optional: a power of two
//	gaps                     optional: "lower-upper" or "lower-upper@low:high", separated by blanks: times at which nothing, or only the bytes
//	                         [low,high), is in use; the upper ends count as those of the lifetime
//	offset                   optional: the buffer is fixed there
//	hint                     optional: the offset that a former placement gave
//
// An empty field of an optional column is as if the column were absent, and so is a negative hint. A lifetime may be empty.
package packcsv

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"aitk/passes/pack"
)

// Table is a packing problem with the names of its buffers. A Table that was read holds no more than a constant times the bytes of its text.
type Table struct {
	Names   []string // by buffer, all different
	Buffers []pack.Buffer
}

const (
	maxLine   = 1 << 20  // bytes
	maxRows   = 50 << 20 // buffers
	maxErrors = 20       // that are listed
)

// Read reads a table. Its errors name the line and the column; as many as twenty are listed.
func Read(r io.Reader) (Table, error) {
	var t Table
	var columns *header
	var errs []error
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxLine)
	seen := map[string]int{}
	for n := 1; lines.Scan(); n++ {
		line := bytes.TrimSpace(lines.Bytes())
		if n == 1 {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
		}
		switch {
		case len(line) == 0:
		case columns == nil:
			h, err := parseHeader(string(line))
			if err != nil {
				return Table{}, fmt.Errorf("line %d: %w", n, err)
			}
			columns = h
		case len(t.Buffers) == maxRows:
			return Table{}, fmt.Errorf("line %d: more than %d buffers", n, maxRows)
		default:
			name, b, err := columns.parse(string(line))
			if first, twice := seen[name]; err == nil && twice {
				err = fmt.Errorf("id %q stands in line %d already", name, first)
			}
			if err != nil {
				if errs = append(errs, fmt.Errorf("line %d: %w", n, err)); len(errs) == maxErrors {
					return Table{}, errors.Join(append(errs, errors.New("and perhaps more"))...)
				}
				continue
			}
			seen[name] = n
			t.Names = append(t.Names, name)
			t.Buffers = append(t.Buffers, b)
		}
	}
	switch err := lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		errs = append(errs, fmt.Errorf("a line is longer than %d bytes", maxLine))
	case err != nil:
		errs = append(errs, err)
	case columns == nil:
		errs = append(errs, errors.New("no header line; wanted id,lower,upper,size"))
	}
	if len(errs) > 0 {
		return Table{}, errors.Join(errs...)
	}
	return t, nil
}

// column is what a column holds.
type column int

const (
	id column = iota
	lower
	upper
	size
	alignment
	gaps
	offset
	hint
	numColumns
)

// header tells which field holds which column.
type header struct {
	field  [numColumns]int // -1: absent
	fields int
	last   int64 // added to upper ends: 1 where they are the last time at which a buffer is live
}

func parseHeader(line string) (*header, error) {
	h := &header{}
	for c := range h.field {
		h.field[c] = -1
	}
	names := strings.Split(line, ",")
	h.fields = len(names)
	for i, name := range names {
		var c column
		switch name = strings.TrimSpace(name); name {
		case "id", "buffer", "buffer_id":
			c = id
		case "lower", "begin", "start":
			c = lower
		case "upper":
			c = upper
		case "end":
			c, h.last = upper, 1
		case "size":
			c = size
		case "alignment":
			c = alignment
		case "gaps":
			c = gaps
		case "offset":
			c = offset
		case "hint":
			c = hint
		default:
			return nil, fmt.Errorf("unknown column %q; known are id, lower, upper, end, size, alignment, gaps, offset, hint", name)
		}
		if h.field[c] >= 0 {
			return nil, fmt.Errorf("column %q stands for one that is there already", name)
		}
		h.field[c] = i
	}
	for c, name := range [...]string{id: "id", lower: "lower", upper: "upper", size: "size"} {
		if h.field[c] < 0 {
			return nil, fmt.Errorf("no column %q", name)
		}
	}
	return h, nil
}

// parse reads one buffer.
func (h *header) parse(line string) (string, pack.Buffer, error) {
	fields := strings.Split(line, ",")
	if len(fields) != h.fields {
		return "", pack.Buffer{}, fmt.Errorf("%d fields; the header has %d", len(fields), h.fields)
	}
	var err error
	text := func(c column) string {
		if h.field[c] < 0 {
			return ""
		}
		return strings.TrimSpace(fields[h.field[c]])
	}
	number := func(c column, name string) int64 {
		x, e := strconv.ParseInt(text(c), 10, 64)
		if e != nil && err == nil {
			err = fmt.Errorf("%s: %q is not a whole number of 64 bits", name, text(c))
		}
		return x
	}
	name := strings.Clone(text(id))
	start, end := number(lower, "lower"), number(upper, "upper")
	b := pack.Buffer{Bytes: number(size, "size")}
	if err == nil && end > maxTime-h.last {
		err = fmt.Errorf("upper: %d is too large", end)
	}
	end += h.last
	if text(alignment) != "" {
		b.Align = number(alignment, "alignment")
	}
	if text(offset) != "" {
		b.Fixed, b.Offset = true, number(offset, "offset")
	}
	if text(hint) != "" {
		b.Hint = number(hint, "hint")
		if b.Hinted = b.Hint >= 0; !b.Hinted {
			b.Hint = 0
		}
	}
	switch {
	case err != nil:
	case name == "":
		err = errors.New("id: empty")
	case strings.Contains(name, "\r"): // Write could not write it
		err = fmt.Errorf("id: %q holds a line break", name)
	case start > end:
		err = fmt.Errorf("lower %d is after upper %d", start, end)
	case b.Bytes < 0:
		err = fmt.Errorf("size: %d is negative", b.Bytes)
	case text(alignment) != "" && (b.Align < 1 || b.Align&(b.Align-1) != 0):
		err = fmt.Errorf("alignment: %d is not a power of two", b.Align)
	case b.Fixed && b.Offset < 0:
		err = fmt.Errorf("offset: %d is negative", b.Offset)
	case b.Fixed && b.Align > 1 && b.Offset%b.Align != 0:
		err = fmt.Errorf("offset: %d is not a multiple of the alignment %d", b.Offset, b.Align)
	default:
		err = h.parseGaps(&b, start, end, text(gaps))
	}
	return name, b, err
}

const maxTime = 1<<63 - 1

// parseGaps cuts the lifetime [start, end) into the spans between the gaps, and windows.
func (h *header) parseGaps(b *pack.Buffer, start, end int64, text string) error {
	type gap struct {
		pack.Span
		low, high int64
	}
	var all []gap
	for _, f := range strings.Fields(text) {
		var g gap
		times, window, windowed := strings.Cut(f, "@")
		from, to, ok := cutNumbers(times, "-")
		if windowed && ok {
			g.low, g.high, ok = cutNumbers(window, ":")
		}
		if !ok {
			return fmt.Errorf("gaps: %q; wanted lower-upper or lower-upper@low:high", f)
		}
		if to > maxTime-h.last {
			return fmt.Errorf("gaps: %q ends too late", f)
		}
		g.Start, g.End = from, to+h.last
		if g.Start >= g.End || g.Start < start || g.End > end {
			return fmt.Errorf("gaps: %q is empty, or outside the lifetime [%d,%d)", f, start, end)
		}
		if g.low < 0 || g.low > g.high || g.high > b.Bytes {
			return fmt.Errorf("gaps: %q: the window is not within the %d bytes", f, b.Bytes)
		}
		all = append(all, g)
	}
	slices.SortFunc(all, func(a, b gap) int {
		if a.Start < b.Start {
			return -1
		}
		return 1
	})
	at := start
	for _, g := range all {
		if g.Start < at {
			return fmt.Errorf("gaps: two meet at time %d", g.Start)
		}
		if at < g.Start {
			b.Spans = append(b.Spans, pack.Span{Start: at, End: g.Start})
		}
		if g.low < g.high {
			b.Windows = append(b.Windows, pack.Window{Span: g.Span, Low: g.low, High: g.high})
		}
		at = g.End
	}
	if at < end {
		b.Spans = append(b.Spans, pack.Span{Start: at, End: end})
	}
	return nil
}

// cutNumbers reads two whole numbers around a separator. The first may be negative.
func cutNumbers(s, sep string) (a, b int64, ok bool) {
	k := strings.Index(s[min(1, len(s)):], sep)
	if k < 0 {
		return 0, 0, false
	}
	k += min(1, len(s))
	a, err := strconv.ParseInt(s[:k], 10, 64)
	b, err2 := strconv.ParseInt(s[k+len(sep):], 10, 64)
	return a, b, err == nil && err2 == nil
}

// Write writes a table, with the offsets if there are any, so that Read gives the same buffers: fixed at the offsets then. Groups have no
// column and are refused. Buffers that are never live lie at time 0.
func Write(w io.Writer, t Table, offsets []int64) error {
	if len(t.Names) != len(t.Buffers) || offsets != nil && len(offsets) != len(t.Buffers) {
		return fmt.Errorf("%d names and %d offsets for %d buffers", len(t.Names), len(offsets), len(t.Buffers))
	}
	out := bufio.NewWriter(w)
	fixed, aligned, gapped, hinted := offsets != nil, false, false, false
	for i, b := range t.Buffers {
		if b.Group > 0 {
			return fmt.Errorf("buffer %q: the format has no column for groups", t.Names[i])
		}
		if strings.ContainsAny(t.Names[i], ",\r\n") || strings.TrimSpace(t.Names[i]) != t.Names[i] || t.Names[i] == "" {
			return fmt.Errorf("buffer %q: the format has no quotes; a name is not empty and holds no comma or line break", t.Names[i])
		}
		fixed, aligned = fixed || b.Fixed, aligned || b.Align > 1
		gapped, hinted = gapped || len(b.Spans) > 1 || len(b.Windows) > 0, hinted || b.Hinted
	}
	out.WriteString("id,lower,upper,size")
	for _, c := range []struct {
		there bool
		name  string
	}{{aligned, "alignment"}, {gapped, "gaps"}, {hinted, "hint"}, {fixed, "offset"}} {
		if c.there {
			out.WriteString("," + c.name)
		}
	}
	out.WriteByte('\n')
	for i := range t.Buffers {
		b := &t.Buffers[i]
		start, end, gaps := lifetime(b)
		fmt.Fprintf(out, "%s,%d,%d,%d", t.Names[i], start, end, b.Bytes)
		if aligned {
			fmt.Fprintf(out, ",%d", max(b.Align, 1))
		}
		if gapped {
			out.WriteString("," + gaps)
		}
		if hinted {
			out.WriteByte(',')
			if b.Hinted {
				fmt.Fprint(out, b.Hint)
			}
		}
		switch {
		case offsets != nil:
			fmt.Fprintf(out, ",%d", offsets[i])
		case fixed && b.Fixed:
			fmt.Fprintf(out, ",%d", b.Offset)
		case fixed:
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	return out.Flush()
}

// lifetime is the stretch from the first to the last use of a buffer, and the gaps in it.
func lifetime(b *pack.Buffer) (start, end int64, gaps string) {
	all := slices.Clone(b.Windows)
	for _, s := range b.Spans {
		all = append(all, pack.Window{Span: s, Low: -1})
	}
	if len(all) == 0 {
		return 0, 0, ""
	}
	slices.SortFunc(all, func(a, b pack.Window) int {
		if a.Start < b.Start {
			return -1
		}
		return 1
	})
	var list []string
	start, end = all[0].Start, all[0].Start
	for _, w := range all {
		if w.Start > end {
			list = append(list, fmt.Sprintf("%d-%d", end, w.Start))
		}
		if w.Low >= 0 {
			list = append(list, fmt.Sprintf("%d-%d@%d:%d", w.Start, w.End, w.Low, w.High))
		}
		end = w.End
	}
	return start, end, strings.Join(list, " ")
}
