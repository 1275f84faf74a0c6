package e2e

import (
	"bytes"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/passes/cost"
)

// swept are the models whose budgets are swept; those beside the repository are left out where they are not there.
func swept(t *testing.T) []run {
	list := []run{cnnDigits()}
	at := func(model, file, golden, bn string) { // small skips the test where the folder is missing, so it is asked within one of its own
		t.Run("find "+model, func(t *testing.T) {
			list = append(list, run{dir: small(t, model), file: file, golden: golden, batchNorm: bn})
		})
	}
	at("gpt_mini", "model.onnx", "golden.json", "")
	if !thorough {
		return list
	}
	at("mlp_mnist", "model.onnx", "golden_adamw.json", "")
	at("cnn_mnist", "model.onnx", "golden.json", "")
	at("llama_mini", "model.onnx", "golden.json", "")
	at("bert_mini", "model.onnx", "golden.json", "")
	at("vit_mini", "model.onnx", "golden.json", "")
	at("resnet18_mini", "model_ts.onnx", "golden.json", "train")
	at("unet_seg", "model.onnx", "golden.json", "")
	return list
}

// TestSweep: in one run over many budgets, with recomputing alone and with swapping, the predicted time never rises with the budget, every arena keeps its
// budget, and the budget of the arena without limit recomputes and moves nothing. Every plan has passed the checker, or Sweep would have panicked.
// With the tag long these are 41 budgets of nine models, else a few of two.
func TestSweep(t *testing.T) {
	points := 7
	if thorough {
		points = 41
	}
	for _, r := range swept(t) {
		for _, m := range []mode{{"recompute", true, false}, {"both", true, true}} {
			t.Run(r.String()+" "+m.name, func(t *testing.T) {
				t.Parallel()
				r.plain = true
				x := open(t, r)
				list, err := passes.Sweep(x.ctx, passes.MemoryOptions{Profile: cost.CPUGeneric(), HostBudgetBytes: -1, Recompute: m.recompute, Swap: m.swap}, points)
				check(t, err)
				holdSweep(t, list, points)
			})
		}
	}
}

func holdSweep(t *testing.T, list []passes.Point, points int) {
	if len(list) != points {
		t.Fatalf("%d points, want %d", len(list), points)
	}
	for i, x := range list {
		r := &x.Plan.Report
		if arena := x.Plan.Arena(ir.Device).Bytes; arena > x.BudgetBytes {
			t.Errorf("budget %d: arena %d", x.BudgetBytes, arena)
		}
		if i == 0 {
			continue
		}
		before := &list[i-1]
		if x.BudgetBytes < before.BudgetBytes || r.StepPicos > before.Plan.Report.StepPicos {
			t.Errorf("budget %d takes %d ps, budget %d takes %d", x.BudgetBytes, r.StepPicos, before.BudgetBytes, before.Plan.Report.StepPicos)
		}
		if float64(x.OverheadBoundPPM)/1e6 > r.Overhead()+1e-6 {
			t.Errorf("budget %d: overhead %.6f, bound %d ppm", x.BudgetBytes, r.Overhead(), x.OverheadBoundPPM)
		}
	}
	last := &list[points-1]
	if r := &last.Plan.Report; last.BudgetBytes != r.UnlimitedArenaBytes || r.RecomputedNodes != 0 || r.SwapInBytes+r.SwapOutBytes != 0 || r.StepPicos != r.UnlimitedStepPicos {
		t.Errorf("the budget of the unlimited arena recomputes %d nodes and moves %d bytes", r.RecomputedNodes, r.SwapInBytes+r.SwapOutBytes)
	}
	t.Logf("%d budgets from %d to %d bytes, overhead from %.2f %%", points, list[0].BudgetBytes, last.BudgetBytes, 100*list[0].Plan.Report.Overhead())
}

// TestSamePlans: ten runs give byte-identical plans. With the tag long for every model of TestSweep, else for one, three times.
func TestSamePlans(t *testing.T) {
	models, runs := []run{cnnDigits()}, 3
	if thorough {
		models, runs = swept(t), 10
	}
	for _, r := range models {
		t.Run(r.String(), func(t *testing.T) {
			t.Parallel()
			r.plain = true
			var first []byte
			for i := range runs {
				x := open(t, r) // from the file on
				p := x.compile(t, passes.MemoryOptions{BudgetPercent: 75, HostBudgetBytes: 1 << 20, Recompute: true, Swap: true})
				raw, err := plan.Marshal(p)
				check(t, err)
				if first == nil {
					first = raw
				}
				if !bytes.Equal(raw, first) {
					t.Fatalf("run %d gives another plan than the first", i)
				}
			}
		})
	}
}
