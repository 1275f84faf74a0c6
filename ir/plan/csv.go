package plan

import (
	"encoding/csv"
	"io"
	"strconv"
)

// WriteCSV writes the buffers, one row for each span. The first four columns are those of the public packing benchmarks: a row is a
// rectangle from lower to upper in time (instructions of its program, half-open) and size bytes high.
func WriteCSV(w io.Writer, p *Plan) error {
	out := csv.NewWriter(w)
	rows := [][]string{{"id", "lower", "upper", "size", "offset", "space", "program", "category", "name", "symbol", "type"}}
	number := func(n int64) string { return strconv.FormatInt(n, 10) }
	for i := range p.Buffers {
		b := &p.Buffers[i]
		for _, s := range b.Live {
			rows = append(rows, []string{
				number(int64(i)), number(int64(s.Start)), number(int64(s.End)), number(b.Bytes), number(b.Offset), b.Type.Space.String(),
				plain(p.Programs[s.Program].Name), b.Category.String(), plain(b.Name), plain(p.symbolName(b.Holds)), b.Type.DType.String() + b.Type.Shape.String(),
			})
		}
	}
	if err := out.WriteAll(rows); err != nil {
		return err
	}
	return out.Error()
}
