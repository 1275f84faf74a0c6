package plan

import (
	"aitk/ir"
)

// Run is one run of a program as the event simulator sees it. All times are picoseconds; a plan has one Run, on every machine.
type Run struct {
	Start, End []int64 // by instruction, after the run's start
	Picos      int64   // a run takes this long; for a repeating program the distance of one run's end from the next one's
	Busy       [NumLanes]int64
	Stall      [NumLanes]int64 // time that a lane stands in Waits
}

// Timeline simulates a program: lanes run side by side, instructions of a lane one after the other, a Wait until its instruction has
// ended. A repeating program runs twice without a pause and the second run is returned, so that Waits with Back 1 count; then Start may
// lie before the end of the run before. Copies and ops take the time that they carry whatever else runs: a bus that both copy lanes
// share is the business of whoever predicted Picos.
func Timeline(p *Plan, prog int32) *Run {
	pr := &p.Programs[prog]
	n := len(pr.Instrs)
	runs := 1
	if pr.Repeat {
		runs = 2
	}
	var now [NumLanes]int64
	var before []int64 // ends of the run before
	var offset int64   // end of the run before
	r := &Run{}
	for run := range runs {
		*r = Run{Start: make([]int64, n), End: make([]int64, n)}
		for pc, i := range pr.Instrs {
			lane := LaneOf(i)
			r.Start[pc] = now[lane]
			switch x := i.(type) {
			case *Exec:
				now[lane] += x.Picos
				r.Busy[lane] += x.Picos
			case *Copy:
				now[lane] += x.Picos
				r.Busy[lane] += x.Picos
			case *Wait:
				until := int64(0)
				if x.Back == 0 {
					until = r.End[x.On]
				} else if before != nil {
					until = before[x.On]
				}
				if until > now[lane] {
					r.Stall[lane] += until - now[lane]
					now[lane] = until
				}
			}
			r.End[pc] = now[lane]
		}
		end := int64(0)
		for _, t := range now {
			end = max(end, t)
		}
		r.Picos = end - offset
		if run == 0 && runs > 1 {
			before, offset = r.End, end
		}
	}
	origin := offset
	for _, t := range r.Start {
		origin = min(origin, t)
	}
	for pc := range r.Start {
		r.Start[pc] -= origin
		r.End[pc] -= origin
	}
	return r
}

// PhasesOf gives each instruction of a program the phase to which it belongs: an op its own; a copy or wait that of the op before it.
func PhasesOf(pr *Program) []ir.Phase {
	out := make([]ir.Phase, len(pr.Instrs))
	phase := ir.Forward
	for pc, i := range pr.Instrs {
		if x, ok := i.(*Exec); ok {
			phase = x.Phase
		}
		out[pc] = phase
	}
	return out
}
