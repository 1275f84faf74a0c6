// Package estimate says how many bytes a training takes before anything is run: weights by the format in which they are stored, and what they
// would be in others; adapters, gradients, optimizer state; activations by batch; and on which cards that fits. It needs shapes alone, so a
// graph without weights will do.
//
// It counts what the passes have made and plans what the planner plans; it has no formula for memory of its own. It knows no file, no flag and no
// running device.
package estimate

import (
	"cmp"
	"fmt"
	"slices"

	"aitk/internal/quant"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/cost"
)

// Row is a group of tensors.
type Row struct {
	Name    string `json:"name"`
	Tensors int64  `json:"tensors"`
	Bytes   int64  `json:"bytes"`
}

// Batch is what one step takes at some size of the batch.
type Batch struct {
	Size            int64 `json:"batch"`
	PeakBytes       int64 `json:"peak_bytes"`       // nothing recomputed or swapped
	ActivationBytes int64 `json:"activation_bytes"` // of the peak, without what lives between steps
}

// Card says whether a training fits a card.
type Card struct {
	Name        string `json:"name"`
	MemoryBytes int64  `json:"memory_bytes"`
	UsableBytes int64  `json:"usable_bytes"`
	Fits        string `json:"fits"` // yes | if | no
	How         string `json:"how"`
}

// Report is an estimate.
type Report struct {
	Weights        []Row   `json:"weights"` // frozen and trainable weights of the model, by storage, the largest first
	WeightBytes    int64   `json:"weight_bytes"`
	Alternatives   []Row   `json:"alternatives"` // weight_bytes if all that can were stored so
	AdapterBytes   int64   `json:"adapter_bytes"`
	GradientBytes  int64   `json:"gradient_bytes"`  // of all that trains, at once; updates inside the step free most of them early
	OptimizerBytes int64   `json:"optimizer_bytes"` //
	OtherBytes     int64   `json:"other_bytes"`     // buffers, statistics, constants
	Batches        []Batch `json:"batches"`
	ArenaBytes     int64   `json:"arena_bytes"`   // unlimited plan
	MinimumBytes   int64   `json:"minimum_bytes"` // smallest plan with what is allowed
	Swapped        bool    `json:"swapped"`       // swapping was allowed for the minimum
	Cards          []Card  `json:"cards"`
}

// Count counts the parameters of a forward or step graph after the passes lora and quantize.
func (r *Report) Count(g *ir.Graph) {
	of := map[string]*Row{}
	storage := map[string]string{} // by weight: its row
	add := func(name string, bytes, tensors int64) {
		if of[name] == nil {
			of[name] = &Row{Name: name}
		}
		of[name].Bytes += bytes
		of[name].Tensors += tensors
		r.WeightBytes += bytes
	}
	for _, p := range g.Params {
		n := p.Type.Bytes()
		_, beside := storage[p.Of]
		switch {
		case p.Role == ir.Moment:
			r.OptimizerBytes += n
		case p.Role != ir.Weight:
			r.OtherBytes += n
		case p.Trainable && p.Of != "":
			r.AdapterBytes += n
		case p.Of != "" && beside: // scales of a packed weight
			add(storage[p.Of], n, 0)
		default:
			storage[p.Name] = storageOf(p)
			add(storage[p.Name], n, 1)
		}
		if p.Trainable {
			r.GradientBytes += n
		}
	}
	for _, c := range g.Consts {
		r.OtherBytes += int64(len(c.Data))
	}
	for _, row := range of {
		r.Weights = append(r.Weights, *row)
	}
	slices.SortFunc(r.Weights, func(a, b Row) int { return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name)) })
}

// storageOf names a weight's row: its format with block, or its element type.
func storageOf(p *ir.Param) string {
	k := &p.Init.Pack
	if !p.Init.Packed() || k.Format == quant.Cast {
		return p.Type.DType.String()
	}
	name := k.Format
	if k.Block > 0 {
		name += fmt.Sprintf("/%d", k.Block)
	}
	if k.Double {
		name += "+double"
	}
	return name
}

// Alternatives counts the weights of a forward graph as the model has them and as each format would store those that it can, with the pass's own rules.
func Alternatives(g *ir.Graph) ([]Row, error) {
	var rows []Row
	for _, format := range []string{"as it is", "int8", "fp8", "int4", "nf4", "nf4,double=true"} {
		h := g.Clone()
		for _, p := range h.Params {
			p.Trainable = false
		}
		ctx := &passes.Context{}
		if format != "as it is" {
			if err := ctx.Options.Set("quantize", "*:"+format); err != nil {
				return nil, err
			}
			if len(h.Params) == 0 {
				continue
			}
		}
		if err := passes.Run(ctx, h, Quantizing(), passes.Order()); err != nil {
			return nil, err
		}
		var r Report
		r.Count(h)
		row := Row{Name: format, Bytes: r.WeightBytes}
		for _, q := range ctx.Quantized {
			if q.Skipped == "" {
				row.Tensors++
			}
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// Quantizing is the pipeline up to quantize without adapters.
func Quantizing() []passes.Pass {
	all := passes.Pipeline()
	end := slices.IndexFunc(all, func(p passes.Pass) bool { return p.Name == "quantize" })
	return slices.DeleteFunc(all[:end+1], func(p passes.Pass) bool { return p.Name == "lora" })
}

// AtBatch adds what a step takes, from the scheduled programs of ctx.
func (r *Report) AtBatch(size int64, ctx *passes.Context) {
	g := ctx.Program("step")
	persistent := int64(0)
	for _, p := range g.Params {
		persistent += p.Type.Bytes()
	}
	for _, c := range g.Consts {
		persistent += int64(len(c.Data))
	}
	peak := passes.Live(g, nil, nil).PeakBytes
	r.Batches = append(r.Batches, Batch{Size: size, PeakBytes: peak, ActivationBytes: peak - persistent})
}

// Judge fills in the cards, from the report of a plan without a budget.
func (r *Report) Judge(p *plan.Report, swapped bool) error {
	r.ArenaBytes, r.MinimumBytes, r.Swapped = p.UnlimitedArenaBytes, p.MinimumBudgetBytes, swapped
	for _, name := range cost.GPUNames() {
		g, err := cost.GPU(name)
		if err != nil {
			return err
		}
		c := Card{Name: name, MemoryBytes: g.MemoryBytes, UsableBytes: g.UsableBytes()}
		switch how := "recomputed"; {
		case r.ArenaBytes <= c.UsableBytes:
			c.Fits, c.How = "yes", "as it is"
		case r.MinimumBytes <= c.UsableBytes:
			if swapped {
				how += " and swapped"
			}
			c.Fits, c.How = "if", fmt.Sprintf("%s: --budget %s", how, plan.FormatBytes(c.UsableBytes))
		case swapped:
			c.Fits, c.How = "no", fmt.Sprintf("the smallest plan takes %s", plan.FormatBytes(r.MinimumBytes))
		default:
			c.Fits, c.How = "no", fmt.Sprintf("the smallest plan without swapping takes %s; try --host-budget", plan.FormatBytes(r.MinimumBytes))
		}
		r.Cards = append(r.Cards, c)
	}
	slices.SortStableFunc(r.Cards, func(a, b Card) int { return cmp.Compare(a.MemoryBytes, b.MemoryBytes) })
	return nil
}
