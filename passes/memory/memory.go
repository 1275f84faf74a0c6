// Package memory decides, for every idle gap of every stored value of one training step, whether it is kept, recomputed or swapped
// out and back in, so that the live bytes stay within a budget at the least predicted time. It is a pure solver over intervals: it
// knows neither graph nor plan, and all its arithmetic is on integers (bytes, picoseconds).
//
// The problem is a fixed order of ops over storages ("values": alias classes of the graph's values). Stage t of the step ends with
// op t. A plan adds *recomputes* (op j runs again inside stage t > j, before op t; the recomputes of a stage run in op order) and
// *swaps*. Every set of recomputes is dependency-valid, because all ancestors of j were computed before stage t; a use is served by the
// latest run of the value's op at or before it, and each run lives until the last use that it serves.
package memory

// Problem is one program's order, storages and device. Slices are indexed by position; nothing is changed by the solver.
type Problem struct {
	Ops         []Op
	Values      []Value
	BudgetBytes int64  // of live device bytes; < 0: no limit
	Recompute   bool   // recomputes allowed
	Lanes       *Lanes // nil: no swapping
}

// Op is one step of the order.
type Op struct {
	Picos        int64
	ScratchBytes int64   // live at this op only
	In           []int32 // values read, without duplicates
	Out          []int32 // values defined; they live from here
	Over         []Over  // outputs that may take an operand's bytes where the operand dies here
	Once         bool    // stateful: must not run again
	LastRerun    int32   // a recompute of this op is legal only in stages <= LastRerun (the update of a parameter that it reads); len(Ops) if there is no limit
}

// Over says that output Out may be written over operand In (same bytes) if In has no later use.
type Over struct{ Out, In int32 }

// Value is a storage.
type Value struct {
	Bytes      int64
	Def        int32 // the op that defines it; -1: it is there when the step starts
	Persistent bool  // Def -1 and there again when the step ends (or its successor Becomes is): lives all round the cycle
	Becomes    int32 // persistent: value that holds the new content at the end and must take the same place; -1: unchanged
	Exit       bool  // must be alive when the step ends (results, new contents)
	NoSwap     bool  // never swapped (tiny, or not addressable by the host)
	HostHome   bool  // persistent: lies in the host arena between steps, decided elsewhere (other programs of the plan)
	HomeFixed  bool  // persistent: HostHome is not for the solver to choose
}

// Lanes describes copying. Rates are bytes per second.
type Lanes struct {
	D2HBytesPerSec, H2DBytesPerSec int64
	LatencyPicos                   int64
	DuplexPermille                 int64 // rate of each lane while both are busy, of 1000
	HostBudgetBytes                int64 // < 0: no limit
}

// Recompute runs op Op again in stage Stage, that is just before op Stage.
type Recompute struct{ Stage, Op int32 }

// Swap takes a value off the device for one gap.
//
// Copies are issued in the order of the list positions: out after op After has run (its last use before the gap), in before op Before
// runs. The device bytes are free from before op Free (the compute lane waits there for the copy out) to before op Before. Write is false where
// the host holds the content already. For a persistent value whose home is the host the gap that crosses the end of the step has After = its last use and
// Before = its first use of the next step; Wraps is true.
type Swap struct {
	Value               int32
	After, Free, Before int32
	Use                 int32 // the op that first uses it again: compute waits for the copy in here
	Write               bool
	Wraps               bool
}

// Solution is a plan for a Problem, with what the search believes of it. Simulate is the truth.
type Solution struct {
	Recomputes    []Recompute // sorted by stage, then op; a later recompute of one op replaces the earlier run
	Swaps         []Swap      // sorted by After, Value
	HostHome      []bool      // by value: persistent values that live on the host between steps
	PeakBytes     int64       // live device bytes
	HostPeakBytes int64
	StepPicos     int64 // compute + stalls by the lane simulation
	Bound         Bound
}

// Bound is what no plan of this order can beat.
type Bound struct {
	PeakBytes     int64  // of any plan, at any cost (op-degree: operands, outputs and scratch of one op)
	OverheadPicos int64  // of any plan within the budget (interval flow)
	Name          string // of the bound that gave OverheadPicos
}

// Options steers the search; the zero value is the default. The same options give the same plan: effort counts moves, never time.
type Options struct {
	Moves int64 // search moves; 0: a default by problem size
	Seed  uint64
}
