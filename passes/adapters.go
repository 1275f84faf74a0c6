package passes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"aitk/ir/plan"
)

// Adapter says what pass lora put beside a weight: what a writer of adapters, or who merges them, needs beside the contents of A and B.
type Adapter struct {
	Weight string // parameter that it belongs to
	A, B   string // parameters
	Scale  float64
	InOut  bool // the weight is stored [in, out]
}

// Module is the layer's name.
func (a *Adapter) Module() string { return ModuleOf(a.Weight) }

// adapterKey begins the keys of options under which a plan keeps its adapters.
const adapterKey = "adapter/"

// recordAdapters puts the adapters into the options of a plan, so that whoever has only the plan can write them to a file.
func recordAdapters(p *plan.Plan, list []Adapter) {
	for _, a := range list {
		p.Options = append(p.Options, plan.Option{Key: adapterKey + a.Weight, Value: fmt.Sprintf("scale=%s inout=%t a=%q b=%q", formatFloat(a.Scale), a.InOut, a.A, a.B)})
	}
	slices.SortStableFunc(p.Options, func(a, b plan.Option) int { return cmp.Compare(a.Key, b.Key) })
}

// AdaptersOf reads the adapters of a plan, sorted by weight. An option that reads otherwise than it was written is an error.
func AdaptersOf(p *plan.Plan) ([]Adapter, error) {
	var list []Adapter
	for _, o := range p.Options {
		weight, ok := strings.CutPrefix(o.Key, adapterKey)
		if !ok {
			continue
		}
		a := Adapter{Weight: weight}
		if _, err := fmt.Sscanf(o.Value, "scale=%g inout=%t a=%q b=%q", &a.Scale, &a.InOut, &a.A, &a.B); err != nil {
			return nil, fmt.Errorf("option %q of the plan: %w", o.Key, err)
		}
		list = append(list, a)
	}
	return list, nil
}
