package memory

import "math/bits"

// copied takes off need, by stage, what copies alone can keep away from the device there in a step without overhead, and returns how many bytes per second
// of overhead they can add to that. Without lanes it does nothing.
//
// A value away at stage t either comes back in this step, through the lane in after t, having left through the lane out before t unless the host held it
// anyway; or it is persistent, has been used for the last time and stays on the host, having come in before t; or it is not used at all. With A bytes
// per second in and B out, and overhead a before t and b after it, the first kind is at most min(in(after) + A b, out(before) + B a + held).
//
// There are two ways to make that linear in the overhead: the minimum itself, which grows by at most max(A, B) a second; or the mean of both with weights
// B and A, which is more but grows by AB/(A+B) only, since overhead is either before or after. Each gives a bound; mean says which.
func (m *model) copied(gaps []baseGap, need []int64, mean bool) (speed int64) {
	l := m.p.Lanes
	if l == nil {
		return 0
	}
	clean, tail, all := make([]int64, m.n+1), make([]int64, m.n+1), make([]int64, m.n+1)
	var idle int64 // persistent values that nothing uses
	hasTail := false
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
		}
		if x.Persistent || x.OnHost {
			add(clean)
		}
	}
	var before, c, t, a int64
	for j := range m.n {
		c, t, a = c+clean[j], t+tail[j], a+all[j]
		after := m.sum - before - m.p.Ops[j].Picos
		in, out := carried(after, l.H2DBytesPerSec), carried(before, l.D2HBytesPerSec)+c
		away := min(in, out) + min(carried(before, l.H2DBytesPerSec), t)
		if mean {
			away = weighted(in, l.D2HBytesPerSec, out, l.H2DBytesPerSec) + t
		}
		need[j] -= min(away, a) + idle
		before += m.p.Ops[j].Picos
	}
	if mean {
		return weighted(l.H2DBytesPerSec, l.D2HBytesPerSec, 0, l.H2DBytesPerSec)
	}
	speed = max(l.D2HBytesPerSec, l.H2DBytesPerSec)
	if hasTail {
		speed += l.H2DBytesPerSec
	}
	return speed
}

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
