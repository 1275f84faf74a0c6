package memory

import "math/bits"

// The two copy lanes of the simulator's bus.
const (
	laneOut = iota
	laneIn
	laneCount
)

// bus is the clockwork of both copy lanes: each executes its copies in the order of issue, at full rate alone and at the duplex rate while the other
// lane is busy. Work is counted in thousandths of a picosecond of a lane alone.
type bus struct {
	rate    [laneCount]int64 // bytes per second
	latency int64
	duplex  int64 // work done per picosecond while both are busy
	now     int64
	lane    [laneCount]copyLane
}

type copyLane struct {
	left []int64 // work left of each copy
	head int     // first incomplete copy
}

func newBus(l *Lanes) bus {
	if l == nil {
		return bus{}
	}
	b := bus{rate: [laneCount]int64{l.D2HBytesPerSec, l.H2DBytesPerSec}, latency: l.LatencyPicos, duplex: l.DuplexPermille}
	if b.duplex == 0 {
		b.duplex = 1000
	}
	return b
}

// issue appends a copy of some bytes to a lane at time at and returns its number.
func (b *bus) issue(at int64, lane int, bytes int64) int {
	b.advance(at)
	hi, lo := bits.Mul64(uint64(bytes), 1e12)
	q, r := bits.Div64(hi, lo, uint64(b.rate[lane]))
	if r > 0 {
		q++
	}
	l := &b.lane[lane]
	l.left = append(l.left, 1000*(b.latency+int64(q)))
	return len(l.left) - 1
}

// wait returns when copy number no of a lane is complete, or at if that is later.
func (b *bus) wait(at int64, lane, no int) int64 {
	b.advance(at)
	for b.lane[lane].head <= no {
		b.step(-1)
	}
	return b.now
}

// drain returns when all copies are complete, or at if that is later.
func (b *bus) drain(at int64) int64 {
	b.advance(at)
	for b.lane[laneOut].busy() || b.lane[laneIn].busy() {
		b.step(-1)
	}
	return b.now
}

func (b *bus) advance(to int64) {
	for b.now < to {
		b.step(to)
	}
}

func (l *copyLane) busy() bool { return l.head < len(l.left) }

// step runs the lanes until a copy completes or, if limit is not negative, until limit.
func (b *bus) step(limit int64) {
	out, in := &b.lane[laneOut], &b.lane[laneIn]
	speed := int64(1000)
	if out.busy() && in.busy() {
		speed = b.duplex
	}
	span := int64(-1)
	for _, l := range []*copyLane{out, in} {
		if l.busy() {
			if need := (l.left[l.head] + speed - 1) / speed; span < 0 || need < span {
				span = need
			}
		}
	}
	if span < 0 || limit >= 0 && b.now+span > limit {
		span = limit - b.now
	}
	b.now += span
	for _, l := range []*copyLane{out, in} {
		if l.busy() {
			if l.left[l.head] -= speed * span; l.left[l.head] <= 0 {
				l.head++
			}
		}
	}
}
