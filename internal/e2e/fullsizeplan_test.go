package e2e

import (
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"aitk/importer"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
)

// TestFullSizePlans plans every graph of a full-size model from its shapes alone, with adapters beside all weights, at half the bytes of the unlimited
// plan: with the bus and without. Dimensions are odd and the batch is 2.
func TestFullSizePlans(t *testing.T) {
	files := fullSize(t)
	if !thorough {
		t.Skip("with the tag long: minutes")
	}
	for _, path := range files {
		t.Run(filepath.Base(filepath.Dir(path)), func(t *testing.T) {
			seen, err := importer.Inspect(path)
			check(t, err)
			dims := map[string]int64{}
			for _, d := range seen.Dims {
				dims[d.Name] = 2
				if !strings.Contains(d.Name, "batch") {
					dims[d.Name] = 77
				}
			}
			for _, swap := range []bool{true, false} {
				o := passes.MemoryOptions{BudgetPercent: 50, HostBudgetBytes: -1, Recompute: true, Swap: swap}
				p, err := tryFull(t, path, dims, o, passes.Setting{Key: "loss", Value: "mse"}, passes.Setting{Key: "lora", Value: "*:rank=4,alpha=4"})
				if p == nil {
					t.Fatal(err)
				}
				r := &p.Report
				arena := deviceArena(p)
				loss := float64(arena-r.PeakBytes) / float64(max(arena, 1))
				var mem runtime.MemStats
				runtime.ReadMemStats(&mem)
				t.Logf("swap %v: arena %d of %d, minimum %d, bound %d, step %d ps of %d, fragmentation %.5f, saved %d, %d MiB from the system, %v", swap,
					arena, r.UnlimitedArenaBytes, r.MinimumBudgetBytes, r.BoundBytes, r.StepPicos, r.UnlimitedStepPicos, loss, r.SavedBytes, mem.Sys>>20, err)
				if err == nil && arena > r.BudgetBytes || err != nil && r.MinimumBudgetBytes <= r.BudgetBytes {
					t.Errorf("arena %d, minimum %d, budget %d", arena, r.MinimumBudgetBytes, r.BudgetBytes)
				}
				if loss > 0.01 {
					t.Errorf("fragmentation %v", loss)
				}
			}
		})
	}
}

// deviceArena is the bytes of the plan's device arena.
func deviceArena(p *plan.Plan) int64 {
	for _, a := range p.Arenas {
		if a.Space == ir.Device {
			return a.Bytes
		}
	}
	return 0
}
