package pack

import (
	"math/rand/v2"
	"testing"
)

// The tree answers what a plain table answers.
func TestLoads(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	var l loads
	for range 20 {
		plain := make([]int64, 1+rng.IntN(70))
		for k := range plain {
			plain[k] = rng.Int64N(50)
		}
		l.rel = nil
		l.fill(plain)
		for range 300 {
			a := rng.IntN(len(plain))
			e := a + 1 + rng.IntN(len(plain)-a)
			at := a
			for k := a; k < e; k++ {
				if plain[k] > plain[at] {
					at = k
				}
			}
			if section, bytes := l.most(int32(a), int32(e)); section != int32(at) || bytes != plain[at] {
				t.Fatalf("most of [%d, %d): section %d with %d, want %d with %d", a, e, section, bytes, at, plain[at])
			}
			a = rng.IntN(len(plain))
			e = a + 1 + rng.IntN(len(plain)-a)
			by := rng.Int64N(20)
			l.take(int32(a), int32(e), by)
			for k := a; k < e; k++ {
				plain[k] -= by
			}
		}
	}
}
