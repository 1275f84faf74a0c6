package plan_test

import (
	"slices"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
)

// instrs builds a program of instructions without operands: "c5" an op of 5 ps, "d3" "h3" copies out and in, "wcd2" compute (c) waits for
// instruction 2; a trailing "-" means of the run before.
func instrs(list ...string) []plan.Instr {
	lane := map[byte]plan.Lane{'c': plan.Compute, 'd': plan.D2H, 'h': plan.H2D}
	var out []plan.Instr
	for _, s := range list {
		switch s[0] {
		case 'c':
			out = append(out, &plan.Exec{Picos: int64(s[1] - '0'), Scratch: plan.NoBuffer})
		case 'd', 'h':
			out = append(out, &plan.Copy{Lane: lane[s[0]], Picos: int64(s[1] - '0')})
		case 'w':
			w := &plan.Wait{Lane: lane[s[1]], On: int32(s[2] - '0')}
			if len(s) > 3 {
				w.Back = 1
			}
			out = append(out, w)
		}
	}
	return out
}

func TestTimeline(t *testing.T) {
	for _, c := range []struct {
		name   string
		instrs []plan.Instr
		repeat bool
		start  []int64
		picos  int64
		stall  int64 // of compute
	}{
		{"one lane", instrs("c3", "c4"), false, []int64{0, 3}, 7, 0},
		{"lanes overlap", instrs("c3", "h9", "c4"), false, []int64{0, 0, 3}, 9, 0},
		{"wait for a copy", instrs("h9", "c3", "wc0", "c4"), false, []int64{0, 0, 3, 9}, 13, 6},
		{"wait without cost", instrs("h2", "c3", "wc0", "c4"), false, []int64{0, 0, 3, 3}, 7, 0},
		{"out and in", instrs("c3", "wd0", "d5", "wh2", "h5", "c1", "wc4", "c1"), false, []int64{0, 0, 3, 0, 8, 3, 4, 13}, 14, 9},
		{"runs overlap", instrs("h4", "wc0", "c6"), true, []int64{0, 6, 6}, 6, 0}, // the copy runs beside the op of the run before, 6 ps early
		{"the run before holds up", instrs("wh2-", "h4", "c6", "wc1"), true, []int64{0, 2, 2, 8}, 6, 0},
		{"in the steady state", instrs("wc1-", "d4", "c1", "wd2"), true, []int64{0, 3, 3, 7}, 4, 3},
	} {
		p := &plan.Plan{Programs: []plan.Program{{Name: "step", Instrs: c.instrs, Repeat: c.repeat}}}
		r := plan.Timeline(p, 0)
		if !slices.Equal(r.Start, c.start) || r.Picos != c.picos || r.Stall[plan.Compute] != c.stall {
			t.Errorf("%s: starts %v, %d ps, stall %d; want %v, %d, %d", c.name, r.Start, r.Picos, r.Stall[plan.Compute], c.start, c.picos, c.stall)
		}
	}
}

func TestLiveBytes(t *testing.T) {
	p := chainPlan(12, "")
	for prog := range p.Programs {
		live := plan.LiveBytes(p, int32(prog))
		for _, space := range []ir.Space{ir.Device, ir.Pinned} {
			for pc := range p.Programs[prog].Instrs {
				var sum int64
				alive := plan.Alive(p, int32(prog), int32(pc), space)
				for _, b := range alive {
					sum += p.Buffers[b].Bytes
				}
				if live[space] == nil && sum == 0 {
					continue
				}
				if live[space][pc] != sum {
					t.Fatalf("program %d pc %d: %d live bytes, %d in the list", prog, pc, live[space][pc], sum)
				}
			}
		}
	}
}

func TestMeasure(t *testing.T) {
	p := chainPlan(3, "")
	p.Report = plan.Report{BoundBytes: 5}
	plan.Measure(p)
	r := p.Report
	// w0 w1 w2 and x; a0 a1 a2, of which a2 alone is no operand of the backward half but its gradient's start; nothing is swapped.
	// At the first backward op (a1 anew: pc 4) a0 lives for the recompute and a2 as the gradient.
	if r.SavedBytes != 2*4096 {
		t.Errorf("saved bytes %d", r.SavedBytes)
	}
	if r.RecomputedNodes != 1 || r.RecomputedPicos != 2_000_000 || r.SwapOutBytes != 0 || r.BoundBytes != 5 {
		t.Errorf("report %+v", r)
	}
	if want := int64(len(p.Programs[1].Instrs)) * 2_000_000; r.StepPicos != want || r.StallPicos != 0 {
		t.Errorf("step takes %d ps and stalls for %d, want %d and 0", r.StepPicos, r.StallPicos, want)
	}
	if r.NaiveBytes != 4096*int64(3+1+3+3+3) { // w, x, a, gw, g
		t.Errorf("naive bytes %d", r.NaiveBytes)
	}
	for _, x := range r.Phases {
		if live := plan.LiveBytes(p, 1)[ir.Device][x.At]; live != x.PeakBytes || x.PeakBytes > r.PeakBytes {
			t.Errorf("phase %s: peak %d, %d are live at pc %d", x.Name, x.PeakBytes, live, x.At)
		}
	}
	if len(r.Phases) != 3 {
		t.Errorf("%d phases", len(r.Phases))
	}
	q := chainPlan(12, "")
	plan.Measure(q)
	if q.Report.SwapOutBytes != 3*4096 || q.Report.SwapInBytes != q.Report.SwapOutBytes || q.Report.HostPeakBytes != 3*4096 {
		t.Errorf("report %+v", q.Report)
	}
	plan.Measure(&plan.Plan{})
}
