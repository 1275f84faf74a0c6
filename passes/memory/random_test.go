package memory

import "math/rand/v2"

// randomProblem draws a small problem with everything in it: several outputs, pairs, inputs, persistent values that change or do not,
// results, ops that run once, last legal reruns. The same seed gives the same problem.
func randomProblem(r *rand.Rand, n int) *Problem {
	p := &Problem{BudgetBytes: -1, Recompute: true}
	leaf := func(v Value) int32 {
		v.Def = -1
		p.Values = append(p.Values, v)
		return int32(len(p.Values) - 1)
	}
	var pool []int32 // values that ops may read
	var changing []int32
	for range 1 + r.IntN(3) {
		pool = append(pool, leaf(Value{Bytes: randomBytes(r), Becomes: -1, NoSwap: r.IntN(6) == 0, OnHost: r.IntN(3) == 0, Exit: r.IntN(12) == 0}))
	}
	for range r.IntN(4) {
		v := leaf(Value{Bytes: randomBytes(r), Becomes: -1, Persistent: true, NoSwap: r.IntN(6) == 0})
		pool = append(pool, v)
		if r.IntN(2) == 0 {
			changing = append(changing, v)
		}
	}
	for j := range int32(n) {
		o := Op{Picos: int64(1 + r.IntN(9)), ScratchBytes: int64(r.IntN(4) / 3 * r.IntN(9)), LastRerun: int32(n), Once: r.IntN(10) == 0}
		if r.IntN(8) == 0 {
			o.LastRerun = int32(r.IntN(n + 1))
		}
		for range r.IntN(4) {
			v := pool[r.IntN(len(pool))]
			if r.IntN(2) == 0 {
				v = pool[len(pool)-1-r.IntN(min(4, len(pool)))]
			}
			if !contains(o.In, v) {
				o.In = append(o.In, v)
			}
		}
		outs := 1 + r.IntN(6)/5 - r.IntN(12)/11
		for range outs {
			p.Values = append(p.Values, Value{Bytes: randomBytes(r), Def: j, Becomes: -1, Exit: r.IntN(10) == 0, NoSwap: r.IntN(8) == 0})
			o.Out = append(o.Out, int32(len(p.Values)-1))
		}
		if len(changing) > 0 && len(o.Out) > 0 && r.IntN(n) < 2+int(j)/3 {
			v, b := changing[0], o.Out[0]
			changing = changing[1:]
			p.Values[v].Becomes = b
			p.Values[b].Bytes = p.Values[v].Bytes
			if r.IntN(4) > 0 && !contains(o.In, v) {
				o.In = append(o.In, v)
			}
			if contains(o.In, v) && r.IntN(5) > 0 {
				o.Over = append(o.Over, Over{Out: b, In: v})
			}
			if r.IntN(4) > 0 { // mostly nothing reads the old content later
				for i, u := range pool {
					if u == v {
						pool = append(pool[:i:i], pool[i+1:]...)
						break
					}
				}
			}
		}
		for _, v := range o.Out {
			for _, u := range o.In {
				if r.IntN(2) == 0 {
					o.Over = append(o.Over, Over{Out: v, In: u})
				}
			}
		}
		pool = append(pool, o.Out...)
		if len(pool) == 0 {
			pool = append(pool, leaf(Value{Bytes: 1, Becomes: -1}))
		}
		p.Ops = append(p.Ops, o)
	}
	return p
}

func randomBytes(r *rand.Rand) int64 { return int64(r.IntN(5) * (1 + r.IntN(8))) }

// randomRerun draws a legal rerun that s does not have, or one that it has; ok is false if it found none.
func randomRerun(r *rand.Rand, s *state, has bool) (t, j int32, ok bool) {
	for range 30 {
		t, j = int32(r.IntN(int(s.m.n))), int32(r.IntN(int(s.m.n)))
		if has && s.reruns(t, j) || !has && s.canRerun(t, j) {
			return t, j, true
		}
	}
	return 0, 0, false
}
