package train

import (
	"math"

	"aitk/ir"
	"aitk/runtime/train/metrics"
)

// header is the first line of the metrics. The plan's figures have the names of plan --json.
type header struct {
	Schema          string            `json:"schema"`
	Tool            string            `json:"tool"`
	Model           string            `json:"model"`
	Graph           string            `json:"graph_sha256"`
	Device          string            `json:"device"`
	Profile         string            `json:"profile"`
	Options         map[string]string `json:"options"`
	Dims            map[string]int64  `json:"dims"`
	Budget          *int64            `json:"budget_bytes"` // null: no limit
	Arena           map[string]int64  `json:"arena_bytes"`
	Peak            map[string]int64  `json:"peak_bytes"`
	Bound           int64             `json:"bound_bytes"`
	Naive           int64             `json:"naive_bytes"`
	Saved           int64             `json:"saved_bytes"`
	MinimumBudget   int64             `json:"minimum_budget_bytes"`
	UnlimitedArena  int64             `json:"unlimited_arena_bytes"`
	StepSeconds     float64           `json:"step_seconds"`
	UnlimitedStep   float64           `json:"unlimited_step_seconds"`
	Overhead        float64           `json:"overhead"`
	OverheadBound   float64           `json:"overhead_bound"`
	Recomputed      recomputed        `json:"recomputed"`
	Swapped         swapped           `json:"swapped"`
	Seed            int64             `json:"seed"`
	Schedule        string            `json:"schedule"`
	Steps           int64             `json:"steps"`
	FirstStep       int64             `json:"first_step"` // 0, or where it resumed
	Accumulate      int64             `json:"accumulate"`
	BatchSamples    int64             `json:"batch"` // samples of a microbatch
	EpochBatches    int64             `json:"epoch_microbatches"`
	TrainSamples    int64             `json:"train_samples"` // of an epoch
	HeldOutSamples  int64             `json:"held_out_samples"`
	ParameterCounts int64             `json:"trainable_parameters"` // elements
}

type recomputed struct {
	Nodes   int64   `json:"nodes"`
	FLOPs   int64   `json:"flops"`
	Seconds float64 `json:"seconds"`
}

type swapped struct {
	Out   int64   `json:"out_bytes"`
	In    int64   `json:"in_bytes"`
	Stall float64 `json:"stall_seconds"`
}

// header describes the run about to begin.
func (t *trainer) header() *header {
	p, r := t.plan, &t.plan.Report
	h := &header{
		Schema: metrics.Schema, Tool: p.Tool, Model: p.Model, Graph: p.GraphSum, Device: p.Profile.Device, Profile: p.Profile.Name,
		Options: map[string]string{}, Dims: map[string]int64{}, Arena: map[string]int64{}, Peak: map[string]int64{},
		Bound: r.BoundBytes, Naive: r.NaiveBytes, Saved: r.SavedBytes, MinimumBudget: r.MinimumBudgetBytes, UnlimitedArena: r.UnlimitedArenaBytes,
		StepSeconds: seconds(r.StepPicos), UnlimitedStep: seconds(r.UnlimitedStepPicos), Overhead: r.Overhead(), OverheadBound: float64(r.OverheadBoundPPM) / 1e6,
		Recomputed: recomputed{r.RecomputedNodes, r.RecomputedFLOPs, seconds(r.RecomputedPicos)},
		Swapped:    swapped{r.SwapOutBytes, r.SwapInBytes, seconds(r.StallPicos)},
		Seed:       t.o.Seed, Schedule: t.o.Schedule.String(), Steps: t.total, FirstStep: t.done, Accumulate: t.o.Accumulate,
		BatchSamples: t.batch, EpochBatches: t.perEpoch, TrainSamples: t.perEpoch * t.batch,
	}
	if t.order != nil {
		h.TrainSamples, h.HeldOutSamples = t.order.Train(), t.order.Held()
	}
	if r.BudgetBytes >= 0 {
		h.Budget = &r.BudgetBytes
	}
	for _, o := range p.Options {
		if old, twice := h.Options[o.Key]; twice {
			o.Value = old + ", " + o.Value
		}
		h.Options[o.Key] = o.Value
	}
	for _, d := range p.Dims {
		h.Dims[d.Name] = d.Size
	}
	for _, a := range p.Arenas {
		h.Arena[a.Space.String()] = a.Bytes
		switch a.Space {
		case ir.Device:
			h.Peak[a.Space.String()] = r.PeakBytes
		case ir.Pinned:
			h.Peak[a.Space.String()] = r.HostPeakBytes
		}
	}
	for i := range p.Params {
		if q := &p.Params[i]; q.Role == ir.Weight && q.Trainable {
			h.ParameterCounts += q.Type.Elems()
		}
	}
	if math.IsNaN(h.Overhead) || math.IsInf(h.Overhead, 0) {
		h.Overhead = 0
	}
	return h
}

func seconds(picos int64) float64 { return float64(picos) / 1e12 }
