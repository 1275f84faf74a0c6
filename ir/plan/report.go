package plan

import "fmt"

// Report holds the figures of a plan as the planner and the event simulator found them; views show it, nothing runs by it.
type Report struct {
	Fits                bool
	BudgetBytes         int64 // device budget; -1: none
	PeakBytes           int64 // most live device bytes at one instruction, all programs
	HostPeakBytes       int64
	BoundBytes          int64 // certified lower bound of the device peak at any cost
	NaiveBytes          int64 // every buffer of its own
	SavedBytes          int64 // alive between forward and backward, without parameters, optimizer state and inputs
	MinimumBudgetBytes  int64 // smallest arena that the planner can do
	UnlimitedArenaBytes int64
	StepPicos           int64 // predicted, event simulator
	UnlimitedStepPicos  int64
	OverheadBoundPPM    int64 // certified lower bound of the overhead, parts per million
	RecomputedNodes     int64
	RecomputedFLOPs     int64
	RecomputedPicos     int64
	TotalFLOPs          int64
	SwapOutBytes        int64
	SwapInBytes         int64
	StallPicos          int64
	QuantizedWeights    int64 // parameters stored in fewer bits than the model file has
	QuantizedSavedBytes int64
	BindingAt           int64 // instruction of program step at which device bytes are dearest within the budget; only where BindingPicosPerGiB > 0
	BindingPicosPerGiB  int64 // price there in time per GiB, by the linear bound; 0: the budget does not bind
	BudgetPicosPerGiB   int64 // the same of a GiB more or less everywhere
	Phases              []PhasePeak
	Decisions           []Decision
	Quantized           []Quantized // in the model's order
	QuantizedRelL2      float64     // L2 of all errors over L2 of all quantized weights; NotMeasured if that is not known
	Advice              []Advice    // where nothing fits; no file holds such a plan
}

// Advice is something that the planner has tried because nothing fits the budget: flags beside those that were given, and what the smallest plan then takes.
type Advice struct {
	Flags        string `json:"flags"`
	Fits         bool   `json:"fits"`
	MinimumBytes int64  `json:"minimum_budget_bytes"` // of the device
	HostBytes    int64  `json:"host_bytes"`           // of the host, for swapping
	Note         string `json:"note,omitempty"`       // what it changes besides
}

func (a Advice) String() string {
	s := a.Flags + ": does not fit, but "
	if a.Fits {
		s = a.Flags + ": fits, "
	}
	s += fmt.Sprintf("the smallest arena is %d bytes", a.MinimumBytes)
	if a.HostBytes > 0 {
		s += fmt.Sprintf(" with %d bytes of the host", a.HostBytes)
	}
	if a.Note != "" {
		s += " (" + a.Note + ")"
	}
	return s
}

// PhasePeak is the device peak within a phase of the step program.
type PhasePeak struct {
	Name      string
	PeakBytes int64
	At        int32      // instruction of program step
	Alive     []BufferID // largest first
}

// Decision says what became of a content that program step reads or makes, and why.
type Decision struct {
	Symbol SymbolID
	What   string // kept | recomputed | swapped
	At     int32  // instruction of the recompute or of the swap-in; -1
	Why    string
}

// Quantized says what became of a weight that the user asked to store in fewer bits. An error is NotMeasured where the weight's content was not
// there when the plan was made.
type Quantized struct {
	Name       string
	Format     string  // int8, fp8, int4/64, nf4/64+double; "" where it was skipped
	Bytes      int64   // codes and scales
	WasBytes   int64   // in the model's file
	RelL2      float64 // L2 of the error over L2 of the weight
	WorstBlock float64 // the same of the worst group of elements that share a scale
	Skipped    string  // why it keeps its format; "" where it was quantized
}

// NotMeasured is an error that is not known.
const NotMeasured = -1

// Category totals and the like are worked out by the views.

// Overhead is StepPicos over UnlimitedStepPicos less one.
func (r *Report) Overhead() float64 {
	if r.UnlimitedStepPicos == 0 {
		return 0
	}
	return float64(r.StepPicos)/float64(r.UnlimitedStepPicos) - 1
}
