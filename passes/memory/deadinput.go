package memory

import (
	"math/big"
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
// bound: prices times demand, less all gains, plus the flow. Capacities are rounded down. Prices come from the interval flow and follow deflected subgradients
// (Camerini, Fratta and Maffioli 1975) with the step of Polyak.
//
// With lanes the bytes on the host count as held: a plan with swaps is one without on a device that is larger, stage by stage, by what copies can keep away. There are several
// ways to bound that (laneRows), each with prices of its own, and each has the lanes carry more during overhead, be it before the stage or after it. So a picosecond of overhead in
// stage s costs 1 less what its copies are worth to the stages that they serve: a rerun costs the least of that over the stages where it may be. Where copies are worth more than
// the time, waiting would pay; no plan that is better than a known one waits longer than that one, which limits the loss.

// cutUnits is how many units of the flow make a picosecond.
const cutUnits = 16

type deadInputs struct {
	m      *model
	rows   []laneRow
	unit   int64
	prices []int64 // by row
	net    *deadNet
	spot   []int64 // by stage of the net: prices of its rows together
	worth  worths
	most   int64 // overhead of the plans that the bound need not speak of
}

// deadBound improves on the interval flow of c within some rounds; target is the overhead of a known plan, or 0.
func (m *model) deadBound(gaps []baseGap, c *cover, budget, target int64) int64 {
	if len(c.rows) == 0 {
		return 0
	}
	// Few stages do: neighbours say the same. Prices of those left out move to the next one that stays.
	count := max(12, min(64, 400000/(len(gaps)+1)), min(112, 30000/(len(gaps)+1)))
	stride := max(1, (len(c.rows)+count-1)/count)
	var stages []row
	var spot []float64
	for from := 0; from < len(c.rows); from += stride {
		best, sum := from, int64(0)
		for k := from; k < min(from+stride, len(c.rows)); k++ {
			sum += c.prices[k]
			if c.demand[k] > c.demand[best] {
				best = k
			}
		}
		stages = append(stages, c.rows[best])
		spot = append(spot, float64(min(sum, 1<<40)))
	}
	d := &deadInputs{m: m, unit: c.unit, rows: m.laneRows(gaps, stages, budget), net: m.newDeadNet(gaps, stages), spot: make([]int64, len(stages))}
	d.prices = make([]int64, len(d.rows))
	aim := float64(target)
	if target == 0 {
		aim = float64(m.sum)
	}
	d.most = int64(aim)
	best := int64(0)
	at, bestAt := make([]float64, len(d.rows)), make([]float64, len(d.rows))
	start := int64(-1)
	for _, split := range []bool{false, true} {
		for part := 16; part > 0; part -= 3 { // prices of the flow may be worth more than the lanes; a part of them is not
			trial := d.start(spot, float64(part)/16, split)
			d.setPrices(trial)
			if value, ok := d.value(); ok && value > start {
				start = value
				copy(bestAt, trial)
			}
			if m.p.Lanes == nil {
				break
			}
		}
		if m.p.Lanes == nil {
			break
		}
	}
	best = max(0, start)
	copy(at, bestAt)
	way := make([]float64, len(at))
	stalled, theta := 0, 1.0
	for range d.rounds() {
		d.setPrices(at)
		value, ok := d.value()
		if ok && value > best {
			best, stalled = value, 0
			copy(bestAt, at)
		} else if stalled++; stalled >= 20 || !ok {
			theta, stalled = theta/2, 0
			copy(at, bestAt)
			clear(way)
			d.setPrices(at)
			if value, ok = d.value(); !ok {
				break
			}
		}
		if target == 0 {
			aim = float64(best)*1.05 + float64(m.sum)/1000
		}
		if aim <= float64(value) {
			break
		}
		slope := d.slope()
		var along, length, norm float64
		for k, s := range slope {
			along += float64(s * way[k])
			length += float64(way[k] * way[k])
		}
		keep := 0.0
		if along < 0 {
			keep = float64(-1.5*along) / length
		}
		for k, s := range slope {
			way[k] = s + float64(keep*way[k])
			norm += float64(way[k] * way[k])
		}
		if norm == 0 {
			break
		}
		step := float64(theta*(aim-float64(value))) / norm * float64(d.unit)
		for k := range at {
			at[k] = max(0, at[k]+float64(step*way[k]))
		}
	}
	return best
}

// rounds is how many the size of the network allows.
func (d *deadInputs) rounds() int {
	return max(12, min(1000, 16000000/(len(d.net.net.to)+len(d.net.direct)+1)))
}

// start shares the prices of stages among their rows: all for the one that leaves the most to do, or split by the lanes' speeds so that overhead counts the same at all times.
func (d *deadInputs) start(spot []float64, part float64, split bool) []float64 {
	at := make([]float64, len(d.rows))
	for k := 0; k < len(d.rows); {
		end, high, sum := k, k, 0.0
		for ; end < len(d.rows) && d.rows[end].at == d.rows[k].at; end++ {
			if d.rows[end].demand > d.rows[high].demand {
				high = end
			}
			sum += 1 / float64(max(1, d.rows[end].early+d.rows[end].late))
		}
		price := spot[d.rows[k].at] * part
		for i := k; i < end; i++ {
			if split {
				at[i] = price / float64(max(1, d.rows[i].early+d.rows[i].late)) / sum
			} else if i == high {
				at[i] = price
			}
		}
		k = end
	}
	return at
}

func (d *deadInputs) setPrices(at []float64) {
	clear(d.spot)
	for k := range at {
		d.prices[k] = int64(min(at[k], 1<<40))
		d.spot[d.rows[k].at] += d.prices[k]
	}
}

// value is the certified bound at the present prices; false if copies are worth so much that it says nothing.
func (d *deadInputs) value() (int64, bool) {
	var total, x, y big.Int
	scale := new(big.Int).Mul(big.NewInt(d.unit), big.NewInt(1e12))
	carry := make([]big.Int, len(d.spot)+1) // by segment: what the copies of a picosecond are worth; differences first
	for k, r := range d.rows {
		price := d.prices[k]
		total.Add(&total, x.Mul(x.SetInt64(price), y.SetInt64(r.demand)))
		carry[0].Add(&carry[0], x.Mul(x.SetInt64(price), y.SetInt64(r.early)))
		carry[r.at+1].Add(&carry[r.at+1], x.Mul(x.SetInt64(price), y.SetInt64(r.late-r.early)))
	}
	of := make([]int64, len(carry))
	least := int64(0)
	for q := range carry {
		if q > 0 {
			carry[q].Add(&carry[q], &carry[q-1])
		}
		x.Sub(scale, &carry[q])
		x.Lsh(&x, 30).Div(&x, scale) // rounded down
		if !x.IsInt64() || x.Int64() < -1<<40 {
			return 0, false
		}
		of[q] = x.Int64()
		least = min(least, of[q])
	}
	d.worth = newWorths(of)
	flow := d.net.flow(d.spot, d.unit, &d.worth)
	for k, bytes := range d.net.bytes {
		total.Sub(&total, x.Mul(x.SetInt64(d.spot[k]), y.SetInt64(bytes)))
	}
	total.Mul(&total, x.SetInt64(cutUnits))
	total.Add(&total, x.Mul(x.SetInt64(flow), y.SetInt64(d.unit)))
	whole := new(big.Int).Mul(big.NewInt(d.unit), big.NewInt(cutUnits))
	if least < 0 {
		x.Mul(x.SetInt64(d.most), y.SetInt64(least))
		x.Mul(&x, whole)
		total.Add(&total, x.Rsh(&x, 30)) // rounded down
	}
	total.Add(&total, whole).Sub(&total, big.NewInt(1))
	total.Div(&total, whole)
	if !total.IsInt64() {
		return 0, false
	}
	if least < 0 {
		return min(total.Int64(), d.most), true
	}
	return total.Int64(), true
}

// slope is how the bound changes with the price of each row: demand, less what the best choice takes away, plus what it holds, less what the lanes carry in its overhead.
func (d *deadInputs) slope() []float64 {
	bytes, picos := d.net.chosen(d.spot, d.unit, &d.worth)
	if last := d.worth.least[0][len(picos)-1]; d.worth.of[last] < 0 {
		for q, w := range d.worth.of {
			if w < 0 {
				picos[q] = 0
			}
		}
		picos[last] = d.most
	}
	var all int64
	before := make([]int64, len(picos)) // by stage: in its segment and those before
	for q, p := range picos {
		all += p
		before[q] = all
	}
	slope := make([]float64, len(d.rows))
	for k, r := range d.rows {
		early := before[r.at]
		slope[k] = float64(r.demand-bytes[r.at]) - float64(float64(early)*float64(r.early)/1e12) - float64(float64(all-early)*float64(r.late)/1e12)
	}
	return slope
}
