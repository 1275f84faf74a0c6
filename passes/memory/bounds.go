package memory

import (
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// Bounds works out certified lower bounds for p: of the peak at any cost, and of the overhead (recomputes and stalls) of any plan of this order
// within the budget. The overhead bound comes from prices of bytes at stages. Any prices that are not negative give a valid bound: at prices y_t, a
// plan that brings every stage t from need_t bytes down to the budget has taken away bytes worth at least sum y_t (need_t - budget); a gap broken
// by a rerun pays its op's time for at most its bytes times the prices over it. The value is computed in exact arithmetic from whatever prices
// the flow found, so no rounding in finding them can make it wrong. p must be valid; a problem that is not has no bounds.
//
// With lanes, bytes may also be away because they were copied: before stage t no more than the lane out can carry by then, and no more than the lane in can bring
// back after it, each plus what it carries in the overhead itself. What that leaves uncovered must be recomputed or waited for.
//
// Where recomputing is allowed, the dead-input bound (deadinput.go) then also charges for the operands that a rerun needs and that are long dead.
func Bounds(p *Problem) Bound {
	if Validate(p) != nil {
		return Bound{Name: noBound}
	}
	m := newModel(p)
	gaps := m.baseGaps()
	b := m.overhead(gaps, p.BudgetBytes, 0, coverWork)
	b.PeakBytes = m.degree(gaps)
	return b
}

// The names of bounds of the overhead.
const (
	noBound        = "none"
	noPlan         = "none: the budget is below the op-degree bound"
	intervalFlow   = "interval flow"
	intervalCover  = "interval cover"
	jointFlow      = "joint interval flow"
	deadInput      = "dead inputs"
	jointDeadInput = "joint dead inputs"
	maxRows        = 768 // rows beyond this are dropped, which only weakens the bound
	priceUnits     = 1 << 30
	prohibitiveGap = 1 << 36
)

// row is a stage whose bytes exceed the budget.
type row struct {
	stage  int32
	demand int64
}

// coverWork is the rows and columns that the interval cover may go through: a second at most, and much less in most problems.
const coverWork = 400000

// overhead is the best bound of the overhead.
//
// The interval flow comes first, with each way to count copies; the best one's prices start the dead-input bound, which aims at known, the overhead of a plan (0: none).
// Without lanes the interval cover is tried in between, for as much work as is given.
func (m *model) overhead(gaps []baseGap, budget, known, work int64) Bound {
	if budget < 0 {
		return Bound{Name: noBound}
	}
	if m.degree(gaps) > budget {
		return Bound{Name: noPlan}
	}
	ways := []copyWay{bySum}
	if m.p.Lanes != nil {
		ways = []copyWay{bySum, byMean, byOneLane}
	}
	best := Bound{Name: noBound}
	flows := make([]int64, len(ways))
	for i, way := range ways {
		b := m.flowBound(gaps, budget, way)
		if flows[i] = b.OverheadPicos; flows[i] > best.OverheadPicos {
			best = b
		}
	}
	if known > 0 && best.OverheadPicos >= known || !m.p.Recompute {
		return best
	}
	if m.p.Lanes == nil {
		enough := known
		if known == 0 {
			enough = math.MaxInt64
		}
		if c := m.newCover(gaps, budget, bySum, false); len(c.rows) > 0 {
			if whole := c.wholeCover(enough, work); whole > best.OverheadPicos {
				best = Bound{OverheadPicos: whole, Name: intervalCover}
			}
		}
		if best.OverheadPicos >= enough {
			return best
		}
	}
	name := deadInput
	if m.p.Lanes != nil {
		name = jointDeadInput
	}
	way := ways[0]
	for i := range ways {
		if flows[i] > flows[way] {
			way = ways[i]
		}
	}
	if v := m.deadBound(gaps, m.newCover(gaps, budget, way, true), budget, known); v > best.OverheadPicos {
		best = Bound{OverheadPicos: v, Name: name}
	}
	return best
}

func (m *model) flowBound(gaps []baseGap, budget int64, way copyWay) Bound {
	c := m.newCover(gaps, budget, way, false)
	if len(c.rows) == 0 {
		return Bound{Name: noBound}
	}
	name := intervalFlow
	if m.p.Lanes != nil {
		name = jointFlow
	}
	best := new(big.Int)
	scaled := make([]int64, len(c.prices))
	for k := int64(16); k > 0; k-- {
		for i := range c.prices {
			scaled[i] = c.prices[i] * k / 16
		}
		if v := certify(c.demand, c.columns, scaled, c.unit, c.speed); v.Cmp(best) > 0 {
			best = v
		}
		if c.speed == 0 {
			break // only with lanes can lower prices be worth more
		}
	}
	if best.Sign() == 0 || !best.IsInt64() {
		return Bound{Name: noBound}
	}
	return Bound{OverheadPicos: best.Int64(), Name: name}
}

// cover is the covering problem of the stages over budget, with the prices that the flow finds.
type cover struct {
	rows    []row
	demand  []int64 // by row
	columns []column
	prices  []int64 // by row: of a byte, unit of them a picosecond
	unit    int64
	speed   int64 // what the lanes carry in a second of overhead
}

// newCover makes it; dead says that values may be held beyond their life in the plan without recompute.
func (m *model) newCover(gaps []baseGap, budget int64, way copyWay, dead bool) *cover {
	need := m.opBytes(m.liveBytes())
	c := &cover{unit: 1, speed: m.copied(gaps, need, way, dead)}
	if budget < 0 {
		return c
	}
	if c.rows = m.rows(need, budget); len(c.rows) == 0 {
		return c
	}
	c.demand = make([]int64, len(c.rows))
	for k := range c.rows {
		c.demand[k] = c.rows[k].demand
	}
	for i := range gaps {
		if col, ok := m.column(&gaps[i], c.rows); ok {
			c.columns = append(c.columns, col)
		}
	}
	c.unit = priceUnit(c.columns, c.speed)
	arcs := make([]flowArc, 0, len(c.columns)+1)
	for _, col := range c.columns {
		arcs = append(arcs, flowArc{from: col.from, to: col.to, cap: col.bytes, cost: min(perByte(col.picos, col.bytes, c.unit), priceUnits)})
	}
	if c.speed > 0 {
		arcs = append(arcs, flowArc{from: 0, to: int32(len(c.rows)), cap: noLimit, cost: min(perByte(1e12, c.speed, c.unit), priceUnits)})
	}
	c.prices = rowPrices(c.demand, arcs, prohibitiveGap)
	return c
}

// column is a gap as the flow sees it: it covers rows from..to-1.
type column struct {
	from, to     int32
	bytes, picos int64
}

func (m *model) column(g *baseGap, rows []row) (column, bool) {
	if g.rerun.empty() {
		return column{}, false
	}
	after := func(r row, t int32) int { return int(r.stage) - int(t) }
	from, _ := slices.BinarySearchFunc(rows, g.rerun.from, after)
	to, _ := slices.BinarySearchFunc(rows, g.rerun.to, after)
	return column{int32(from), int32(to), m.p.Values[g.value].Bytes, g.picos}, from < to
}

// rows lists the stages over budget, the highest of each stretch if they are many.
func (m *model) rows(need []int64, budget int64) []row {
	var rows []row
	for t, b := range need {
		if b > budget {
			rows = append(rows, row{int32(t), b - budget})
		}
	}
	if len(rows) <= maxRows {
		return rows
	}
	var few []row
	for k := range maxRows {
		part := rows[k*len(rows)/maxRows : (k+1)*len(rows)/maxRows]
		high := part[0]
		for _, r := range part {
			if r.demand > high.demand {
				high = r
			}
		}
		few = append(few, high)
	}
	return few
}

// perByte is picos*unit/bytes, bounded.
func perByte(picos, bytes, unit int64) int64 {
	hi, lo := bits.Mul64(uint64(picos), uint64(unit))
	if hi >= uint64(bytes) {
		return noLimit
	}
	q, _ := bits.Div64(hi, lo, uint64(bytes))
	return int64(min(q, noLimit))
}

// priceUnit is how many price units make a picosecond per byte, so that nearly all costs are below priceUnits and keep many digits.
func priceUnit(columns []column, speed int64) int64 {
	costs := make([]uint64, 0, len(columns))
	for _, c := range columns {
		costs = append(costs, ratio(c.picos, c.bytes)) // of 2^30
	}
	if speed > 0 {
		costs = append(costs, ratio(1e12, speed))
	}
	if len(costs) == 0 {
		return 1
	}
	slices.Sort(costs)
	high := max(1, costs[len(costs)*15/16]) / 64
	unit := int64(1) << 50
	for unit > 1 && bits.Len64(high)+bits.Len64(uint64(unit)) > 30+25 {
		unit >>= 1
	}
	return unit
}

// certify is the exact value of a price per row as a bound of the overhead, rounded up: overheads are whole.
func certify(demand []int64, columns []column, prices []int64, unit, speed int64) *big.Int {
	sums := make([]*big.Int, len(prices)+1) // of prices before a row
	sums[0] = new(big.Int)
	gain := new(big.Int)
	var x, y big.Int
	for k, price := range prices {
		sums[k+1] = new(big.Int).Add(sums[k], x.SetInt64(price))
		gain.Add(gain, y.Mul(x.SetInt64(price), new(big.Int).SetInt64(demand[k])))
	}
	second := big.NewInt(1e12)
	scale := new(big.Int).Mul(big.NewInt(unit), second)
	// Of every picosecond of overhead, the lanes use a part to carry bytes that the prices charge for; the rest is what it is worth.
	worth := new(big.Int).Sub(scale, new(big.Int).Mul(big.NewInt(speed), sums[len(prices)]))
	if worth.Sign() < 0 {
		return new(big.Int)
	}
	gain.Mul(gain, second)
	for _, c := range columns {
		x.Sub(sums[c.to], sums[c.from])
		x.Mul(&x, y.SetInt64(c.bytes))
		x.Mul(&x, second)
		x.Sub(&x, y.Mul(worth, new(big.Int).SetInt64(c.picos)))
		if x.Sign() > 0 {
			gain.Sub(gain, &x)
		}
	}
	if gain.Sign() <= 0 {
		return new(big.Int)
	}
	gain.Add(gain, scale).Sub(gain, big.NewInt(1))
	return gain.Div(gain, scale)
}
