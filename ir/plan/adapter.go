package plan

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Adapter says what stands beside a frozen weight: what a writer of adapters, or who merges them, needs beside the contents of A [rank, in...] and
// B [out, rank, 1...].
type Adapter struct {
	Weight string // parameter that it belongs to
	A, B   string // parameters
	Scale  float64
	InOut  bool // the weight is stored [in, out]
	Shared bool // others read the weight without the adapter: it cannot be merged
}

// Module is the layer's name: the weight's without ".weight".
func (a *Adapter) Module() string { return strings.TrimSuffix(a.Weight, ".weight") }

// adapterKey begins the keys of the options under which a plan keeps its adapters.
const adapterKey = "adapter/"

// sharedMark ends the option of a shared weight's adapter; without it the option is as it always was.
const sharedMark = " shared=true"

// SetAdapters records adapters among the options, so that whoever has the plan, or a checkpoint of its run, can write them to a file.
func (p *Plan) SetAdapters(list []Adapter) {
	p.Options = slices.DeleteFunc(p.Options, func(o Option) bool { return strings.HasPrefix(o.Key, adapterKey) })
	for _, a := range list {
		value := fmt.Sprintf("scale=%s inout=%t a=%q b=%q", strconv.FormatFloat(a.Scale, 'g', -1, 64), a.InOut, a.A, a.B)
		if a.Shared {
			value += sharedMark
		}
		p.Options = append(p.Options, Option{Key: adapterKey + a.Weight, Value: value})
	}
	slices.SortStableFunc(p.Options, func(a, b Option) int { return cmp.Compare(a.Key, b.Key) })
}

// Adapters reads what SetAdapters recorded, sorted by weight. An option that reads otherwise than it was written is an error.
func Adapters(options []Option) ([]Adapter, error) {
	var list []Adapter
	for _, o := range options {
		weight, ok := strings.CutPrefix(o.Key, adapterKey)
		if !ok {
			continue
		}
		a := Adapter{Weight: weight, Shared: strings.HasSuffix(o.Value, sharedMark)}
		if _, err := fmt.Sscanf(o.Value, "scale=%g inout=%t a=%q b=%q", &a.Scale, &a.InOut, &a.A, &a.B); err != nil {
			return nil, fmt.Errorf("option %q of the plan: %w", o.Key, err)
		}
		list = append(list, a)
	}
	return list, nil
}
