package passes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"aitk/internal/quant"
	"aitk/ir"
)

// QuantizeSpec is one --quantize: which frozen weights are stored in fewer bits, and in which.
type QuantizeSpec struct {
	Glob     string
	Format   string // of package quant; "auto" or "none"
	Block    int64  // of int4 and nf4, and of auto's choices of these
	Double   bool   // scales of int4 and nf4 in 8 bits
	MaxError float64
}

// WeightReader reads contents of parameters: n whole rows of the matrix t, from row on, as float32. internal/weights.Reader is one.
type WeightReader interface {
	Floats(name string, t ir.Type, in *ir.Init, x []float32, row int64) error
}

const (
	formatAuto      = "auto"
	formatNone      = "none"
	defaultBlock    = 64
	defaultMaxError = 0.05
)

func quantizeFormats() []string {
	list := []string{formatAuto, formatNone}
	for _, f := range quant.Formats() {
		list = append(list, string(f))
	}
	return list
}

// ParseQuantize reads GLOB:FORMAT[,block=64,double=false], GLOB:auto[,max-error=0.05] or auto[:max-error=0.05], which is for all weights.
func ParseQuantize(text string) (QuantizeSpec, error) {
	q := QuantizeSpec{Block: defaultBlock, MaxError: defaultMaxError}
	glob, rest, ok := text, "", false
	if name, settings, _ := strings.Cut(text, ":"); name == formatAuto && (settings == "" || strings.HasPrefix(settings, "max-error=") || strings.HasPrefix(settings, "block=") || strings.HasPrefix(settings, "double=")) {
		glob, q.Format, rest, ok = "*", formatAuto, settings, true
	}
	for i := len(text) - 1; i > 0 && !ok; i-- {
		if text[i] != ':' {
			continue
		}
		format, settings, _ := strings.Cut(text[i+1:], ",")
		if slices.Contains(quantizeFormats(), format) {
			glob, q.Format, rest, ok = text[:i], format, settings, true
		}
	}
	if !ok {
		return q, ir.Errorf(ir.Usage, ir.Origin{}, "--quantize %s: want GLOB:FORMAT with one of %s, or auto[:max-error=E]", text, strings.Join(quantizeFormats(), ", "))
	}
	q.Glob = glob
	s := &spec{flag: "quantize", name: glob + ":" + q.Format, text: rest}
	s.settings()
	if q.Format == formatAuto || quant.Format(q.Format).Blocked() {
		s.int("block", &q.Block, "32, 64 or 128", func(x int64) bool { return x == 32 || x == 64 || x == 128 })
		s.bool("double", &q.Double)
	}
	if q.Format == formatAuto {
		s.float("max-error", &q.MaxError, "a relative error above 0", func(x float64) bool { return x > 0 })
	}
	return q, s.done()
}

// String is the inverse of ParseQuantize.
func (q QuantizeSpec) String() string {
	s := q.Glob + ":" + q.Format
	if q.Format == formatAuto {
		s += ",max-error=" + formatFloat(q.MaxError)
	}
	if q.Format == formatAuto || quant.Format(q.Format).Blocked() {
		s += ",block=" + strconv.FormatInt(q.Block, 10)
		if q.Double {
			s += ",double=true"
		}
	}
	return s
}

// MatchQuantize is the spec that a weight follows: the last whose glob fits its name or its module's. byName tells whether that glob is the name
// itself.
func MatchQuantize(specs []QuantizeSpec, weight string) (q QuantizeSpec, byName, ok bool) {
	for _, s := range specs {
		if s.hits(weight) {
			q, ok = s, true
			byName = s.Glob == weight || s.Glob == ModuleOf(weight)
		}
	}
	return q, byName, ok
}

func (q *QuantizeSpec) hits(weight string) bool {
	return ir.MatchGlob(q.Glob, weight) || ir.MatchGlob(q.Glob, ModuleOf(weight))
}

// schemeName is a scheme as reports show it: int8, nf4/64, nf4/64+double.
func schemeName(s *quant.Scheme) string {
	if s.Block == 0 {
		return string(s.Format)
	}
	name := fmt.Sprintf("%s/%d", s.Format, s.Block)
	if s.Double {
		name += "+double"
	}
	return name
}
