package memory

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// agree fails unless the simulator finds the peak and the compute time that the state believes in.
func agree(t *testing.T, p *Problem, s *state, what string) {
	t.Helper()
	got, err := Simulate(p, &Solution{Recomputes: s.recomputes()})
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	if got.PeakBytes != s.tree.peak() || got.ComputePicos != s.picos {
		t.Fatalf("%s: state believes in %d bytes, %d ps; simulated %d bytes (op %d in stage %d), %d ps\nplan %v\nproblem %+v",
			what, s.tree.peak(), s.picos, got.PeakBytes, got.PeakOp, got.PeakStage, got.ComputePicos, s.recomputes(), p)
	}
	var sum int64
	for _, v := range got.Alive {
		sum += p.Values[v].Bytes
	}
	if scratch := p.Ops[got.PeakOp].ScratchBytes; len(p.Ops) > 0 && got.PeakBytes > 0 && sum+scratch != got.PeakBytes {
		t.Fatalf("%s: values alive at the peak sum to %d, peak is %d with scratch %d", what, sum, got.PeakBytes, scratch)
	}
}

func TestStateAgreesWithSimulator(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 1))
		p := randomProblem(r, 1+r.IntN(14))
		if err := Validate(p); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		s := newState(newModel(p))
		before := s.tree.peak()
		agree(t, p, s, fmt.Sprintf("seed %d, nothing rerun", seed))
		type move struct{ t, j int32 }
		var added []move
		for i := range 25 {
			if a, j, ok := randomRerun(r, s, r.IntN(3) == 0); ok {
				if s.reruns(a, j) {
					s.remove(a, j)
				} else {
					s.add(a, j)
					added = append(added, move{a, j})
				}
				agree(t, p, s, fmt.Sprintf("seed %d, move %d (op %d in stage %d)", seed, i, j, a))
			}
		}
		for _, a := range added {
			if s.reruns(a.t, a.j) {
				s.remove(a.t, a.j)
			}
		}
		if s.tree.peak() != before || s.picos != s.m.sum || s.count != 0 {
			t.Fatalf("seed %d: peak %d after undoing everything, was %d", seed, s.tree.peak(), before)
		}
	}
}

func TestTreeAgreesWithArray(t *testing.T) {
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 2))
		n := 1 + r.IntN(40)
		tree, array := newPeakTree(n), make([]int64, n)
		for range 60 {
			a, b, x := r.IntN(n+1), r.IntN(n+1), int64(r.IntN(40)-20)
			tree.add(int32(a), int32(b), x)
			for i := a; i < b; i++ {
				array[i] += x
			}
			budget := int64(r.IntN(60) - 30)
			most, peak, arg, over, first := absent, absent, 0, int64(0), n
			for i, y := range array {
				if i >= a && i < b {
					most = max(most, y)
				}
				if y > peak {
					peak, arg = y, i
				}
				over += max(0, y-budget)
				if y > budget && i >= a {
					first = min(first, i)
				}
				if tree.at(int32(i)) != y {
					t.Fatalf("seed %d: stage %d is %d, want %d", seed, i, tree.at(int32(i)), y)
				}
			}
			if tree.peak() != peak || tree.argmax() != int32(arg) || tree.most(int32(a), int32(b)) != most || tree.over(budget) != over ||
				tree.firstOver(int32(a), budget) != int32(first) {
				t.Fatalf("seed %d: peak %d at %d, most %d, over %d, first %d; want %d at %d, %d, %d, %d", seed, tree.peak(), tree.argmax(),
					tree.most(int32(a), int32(b)), tree.over(budget), tree.firstOver(int32(a), budget), peak, arg, most, over, first)
			}
		}
	}
}
