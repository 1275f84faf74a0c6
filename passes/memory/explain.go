package memory

import (
	"math/big"
	"slices"
)

// Explanation says what a plan does with every value and why, in the prices of bytes that the interval flow finds for its budget.
type Explanation struct {
	PeakBytes int64
	PeakStage int32 // of the plan: the event of its peak is op PeakOp in stage PeakStage
	PeakOp    int32
	// The binding stage is the one whose bytes cost most: a byte less of budget at that stage alone costs BindingPrice more time. TotalPrice is that of a byte less
	// everywhere. Both are of the linear bound, so they are what the budget costs at least; all are 0 where the budget does not bind.
	BindingStage int32
	BindingPrice Price
	TotalPrice   Price
	Fates        []Fate // by value
}

// Price is time per byte, in picoseconds per GiB.
type Price int64

// Fate is what a plan does with a value.
type Fate struct {
	Value      int32
	Recomputed []int32 // stages in which the op that defines it runs again
	Swapped    []Swap  // windows in which it is away
	OnHost     bool    // persistent: its home is the host
	// IdlePicos is what the device bytes of its dearest idle gap cost at the prices, RerunPicos what running its op again costs: if the first is the
	// smaller, keeping it is right; if it is the larger and the value is kept all the same, what the op reads is gone or dearer still.
	IdlePicos, RerunPicos int64
	Reason                Reason
}

// Reason is why a value has its fate.
type Reason uint8

// Reasons.
const (
	KeptFree      Reason = iota // no idle gap of it covers a stage that is over budget: keeping it costs nothing
	KeptCheap                   // its bytes are worth less there than running its op again
	KeptFixed                   // its op must not run again there, and it is not swapped
	KeptOperands                // its bytes are worth more than running its op again, but not than what that op reads
	RecomputedFor               // it is recomputed
	SwappedFor                  // it is swapped, or its home is the host
	BothFor                     // it is recomputed and swapped
)

func (r Reason) String() string {
	switch r {
	case KeptFree:
		return "kept: not idle where bytes are short"
	case KeptCheap:
		return "kept: its bytes are worth less than running its op again"
	case KeptFixed:
		return "kept: its op must not run again, and it is not swapped"
	case KeptOperands:
		return "kept: what its op reads would have to be there too"
	case RecomputedFor:
		return "recomputed"
	case SwappedFor:
		return "swapped"
	case BothFor:
		return "recomputed and swapped"
	}
	return "unknown"
}

// Explain explains a plan of p, which Simulate must accept. p's budget is what prices are for.
func Explain(p *Problem, s *Solution) (*Explanation, error) {
	if err := Validate(p); err != nil {
		return nil, err
	}
	r, err := Simulate(p, s)
	if err != nil {
		return nil, err
	}
	m := newModel(p)
	gaps := m.baseGaps()
	e := &Explanation{PeakBytes: r.PeakBytes, PeakStage: r.PeakStage, PeakOp: r.PeakOp, Fates: make([]Fate, len(p.Values))}
	c := m.newCover(gaps, p.BudgetBytes, bySum, false)
	rows, prices, unit := c.rows, c.prices, c.unit
	var total big.Int
	for k := range prices {
		total.Add(&total, big.NewInt(prices[k]))
		if b := perGiB(big.NewInt(prices[k]), unit); b > e.BindingPrice {
			e.BindingPrice, e.BindingStage = b, rows[k].stage
		}
	}
	e.TotalPrice = perGiB(&total, unit)
	e.fates(m, s, gaps, rows, prices, unit)
	return e, nil
}

// perGiB is a price of so many units.
func perGiB(price *big.Int, unit int64) Price {
	x := new(big.Int).Lsh(price, 30)
	if x.Div(x, big.NewInt(unit)); !x.IsInt64() {
		return Price(noLimit)
	}
	return Price(x.Int64())
}

// fates fills in what happens to every value.
func (e *Explanation) fates(m *model, s *Solution, gaps []baseGap, rows []row, prices []int64, unit int64) {
	for v := range e.Fates {
		e.Fates[v].Value = int32(v)
		e.Fates[v].OnHost = s.HostHome != nil && s.HostHome[v]
	}
	for _, r := range s.Recomputes {
		for _, v := range m.p.Ops[r.Op].Out {
			e.Fates[v].Recomputed = append(e.Fates[v].Recomputed, r.Stage)
		}
	}
	for _, w := range s.Swaps {
		e.Fates[w.Value].Swapped = append(e.Fates[w.Value].Swapped, w)
	}
	before := make([]*big.Int, len(rows)+1) // prices before a row
	before[0] = new(big.Int)
	for k := range prices {
		before[k+1] = new(big.Int).Add(before[k], big.NewInt(prices[k]))
	}
	idle, free := make([]bool, len(e.Fates)), make([]bool, len(e.Fates))
	index := func(stage int32) int {
		i, _ := slices.BinarySearchFunc(rows, stage, func(r row, t int32) int { return int(r.stage) - int(t) })
		return i
	}
	for i := range gaps {
		g := &gaps[i]
		f := &e.Fates[g.value]
		from, to := index(g.from+1), index(min(g.to, m.n))
		if from >= to {
			continue
		}
		idle[g.value] = true
		free[g.value] = free[g.value] || !g.rerun.empty()
		worth := new(big.Int).Sub(before[to], before[from])
		worth.Mul(worth, big.NewInt(m.p.Values[g.value].Bytes))
		if worth.Div(worth, big.NewInt(unit)); worth.IsInt64() {
			f.IdlePicos = max(f.IdlePicos, worth.Int64())
		}
		f.RerunPicos = g.picos
	}
	for v := range e.Fates {
		f := &e.Fates[v]
		away := len(f.Swapped) > 0 || f.OnHost
		switch {
		case len(f.Recomputed) > 0 && away:
			f.Reason = BothFor
		case len(f.Recomputed) > 0:
			f.Reason = RecomputedFor
		case away:
			f.Reason = SwappedFor
		case !idle[v] && !m.idleOver(int32(v), rows):
			f.Reason = KeptFree
		case !free[v]:
			f.Reason = KeptFixed
		case f.IdlePicos <= f.RerunPicos:
			f.Reason = KeptCheap
		default:
			f.Reason = KeptOperands
		}
	}
}

// idleOver says whether v lies idle at one of rows in the plan without recompute and swap.
func (m *model) idleOver(v int32, rows []row) bool {
	x := &m.p.Values[v]
	readers := m.readers[v]
	end := x.Def
	if len(readers) > 0 {
		end = readers[len(readers)-1]
	}
	if m.endless[v] {
		end = m.n
	}
	for _, r := range rows {
		if r.stage > x.Def && r.stage < end && !contains(readers, r.stage) {
			return true
		}
	}
	return false
}
