package memory

import (
	"errors"
	"fmt"
	"math"
	"math/bits"
)

// The solver adds bytes and picoseconds of whole steps and scales copies by 1000; these limits keep every figure below 2^63.
const (
	maxTotalBytes = math.MaxInt64 / 64
	// MaxTotalPicos is the longest that the ops of a problem may take together, in picoseconds: ten hours.
	MaxTotalPicos = math.MaxInt64 / 256
)

// Validate lists everything that is malformed in p, joined into one error, or returns nil. Solve, Minimum, Unlimited, Bounds and
// Simulate need a valid problem; all but Simulate check it themselves.
func Validate(p *Problem) error {
	c := checker{p: p, n: int32(len(p.Ops)), values: int32(len(p.Values))}
	if len(p.Ops) > math.MaxInt32/4 || len(p.Values) > math.MaxInt32/4 {
		return fmt.Errorf("memory problem of %d ops and %d values is too large", len(p.Ops), len(p.Values))
	}
	c.ops()
	c.valueFields()
	c.persistent()
	c.lanes()
	return errors.Join(c.errs...)
}

type checker struct {
	p         *Problem
	n, values int32
	errs      []error
}

func (c *checker) bad(format string, args ...any) {
	if len(c.errs) < 50 {
		c.errs = append(c.errs, fmt.Errorf(format, args...))
	}
}

func (c *checker) ops() {
	seen := make([]int32, c.values) // op + 1 that last listed the value
	var picos, scratch int64
	for i := range c.p.Ops {
		o := &c.p.Ops[i]
		j := int32(i)
		if o.Picos < 0 || o.Picos > MaxTotalPicos {
			c.bad("op %d: %d picoseconds is out of range", j, o.Picos)
		} else if picos += o.Picos; picos > MaxTotalPicos {
			c.bad("op %d: the step takes more than %d picoseconds", j, int64(MaxTotalPicos))
			picos = 0
		}
		if o.ScratchBytes < 0 || o.ScratchBytes > maxTotalBytes {
			c.bad("op %d: %d scratch bytes is out of range", j, o.ScratchBytes)
		} else {
			scratch = max(scratch, o.ScratchBytes)
		}
		for _, v := range o.In {
			switch {
			case v < 0 || v >= c.values:
				c.bad("op %d reads value %d of %d", j, v, c.values)
			case seen[v] == j+1:
				c.bad("op %d reads value %d twice", j, v)
			case c.p.Values[v].Def >= j:
				c.bad("op %d reads value %d, which op %d defines later", j, v, c.p.Values[v].Def)
			default:
				seen[v] = j + 1
			}
		}
		for _, v := range o.Out {
			switch {
			case v < 0 || v >= c.values:
				c.bad("op %d defines value %d of %d", j, v, c.values)
			case c.p.Values[v].Def != j:
				c.bad("op %d defines value %d, whose Def is %d", j, v, c.p.Values[v].Def)
			case seen[v] == j+1:
				c.bad("op %d lists value %d twice", j, v)
			default:
				seen[v] = j + 1
			}
		}
		for _, o2 := range o.Over {
			if !contains(o.Out, o2.Out) || !contains(o.In, o2.In) {
				c.bad("op %d: pair of output %d over operand %d is not of this op", j, o2.Out, o2.In)
			}
		}
	}
}

func contains(list []int32, v int32) bool {
	for _, x := range list {
		if x == v {
			return true
		}
	}
	return false
}

func (c *checker) valueFields() {
	var total int64
	for i := range c.p.Values {
		v := &c.p.Values[i]
		if v.Bytes < 0 || v.Bytes > maxTotalBytes {
			c.bad("value %d: %d bytes is out of range", i, v.Bytes)
		} else if total += v.Bytes; total > maxTotalBytes {
			c.bad("value %d: all values together exceed %d bytes", i, int64(maxTotalBytes))
			total = 0
		}
		if v.Def < -1 || v.Def >= c.n {
			c.bad("value %d: defined by op %d of %d", i, v.Def, c.n)
		} else if v.Def >= 0 && !contains(c.p.Ops[v.Def].Out, int32(i)) {
			c.bad("value %d: op %d does not list it as output", i, v.Def)
		}
		if v.OnHost && (v.Def != -1 || v.Persistent) {
			c.bad("value %d: only inputs can be OnHost", i)
		}
		if !v.Persistent && (v.HostHome || v.HomeFixed) {
			c.bad("value %d: only persistent values have a home", i)
		}
	}
}

func (c *checker) persistent() {
	of := make([]int32, c.values)
	for i := range of {
		of[i] = -1
	}
	for i := range c.p.Values {
		v := &c.p.Values[i]
		if !v.Persistent {
			continue
		}
		if v.Def != -1 {
			c.bad("value %d: persistent, yet defined by op %d", i, v.Def)
		}
		if v.HomeFixed && v.HostHome && c.p.Lanes == nil {
			c.bad("value %d: its home is the host, yet there are no lanes", i)
		}
		b := v.Becomes
		if b < 0 {
			continue
		}
		switch {
		case b >= c.values:
			c.bad("value %d: becomes value %d of %d", i, b, c.values)
			continue
		case c.p.Values[b].Def < 0:
			c.bad("value %d: becomes value %d, which no op defines", i, b)
			continue
		case c.p.Values[b].Bytes != v.Bytes:
			c.bad("value %d of %d bytes becomes value %d of %d bytes", i, v.Bytes, b, c.p.Values[b].Bytes)
		case of[b] >= 0:
			c.bad("values %d and %d both become value %d", of[b], i, b)
		}
		of[b] = int32(i)
		if v.HomeFixed && v.HostHome && len(c.errs) == 0 && !replacesInPlace(c.p, int32(i)) {
			c.bad("value %d: its home is the host, so op %d must be able to write value %d over it and nothing may read it later", i, c.p.Values[b].Def, b)
		}
	}
}

// replacesInPlace says whether the Becomes of persistent value v is written into v's place: the op that defines it can write over v or does
// not read it, and no op reads v later.
func replacesInPlace(p *Problem, v int32) bool {
	b := p.Values[v].Becomes
	if b < 0 {
		return false
	}
	d := p.Values[b].Def
	for j := d + 1; j < int32(len(p.Ops)); j++ {
		if contains(p.Ops[j].In, v) {
			return false
		}
	}
	if !contains(p.Ops[d].In, v) {
		return true
	}
	for _, o := range p.Ops[d].Over {
		if o.Out == b && o.In == v {
			return true
		}
	}
	return false
}

func (c *checker) lanes() {
	l := c.p.Lanes
	if l == nil {
		return
	}
	if l.D2HBytesPerSec <= 0 || l.H2DBytesPerSec <= 0 {
		c.bad("lanes: rates of %d and %d bytes per second must be positive", l.D2HBytesPerSec, l.H2DBytesPerSec)
		return
	}
	if l.LatencyPicos < 0 || l.LatencyPicos > MaxTotalPicos/32 {
		c.bad("lanes: latency of %d picoseconds is out of range", l.LatencyPicos)
	}
	if l.DuplexPermille < 0 || l.DuplexPermille > 1000 {
		c.bad("lanes: duplex factor of %d permille must lie within 0 and 1000", l.DuplexPermille)
	}
	var homes int64
	for i := range c.p.Values {
		v := &c.p.Values[i]
		if v.HomeFixed && v.HostHome {
			homes += v.Bytes
		}
		if v.NoSwap && !v.HostHome || v.Bytes < 0 {
			continue
		}
		if transferPicos(v.Bytes, l.D2HBytesPerSec) > MaxTotalPicos/32 || transferPicos(v.Bytes, l.H2DBytesPerSec) > MaxTotalPicos/32 {
			c.bad("value %d: copying %d bytes takes too long to be planned", i, v.Bytes)
		}
	}
	if l.HostBudgetBytes >= 0 && homes > l.HostBudgetBytes {
		c.bad("lanes: values whose home is the host take %d bytes, host budget is %d", homes, l.HostBudgetBytes)
	}
}

// transferPicos is the time of bytes at a rate of perSec bytes per second, rounded up; bounded by math.MaxInt64.
func transferPicos(bytes, perSec int64) int64 {
	hi, lo := bits.Mul64(uint64(bytes), 1e12)
	if hi >= uint64(perSec) {
		return math.MaxInt64
	}
	q, r := bits.Div64(hi, lo, uint64(perSec))
	if r > 0 {
		q++
	}
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(q)
}
