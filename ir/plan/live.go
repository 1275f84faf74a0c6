package plan

import (
	"cmp"
	"slices"

	"aitk/ir"
)

// LiveBytes is how many bytes of each space are live at each instruction of a program. A space that the plan has no buffers in has nil.
func LiveBytes(p *Plan, prog int32) [ir.NumSpaces][]int64 {
	var out [ir.NumSpaces][]int64
	n := len(p.Programs[prog].Instrs)
	for i := range p.Buffers {
		b := &p.Buffers[i]
		for _, s := range b.Live {
			if s.Program != prog {
				continue
			}
			d := out[b.Type.Space]
			if d == nil {
				d = make([]int64, n+1)
				out[b.Type.Space] = d
			}
			d[s.Start] += b.Bytes
			d[s.End] -= b.Bytes
		}
	}
	for s, d := range out {
		if d == nil {
			continue
		}
		for pc := 1; pc < n; pc++ {
			d[pc] += d[pc-1]
		}
		out[s] = d[:n]
	}
	return out
}

// Alive lists the buffers of a space that are live at an instruction, largest first.
func Alive(p *Plan, prog, pc int32, space ir.Space) []BufferID {
	var out []BufferID
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if b.Type.Space == space && slices.ContainsFunc(b.Live, func(s Span) bool { return s.Program == prog && s.Start <= pc && pc < s.End }) {
			out = append(out, BufferID(i))
		}
	}
	slices.SortStableFunc(out, func(a, b BufferID) int { return cmp.Compare(p.Buffers[b].Bytes, p.Buffers[a].Bytes) })
	return out
}

// Peak is the most live bytes of a space.
type Peak struct {
	Bytes   int64
	Program int32 // -1: nothing is ever live
	At      int32 // first instruction at which so much is live
}

// PeakOf finds the peak of a space over all programs, the earliest if there are several.
func PeakOf(p *Plan, space ir.Space) Peak {
	peak := Peak{Program: -1, At: -1}
	for i := range p.Programs {
		for pc, n := range LiveBytes(p, int32(i))[space] {
			if n > peak.Bytes {
				peak = Peak{n, int32(i), int32(pc)}
			}
		}
	}
	return peak
}

// PhasePeaks finds the device peak of each phase that program step has.
func PhasePeaks(p *Plan) []PhasePeak {
	step, prog := p.Program("step")
	if step == nil {
		return nil
	}
	live := LiveBytes(p, prog)[ir.Device]
	if live == nil {
		return nil
	}
	var peaks [ir.NumPhases]PhasePeak
	var seen [ir.NumPhases]bool
	for pc, phase := range PhasesOf(step) {
		if x := &peaks[phase]; !seen[phase] || live[pc] > x.PeakBytes {
			*x = PhasePeak{Name: phase.String(), PeakBytes: live[pc], At: int32(pc)}
			seen[phase] = true
		}
	}
	var out []PhasePeak
	for phase := range peaks {
		if seen[phase] {
			x := peaks[phase]
			x.Alive = Alive(p, prog, x.At, ir.Device)
			out = append(out, x)
		}
	}
	return out
}

// SavedBytes is what the device holds at the first op of the backward half beyond what persists and what the caller put there:
// the values that the forward half saved for it.
func SavedBytes(p *Plan) int64 {
	step, prog := p.Program("step")
	if step == nil {
		return 0
	}
	at := slices.IndexFunc(step.Instrs, func(i Instr) bool { x, ok := i.(*Exec); return ok && x.Phase == ir.Backward })
	if at < 0 {
		return 0
	}
	fixed := map[SymbolID]bool{}
	for i := range p.Params {
		if s := p.Params[i].Storage; s != NoBuffer {
			fixed[p.Buffers[s].Holds] = true
		}
	}
	for _, e := range slices.Concat(step.Entry, step.Exit) {
		fixed[p.Buffers[e.Buffer].Holds] = true
	}
	for _, x := range step.Inputs {
		fixed[p.Buffers[x.Ref.Buffer].Holds] = true
	}
	var n int64
	for _, b := range Alive(p, prog, int32(at), ir.Device) {
		x := &p.Buffers[b]
		defined := !slices.ContainsFunc(x.Live, func(s Span) bool { return s.Program == prog && int(s.Start) == at })
		if x.Holds != NoSymbol && !fixed[x.Holds] && defined {
			n += x.Bytes
		}
	}
	return n
}

// NaiveBytes is what program step would take of the device if no value ever took another's bytes: each value and each scratch once.
func NaiveBytes(p *Plan) int64 {
	step, prog := p.Program("step")
	if step == nil {
		return 0
	}
	counted := map[SymbolID]bool{}
	for _, e := range step.Exit { // new content takes its old place at best
		counted[p.Buffers[e.Buffer].Holds] = true
	}
	for _, e := range step.Entry {
		counted[p.Buffers[e.Buffer].Holds] = false
	}
	var n int64
	for i := range p.Buffers {
		b := &p.Buffers[i]
		if b.Type.Space != ir.Device || !slices.ContainsFunc(b.Live, func(s Span) bool { return s.Program == prog }) {
			continue
		}
		if b.Holds == NoSymbol {
			n += b.Bytes
		} else if !counted[b.Holds] {
			counted[b.Holds] = true
			n += b.Bytes
		}
	}
	return n
}

// Measure fills those figures of the plan's report that follow from the plan itself: peaks, phases, naive and saved bytes, predicted
// time, stalls, and what is moved and recomputed in program step (FLOPs aside). What the planner knows alone it leaves as it is.
func Measure(p *Plan) {
	r := &p.Report
	r.PeakBytes = PeakOf(p, ir.Device).Bytes
	r.HostPeakBytes = PeakOf(p, ir.Pinned).Bytes + PeakOf(p, ir.Pageable).Bytes
	r.NaiveBytes, r.SavedBytes, r.Phases = NaiveBytes(p), SavedBytes(p), PhasePeaks(p)
	r.RecomputedNodes, r.RecomputedPicos, r.SwapOutBytes, r.SwapInBytes, r.StepPicos, r.StallPicos = 0, 0, 0, 0, 0, 0
	step, prog := p.Program("step")
	if step == nil {
		return
	}
	run := Timeline(p, prog)
	r.StepPicos, r.StallPicos = run.Picos, run.Stall[Compute]
	for _, i := range step.Instrs {
		switch x := i.(type) {
		case *Exec:
			if x.Recompute {
				r.RecomputedNodes++
				r.RecomputedPicos += x.Picos
			}
		case *Copy:
			switch x.Kind {
			case CopySwapOut:
				r.SwapOutBytes += x.Src.Type.Bytes()
			case CopySwapIn:
				r.SwapInBytes += x.Dst.Type.Bytes()
			}
		}
	}
}
