package check_test

import (
	"encoding/binary"
	"hash/fnv"
	"math/rand/v2"
	"slices"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/ir/plan/check"
)

// machine runs program step twice without a barrier on real bytes: an op writes a hash of all that it reads. It knows neither symbols nor
// clocks nor spans, so it shares nothing with the checker but the plan.
type machine struct {
	p   *plan.Plan
	pr  *plan.Program
	mem [ir.NumSpaces][]byte
}

func newMachine(p *plan.Plan) *machine {
	m := &machine{p: p, pr: &p.Programs[pStep]}
	for _, a := range p.Arenas {
		m.mem[a.Space] = make([]byte, a.Bytes)
		for i := range m.mem[a.Space] {
			m.mem[a.Space][i] = byte(i * 7)
		}
	}
	return m
}

func (m *machine) bytes(q plan.Ref) []byte {
	b := &m.p.Buffers[q.Buffer]
	return m.mem[b.Type.Space][b.Offset+q.Offset:][:q.Type.Bytes()]
}

// feed writes the input of a run.
func (m *machine) feed(run int) {
	for i := range m.bytes(m.pr.Inputs[0].Ref) {
		m.bytes(m.pr.Inputs[0].Ref)[i] = byte(100*run + i)
	}
}

// touching lists the instructions that read or write any byte of q.
func (m *machine) touching(q plan.Ref) (pcs []int) {
	meets := func(o plan.Ref) bool {
		a, b := &m.p.Buffers[q.Buffer], &m.p.Buffers[o.Buffer]
		return a.Type.Space == b.Type.Space && a.Offset < b.Offset+b.Bytes && b.Offset < a.Offset+a.Bytes
	}
	for pc, i := range m.pr.Instrs {
		var refs []plan.Ref
		switch x := i.(type) {
		case *plan.Exec:
			refs = append(append(refs, x.In...), x.Out...)
			if x.Scratch != plan.NoBuffer {
				refs = append(refs, plan.Ref{Buffer: x.Scratch})
			}
		case *plan.Copy:
			refs = append(refs, x.Src, x.Dst)
		}
		if slices.ContainsFunc(refs, meets) {
			pcs = append(pcs, pc)
		}
	}
	return pcs
}

// do runs an instruction and returns a hash of what it read.
func (m *machine) do(i plan.Instr) uint64 {
	h := fnv.New64a()
	switch x := i.(type) {
	case *plan.Exec:
		h.Write([]byte(ir.FormatOp(x.Op)))
		for _, q := range x.In {
			h.Write(m.bytes(q))
		}
		sum := h.Sum64()
		if x.Scratch != plan.NoBuffer {
			clear(m.bytes(plan.Ref{Buffer: x.Scratch, Type: m.p.Buffers[x.Scratch].Type}))
		}
		for k, q := range x.Out {
			out := m.bytes(q)
			for at := range out {
				var word [8]byte
				binary.LittleEndian.PutUint64(word[:], sum+uint64(k))
				out[at] = word[at%8] + byte(at)
			}
		}
		return sum
	case *plan.Copy:
		h.Write(m.bytes(x.Src))
		copy(m.bytes(x.Dst), m.bytes(x.Src))
	}
	return h.Sum64()
}

// sequential is what every instruction of both runs reads when they run one after the other in list order.
func sequential(p *plan.Plan) (seen [2][]uint64) {
	m := newMachine(p)
	for run := range seen {
		m.feed(run)
		for _, i := range m.pr.Instrs {
			seen[run] = append(seen[run], m.do(i))
		}
	}
	return seen
}

// interleaved runs lanes in random order and tells whether every instruction read what it reads in sequence.
func interleaved(p *plan.Plan, want [2][]uint64, r *rand.Rand) bool {
	m := newMachine(p)
	n := len(m.pr.Instrs)
	done := [2][]bool{make([]bool, n), make([]bool, n)}
	var queues [plan.NumLanes][]int // run*n + pc
	for k := range 2 * n {
		l := plan.LaneOf(m.pr.Instrs[k%n])
		queues[l] = append(queues[l], k)
	}
	touching := m.touching(m.pr.Inputs[0].Ref)
	m.feed(0)
	fed := 0
	for left, idle := 2*n, 0; left > 0 && idle < 1000; idle++ {
		l := r.IntN(len(queues))
		if len(queues[l]) == 0 {
			continue
		}
		run, pc := queues[l][0]/n, queues[l][0]%n
		if run > fed { // the caller feeds the next run once nothing touches the input any more
			if slices.ContainsFunc(touching, func(pc int) bool { return !done[0][pc] }) {
				continue
			}
			fed = run
			m.feed(run)
		}
		if w, ok := m.pr.Instrs[pc].(*plan.Wait); ok {
			if of := run - int(w.Back); of >= 0 && !done[of][w.On] {
				continue
			}
		} else if m.do(m.pr.Instrs[pc]) != want[run][pc] {
			return false
		}
		done[run][pc] = true
		queues[l] = queues[l][1:]
		left, idle = left-1, 0
	}
	return true
}

// TestAcceptedPlansSurviveInterleaving edits waits, lanes and offsets of the good plan at random. What the checker accepts must compute the same
// in every order of the lanes.
func TestAcceptedPlansSurviveInterleaving(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	accepted, wrong := 0, 0
	for range 3000 {
		m := goodMaker()
		for range 1 + r.IntN(2) {
			editOrder(m, r)
		}
		sound := check.Check(m.p) == nil
		want := sequential(m.p)
		survives := true
		for range 12 {
			survives = survives && interleaved(m.p, want, r)
		}
		if sound {
			accepted++
		}
		if !survives {
			wrong++
		}
		if sound && !survives {
			t.Fatalf("accepted, but an interleaving reads something else: %+v", m.p.Programs[pStep].Instrs)
		}
	}
	t.Logf("%d accepted, %d shown wrong by an interleaving", accepted, wrong)
	if accepted < 100 || wrong < 100 {
		t.Errorf("the edits are too harsh or too mild: %d accepted, %d wrong", accepted, wrong)
	}
}

// editOrder changes what orders instructions, or where bytes lie, and leaves everything within its arena.
func editOrder(m *maker, r *rand.Rand) {
	pr := &m.p.Programs[pStep]
	n := int32(len(pr.Instrs))
	var waits []int32
	for pc, i := range pr.Instrs {
		if _, ok := i.(*plan.Wait); ok {
			waits = append(waits, int32(pc))
		}
	}
	w := pr.Instrs[waits[r.IntN(len(waits))]].(*plan.Wait)
	switch r.IntN(4) {
	case 0:
		w.On = r.Int32N(n)
	case 1:
		w.Lane = plan.Lane(r.IntN(3))
	case 2:
		w.Back, w.On = 1, r.Int32N(n)
	case 3:
		b := &m.p.Buffers[r.IntN(len(m.p.Buffers))]
		if b.Type.Space == ir.Device && b.Category != plan.CatStaging && b.Bytes == 64 {
			b.Offset = int64(r.IntN(9)) * 64
		}
	}
}
