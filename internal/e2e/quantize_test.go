package e2e

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
	"aitk/runtime/cpu"
)

// lowBit are the models on which adapters are trained beside frozen weights in fewer bits, and how far each loss may be from that of the
// float32 base, relative to it. The distances are what was measured, rounded up to the next 1, 2 or 5: they say what a format costs on
// models of a hundred thousand parameters, which have less room for errors than large ones.
func lowBit(t testing.TB) []struct {
	run
	far map[string]float64
} {
	lora := passes.Setting{Key: "lora", Value: "*:rank=4,alpha=8"}
	return []struct {
		run
		far map[string]float64
	}{
		{run{dir: small(t, "gpt_mini"), file: "model.onnx", golden: "golden.json", plain: true, set: []passes.Setting{lora}},
			map[string]float64{"int8": 1e-4, "nf4,block=64,double=true": 1e-3, "int4,block=32": 5e-4}},
		{run{dir: small(t, "llama_mini"), file: "model.onnx", golden: "golden.json", plain: true, set: []passes.Setting{lora}},
			map[string]float64{"int8": 5e-4, "nf4,block=32": 5e-3, "int4,block=32": 5e-3}},
		{fluxPlain(t), map[string]float64{"int8": 1e-3, "nf4,block=32": 1e-2, "int4,block=32": 2e-2}},
	}
}

func fluxPlain(t testing.TB) run {
	r := fluxLoRA(t, "model.onnx")
	r.plain = true
	return r
}

// quantized is r with frozen weights in a format.
func quantized(r run, format string) run {
	r.set = append(append([]passes.Setting{}, r.set...), passes.Setting{Key: "quantize", Value: "*:" + format})
	return r
}

// Adapters train on a base in fewer bits nearly as on the float32 base, whatever the budget gives the same bits, frozen weights are never
// written back, and the plan's peak is not above the one without quantizing.
func TestLowBitBases(t *testing.T) {
	const steps = 4
	for _, m := range lowBit(t) {
		x := open(t, m.run)
		free := x.compile(t, unlimited())
		want := x.train(t, free, steps, cpu.Options{}).losses
		for _, format := range sortedKeys(m.far) {
			t.Run(fmt.Sprint(m.run, " ", format), func(t *testing.T) {
				q := open(t, quantized(m.run, format))
				p := q.compile(t, unlimited())
				r := &p.Report
				if r.PeakBytes > free.Report.PeakBytes {
					t.Errorf("the peak is %d bytes, without quantizing %d", r.PeakBytes, free.Report.PeakBytes)
				}
				if r.QuantizedWeights == 0 || r.QuantizedSavedBytes == 0 || r.QuantizedRelL2 <= 0 {
					t.Errorf("quantized %d weights, saved %d bytes, error %v", r.QuantizedWeights, r.QuantizedSavedBytes, r.QuantizedRelL2)
				}
				out := q.train(t, p, steps, cpu.Options{})
				far := 0.0
				for i := range want {
					far = max(far, math.Abs(out.losses[i]-want[i])/math.Abs(want[i]))
				}
				t.Logf("%d weights, %d bytes saved, error %.4f; losses at most %.2g from the float32 base; peak %d of %d bytes", r.QuantizedWeights, r.QuantizedSavedBytes, r.QuantizedRelL2,
					far, r.PeakBytes, free.Report.PeakBytes)
				if !(far <= m.far[format]) {
					t.Errorf("losses are up to %.3g from the float32 base, relative; stated are %.3g", far, m.far[format])
				}
				copiesLiveForOneOp(t, p)
				q.budgets(t, steps, digest(out), format)
			})
		}
	}
}

// Quantizing never raises the peak, whatever the format: fp8 on all models, with and without a budget.
func TestLowBitPeak(t *testing.T) {
	for _, m := range lowBit(t) {
		plain, q := open(t, m.run), open(t, quantized(m.run, "fp8"))
		o := unlimited()
		o.Recompute = true // for the smallest arena
		before, after := plain.compile(t, o), q.compile(t, o)
		if after.Report.PeakBytes > before.Report.PeakBytes || after.Arena(ir.Device).Bytes > before.Arena(ir.Device).Bytes {
			t.Errorf("%v: the peak is %d bytes, without quantizing %d", m.run, after.Report.PeakBytes, before.Report.PeakBytes)
		}
		if after.Report.MinimumBudgetBytes > before.Report.MinimumBudgetBytes {
			t.Errorf("%v: the smallest arena is %d bytes, without quantizing %d", m.run, after.Report.MinimumBudgetBytes, before.Report.MinimumBudgetBytes)
		}
		t.Logf("%v: peak %d of %d bytes, smallest arena %d of %d", m.run, after.Report.PeakBytes, before.Report.PeakBytes, after.Report.MinimumBudgetBytes, before.Report.MinimumBudgetBytes)
	}
}

func unlimited() passes.MemoryOptions {
	return passes.MemoryOptions{BudgetBytes: -1, HostBudgetBytes: -1}
}

// budgets trains within the smallest arena of recomputing and of swapping.
func (x *trainer) budgets(t *testing.T, steps int, want, format string) {
	for _, m := range modes() {
		if (m.name == "both") != (format == "int8") || strings.HasPrefix(format, "nf4") && m.name != "swap" || strings.HasPrefix(format, "int4") && m.name != "recompute" { // each format by other means: planning takes longer than training
			continue
		}
		o := passes.MemoryOptions{HostBudgetBytes: -1, Recompute: m.recompute, Swap: m.swap}
		o.BudgetBytes = 0
		o.BudgetBytes = x.minimum(t, o).MinimumBytes
		p := x.compile(t, o)
		if got := digest(x.delayed(t, p, steps)); got != want {
			t.Errorf("%s %d: other bits than the unlimited plan", m.name, o.BudgetBytes)
		}
		copiesLiveForOneOp(t, p)
		frozenStay(t, p)
	}
}

// frozenStay finds copies to the host of what no program changes.
func frozenStay(t *testing.T, p *plan.Plan) {
	t.Helper()
	frozen := map[string]bool{}
	for _, q := range p.Params {
		if !q.Mutable {
			frozen[q.Name] = true
		}
	}
	in := int64(0)
	for _, prog := range p.Programs {
		for pc, i := range prog.Instrs {
			c, ok := i.(*plan.Copy)
			if !ok {
				continue
			}
			s := p.Symbols[p.Buffers[c.Src.Buffer].Holds]
			if s.Program >= 0 || !frozen[s.Name] {
				continue
			}
			switch c.Kind {
			case plan.CopySwapOut:
				t.Errorf("%s pc %d writes %d bytes of frozen %q back", prog.Name, pc, s.Bytes, s.Name)
			case plan.CopySwapIn:
				in += s.Bytes
			}
		}
	}
	t.Logf("frozen weights: %d bytes come in a step, 0 go out", in)
}

// copiesLiveForOneOp holds each float copy of a quantized weight to the instruction that reads it, which is the next one on its lane that
// computes (what moves the copy about counts to the copy).
func copiesLiveForOneOp(t *testing.T, p *plan.Plan) {
	t.Helper()
	for _, prog := range p.Programs {
		reads := map[plan.BufferID][]int{}
		var made []int
		for pc, i := range prog.Instrs {
			x, ok := i.(*plan.Exec)
			if !ok {
				continue
			}
			if ir.OpName(x.Op) == "Dequantize" {
				made = append(made, pc)
			}
			for _, r := range x.In {
				reads[r.Buffer] = append(reads[r.Buffer], pc)
			}
		}
		for _, pc := range made {
			b := prog.Instrs[pc].(*plan.Exec).Out[0].Buffer
			span := plan.Span{}
			for _, s := range p.Buffers[b].Live {
				if s.Start <= int32(pc) && int32(pc) < s.End && prog.Name == p.Programs[s.Program].Name {
					span = s
				}
			}
			execs := 0
			for at := pc + 1; at < int(span.End); at++ {
				if _, ok := prog.Instrs[at].(*plan.Exec); ok {
					execs++
				}
			}
			if execs != 1 {
				t.Errorf("%s pc %d: the copy lives for %d ops more", prog.Name, pc, execs)
			}
		}
	}
}
