// Package memory decides, for every idle gap of every stored value of one training step, whether it is kept, recomputed or swapped
// out and back in, so that the live bytes stay within a budget at the least predicted time. It is a pure solver over intervals: it
// knows neither graph nor plan, and all its arithmetic is on integers (bytes, picoseconds).
//
// The problem is a fixed order of ops over storages ("values": alias classes of the graph's values). Stage t of the step ends with
// op t. A plan adds *recomputes* (op j runs again inside stage t > j, before op t; the recomputes of a stage run in op order) and
// *swaps*. Every set of recomputes is dependency-valid, because all ancestors of j were computed before stage t; a use is served by the
// latest run of the value's op at or before it, and each run lives until the last use that it serves.
//
// Persistent values (weights, moments, statistics) have a cyclic life: they lie in one place all round the step, on the device or, if their home is the
// host, in the host arena. A persistent value that Becomes another is overwritten in that place by the op that defines the other; where the op reads the old
// content and cannot write over it, or the old content is read later, both have bytes until the end of the step, and who carries the plan
// out has to copy (package passes states no such problem: it copies first).
//
// # Use
//
//	sol, err := memory.Solve(&p, memory.Options{}) // the plan for p.BudgetBytes, or an *InfeasibleError that names the minimum
//	least, err := memory.Minimum(&p)               // the smallest peak at any cost in time; Solve succeeds from there on
//	all, err := memory.Unlimited(&p)               // no recompute, no swap
//	bound := memory.Bounds(&p)                     // what no plan of this order can beat
//	r, err := memory.Simulate(&p, sol)             // what a plan really does
//	free, err := memory.SolveFree(&p, memory.Options{})      // the order is chosen, too
//	points, err := memory.Sweep(&p, budgets, memory.Options{}) // plans for many budgets, never slower with more
//	why, err := memory.Explain(&p, sol)            // prices of bytes, and why each value is kept, recomputed or swapped
//
// # Code map
//
//	memory.go validate.go           the problem, the plan, and what is malformed
//	simulate.go simswap.go bus.go   the simulator: the truth about a plan; shares nothing with the search
//	model.go state.go tree.go       the plan under search: reruns by stage, exact incremental peak
//	swap.go lanes.go snapshot.go    swaps in it: gaps, placing on the lanes, the search's clock
//	candidate.go greedy.go greedyswap.go drop.go   the seed: least cost per byte at the peak; taking back what proved unnecessary
//	sequence.go slots.go walker.go freewalk.go     the plan as a line of events, and annealing on it, in the given order or in orders of its own
//	anneal.go rebuild.go random.go  improvement: annealing with swaps, destroy and repair
//	free.go sweep.go explain.go     orders to choose from, many budgets in one run, reasons
//	laneseed.go                     seeds of plans with swaps: lanes at a price, copies placed once per plan
//	minimum.go exact.go solve.go    the peak-minimiser, exact on small problems; the order of events of Solve
//	gaps.go bounds.go copied.go flow.go covering.go  certified bounds: op degree, interval flow, the same with lanes, interval cover
//	deadinput.go deadnet.go cut.go  the bound that knows that reruns need operands: a minimum cut at subgradient prices
//
// # Invariants
//
//   - The state's device and host peak are exactly the simulator's after every move; its clock is never ahead of the simulator's.
//   - Whether Solve succeeds depends on the budget through Minimum alone, and Minimum does not depend on the budget.
//   - The same problem and options give the same plan: effort is counted in moves, no map is walked, no clock is read.
//   - A bound is evaluated in exact arithmetic from prices and flows that may be any; nothing that only affects their quality can make it wrong.
//
// # Why so
//
// Why stages and not a free sequence: every set of reruns is legal, so a move needs no repair and its inverse undoes it, and only lives that begin or end in a
// stage need to be looked at event by event. Why copies are placed anew at every change of the swaps and not kept in capacity trees: a lane is first in, first
// out, so one more copy moves those behind it; a capacity that is free is no use if the queue in front of it is not. Why the larger budget may still be the slower one: separate
// solves share seeds, not their luck. Where a sweep must be monotone, keep the plan of every smaller budget as a candidate.
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
	Over         []Over  // outputs that may take an operand's bytes where the operand dies here, tried in this order
	Once         bool    // stateful: must not run again
	LastRerun    int32   // a recompute of this op is legal only in stages <= LastRerun (the update of a parameter that it reads); len(Ops) if there is no limit
}

// Over says that output Out may be written over operand In: Out takes In's bytes if no later event reads this content of In, it is not the
// content that an Exit leaves behind, Out is not larger, and neither is part of an earlier pair taken at the op. A persistent In is only ever
// overwritten by its Becomes, which comes before all other pairs.
type Over struct{ Out, In int32 }

// Value is a storage. A value with Def -1 that is not Persistent is an input of the run: on the device when the step starts, free
// after its last use (one that nothing reads takes no bytes), never recomputed. A value that nothing reads lives at its own op only.
type Value struct {
	Bytes      int64
	Def        int32 // the op that defines it; -1: it is there when the step starts
	Persistent bool  // Def -1 and there again when the step ends (or its successor Becomes is): lives all round the cycle
	Becomes    int32 // persistent: value that holds the new content at the end and must take the same place; -1: unchanged
	Changes    bool  // persistent with Becomes -1: another program replaces its content, so that no copy on the host stays true from step to step
	Exit       bool  // must be alive when the step ends (results, new contents)
	NoSwap     bool  // never swapped (tiny, or not addressable by the host)
	OnHost     bool  // input: the host holds the content anyway, so that swapping it needs no copy out
	HostHome   bool  // persistent, read only with HomeFixed: lies in the host arena between steps, decided elsewhere (other programs of the plan)
	HomeFixed  bool  // persistent: HostHome is not for the solver to choose
}

// Lanes describes copying. Rates are bytes per second. A copy keeps its lane busy for the latency and for its bytes at the lane's rate.
type Lanes struct {
	D2HBytesPerSec, H2DBytesPerSec int64
	LatencyPicos                   int64
	DuplexPermille                 int64 // rate of each lane while both are busy, of 1000; 0 means 1000
	HostBudgetBytes                int64 // < 0: no limit
}

// Recompute runs op Op again in stage Stage, that is just before op Stage.
type Recompute struct{ Stage, Op int32 }

// Swap takes a value off the device for one gap between two uses. Positions are stages.
//
// The copy out is issued after op After (in whose stage the last use before the gap lies), the copy in before stage Before, that is before
// its recomputes. The device bytes are free from the beginning of stage Free (the compute lane waits there for the copy out) to the beginning of
// stage Before; After < Free <= Before <= Use. Copies out issued in one place go in the order of Free, then Value; copies in
// in the order of Use, then Value; bytes are freed before copies in are issued. Write is false where the host holds the content already:
// persistent values that nothing changes, inputs that are OnHost, values written by an earlier swap of this step.
//
// A persistent value that is used and whose home is the host has one swap with Wraps set, for the gap that crosses the end of the step: After
// is the stage of the last use of it, or of its Becomes, which is then written; Before is where the next step (and this one) loads it,
// Use its first use; Free is at most len(Ops), which means the end of the step.
type Swap struct {
	Value               int32
	After, Free, Before int32
	Use                 int32 // the stage that first uses it again: compute waits there, before the event that reads it, for the copy in
	Write               bool
	Wraps               bool
}

// Solution is a plan for a Problem, with what the search believes of it. Simulate is the truth.
type Solution struct {
	Recomputes    []Recompute // sorted by stage, then op; a later recompute of one op replaces the earlier run
	Swaps         []Swap      // sorted by After, Value
	HostHome      []bool      // by value: persistent values that live on the host between steps; nil: none
	PeakBytes     int64       // live device bytes
	HostPeakBytes int64
	StepPicos     int64 // compute + stalls by the lane simulation
	Bound         Bound
}

// Bound is what no plan of this order can beat.
type Bound struct {
	PeakBytes     int64  // of any plan, at any cost (op-degree: operands, outputs and scratch of one op)
	OverheadPicos int64  // of any plan within the budget
	Name          string // of the bound that gave OverheadPicos
}

// Options steers the search; the zero value is the default. The same options give the same plan: effort counts moves, never time. Stop is the
// only way in which time can matter, and only if the caller lets it.
type Options struct {
	Moves int64 // search moves, as many as one likes; 0: a default by problem size
	Seed  uint64
	// PeakOnly leaves the bound of the overhead out of Solution.Bound: on thousands of ops it takes longer than the search. Whoever solves a problem more than once
	// asks Bounds at the end.
	PeakOnly bool
	// Stop is asked every few hundred moves or less; where it says true the search ends with the best plan so far. A caller that wants to stop after some
	// seconds reads its clock here. nil: never. Where it is called and how often depends on the problem and the options alone.
	Stop func() bool
	// Improved is told of every plan that is better than all before it, as soon as the search has it; a caller that reads its clock here knows when
	// the best plan was found. nil: nobody wants to know.
	Improved func(Progress)
}

// Progress is a plan that the search has found.
type Progress struct {
	Moves     int64 // of the search so far; 0 while it makes its seeds
	StepPicos int64
	PeakBytes int64
}
