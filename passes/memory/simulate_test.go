package memory

import (
	"strings"
	"testing"
)

// small is a step that can be followed by hand. Values 0..3 are defined by ops 0..3 (10, 20, 20, 5 bytes), 4 is an input of 7, 5 a weight of 8 that op 4
// replaces by value 6 in its place, 7 a frozen weight of 9.
//
//	op 0  reads 4, 7      -> 0      op 3  reads 2, 0, 5 -> 3 (scratch 6)
//	op 1  reads 0         -> 1      op 4  reads 3, 5    -> 6 over 5, once
//	op 2  reads 1         -> 2 over 1
func small() *Problem {
	return &Problem{
		Recompute: true,
		Ops: []Op{
			{Picos: 100, In: []int32{4, 7}, Out: []int32{0}, LastRerun: 5},
			{Picos: 100, In: []int32{0}, Out: []int32{1}, LastRerun: 5},
			{Picos: 100, In: []int32{1}, Out: []int32{2}, Over: []Over{{2, 1}}, LastRerun: 3},
			{Picos: 100, In: []int32{2, 0, 5}, Out: []int32{3}, ScratchBytes: 6, LastRerun: 4},
			{Picos: 100, In: []int32{3, 5}, Out: []int32{6}, Over: []Over{{6, 5}}, Once: true, LastRerun: 5},
		},
		Values: []Value{
			{Bytes: 10, Def: 0, Becomes: -1}, {Bytes: 20, Def: 1, Becomes: -1}, {Bytes: 20, Def: 2, Becomes: -1}, {Bytes: 5, Def: 3, Becomes: -1},
			{Bytes: 7, Def: -1, Becomes: -1}, {Bytes: 8, Def: -1, Persistent: true, Becomes: 6}, {Bytes: 8, Def: 4, Becomes: -1, Exit: true},
			{Bytes: 9, Def: -1, Persistent: true, Becomes: -1},
		},
		Lanes: &Lanes{D2HBytesPerSec: 1e11, H2DBytesPerSec: 2e11, LatencyPicos: 5, DuplexPermille: 500, HostBudgetBytes: -1}, // 10 and 5 ps a byte
	}
}

func TestSimulateByHand(t *testing.T) {
	homes := make([]bool, 8)
	homes[5] = true
	for _, c := range []struct {
		name                    string
		plan                    Solution
		peak, stage, host, step int64
	}{
		// 17 bytes of weights throughout; op 3 has 0, 2, 3 and scratch on top.
		{"as it is", Solution{}, 17 + 10 + 20 + 5 + 6, 3, 0, 500},
		// Value 0 is made again in stage 3, so it is gone in stage 2, but its input must stay until then.
		{"recompute", Solution{Recomputes: []Recompute{{3, 0}}}, 17 + 10 + 20 + 5 + 6, 3, 0, 600},
		// Out: 105 ps from 200 on, awaited at 300 before op 3 would be too late to gain; in at stage 3: 55 ps.
		{"swap", Solution{Swaps: []Swap{{Value: 0, After: 1, Free: 3, Before: 3, Use: 3, Write: true}}}, 17 + 41, 3, 10, 500 + 5 + 55},
		// The frozen weight leaves after its only use, without being written, and is loaded before op 0: 50 ps that op 0 waits for.
		{"home", Solution{HostHome: []bool{false, false, false, false, false, false, false, true}, Swaps: []Swap{{Value: 7, After: 0, Free: 1, Before: 0, Use: 0, Wraps: true}}},
			8 + 10 + 20 + 5 + 6, 3, 9, 550},
		// The other weight comes in during op 2 and leaves, changed, at the end: 85 ps after op 4.
		{"changing home", Solution{HostHome: homes, Swaps: []Swap{{Value: 5, After: 4, Free: 5, Before: 2, Use: 3, Write: true, Wraps: true}}}, 9 + 8 + 41, 3, 8, 585},
		// Both lanes are busy from 300 on at half speed: value 0 leaves from 100 to 205; value 5 ...
		{"duplex", Solution{HostHome: homes, Swaps: []Swap{
			{Value: 0, After: 1, Free: 3, Before: 3, Use: 3, Write: true},
			{Value: 5, After: 4, Free: 5, Before: 2, Use: 3, Write: true, Wraps: true}}},
			// out from 200, in (45 ps of work) from 200: both at half speed until 290, out has 60 left, done at 350; value 0 in from 350 to 405; op 3, 4; 85 out
			9 + 8 + 41, 3, 18, 405 + 200 + 85},
	} {
		got, err := Simulate(small(), &c.plan)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got.PeakBytes != c.peak || int64(got.PeakStage) != c.stage || got.HostPeakBytes != c.host || got.StepPicos != c.step {
			t.Errorf("%s: %d bytes in stage %d, %d on the host, %d ps; want %d in %d, %d, %d", c.name, got.PeakBytes, got.PeakStage, got.HostPeakBytes, got.StepPicos,
				c.peak, c.stage, c.host, c.step)
		}
	}
}

// TestSimulateRefuses breaks plans in one way each.
func TestSimulateRefuses(t *testing.T) {
	home := func(v int) []bool {
		h := make([]bool, 8)
		h[v] = true
		return h
	}
	rerun := func(r ...Recompute) Solution { return Solution{Recomputes: r} }
	swap := func(s ...Swap) Solution { return Solution{Swaps: s} }
	for _, c := range []struct {
		want string
		plan Solution
		with func(p *Problem)
	}{
		{"not an earlier op", rerun(Recompute{2, 2}), nil},
		{"no such stage", rerun(Recompute{5, 0}), nil},
		{"not in order", rerun(Recompute{3, 1}, Recompute{3, 0}), nil},
		{"last legal stage is 3", rerun(Recompute{4, 2}), nil},
		{"must run once", rerun(Recompute{3, 1}), func(p *Problem) { p.Ops[1].Once = true }},
		{"recomputing is not allowed", rerun(Recompute{3, 0}), func(p *Problem) { p.Recompute = false }},
		{"stages after 1, free 1", swap(Swap{Value: 0, After: 1, Free: 1, Before: 3, Use: 3, Write: true}), nil},
		{"reads value 0, which is not on the device", swap(Swap{Value: 0, After: 0, Free: 1, Before: 3, Use: 3, Write: true}), nil},
		{"does not hold the content", swap(Swap{Value: 0, After: 1, Free: 2, Before: 3, Use: 3}), nil},
		{"written again", swap(Swap{Value: 7, After: -1, Free: 0, Before: 0, Use: 0, Write: true}), nil},
		{"first used again in stage 3, not 4", swap(Swap{Value: 0, After: 1, Free: 2, Before: 3, Use: 4, Write: true}), nil},
		{"must not be swapped", swap(Swap{Value: 0, After: 1, Free: 2, Before: 3, Use: 3, Write: true}), func(p *Problem) { p.Values[0].NoSwap = true }},
		{"swapping is not allowed", swap(Swap{Value: 0, After: 1, Free: 2, Before: 3, Use: 3, Write: true}), func(p *Problem) { p.Lanes = nil }},
		{"not on the device", swap(Swap{Value: 1, After: 2, Free: 3, Before: 3, Use: 3, Write: true}), nil},
		{"copied in and then not used", swap(Swap{Value: 7, After: 1, Free: 2, Before: 3, Use: 3}), nil},
		{"already leaves it", Solution{Recomputes: []Recompute{{3, 0}}, Swaps: []Swap{{Value: 0, After: 1, Free: 2, Before: 3, Use: 3, Write: true}}}, nil},
		{"which is not on the device", Solution{HostHome: home(7)}, nil},
		{"yet its home is not the host", swap(Swap{Value: 7, After: 0, Free: 1, Before: 0, Use: 0, Wraps: true}), nil},
		{"exactly if its content changes", Solution{HostHome: home(5), Swaps: []Swap{{Value: 5, After: 4, Free: 5, Before: 0, Use: 3, Wraps: true}}}, nil},
		{"not for this plan to choose", Solution{HostHome: home(5)}, func(p *Problem) { p.Values[5].HomeFixed = true }},
		{"cannot have its home on the host", Solution{HostHome: home(4)}, nil},
	} {
		p := small()
		if c.with != nil {
			c.with(p)
		}
		if _, err := Simulate(p, &c.plan); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error with %q, got %v", c.want, err)
		}
	}
}

func TestValidate(t *testing.T) {
	if err := Validate(small()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want  string
		spoil func(p *Problem)
	}{
		{"reads value 9 of 8", func(p *Problem) { p.Ops[0].In[0] = 9 }},
		{"reads value 3, which op 3 defines later", func(p *Problem) { p.Ops[0].In[0] = 3 }},
		{"reads value 2 twice", func(p *Problem) { p.Ops[3].In[1] = 2 }},
		{"whose Def is 0", func(p *Problem) { p.Ops[1].Out = append(p.Ops[1].Out, 0) }},
		{"does not list it", func(p *Problem) { p.Values[4].Def = 1 }},
		{"pair of output 2 over operand 0", func(p *Problem) { p.Ops[2].Over[0].In = 0 }},
		{"-1 picoseconds", func(p *Problem) { p.Ops[2].Picos = -1 }},
		{"bytes is out of range", func(p *Problem) { p.Values[2].Bytes = -1 }},
		{"all values together", func(p *Problem) { p.Values[2].Bytes, p.Values[1].Bytes = maxTotalBytes, maxTotalBytes }},
		{"persistent, yet defined", func(p *Problem) { p.Values[0].Persistent = true }},
		{"becomes value 4, which no op defines", func(p *Problem) { p.Values[5].Becomes = 4 }},
		{"of 9 bytes becomes value 6 of 8", func(p *Problem) { p.Values[5].Bytes = 9 }},
		{"both become value 6", func(p *Problem) { p.Values[7].Becomes, p.Values[7].Bytes = 6, 8 }},
		{"only inputs can be OnHost", func(p *Problem) { p.Values[0].OnHost = true }},
		{"only persistent values have a home", func(p *Problem) { p.Values[4].HomeFixed = true }},
		{"must be positive", func(p *Problem) { p.Lanes.H2DBytesPerSec = 0 }},
		{"must lie within 0 and 1000", func(p *Problem) { p.Lanes.DuplexPermille = 1001 }},
		{"takes too long", func(p *Problem) { p.Lanes.D2HBytesPerSec, p.Values[0].Bytes = 1, 1<<40 }},
		{"host budget is 3", func(p *Problem) {
			p.Values[7].HomeFixed, p.Values[7].HostHome, p.Lanes.HostBudgetBytes = true, true, 3
		}},
		{"write value 6 over it", func(p *Problem) { p.Values[5].HomeFixed, p.Values[5].HostHome, p.Ops[4].Over = true, true, nil }},
	} {
		p := small()
		c.spoil(p)
		if err := Validate(p); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("want an error with %q, got %v", c.want, err)
		}
		if _, err := Solve(p, Options{}); err == nil {
			t.Errorf("Solve takes a problem with %q", c.want)
		}
	}
}
