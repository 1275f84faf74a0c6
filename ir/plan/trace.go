package plan

import (
	"bufio"
	"encoding/json"
	"io"

	"aitk/ir"
)

// traceEvent is an event of the Trace Event Format, which chrome://tracing and Perfetto read. Times are microseconds.
type traceEvent struct {
	Name  string         `json:"name"`
	Cat   string         `json:"cat,omitempty"`
	Phase string         `json:"ph"`
	Time  float64        `json:"ts"`
	Dur   *float64       `json:"dur,omitempty"`
	PID   int            `json:"pid"`
	TID   int            `json:"tid"`
	Args  map[string]any `json:"args,omitempty"`
}

// WriteTrace writes the predicted timeline in the Trace Event Format: a process for each program, a thread for each lane, the waits that held a lane back, and
// counters of live bytes by space. Times are those of the event simulator (Timeline), of a run between two others where the program repeats.
func WriteTrace(w io.Writer, p *Plan) error {
	out := bufio.NewWriter(w)
	first := true
	if _, err := out.WriteString(`{"displayTimeUnit":"ms","traceEvents":[`); err != nil {
		return err
	}
	emit := func(e traceEvent) error {
		if !first {
			if err := out.WriteByte(','); err != nil {
				return err
			}
		}
		first = false
		raw, err := json.Marshal(e)
		if err != nil {
			return err
		}
		if err := out.WriteByte('\n'); err != nil {
			return err
		}
		_, err = out.Write(raw)
		return err
	}
	for i := range p.Programs {
		if err := p.traceProgram(int32(i), emit); err != nil {
			return err
		}
	}
	if _, err := out.WriteString("\n]}\n"); err != nil {
		return err
	}
	return out.Flush()
}

func (p *Plan) traceProgram(prog int32, emit func(traceEvent) error) error {
	pr := &p.Programs[prog]
	pid := int(prog) + 1
	events := []traceEvent{{Name: "process_name", Phase: "M", PID: pid, Args: map[string]any{"name": "program " + plain(pr.Name)}}}
	used := [NumLanes]bool{}
	for _, i := range pr.Instrs {
		used[LaneOf(i)] = true
	}
	for l, on := range used {
		if on {
			events = append(events, traceEvent{Name: "thread_name", Phase: "M", PID: pid, TID: l, Args: map[string]any{"name": Lane(l).String()}})
		}
	}
	run, live := Timeline(p, prog), LiveBytes(p, prog)
	micros := func(picos int64) float64 { return float64(picos) / 1e6 }
	var before [ir.NumSpaces]int64
	for pc, i := range pr.Instrs {
		dur := micros(run.End[pc] - run.Start[pc])
		e := traceEvent{Phase: "X", Time: micros(run.Start[pc]), Dur: &dur, PID: pid, TID: int(LaneOf(i)), Args: map[string]any{"pc": pc}}
		switch x := i.(type) {
		case *Exec:
			e.Name, e.Cat = ir.OpName(x.Op), x.Phase.String()
			e.Args["from"] = plain(from(x.Origin))
			if x.Recompute {
				e.Cat += ",recompute"
			}
		case *Copy:
			e.Name, e.Cat = x.Kind.String(), "copy"
			e.Args["value"], e.Args["bytes"] = plain(p.symbolName(p.Buffers[x.Src.Buffer].Holds)), x.Src.Type.Bytes()
		case *Wait:
			if dur == 0 {
				continue
			}
			e.Name, e.Cat = "wait", "stall"
			e.Args["on"], e.Args["back"] = x.On, x.Back
		}
		events = append(events, e)
		for s, list := range live {
			if list != nil && (pc == 0 || list[pc] != before[s]) {
				before[s] = list[pc]
				events = append(events, traceEvent{Name: ir.Space(s).String() + " bytes", Phase: "C", Time: e.Time, PID: pid, Args: map[string]any{"live": list[pc]}})
			}
		}
	}
	for _, e := range events {
		if err := emit(e); err != nil {
			return err
		}
	}
	return nil
}
