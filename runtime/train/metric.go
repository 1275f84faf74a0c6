package train

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime/train/data"
)

// Metric is what an evaluation reports besides the loss.
type Metric struct {
	Name   string // accuracy, perplexity, mse, l1, loss; "": loss
	Output string // result of program eval that is compared with the target; "": the first one that is not the loss

	// For accuracy:
	Axis      int64 // of the classes; negative counts from the end; meaningful with HasAxis
	HasAxis   bool  // without it: axis 1 of two-dimensional outputs, else the last
	Shift     int64 // position t along axis 1 predicts the label of position t+Shift
	Ignore    int64 // label that does not count; meaningful with HasIgnore
	HasIgnore bool
}

func metricNames() []string { return []string{"accuracy", "loss", "perplexity", "mse", "l1"} }

// ParseMetric reads the name of --metric. The error is of kind Usage.
func ParseMetric(name string) (Metric, error) {
	if !slices.Contains(metricNames(), name) {
		return Metric{}, ir.Errorf(ir.Usage, ir.Origin{}, "--metric %q is unknown: want one of %s", name, strings.Join(metricNames(), ", "))
	}
	return Metric{Name: name}, nil
}

// scorer adds up a metric over batches.
type scorer struct {
	Metric
	out    *result
	target []byte // of the feed
	want   ir.Type

	classes, inner int64 // accuracy: classes, and elements behind the class axis
	perSample      int64 // target elements of a sample
	length, stride int64 // accuracy: positions along axis 1 of the target and elements of each, for Shift

	sum   float64
	count int64
}

// newScorer checks that output and target fit the metric; nil for metrics that follow from the loss.
func newScorer(m Metric, p *plan.Program, c *call) (*scorer, error) {
	if m.Name == "" || m.Name == "loss" || m.Name == "perplexity" {
		return nil, nil
	}
	s := &scorer{Metric: m}
	name := m.output(p)
	refuse := func(format string, args ...any) error {
		return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("metric %s: %s", m.Name, fmt.Sprintf(format, args...)), Remedy: "choose another with --metric"}
	}
	if s.out = c.result(name); s.out == nil || !s.out.t.DType.IsFloat() {
		return nil, refuse("program eval gives no output %q of floats", name)
	}
	for i := range p.Inputs {
		if p.Inputs[i].Name == data.Target {
			s.want = p.Inputs[i].Ref.Type
		}
	}
	if c.feed != nil {
		for i := range c.feed.Ports() {
			if c.feed.Name(i) == data.Target {
				s.target = c.feed.Bytes(i)
			}
		}
	}
	out, want := s.out.t.Shape, s.want.Shape
	if s.target == nil || len(want) == 0 || want[0] == 0 {
		return nil, refuse("program eval takes no target with a sample axis")
	}
	s.perSample = want.Elems() / want[0]
	if m.Name != "accuracy" {
		if !s.want.DType.IsFloat() || !want.Equal(out) {
			return nil, refuse("output %q is %v and the target %v, which cannot be compared element by element", name, s.out.t, s.want)
		}
		return s, nil
	}
	axis := m.axis(len(out))
	if axis < 1 || s.want.DType != ir.I64 && s.want.DType != ir.I32 || !want.Equal(slices.Delete(out.Clone(), int(axis), int(axis)+1)) {
		return nil, refuse("output %q is %v and the target %v, which is not the output's shape without a class axis", name, s.out.t, s.want)
	}
	s.classes, s.inner = out[axis], out[axis+1:].Elems()
	if m.Shift > 0 {
		if len(want) < 2 || axis == 1 || s.Shift >= want[1] {
			return nil, refuse("there are no %d positions to shift by along axis 1 of the target %v", m.Shift, s.want)
		}
		s.length, s.stride = want[1], want[2:].Elems()
	}
	return s, nil
}

// output names the result that is compared.
func (m *Metric) output(p *plan.Program) string {
	if m.Output != "" {
		return m.Output
	}
	for _, r := range p.Results {
		if r.Name != "loss" {
			return r.Name
		}
	}
	return ""
}

// axis is the class axis of an output of a rank; -1 if it has none.
func (m *Metric) axis(rank int) int64 {
	a := int64(rank) - 1
	if m.HasAxis {
		if a = m.Axis; a < 0 {
			a += int64(rank)
		}
	}
	if a >= int64(rank) {
		return -1
	}
	return a
}

func (s *scorer) reset() { s.sum, s.count = 0, 0 }

// add takes in the first valid samples of the batch just run.
func (s *scorer) add(valid int64) {
	n := valid * s.perSample
	if s.Name == "accuracy" {
		for i := range n {
			s.label(i)
		}
		return
	}
	want := result{t: s.want, raw: s.target}
	for i := range n {
		d := s.out.float(i) - want.float(i)
		if s.Name == "mse" {
			d *= d
		}
		s.sum += math.Abs(d)
	}
	s.count += n
}

// label compares the prediction at target element i with its label. The first of equal outputs is the prediction, NaN never is.
func (s *scorer) label(i int64) {
	at := i
	if s.Shift > 0 {
		if i/s.stride%s.length+s.Shift >= s.length {
			return
		}
		at = i + s.Shift*s.stride
	}
	want := s.labelAt(at)
	if s.HasIgnore && want == s.Ignore {
		return
	}
	s.count++
	base := i/s.inner*s.classes*s.inner + i%s.inner
	best, top := int64(-1), math.Inf(-1)
	for k := range s.classes {
		if x := s.out.float(base + k*s.inner); x > top || best < 0 && x == top {
			best, top = k, x
		}
	}
	if best == want {
		s.sum++
	}
}

func (s *scorer) value() float64 {
	if s.count == 0 {
		return math.NaN()
	}
	return s.sum / float64(s.count)
}
