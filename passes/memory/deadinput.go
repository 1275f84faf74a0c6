package memory

import (
	"math/big"
	"math/bits"
	"slices"
)

// The dead-input bound knows what the interval flow does not: to run an op again one needs its operands. At prices y_p of a byte at stage p, a value v that is off the device at
// p (absent) is made again after p, in the gap that covers p, once per gap; then each operand u whose life in the plan without recompute ended before p must be held
// at p, which takes its bytes there, or be made again after p, once, with what that needs in turn:
//
//	absent(v,p) -> again(gap of v)         pays the op's time         gains y_p bytes(v)
//	absent(v,p) -> needed(u,p)
//	needed(u,p) -> again(u,p), or pays y_p bytes(u) for being held
//	again(u,p)  -> again(u)                pays the op's time
//	again(u,p)  -> needed(w,p)             for the operands w of u that are dead at p
//
// Every plan makes such a choice, at a cost of at most its own. The best choice is a minimum cut; any flow bounds it from below. So any prices and any flow give a certified
// bound: prices times demand, less all gains, plus the flow. Capacities are rounded down. Prices come from the interval flow and follow subgradients.
//
// With lanes the bytes on the host count as held: a plan with swaps is one without on a device that is larger, stage by stage, by what copies can keep away (copied).

// cutUnits is how many units of the flow make a picosecond.
const cutUnits = 16

type deadInputs struct {
	m         *model
	gaps      []baseGap
	rows      []row
	unit      int64
	speed     int64
	lastEvent []int32 // by value: its last event in the plan without recompute; n if it never dies
	prices    []int64 // by row
	worth     int64   // of a picosecond of reruns, of 2^30

	net    *cutNet
	gains  big.Int // of all absences, in price units
	direct int64   // flow of gaps that need no dead operand
	absent []absence
	needs  map[needKey]need
	agains map[int32]int32 // by value: node of being made again after its last event
}

// absence is a node for a value that is absent at a row; the node of a gap without dead operands is -1, and gone says what is best.
type absence struct {
	value, row, node int32
	gone             bool
}

type needKey struct{ value, row int32 }

// need is the node of a dead operand that is needed at a row, and the arc that pays for holding it.
type need struct{ node, again int32 }

// deadBound improves on the interval flow of c within some rounds; target is the overhead of a known plan, or 0.
func (m *model) deadBound(gaps []baseGap, c *cover, target int64) int64 {
	d := &deadInputs{m: m, gaps: gaps, unit: c.unit, speed: c.speed, lastEvent: make([]int32, len(m.p.Values))}
	for v := range m.p.Values {
		x := &m.p.Values[v]
		d.lastEvent[v] = x.Def
		if r := m.readers[v]; len(r) > 0 {
			d.lastEvent[v] = r[len(r)-1]
		}
		if m.endless[v] || x.Persistent {
			d.lastEvent[v] = m.n
		}
	}
	// Few rows do: neighbours say the same. Prices of those left out move to the next one that stays.
	count := max(12, min(64, 400000/(len(gaps)+1)))
	stride := max(1, (len(c.rows)+count-1)/count)
	var demand []int64
	for from := 0; from < len(c.rows); from += stride {
		best, sum := from, int64(0)
		for k := from; k < min(from+stride, len(c.rows)); k++ {
			sum += c.prices[k]
			if c.demand[k] > c.demand[best] {
				best = k
			}
		}
		d.rows = append(d.rows, c.rows[best])
		demand = append(demand, c.demand[best])
		d.prices = append(d.prices, min(sum, 1<<40))
	}
	rounds := max(6, min(60, 4000000/(len(gaps)*len(d.rows)+1)))
	best, theta := int64(0), 1.0
	at, bestAt := make([]float64, len(d.prices)), make([]float64, len(d.prices))
	for k, p := range d.prices {
		at[k] = float64(p)
	}
	copy(bestAt, at)
	if c.speed > 0 { // prices of the flow may be worth more than the lanes; a part of them is not
		start, whole := int64(-1), slices.Clone(d.prices)
		for part := 16; part > 0; part -= 3 {
			trial := make([]float64, len(at))
			for k := range trial {
				trial[k] = float64(whole[k] * int64(part) / 16)
			}
			d.setPrices(trial)
			if value, ok := d.value(demand); ok && value > start {
				start = value
				copy(at, trial)
			}
		}
		copy(bestAt, at)
		d.setPrices(at)
	}
	stalled := 0
	for range rounds {
		value, ok := d.value(demand)
		if ok && value > best {
			best, stalled = value, 0
			copy(bestAt, at)
		} else if stalled++; stalled >= 4 {
			theta, stalled = theta/2, 0
			copy(at, bestAt)
			d.setPrices(at)
			if value, ok = d.value(demand); !ok {
				break
			}
		}
		// The step of Polyak towards the known plan, or a little above what there is.
		slope := d.slope(demand)
		var norm float64
		for _, s := range slope {
			norm += float64(float64(s) * float64(s))
		}
		aim := float64(target)
		if target == 0 {
			aim = float64(best)*1.05 + float64(m.sum)/1000
		}
		if norm == 0 || aim <= float64(value) {
			break
		}
		step := float64(theta*(aim-float64(value))) / norm * float64(d.unit)
		for k := range at {
			at[k] = max(0, at[k]+float64(step*float64(slope[k])))
		}
		d.setPrices(at)
	}
	return best
}

func (d *deadInputs) setPrices(at []float64) {
	for k := range at {
		d.prices[k] = int64(min(at[k], 1<<40))
	}
}

// value is the certified bound at the present prices; false if they are worth more than the lanes.
func (d *deadInputs) value(demand []int64) (int64, bool) {
	var sum, x, y big.Int
	for _, p := range d.prices {
		sum.Add(&sum, x.SetInt64(p))
	}
	scale := new(big.Int).Mul(big.NewInt(d.unit), big.NewInt(1e12))
	worth := new(big.Int).Sub(scale, sum.Mul(&sum, y.SetInt64(d.speed)))
	if worth.Sign() < 0 {
		d.absent = nil
		return 0, false
	}
	d.worth = worth.Lsh(worth, 30).Div(worth, scale).Int64()
	d.build()
	flow := d.direct + d.net.maximise()
	total := new(big.Int).Neg(&d.gains)
	for k, p := range d.prices {
		total.Add(total, x.Mul(x.SetInt64(p), y.SetInt64(demand[k])))
	}
	total.Mul(total, x.SetInt64(cutUnits))
	total.Add(total, x.Mul(x.SetInt64(flow), y.SetInt64(d.unit)))
	whole := x.Mul(y.SetInt64(d.unit), big.NewInt(cutUnits))
	total.Add(total, whole).Sub(total, big.NewInt(1))
	total.Div(total, whole)
	if !total.IsInt64() {
		return 0, false
	}
	return total.Int64(), true
}

// pay is the price of bytes at row k in units of the flow, rounded down.
func (d *deadInputs) pay(k int32, bytes int64) int64 {
	hi, lo := bits.Mul64(uint64(d.prices[k]), uint64(bytes)*cutUnits)
	if hi >= uint64(d.unit) {
		return noLimit / 1024
	}
	q, _ := bits.Div64(hi, lo, uint64(d.unit))
	return int64(min(q, noLimit/1024))
}

// time is what picos of reruns cost in units of the flow, rounded down.
func (d *deadInputs) time(picos int64) int64 {
	hi, lo := bits.Mul64(uint64(picos)*cutUnits, uint64(d.worth))
	return int64(hi<<34 | lo>>30)
}

// build makes the network of the present prices.
func (d *deadInputs) build() {
	d.net, d.absent, d.direct = newCutNet(), d.absent[:0], 0
	d.needs, d.agains = map[needKey]need{}, map[int32]int32{}
	d.gains.SetInt64(0)
	var x, y big.Int
	for i := range d.gaps {
		g := &d.gaps[i]
		if g.rerun.empty() {
			continue
		}
		def, bytes := d.m.p.Values[g.value].Def, d.m.p.Values[g.value].Bytes
		first := len(d.absent)
		node, pays, dead := int32(-1), int64(0), false
		for k := range int32(len(d.rows)) {
			p := d.rows[k].stage
			if p < g.rerun.from || p >= g.rerun.to || d.prices[k] == 0 || p >= d.m.last[def] {
				continue
			}
			d.absent = append(d.absent, absence{g.value, k, -1, false})
			d.gains.Add(&d.gains, x.Mul(x.SetInt64(d.prices[k]), y.SetInt64(bytes)))
			pays += d.pay(k, bytes)
			for _, u := range d.m.in[def] {
				dead = dead || d.lastEvent[u] < p
			}
		}
		cost := d.time(g.picos)
		if !dead {
			d.direct += min(pays, cost)
			for j := first; j < len(d.absent); j++ {
				d.absent[j].gone = pays > cost
			}
			continue
		}
		node = d.net.node()
		d.net.arc(node, cutSink, cost)
		for j := first; j < len(d.absent); j++ {
			a := &d.absent[j]
			a.node = d.net.node()
			d.net.arc(cutSource, a.node, d.pay(a.row, bytes))
			d.net.arc(a.node, node, noLimit)
			d.operands(a.node, def, a.row)
		}
	}
}

// operands makes node depend on the dead operands of op j at row k.
func (d *deadInputs) operands(node, j, k int32) {
	for _, u := range d.m.in[j] {
		if d.lastEvent[u] < d.rows[k].stage && d.m.p.Values[u].Bytes > 0 {
			d.net.arc(node, d.needed(u, k), noLimit)
		}
	}
}

// needed is the node that says that u is needed at row k.
func (d *deadInputs) needed(u, k int32) int32 {
	key := needKey{u, k}
	if n, ok := d.needs[key]; ok {
		return n.node
	}
	n := need{node: d.net.node(), again: cutSink}
	x := &d.m.p.Values[u]
	hold := d.pay(k, x.Bytes)
	if x.Def < 0 || d.m.last[x.Def] <= d.rows[k].stage {
		d.net.arc(n.node, cutSink, hold)
		d.needs[key] = n
		return n.node
	}
	n.again = d.net.node()
	d.needs[key] = n
	d.net.arc(n.node, n.again, hold)
	all, ok := d.agains[u]
	if !ok {
		all = d.net.node()
		d.agains[u] = all
		d.net.arc(all, cutSink, d.time(d.m.share(u)))
	}
	d.net.arc(n.again, all, noLimit)
	d.operands(n.again, x.Def, k)
	return n.node
}

// slope is how the bound changes with the price at each row: demand, less what the best choice takes away, plus what it holds. needs: value.
func (d *deadInputs) slope(demand []int64) []int64 {
	slope := slices.Clone(demand)
	for i := range d.absent {
		a := &d.absent[i]
		if a.gone || a.node >= 0 && d.net.level[a.node] >= 0 {
			slope[a.row] -= d.m.p.Values[a.value].Bytes
		}
	}
	for key, n := range d.needs { // a sum: the order does not matter
		if d.net.level[n.node] >= 0 && d.net.level[n.again] < 0 {
			slope[key.row] += d.m.p.Values[key.value].Bytes
		}
	}
	return slope
}
