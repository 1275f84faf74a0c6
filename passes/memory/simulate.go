package memory

import (
	"cmp"
	"fmt"
	"slices"
)

// Result is what a plan does when it is executed to the letter.
type Result struct {
	PeakBytes      int64   // most live device bytes at one event
	PeakStage      int32   // the event of the peak: op PeakOp in stage PeakStage
	PeakOp         int32   // the op of that event, a recompute if it is not PeakStage
	Alive          []int32 // values on the device at the peak, largest first
	HostPeakBytes  int64
	StepPicos      int64 // until compute and both copy lanes are done
	ComputePicos   int64 // of all ops, recomputes included
	RecomputePicos int64
	StallPicos     int64 // StepPicos - ComputePicos
	SwapOutBytes   int64
	SwapInBytes    int64
}

// Simulate executes s on p event by event and returns what happens, or the first thing that is illegal: an op that reads what is not there, a
// recompute or a swap that is not allowed, bytes freed before their copy out, a value that is not where it must be at the end. It shares no code with
// the search, does not look at the budgets, and does not believe the figures in s. p must be valid.
func Simulate(p *Problem, s *Solution) (Result, error) {
	m := machine{p: p, s: s, n: int32(len(p.Ops))}
	if err := m.run(-1); err != nil {
		return Result{}, err
	}
	peakAt := m.peakAt
	r := m.res
	if peakAt >= 0 {
		m = machine{p: p, s: s, n: int32(len(p.Ops))}
		if err := m.run(peakAt); err != nil {
			return Result{}, err
		}
		r.Alive = m.res.Alive
	}
	return r, nil
}

// execution is one run of an op.
type execution struct {
	stage, op int32
	keepIn    []bool // by position of Op.In: read again before it is defined again
	keepOut   []bool // by position of Op.Out
}

// Where the content of a value is.
const (
	nowhere = iota
	onDevice
	arriving // device bytes are taken, the copy in is under way
	swapped
)

type machine struct {
	p        *Problem
	s        *Solution
	n        int32
	executed []execution
	where    []uint8
	copyIn   []int     // by value: number of its copy on the in lane, while arriving
	onHost   []bool    // the host holds the content
	placed   []bool    // persistent value: its Becomes took its place
	dead     []bool    // persistent value with Becomes: its content is not needed any more, its place is reserved
	heirs    [][]int32 // by op: persistent values whose Becomes it defines
	homed    []bool    // Becomes of a value whose home is the host

	leaving []int32 // by value: swap + 1 between its copy out and its freeing
	coming  []int32 // by value: swap whose copy in is under way
	outNo   []int   // by swap: number of its copy on the out lane
	reused  []bool  // by swap: a later swap of the value relies on the host copy

	freeAt, inAt, outAt [][]int32 // swaps by stage
	outFirst            []int32   // swaps out before the first stage

	device, host int64
	clock        int64
	bus          bus
	peakAt       int
	res          Result
}

func (m *machine) home(v int32) bool {
	return m.s.HostHome != nil && m.s.HostHome[v]
}

func (m *machine) run(captureAt int) error {
	if err := m.sequence(); err != nil {
		return err
	}
	if err := m.placeSwaps(); err != nil {
		return err
	}
	if err := m.begin(); err != nil {
		return err
	}
	m.lookAhead()
	m.peakAt = -1
	at := 0
	for _, k := range m.outFirst {
		if err := m.store(k); err != nil {
			return err
		}
	}
	for t := range m.n {
		for _, k := range m.freeAt[t] {
			if err := m.free(k); err != nil {
				return err
			}
		}
		for _, k := range m.inAt[t] {
			if err := m.load(k); err != nil {
				return err
			}
		}
		for ; at < len(m.executed) && m.executed[at].stage == t; at++ {
			if err := m.execute(at, captureAt == at); err != nil {
				return err
			}
		}
		for _, k := range m.outAt[t] {
			if err := m.store(k); err != nil {
				return err
			}
		}
	}
	for _, k := range m.freeAt[m.n] {
		if err := m.free(k); err != nil {
			return err
		}
	}
	return m.end()
}

// sequence lists all events in order and checks the recomputes.
func (m *machine) sequence() error {
	m.executed = make([]execution, 0, int(m.n)+len(m.s.Recomputes))
	next := 0
	for t := range m.n {
		for ; next < len(m.s.Recomputes) && m.s.Recomputes[next].Stage == t; next++ {
			r := m.s.Recomputes[next]
			if r.Op < 0 || r.Op >= t {
				return fmt.Errorf("recompute of op %d in stage %d: not an earlier op", r.Op, t)
			}
			if next > 0 && m.s.Recomputes[next-1].Stage == t && m.s.Recomputes[next-1].Op >= r.Op {
				return fmt.Errorf("recompute of op %d in stage %d: not in order", r.Op, t)
			}
			switch o := &m.p.Ops[r.Op]; {
			case !m.p.Recompute:
				return fmt.Errorf("recompute of op %d in stage %d: recomputing is not allowed", r.Op, t)
			case o.Once:
				return fmt.Errorf("recompute of op %d in stage %d: it must run once", r.Op, t)
			case t > o.LastRerun:
				return fmt.Errorf("recompute of op %d in stage %d: its last legal stage is %d", r.Op, t, o.LastRerun)
			}
			m.executed = append(m.executed, execution{stage: t, op: r.Op})
		}
		m.executed = append(m.executed, execution{stage: t, op: t})
	}
	if next < len(m.s.Recomputes) {
		return fmt.Errorf("recompute of op %d in stage %d: not in order or no such stage", m.s.Recomputes[next].Op, m.s.Recomputes[next].Stage)
	}
	return nil
}

// lookAhead finds, from the end backwards, which contents are read again.
func (m *machine) lookAhead() {
	need := make([]bool, len(m.p.Values))
	for v := range m.p.Values {
		x := &m.p.Values[v]
		need[v] = need[v] || x.Exit || x.Persistent && x.Becomes < 0
		if x.Persistent && x.Becomes >= 0 {
			need[x.Becomes] = true
		}
	}
	for i := len(m.executed) - 1; i >= 0; i-- {
		e := &m.executed[i]
		o := &m.p.Ops[e.op]
		e.keepOut = make([]bool, len(o.Out))
		e.keepIn = make([]bool, len(o.In))
		for k, v := range o.Out {
			e.keepOut[k] = need[v]
			need[v] = false
		}
		for k, v := range o.In {
			e.keepIn[k] = need[v]
			need[v] = true
		}
	}
	for v := range m.p.Values {
		x := &m.p.Values[v]
		if x.Def < 0 && need[v] && !m.home(int32(v)) {
			m.where[v] = onDevice
			m.device += x.Bytes
		}
		if x.Persistent && x.Becomes >= 0 && !need[v] {
			m.dead[v] = true // never read: only its place matters
			if !m.home(int32(v)) {
				m.where[v] = onDevice
				m.device += x.Bytes
			}
		}
	}
}

func (m *machine) begin() error {
	count := len(m.p.Values)
	m.where, m.onHost, m.placed, m.dead, m.homed = make([]uint8, count), make([]bool, count), make([]bool, count), make([]bool, count), make([]bool, count)
	m.copyIn, m.leaving, m.coming = make([]int, count), make([]int32, count), make([]int32, count)
	m.heirs = make([][]int32, m.n)
	if m.s.HostHome != nil && len(m.s.HostHome) != len(m.p.Values) {
		return fmt.Errorf("plan gives homes of %d values, problem has %d", len(m.s.HostHome), len(m.p.Values))
	}
	swapped0 := make([]bool, len(m.p.Values))
	for i := range m.s.Swaps {
		swapped0[m.s.Swaps[i].Value] = true
	}
	for v := range m.p.Values {
		x := &m.p.Values[v]
		home := m.home(int32(v))
		switch {
		case home && (!x.Persistent || m.p.Lanes == nil || x.NoSwap && !x.HomeFixed):
			return fmt.Errorf("value %d cannot have its home on the host", v)
		case x.HomeFixed && x.HostHome != home:
			return fmt.Errorf("value %d: its home is not for this plan to choose", v)
		}
		if home || swapped0[v] && (x.constant() || x.OnHost) {
			m.onHost[v] = true
			m.host += x.Bytes
		}
		if home {
			m.where[v] = swapped
		}
		if x.Persistent && x.Becomes >= 0 {
			d := m.p.Values[x.Becomes].Def
			m.heirs[d] = append(m.heirs[d], int32(v))
			m.homed[x.Becomes] = home
		}
	}
	m.res.HostPeakBytes = m.host
	m.bus = newBus(m.p.Lanes)
	return nil
}

// note records the live bytes of an event.
func (m *machine) note(bytes int64, stage, op int32) bool {
	if bytes <= m.res.PeakBytes {
		return false
	}
	m.res.PeakBytes, m.res.PeakStage, m.res.PeakOp = bytes, stage, op
	return true
}

func (m *machine) execute(at int, capture bool) error {
	e := &m.executed[at]
	o := &m.p.Ops[e.op]
	for _, v := range o.In {
		if err := m.arrive(v, e.stage); err != nil {
			return err
		}
		if m.where[v] != onDevice || m.dead[v] {
			return fmt.Errorf("op %d in stage %d reads value %d, which is not on the device", e.op, e.stage, v)
		}
	}
	taken := make([]int32, 0, 4) // operands whose bytes an output has
	took := make([]bool, len(o.Out))
	for _, v := range m.heirs[e.op] {
		ok, err := m.replace(e, v)
		if err != nil {
			return err
		}
		if ok {
			took[slices.Index(o.Out, m.p.Values[v].Becomes)] = true
			taken = append(taken, v)
		}
	}
	for _, pair := range o.Over {
		k, i := slices.Index(o.Out, pair.Out), slices.Index(o.In, pair.In)
		if took[k] || e.keepIn[i] || slices.Contains(taken, pair.In) || m.p.Values[pair.In].Persistent ||
			m.p.Values[pair.Out].Bytes > m.p.Values[pair.In].Bytes {
			continue
		}
		took[k] = true
		taken = append(taken, pair.In)
	}
	live := m.device + o.ScratchBytes
	for k, v := range o.Out {
		if m.where[v] != nowhere {
			return fmt.Errorf("op %d in stage %d defines value %d, whose old content is still needed or swapped", e.op, e.stage, v)
		}
		if !took[k] {
			live += m.p.Values[v].Bytes
		}
	}
	if m.note(live, e.stage, e.op) {
		m.peakAt = at
	}
	if capture {
		m.capture(o, took)
	}
	for _, v := range taken {
		if m.placed[v] {
			m.where[v] = nowhere
			m.device -= m.p.Values[v].Bytes
		}
	}
	for k, v := range o.In {
		if x := &m.p.Values[v]; !e.keepIn[k] && !m.placed[v] {
			if x.Persistent && x.Becomes >= 0 {
				m.dead[v] = true // its place stays reserved
				continue
			}
			m.where[v] = nowhere
			m.device -= x.Bytes
		}
	}
	for k, v := range o.Out {
		if e.keepOut[k] {
			m.where[v] = onDevice
			m.device += m.p.Values[v].Bytes
		}
	}
	m.clock += o.Picos
	m.res.ComputePicos += o.Picos
	if e.op != e.stage {
		m.res.RecomputePicos += o.Picos
	}
	return nil
}

// replace says whether the Becomes of persistent value v takes its place at e: nothing reads the old content any more.
func (m *machine) replace(e *execution, v int32) (bool, error) {
	o, b := &m.p.Ops[e.op], m.p.Values[v].Becomes
	if e.op != e.stage {
		return false, fmt.Errorf("op %d runs again in stage %d and would replace persistent value %d twice", e.op, e.stage, v)
	}
	if i := slices.Index(o.In, v); i >= 0 {
		if e.keepIn[i] || !slices.Contains(o.Over, Over{Out: b, In: v}) {
			return false, nil
		}
	} else if !m.dead[v] {
		return false, nil
	}
	if err := m.arrive(v, e.stage); err != nil {
		return false, err
	}
	if m.where[v] != onDevice {
		return false, fmt.Errorf("op %d must write value %d into the place of value %d, which is not on the device", e.op, b, v)
	}
	m.placed[v], m.dead[v] = true, false
	return true, nil
}

// capture lists what is on the device while o runs.
func (m *machine) capture(o *Op, took []bool) {
	for v := range m.p.Values {
		if m.where[v] == onDevice || m.where[v] == arriving {
			m.res.Alive = append(m.res.Alive, int32(v))
		}
	}
	for k, v := range o.Out {
		if !took[k] {
			m.res.Alive = append(m.res.Alive, v)
		}
	}
	slices.SortStableFunc(m.res.Alive, func(a, b int32) int {
		return cmp.Compare(m.p.Values[b].Bytes, m.p.Values[a].Bytes)
	})
}

// end checks that every value is where the next step expects it.
func (m *machine) end() error {
	for v := range m.p.Values {
		x := &m.p.Values[v]
		switch {
		case m.where[v] == arriving:
			return fmt.Errorf("value %d is copied in and then not used", v)
		case m.homed[v]:
		case x.Persistent && m.home(int32(v)):
			if m.where[v] == onDevice || x.Becomes >= 0 && m.where[x.Becomes] == onDevice {
				return fmt.Errorf("persistent value %d: its home is the host, yet it is on the device at the end", v)
			}
			if !m.onHost[v] {
				return fmt.Errorf("persistent value %d: its new content is not on the host at the end", v)
			}
		case x.Persistent && x.Becomes >= 0:
			if !m.placed[v] && m.where[v] != onDevice {
				return fmt.Errorf("persistent value %d: its place is not on the device at the end", v)
			}
			if m.where[x.Becomes] != onDevice {
				return fmt.Errorf("value %d, the new content of persistent value %d, is not on the device at the end", x.Becomes, v)
			}
		case x.Persistent || x.Exit:
			if m.where[v] != onDevice {
				return fmt.Errorf("value %d is not on the device at the end", v)
			}
		}
	}
	m.clock = m.bus.drain(m.clock)
	m.res.StepPicos = m.clock
	m.res.StallPicos = m.clock - m.res.ComputePicos
	return nil
}
