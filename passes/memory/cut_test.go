package memory

import (
	"math/rand/v2"
	"testing"
)

// TestCutAgainstAllCuts compares the flow with the least of all cuts of small networks, and the side of the sink that it leaves with that cut.
func TestCutAgainstAllCuts(t *testing.T) {
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 11))
		inner := 1 + r.IntN(6)
		c := newCutNet()
		for range inner {
			c.node()
		}
		type arc struct {
			from, to int32
			room     int64
		}
		var arcs []arc
		for range 3 * inner {
			a := arc{int32(r.IntN(inner + 2)), int32(r.IntN(inner + 2)), int64(r.IntN(20))}
			if a.from == a.to || a.from == cutSink || a.to == cutSource {
				continue
			}
			arcs = append(arcs, a)
			c.arc(a.from, a.to, a.room)
		}
		cost := func(source func(node int32) bool) (sum int64) {
			for _, a := range arcs {
				if source(a.from) && !source(a.to) {
					sum += a.room
				}
			}
			return sum
		}
		least := int64(1) << 60
		for set := range 1 << inner {
			least = min(least, cost(func(n int32) bool { return n == cutSource || n > cutSink && set>>(n-2)&1 == 1 }))
		}
		if flow := c.maximise(); flow != least {
			t.Fatalf("seed %d: flow %d, least cut %d", seed, flow, least)
		}
		if got := cost(func(n int32) bool { return c.level[n] >= 0 }); got != least {
			t.Fatalf("seed %d: the cut that the levels tell costs %d, least %d", seed, got, least)
		}
	}
}
