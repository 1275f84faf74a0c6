package memory

import "testing"

// A parameter that lives on the device and goes to the host within a step needs a copy out if another program changes it between steps, and none if nothing
// does: a copy on the host from before would be stale.
func TestChangedElsewhereIsWritten(t *testing.T) {
	for _, changes := range []bool{false, true} {
		const big = 1 << 20
		p := &Problem{
			Values: []Value{
				{Bytes: big, Def: -1, Persistent: true, Becomes: -1, HomeFixed: true, Changes: changes}, // read first and last
				{Bytes: big, Def: 0, Becomes: -1}, {Bytes: big, Def: 1, Becomes: -1}, {Bytes: big, Def: 2, Becomes: -1},
				{Bytes: 64, Def: 3, Becomes: -1, Exit: true},
			},
			Ops: []Op{
				{Picos: 1e9, In: []int32{0}, Out: []int32{1}, LastRerun: 4},
				{Picos: 1e9, In: []int32{1}, Out: []int32{2}, LastRerun: 4},
				{Picos: 1e9, In: []int32{1, 2}, Out: []int32{3}, LastRerun: 4},
				{Picos: 1e9, In: []int32{0, 3}, Out: []int32{4}, LastRerun: 4},
			},
			BudgetBytes: 3*big + 64,
			Lanes:       lanesOf(16),
		}
		sol, err := Solve(p, Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := Simulate(p, sol)
		if err != nil {
			t.Fatal(err)
		}
		written := false
		for _, s := range sol.Swaps {
			written = written || s.Value == 0 && s.Write
		}
		if len(sol.Swaps) == 0 || written != changes || r.SwapOutBytes != map[bool]int64{true: big, false: 0}[changes] {
			t.Errorf("changes %v: swaps %+v, %d bytes out", changes, sol.Swaps, r.SwapOutBytes)
		}
	}
}
