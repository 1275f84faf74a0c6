package memory

import "math/bits"

// copied takes off need, by stage, what copies alone can keep away from the device there in a step without overhead, and returns how many bytes per second
// of overhead they can add to that. Without lanes it does nothing.
//
// A value away at stage t either comes back in this step, through the lane in after t, having left through the lane out before t unless the host held it
// anyway; or it is persistent, has been used for the last time and stays on the host, having come in before t; or it is not used at all. With A bytes
// per second in and B out, and overhead a before t and b after it, the first kind is at most min(in(after) + A b, out(before) + B a + held).
//
// There are several ways to make that linear in the overhead, and each gives a bound; way says which. If dead, the host may also keep what is only read again by
// recomputes.
func (m *model) copied(gaps []baseGap, need []int64, way copyWay, dead bool) (speed int64) {
	l := m.p.Lanes
	if l == nil {
		return 0
	}
	reaches, idle, hasTail := m.reaches(gaps, dead)
	for j, r := range reaches {
		in, out := r.in, r.out
		came := min(r.came, r.tail)
		away := min(in, out) + came
		switch way {
		case byMean:
			away = weighted(in, l.D2HBytesPerSec, out, l.H2DBytesPerSec) + r.tail
		case byOneLane:
			away = min(in+came, out+r.kept)
		}
		if !dead {
			away = min(away, r.all)
		}
		need[j] -= away + idle
	}
	switch {
	case way == byMean:
		return weighted(l.H2DBytesPerSec, l.D2HBytesPerSec, 0, l.H2DBytesPerSec)
	case way == byOneLane || !hasTail:
		return max(l.D2HBytesPerSec, l.H2DBytesPerSec)
	}
	return max(l.D2HBytesPerSec, l.H2DBytesPerSec) + l.H2DBytesPerSec
}

// reach is how many bytes can be away at a stage in a step without overhead.
type reach struct {
	in         int64 // that the lane in carries after the stage
	out        int64 // that the lane out carries before it, and what the host held anyway
	came       int64 // that the lane in carries before it
	tail, kept int64 // persistent values that were used for the last time before it, and those of them that nothing writes
	all        int64 // whatever may be swapped
}

// reaches works them out, by stage, and what nothing uses at all.
func (m *model) reaches(gaps []baseGap, dead bool) (list []reach, idle int64, hasTail bool) {
	l := m.p.Lanes
	clean, tail, kept, all := make([]int64, m.n+1), make([]int64, m.n+1), make([]int64, m.n+1), make([]int64, m.n+1)
	for i := range gaps {
		g := &gaps[i]
		if g.swap.empty() {
			continue
		}
		x := &m.p.Values[g.value]
		if g.from < 0 && g.to == m.n {
			idle += x.Bytes
			continue
		}
		add := func(sum []int64) {
			sum[g.swap.from] += x.Bytes
			sum[g.swap.to] -= x.Bytes
		}
		add(all)
		if g.to == m.n {
			hasTail = true
			add(tail)
			if m.heir[g.value] < 0 {
				add(kept)
			}
		}
		if x.Persistent || x.OnHost {
			add(clean)
		}
	}
	for v := range m.p.Values {
		if x := &m.p.Values[v]; dead && x.OnHost {
			from := int32(0)
			if r := m.readers[v]; len(r) > 0 {
				from = r[len(r)-1] + 1
			}
			if !m.endless[v] && from < m.n {
				clean[from] += x.Bytes
			}
		}
	}
	list = make([]reach, m.n)
	var before, c, t, k, a int64
	for j := range m.n {
		c, t, k, a = c+clean[j], t+tail[j], k+kept[j], a+all[j]
		after := m.sum - before - m.p.Ops[j].Picos
		list[j] = reach{in: carried(after, l.H2DBytesPerSec), out: carried(before, l.D2HBytesPerSec) + c, came: carried(before, l.H2DBytesPerSec), tail: t, kept: k, all: a}
		before += m.p.Ops[j].Picos
	}
	return list, idle, hasTail
}

// laneRow is one way to bound what copies keep away at a stage, by the time when overhead occurs: what that leaves to do, and how many bytes per second of
// overhead in stages up to this one (early) or later (late) the lanes add.
type laneRow struct {
	at, stage   int32 // at: which of the stages asked for
	demand      int64
	early, late int64
}

// laneRows lists such ways for some stages, those that leave nothing to do aside. A bytes per second in and B out, they are: what comes back after the stage, with all the
// tail or with what of it came before; and what left before the stage, with what of the tail nothing writes.
func (m *model) laneRows(gaps []baseGap, stages []row, budget int64) (rows []laneRow) {
	need := m.opBytes(m.liveBytes())
	l := m.p.Lanes
	var reaches []reach
	var idle int64
	if l != nil {
		reaches, idle, _ = m.reaches(gaps, true)
	}
	for at, s := range stages {
		add := func(away, early, late int64) {
			if demand := need[s.stage] - budget - away; demand > 0 {
				rows = append(rows, laneRow{int32(at), s.stage, demand, early, late})
			}
		}
		if l == nil {
			add(0, 0, 0)
			continue
		}
		r := reaches[s.stage]
		add(idle+r.in+r.tail, 0, l.H2DBytesPerSec)
		if r.came < r.tail {
			add(idle+r.in+r.came, l.H2DBytesPerSec, l.H2DBytesPerSec)
		}
		add(idle+r.out+r.kept, l.D2HBytesPerSec, 0)
	}
	return rows
}

// copyWay is a way to bound what copies keep away by a linear function of the overhead.
type copyWay int

const (
	// bySum takes the first kind for the minimum and adds the second kind. The minimum grows by at most max(A, B) a second, the second kind by A.
	bySum copyWay = iota
	// byMean takes the first kind for the mean of both figures with weights B and A, which is more but grows by AB/(A+B) only, since overhead is either before or after.
	byMean
	// byOneLane looks at one lane all round the step: what comes in, be it before t or after it, is A bytes for every second; what is away and was
	// written is B bytes for every second before t. Overhead counts once.
	byOneLane
)

// carried is how many bytes a lane carries in some time, rounded up.
func carried(picos, perSec int64) int64 {
	hi, lo := bits.Mul64(uint64(picos), uint64(perSec))
	if hi >= 1e12 {
		return noLimit
	}
	q, _ := bits.Div64(hi, lo, 1e12)
	return int64(min(q, noLimit-1)) + 1
}

// weighted is the mean of a and b with weights wa and wb, rounded up.
func weighted(a, wa, b, wb int64) int64 {
	a, b = min(a, noLimit), min(b, noLimit)
	hi, lo := bits.Mul64(uint64(a), uint64(wa))
	hi2, lo2 := bits.Mul64(uint64(b), uint64(wb))
	lo, carry := bits.Add64(lo, lo2, 0)
	hi, _ = bits.Add64(hi, hi2, carry)
	q, _ := bits.Div64(hi, lo, uint64(wa)+uint64(wb)) // the mean is below 2^63, so it fits
	return int64(q) + 1
}
