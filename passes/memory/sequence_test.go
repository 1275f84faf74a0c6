package memory

import (
	"math/rand/v2"
	"testing"
)

// planOf states a line of events as the problem in its order of first runs and the plan of the reruns; ok is false if the reruns of a stage are not in order, so that it is none.
func planOf(t *testing.T, p *Problem, line []int32) (*Problem, *Solution, bool) {
	t.Helper()
	at := make(map[int32]int32)
	var order []int32
	s := &Solution{}
	for _, j := range line {
		if k, again := at[j]; again {
			r := Recompute{Stage: int32(len(order)), Op: k}
			if n := len(s.Recomputes); n > 0 && s.Recomputes[n-1].Stage == r.Stage && s.Recomputes[n-1].Op >= r.Op {
				return nil, nil, false
			}
			if len(order) == len(p.Ops) {
				return nil, nil, false
			}
			s.Recomputes = append(s.Recomputes, r)
			continue
		}
		at[j] = int32(len(order))
		order = append(order, j)
	}
	q, err := Reorder(p, order)
	if err != nil {
		return nil, nil, false
	}
	m := newModel(q)
	for _, r := range s.Recomputes {
		if r.Stage > m.last[r.Op] {
			return nil, nil, false
		}
	}
	return q, s, true
}

// walkSequence makes random changes of a sequence, legal as sequences know it, and compares with the simulator wherever the line is a plan.
func walkSequence(t *testing.T, seed uint64, n, steps int) (compared int) {
	r := rand.New(rand.NewPCG(seed, 31))
	p := randomProblem(r, n)
	m := newModel(p)
	line := make([]int32, m.n)
	for i := range line {
		line[i] = int32(i)
	}
	q := newSequence(m, line)
	before := q.tree.peak()
	for range steps {
		j, s := int32(r.IntN(int(m.n))), int32(r.IntN(int(q.size)))
		switch {
		case r.IntN(3) > 0 && m.last[j] >= 0:
			if q.canRun(s, j) && (len(q.runs[j]) == 0 || s > q.runs[j][0]) {
				q.add(s, j)
			}
		case r.IntN(2) == 0 && len(q.list) > 0:
			q.remove(q.list[r.IntN(len(q.list))])
		case q.canRun(s, j): // the base run somewhere else
			was := q.runs[j][0]
			q.add(s, j)
			if q.canRemove(was) {
				q.remove(was)
			} else {
				q.remove(s)
			}
		}
		pp, sol, ok := planOf(t, p, q.line())
		if !ok {
			continue
		}
		got, err := Simulate(pp, sol)
		if err != nil {
			continue // moved or made again where package memory does not allow it; sequences leave that to the moves
		}
		compared++
		if got.PeakBytes != q.tree.peak() || got.ComputePicos != q.picos {
			t.Fatalf("seed %d: sequence believes in %d bytes, %d ps; simulated %d, %d\nline %v\nproblem %+v", seed, q.tree.peak(), q.picos, got.PeakBytes, got.ComputePicos,
				q.line(), p)
		}
		over := int64(0)
		for s := range q.size {
			if x := q.tree.most(s, s+1); x > got.PeakBytes/2 {
				over += x - got.PeakBytes/2
			}
		}
		if have := q.tree.over(got.PeakBytes / 2); have != over {
			t.Fatalf("seed %d: over is %d, want %d", seed, have, over)
		}
	}
	for len(q.list) > 0 {
		q.remove(q.list[0])
	}
	if base := newSequence(m, q.line()); base.tree.peak() != q.tree.peak() || len(q.line()) != int(m.n) {
		t.Fatalf("seed %d: peak %d after all reruns are gone, %d made anew (%d at first)", seed, q.tree.peak(), base.tree.peak(), before)
	}
	return compared
}

func TestSequenceAgreesWithSimulator(t *testing.T) {
	compared := 0
	for seed := range uint64(1500) {
		compared += walkSequence(t, seed, 1+int(seed%14), 40)
	}
	if compared < 15000 {
		t.Errorf("only %d lines were plans", compared)
	}
	t.Logf("%d lines compared", compared)
}
