package plan

import (
	"encoding/json"
	"io"

	"aitk/ir"
)

// The document "aitk.plan/1". Fields are added freely and none is changed silently: scripts read it. Bytes and picoseconds are exact
// integers, seconds are rounded floats, ratios are of 1.
type document struct {
	Schema           string             `json:"schema"`
	Tool             string             `json:"tool"`
	Model            string             `json:"model"`
	Graph            string             `json:"graph_sha256"`
	Device           string             `json:"device"`
	Profile          string             `json:"profile"`
	ProfileSHA256    string             `json:"profile_sha256"`
	Options          map[string]string  `json:"options"`
	Dims             map[string]int64   `json:"dims"`
	Fits             bool               `json:"fits"`
	Budget           *int64             `json:"budget_bytes"` // null: no limit
	Arena            map[string]int64   `json:"arena_bytes"`
	Peak             map[string]int64   `json:"peak_bytes"`
	Bound            int64              `json:"bound_bytes"`
	Naive            int64              `json:"naive_bytes"`
	Saved            int64              `json:"saved_bytes"`
	MinimumBudget    int64              `json:"minimum_budget_bytes"`
	UnlimitedArena   int64              `json:"unlimited_arena_bytes"`
	StepSeconds      float64            `json:"step_seconds"`
	UnlimitedSeconds float64            `json:"unlimited_step_seconds"`
	Overhead         float64            `json:"overhead"`
	OverheadBound    float64            `json:"overhead_bound"`
	Recomputed       jsonRecomputed     `json:"recomputed"`
	Swapped          jsonSwapped        `json:"swapped"`
	Quantized        jsonQuantized      `json:"quantized"`
	Fragmentation    float64            `json:"fragmentation"` // share of the device arena that is free at the peak
	FragmentationBy  map[string]float64 `json:"fragmentation_by_space"`
	Phases           []jsonPhase        `json:"phases"`
	Advice           []Advice           `json:"advice,omitempty"` // where nothing fits: what was tried and helps
	Decisions        []jsonDecision     `json:"decisions"`
	Binding          *jsonBinding       `json:"binding"` // null: the budget does not bind
	Buffers          []jsonBuffer       `json:"buffers"`
	Parameters       []jsonParam        `json:"parameters"`
	Programs         []jsonProgram      `json:"programs"`
}

type jsonRecomputed struct {
	Nodes   int64   `json:"nodes"`
	FLOPs   int64   `json:"flops"`
	Seconds float64 `json:"seconds"`
}

type jsonSwapped struct {
	Out   int64   `json:"out_bytes"`
	In    int64   `json:"in_bytes"`
	Stall float64 `json:"stall_seconds"`
}

type jsonPhase struct {
	Name  string      `json:"name"`
	Peak  int64       `json:"peak_bytes"`
	At    int32       `json:"at"` // instruction of program step
	Alive []jsonAlive `json:"alive"`
}

type jsonAlive struct {
	Buffer   BufferID `json:"buffer"`
	Name     string   `json:"name"`
	Bytes    int64    `json:"bytes"`
	Category string   `json:"category"`
}

type jsonBuffer struct {
	ID       BufferID   `json:"id"`
	Name     string     `json:"name"`
	Holds    string     `json:"holds"`
	DType    string     `json:"dtype"`
	Shape    []int64    `json:"shape"`
	Space    string     `json:"space"`
	Offset   int64      `json:"offset"`
	Bytes    int64      `json:"bytes"`
	Category string     `json:"category"`
	Live     []jsonSpan `json:"live"`
}

type jsonSpan struct {
	Program string `json:"program"`
	Start   int32  `json:"start"`
	End     int32  `json:"end"`
}

type jsonParam struct {
	Name      string   `json:"name"`
	DType     string   `json:"dtype"`
	Shape     []int64  `json:"shape"`
	Role      string   `json:"role"`
	Trainable bool     `json:"trainable"`
	Constant  bool     `json:"constant"`
	Aliases   []string `json:"aliases"`
}

type jsonProgram struct {
	Name         string      `json:"name"`
	Repeat       bool        `json:"repeat"`
	Seconds      float64     `json:"seconds"`
	Inputs       []jsonPort  `json:"inputs"`
	Results      []jsonPort  `json:"results"`
	Entry        []jsonLies  `json:"entry"`
	Exit         []jsonLies  `json:"exit"`
	Instructions []jsonInstr `json:"instructions"`
}

type jsonPort struct {
	Name string `json:"name"`
	jsonRef
}

type jsonLies struct {
	Parameter string   `json:"parameter"`
	Buffer    BufferID `json:"buffer"`
}

type jsonRef struct {
	Buffer BufferID `json:"buffer"`
	Offset int64    `json:"offset"` // within the buffer
	Bytes  int64    `json:"bytes"`
	DType  string   `json:"dtype"`
	Shape  []int64  `json:"shape"`
}

type jsonInstr struct {
	PC        int32            `json:"pc"`
	Kind      string           `json:"kind"` // exec, wait, swap-out, swap-in, load, save
	Lane      string           `json:"lane"`
	Op        string           `json:"op,omitempty"`
	Phase     string           `json:"phase,omitempty"`
	Recompute bool             `json:"recompute,omitempty"`
	Reads     []jsonRef        `json:"reads,omitempty"`
	Writes    []jsonRef        `json:"writes,omitempty"`
	Scratch   *BufferID        `json:"scratch,omitempty"`
	On        *int32           `json:"on,omitempty"`
	Back      int32            `json:"back,omitempty"`
	Start     int64            `json:"start_picos"`
	End       int64            `json:"end_picos"`
	Live      map[string]int64 `json:"live_bytes,omitempty"`
	From      string           `json:"from,omitempty"`
}

// WriteJSON writes the document of "plan --json".
func WriteJSON(w io.Writer, p *Plan) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(describe(p))
}

func seconds(picos int64) float64 { return float64(picos) / 1e12 }

func describe(p *Plan) *document {
	r := &p.Report
	d := &document{
		Schema: "aitk.plan/1", Tool: p.Tool, Model: p.Model, Graph: p.GraphSum,
		Device: p.Profile.Device, Profile: p.Profile.Name, ProfileSHA256: p.Profile.SHA256,
		Options: map[string]string{}, Dims: map[string]int64{}, Fits: r.Fits,
		Arena: map[string]int64{}, Peak: map[string]int64{}, FragmentationBy: map[string]float64{},
		Bound: r.BoundBytes, Naive: r.NaiveBytes, Saved: r.SavedBytes, MinimumBudget: r.MinimumBudgetBytes, UnlimitedArena: r.UnlimitedArenaBytes,
		StepSeconds: seconds(r.StepPicos), UnlimitedSeconds: seconds(r.UnlimitedStepPicos),
		Overhead: r.Overhead(), OverheadBound: float64(r.OverheadBoundPPM) / 1e6,
		Recomputed: jsonRecomputed{r.RecomputedNodes, r.RecomputedFLOPs, seconds(r.RecomputedPicos)},
		Swapped:    jsonSwapped{r.SwapOutBytes, r.SwapInBytes, seconds(r.StallPicos)},
		Quantized:  quantizedOf(r),
		Advice:     r.Advice,
		Phases:     []jsonPhase{}, Buffers: []jsonBuffer{}, Parameters: []jsonParam{}, Programs: []jsonProgram{},
	}
	if r.BudgetBytes >= 0 {
		d.Budget = &r.BudgetBytes
	}
	for _, o := range p.Options {
		d.Options[o.Key] = o.Value
	}
	for _, x := range p.Dims {
		d.Dims[x.Name] = x.Size
	}
	for _, a := range p.Arenas {
		name, peak := a.Space.String(), PeakOf(p, a.Space).Bytes
		d.Arena[name], d.Peak[name] = a.Bytes, peak
		d.FragmentationBy[name] = ratio(a.Bytes-peak, a.Bytes)
	}
	d.Fragmentation = d.FragmentationBy[ir.Device.String()]
	for _, x := range r.Phases {
		y := jsonPhase{Name: x.Name, Peak: x.PeakBytes, At: x.At, Alive: []jsonAlive{}}
		for _, b := range x.Alive {
			y.Alive = append(y.Alive, jsonAlive{b, p.Buffers[b].Name, p.Buffers[b].Bytes, p.Buffers[b].Category.String()})
		}
		d.Phases = append(d.Phases, y)
	}
	d.Decisions, d.Binding = p.jsonDecisions(), p.bindingOf()
	for i := range p.Buffers {
		b := &p.Buffers[i]
		y := jsonBuffer{BufferID(i), b.Name, p.symbolName(b.Holds), b.Type.DType.String(), shapeOf(b.Type), b.Type.Space.String(), b.Offset, b.Bytes, b.Category.String(), []jsonSpan{}}
		for _, s := range b.Live {
			y.Live = append(y.Live, jsonSpan{p.Programs[s.Program].Name, s.Start, s.End})
		}
		d.Buffers = append(d.Buffers, y)
	}
	for i := range p.Params {
		x := &p.Params[i]
		d.Parameters = append(d.Parameters, jsonParam{x.Name, x.Type.DType.String(), shapeOf(x.Type), x.Role.String(), x.Trainable, x.Constant, append([]string{}, x.Aliases...)})
	}
	for i := range p.Programs {
		d.Programs = append(d.Programs, p.describeProgram(int32(i)))
	}
	return d
}

func ratio(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

func shapeOf(t ir.Type) []int64 { return append([]int64{}, t.Shape...) }

func (p *Plan) describeProgram(prog int32) jsonProgram {
	pr := &p.Programs[prog]
	run, live := Timeline(p, prog), LiveBytes(p, prog)
	out := jsonProgram{Name: pr.Name, Repeat: pr.Repeat, Seconds: seconds(run.Picos), Inputs: p.ports(pr.Inputs), Results: p.ports(pr.Results),
		Entry: p.lies(pr.Entry), Exit: p.lies(pr.Exit), Instructions: []jsonInstr{}}
	for pc, i := range pr.Instrs {
		y := jsonInstr{PC: int32(pc), Lane: LaneOf(i).String(), Start: run.Start[pc], End: run.End[pc], Live: map[string]int64{}}
		for s, list := range live {
			if list != nil {
				y.Live[ir.Space(s).String()] = list[pc]
			}
		}
		switch x := i.(type) {
		case *Exec:
			y.Kind, y.Op, y.Phase, y.Recompute, y.From = "exec", ir.FormatOp(x.Op), x.Phase.String(), x.Recompute, from(x.Origin)
			for _, r := range x.In {
				y.Reads = append(y.Reads, reference(r))
			}
			for _, r := range x.Out {
				y.Writes = append(y.Writes, reference(r))
			}
			if x.Scratch != NoBuffer {
				y.Scratch = &x.Scratch
			}
		case *Copy:
			y.Kind, y.Reads, y.Writes = x.Kind.String(), []jsonRef{reference(x.Src)}, []jsonRef{reference(x.Dst)}
		case *Wait:
			y.Kind, y.On, y.Back = "wait", &x.On, x.Back
		}
		out.Instructions = append(out.Instructions, y)
	}
	return out
}

func reference(r Ref) jsonRef {
	return jsonRef{r.Buffer, r.Offset, r.Type.Bytes(), r.Type.DType.String(), shapeOf(r.Type)}
}

func (p *Plan) ports(list []Port) []jsonPort {
	out := []jsonPort{}
	for _, x := range list {
		out = append(out, jsonPort{x.Name, reference(x.Ref)})
	}
	return out
}

func (p *Plan) lies(list []Residency) []jsonLies {
	out := []jsonLies{}
	for _, x := range list {
		out = append(out, jsonLies{p.Params[x.Param].Name, x.Buffer})
	}
	return out
}
