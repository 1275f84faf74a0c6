//go:build cuda && linux

package oncuda

import (
	"fmt"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/runtime"
	"aitk/runtime/cuda"
)

// TestMemoryLimit: the plan's arena is enough, one byte less fails in Load with the figure.
func TestMemoryLimit(t *testing.T) {
	ctl := fake(t)
	if ctl == nil {
		t.Skip("a real device's memory cannot be limited")
	}
	m := open(t, training{model: "mlp_digits", golden: "golden.json"})
	p := m.compile(t, -1)
	need := p.Arena(ir.Device).Bytes
	defer ctl.Set("vramBytes", 1<<30)
	ctl.Set("vramBytes", need)
	m.train(t, p, 1, cuda.Options{}, false, ctl)
	ctl.Set("vramBytes", need-1)
	dev, err := cuda.Open(cuda.Options{})
	check(t, err)
	defer dev.Close()
	_, err = runtime.Load(p, dev, runtime.Options{Storage: runtime.NewMemory(p)})
	if ir.KindOf(err) != ir.DoesNotFit || !strings.Contains(err.Error(), fmt.Sprint(need)) || !strings.Contains(err.Error(), fmt.Sprint(need-1)) || !strings.Contains(err.Error(), "instruction") {
		t.Errorf("one byte too few: %v", err)
	}
}

// TestQuarter: on a device with a quarter of the memory that the model would take, swapping and recomputing train it to the same bits.
func TestQuarter(t *testing.T) {
	ctl := fake(t)
	if ctl == nil {
		t.Skip("a real device's memory cannot be limited")
	}
	defer ctl.Set("vramBytes", 1<<30)
	const steps = 2
	m := open(t, training{model: "llama_mini", golden: "golden.json"})
	free := m.compile(t, -1)
	want := m.train(t, free, steps, cuda.Options{}, false, ctl)
	limit := free.Arena(ir.Device).Bytes / 4
	p := m.compile(t, limit)
	r := p.Report
	t.Logf("unlimited %d bytes, device %d, arena %d: %d nodes recomputed, %d bytes out and %d in", free.Arena(ir.Device).Bytes, limit, p.Arena(ir.Device).Bytes, r.RecomputedNodes, r.SwapOutBytes, r.SwapInBytes)
	if r.RecomputedNodes == 0 || r.SwapOutBytes == 0 {
		t.Errorf("the plan recomputes %d nodes and swaps %d bytes: it was to do both", r.RecomputedNodes, r.SwapOutBytes)
	}
	ctl.Set("vramBytes", limit)
	same(t, m.train(t, p, steps, cuda.Options{}, false, ctl), want, "a quarter of the memory")
}

// TestClock: the driver's simulated clock, which knows the calls, the link's speed and how long each op takes, agrees with the plan's own event simulator
// about a step that the link holds up.
func TestClock(t *testing.T) {
	ctl := fake(t)
	if ctl == nil {
		t.Skip("a real device has its own clock")
	}
	m := open(t, training{model: "gpt_mini", golden: "golden.json"})
	card := profile(t)
	card.DuplexPermille = 1000
	free := m.compileFor(t, card, -1)
	for _, mbps := range []int64{500, 1000} {
		card.H2DRate, card.D2HRate = mbps*1e6, mbps*1e6
		p, err := passes.Compile(m.ctx, passes.MemoryOptions{Profile: card, BudgetBytes: free.Arena(ir.Device).Bytes * 6 / 10, HostBudgetBytes: -1, Swap: true})
		check(t, err)
		ctl.Set("h2dBytesPerSecond", card.H2DRate)
		ctl.Set("d2hBytesPerSecond", card.D2HRate)
		ctl.Set("copyLatencyPicos", card.CopyPicos)
		got := m.train(t, p, 3, cuda.Options{}, false, ctl)
		ctl.Set("h2dBytesPerSecond", 25e9)
		ctl.Set("d2hBytesPerSecond", 25e9)
		ctl.Set("copyLatencyPicos", 0)
		if ctl.Get("graphLaunches") == 0 {
			t.Errorf("%d MB/s: the third step was no graph", mbps)
		}
		_, step := p.Program("step")
		want := plan.Timeline(p, step).Picos
		t.Logf("%d MB/s: the plan says %d ps (%.2f of the unlimited step), the driver's clock %v", mbps, want, float64(want)/float64(free.Report.StepPicos), got.picos)
		if want < free.Report.StepPicos*5/4 {
			t.Errorf("%d MB/s: the link does not hold the step up: %d ps of %d", mbps, want, free.Report.StepPicos)
		}
		for i, ps := range got.picos {
			if d := float64(ps-want) / float64(want); d < -0.02 || d > 0.02 {
				t.Errorf("%d MB/s, step %d: the driver's clock says %d ps, the plan's simulator %d", mbps, i, ps, want)
			}
		}
	}
}
