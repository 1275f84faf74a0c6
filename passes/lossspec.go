package passes

import (
	"math"
	"strconv"

	"aitk/ir"
)

// LossSpec is a parsed --loss. The zero value chooses by the data, see ChooseLoss.
type LossSpec struct {
	Name           string  // cross-entropy, nll, mse, l1, huber, bce-logits, output; "": not given
	Axis           int64   // class axis, negative counts from the end; meaningful with HasAxis
	HasAxis        bool    // without it: axis 1 of two-dimensional logits, else the last
	Shift          int64   // position t predicts the label of position t+Shift along axis 1
	LabelSmoothing float64 // in [0,1): the target distribution is (1-s)*onehot + s/classes
	IgnoreIndex    int64   // label that does not count; meaningful with HasIgnore
	HasIgnore      bool
	Reduction      string  // "mean" (over labels that count, or elements) or "sum"
	Delta          float64 // huber: where the square turns into a line
	Output         string  // output: name of the graph output that is the loss; "": the one that --output names, or the first
}

func lossNames() []string {
	return []string{"cross-entropy", "mse", "l1", "huber", "bce-logits", "nll", "output"}
}

// ParseLoss reads NAME[:k=v,...] as cli.md defines it. The error is of kind Usage and names every mistake.
func ParseLoss(text string) (LossSpec, error) {
	s := cutSpec("loss", text)
	l := LossSpec{Name: s.name, Reduction: "mean"}
	if l.Name == "output" {
		l.Output = s.text // a name may hold anything
		return l, nil
	}
	s.settings()
	switch l.Name {
	case "cross-entropy", "nll":
		l.HasAxis = s.int("axis", &l.Axis, "a whole number", func(int64) bool { return true })
		s.int("shift", &l.Shift, "a whole number >= 0", func(x int64) bool { return x >= 0 })
		if l.Name == "cross-entropy" {
			s.float("label-smoothing", &l.LabelSmoothing, "a number in [0,1)", func(x float64) bool { return x >= 0 && x < 1 })
		}
		if text, given := s.take("ignore-index"); given && text != "none" {
			s.known = s.known[:len(s.known)-1]
			l.HasIgnore = s.int("ignore-index", &l.IgnoreIndex, "a whole number or none", func(int64) bool { return true })
		}
		s.oneOf("reduction", &l.Reduction, "mean", "sum")
	case "mse", "l1", "bce-logits":
		s.oneOf("reduction", &l.Reduction, "mean", "sum")
	case "huber":
		l.Delta = 1
		s.float("delta", &l.Delta, "a number > 0", func(x float64) bool { return x > 0 })
		s.oneOf("reduction", &l.Reduction, "mean", "sum")
	default:
		return LossSpec{}, s.unknownName(lossNames())
	}
	if err := s.done(); err != nil {
		return LossSpec{}, err
	}
	return l, nil
}

// String is the form that ParseLoss reads, with the settings that differ from the defaults.
func (l LossSpec) String() string {
	if l.Name == "output" {
		if l.Output == "" {
			return l.Name
		}
		return l.Name + ":" + l.Output
	}
	opt := func(on bool, text string) string {
		if on {
			return text
		}
		return ""
	}
	return formatSpec(l.Name,
		"axis", opt(l.HasAxis, strconv.FormatInt(l.Axis, 10)),
		"shift", opt(l.Shift != 0, strconv.FormatInt(l.Shift, 10)),
		"label-smoothing", opt(l.LabelSmoothing != 0, formatFloat(l.LabelSmoothing)),
		"ignore-index", opt(l.HasIgnore, strconv.FormatInt(l.IgnoreIndex, 10)),
		"reduction", opt(l.Reduction == "sum", "sum"),
		"delta", opt(l.Delta != 0 && l.Delta != 1, formatFloat(l.Delta)))
}

// ChooseLoss picks the loss that the data fixes: an integer target of the output's shape less the default class axis, or else less axis 1, means
// cross-entropy over that axis, a float target of the output's shape means mse. ok is false where the data leaves it open. The target's dtype may be any
// integer or float type; the shapes are those of one batch.
func ChooseLoss(out, target ir.Type) (l LossSpec, ok bool) {
	switch {
	case !out.DType.IsFloat():
		return LossSpec{}, false
	case target.DType.IsInt() && len(out.Shape) >= 2:
		l = LossSpec{Name: "cross-entropy", Reduction: "mean"}
		if target.Shape.Equal(dropAxis(out.Shape, int(l.classAxis(len(out.Shape))))) {
			return l, true
		}
		l.Axis, l.HasAxis = 1, true // segmentation: classes before the places
		return l, target.Shape.Equal(dropAxis(out.Shape, 1))
	case target.DType.IsFloat() && target.Shape.Equal(out.Shape):
		return LossSpec{Name: "mse", Reduction: "mean"}, true
	}
	return LossSpec{}, false
}

// classAxis is the class axis for logits of a rank, normalised; -1 if the rank has no such axis.
func (l *LossSpec) classAxis(rank int) int64 {
	axis := int64(rank) - 1
	if rank == 2 {
		axis = 1
	}
	if l.HasAxis {
		axis = l.Axis
		if axis < 0 && axis > math.MinInt64/2 {
			axis += int64(rank)
		}
	}
	if axis < 0 || axis >= int64(rank) {
		return -1
	}
	return axis
}

func dropAxis(s ir.Shape, axis int) ir.Shape {
	t := append(ir.Shape{}, s[:axis]...)
	return append(t, s[axis+1:]...)
}
