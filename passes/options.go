package passes

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"aitk/ir"
)

// Setting is one option in text, as goldens, reproducers and plans record it. Keys are the flags' names.
type Setting struct{ Key, Value string }

// Set reads one setting into the options: loss, output, optimizer, clip-norm, accumulate, seed, no-decay, lora and quantize (repeatable), and
// no-eval, mask-eval, grad-results for tests. The error is of kind Usage.
func (o *Options) Set(key, value string) error {
	var err error
	switch key {
	case "loss":
		o.Loss, err = ParseLoss(value)
	case "output":
		o.Output = value
	case "optimizer":
		o.Optimizer, err = ParseOptimizer(value)
	case "clip-norm":
		x, perr := strconv.ParseFloat(value, 64)
		if perr != nil || !(x > 0) || math.IsInf(x, 0) {
			return ir.Errorf(ir.Usage, ir.Origin{}, "--clip-norm %s: want a number > 0", value)
		}
		o.ClipNorm = x
	case "accumulate":
		n, perr := strconv.ParseInt(value, 10, 32)
		if perr != nil || n < 1 {
			return ir.Errorf(ir.Usage, ir.Origin{}, "--accumulate %s: want a whole number >= 1", value)
		}
		o.Accumulate = n
	case "no-decay":
		o.NoDecay = append(o.NoDecay, value)
	case "lora":
		l, lerr := ParseLoRA(value)
		o.LoRA, err = append(o.LoRA, l), lerr
	case "quantize":
		q, qerr := ParseQuantize(value)
		o.Quantize, err = append(o.Quantize, q), qerr
	case "seed":
		n, perr := strconv.ParseInt(value, 10, 64)
		if perr != nil {
			return ir.Errorf(ir.Usage, ir.Origin{}, "--seed %s: want a whole number", value)
		}
		o.Seed = n
	case "no-eval":
		o.NoEval, err = parseBool(key, value)
	case "mask-eval":
		o.MaskEval, err = parseBool(key, value)
	case "grad-results":
		o.GradResult, err = parseBool(key, value)
	default:
		return ir.Errorf(ir.Usage, ir.Origin{}, "no pass has a setting %q", key)
	}
	return err
}

func parseBool(key, value string) (bool, error) {
	b, err := strconv.ParseBool(value)
	if err != nil {
		return false, ir.Errorf(ir.Usage, ir.Origin{}, "%s %s: want true or false", key, value)
	}
	return b, nil
}

// Settings is the inverse of Set: what differs from the zero Options, sorted by key; repeated keys keep their order.
func (o *Options) Settings() []Setting {
	var s []Setting
	add := func(on bool, key, value string) {
		if on {
			s = append(s, Setting{key, value})
		}
	}
	add(o.Loss.Name != "", "loss", o.Loss.String())
	add(o.Output != "", "output", o.Output)
	add(o.Optimizer.Name != "", "optimizer", o.Optimizer.String())
	add(o.ClipNorm > 0, "clip-norm", formatFloat(o.ClipNorm))
	add(o.Accumulate > 1, "accumulate", strconv.FormatInt(o.Accumulate, 10))
	for _, glob := range o.NoDecay {
		add(true, "no-decay", glob)
	}
	for _, l := range o.LoRA {
		add(true, "lora", l.String())
	}
	for _, q := range o.Quantize {
		add(true, "quantize", q.String())
	}
	add(o.Seed != 0, "seed", strconv.FormatInt(o.Seed, 10))
	add(o.NoEval, "no-eval", "true")
	add(o.MaskEval, "mask-eval", "true")
	add(o.GradResult, "grad-results", "true")
	slices.SortStableFunc(s, func(a, b Setting) int { return strings.Compare(a.Key, b.Key) })
	return s
}
