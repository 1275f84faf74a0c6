package pack

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"sync"
)

// portfolio runs the valley skyline and first fit over many orders.
type portfolio struct {
	*search
	directions [2]*ranker // of time: forward, backward
	rings      [2]*ring
	order      int  // of the best fixed pass of the valley skyline, -1: none; an index into names
	direction  int  // of the same
	ahead      bool // of the same
	target     int64
	workers    []*worker // one per goroutine, kept from run to run

	blend          *blend // of the best blended pass
	blendArena     int64
	blendSeed      uint64
	blendDirection int
	blendAhead     bool
}

func (s *search) newPortfolio() *portfolio {
	h := &portfolio{search: s, order: -1, target: s.target}
	if s.capacity == 0 { // what is missing to the grain is left to the exact search
		h.target += s.p.grain - 1
		if s.options.Enough == 0 && len(s.p.items) > largeLimit {
			h.target = max(h.target, s.best.BoundBytes+s.best.BoundBytes/largeEnough)
		}
	}
	h.directions[0] = newRanker(s.p)
	if s.p.isArcs {
		back := s.p.mirror()
		h.directions[1] = h.directions[0].mirrored(back)
		h.rings = [2]*ring{newRing(s.p), newRing(back)}
	}
	return h
}

// worker is the scratch of one goroutine.
type worker struct {
	valleys valleys
	keys    []int32
}

// pass is a pass of the valley skyline in a direction of time.
func (h *portfolio) pass(w *worker, direction int, keys []int32, ahead bool, limit int64) []int64 {
	w.valleys.ring = h.rings[direction]
	return w.valleys.pass(keys, ahead, limit)
}

func (h *portfolio) newWorker() *worker {
	return &worker{keys: make([]int32, len(h.p.items))}
}

// pass is one try of a heuristic.
type pass struct {
	name             string
	offsets          func(w *worker, limit int64) []int64 // by item, nil: nothing at or under the limit; it may be overwritten by the next pass of the worker
	order, direction int                                  // of a named order of the valley skyline; order -1: of another pass
	ahead            bool                                 // with a look ahead
	blend            *blend
	seed             uint64 // of the blend's noise
	arena            int64  // what came out, 0: nothing
}

// fixedPasses are the named orders in both directions of time, with and without a look ahead, and first fit.
func (h *portfolio) fixedPasses() []pass {
	out := h.hintPasses()
	n := len(h.p.items)
	for k, name := range names {
		for _, ahead := range [2]bool{true, false} {
			if !h.p.isArcs || n > smallLimit && k >= 4 || n > largeLimit && (!ahead || k >= 3) {
				continue
			}
			for d, prefix := range [2]string{"valley/", "valley-backward/"} {
				if ahead {
					prefix = "ahead-" + prefix
				}
				out = append(out, pass{name: prefix + name, order: k, direction: d, ahead: ahead, offsets: func(w *worker, limit int64) []int64 {
					return h.pass(w, d, h.directions[d].named(k), ahead, limit)
				}})
			}
		}
		if n <= firstFitLimit && (n <= smallLimit || k < 4) {
			out = append(out, h.firstFitPass(k))
		}
	}
	if k := slices.Index(names[:], "size"); len(out) == 0 { // too many for first fit, but nothing else places what is no arc
		out = append(out, h.firstFitPass(k))
	}
	return out
}

// firstFitPass is first fit in a named order.
func (h *portfolio) firstFitPass(k int) pass {
	return pass{name: "first-fit/" + names[k], order: -1, offsets: func(*worker, int64) []int64 { return h.p.firstFit(h.directions[0].named(k)) }}
}

// hintPasses place the items in the order of their hints, which gives a former placement back where it still fits. They come first, so they win
// over later ones that are no better.
func (h *portfolio) hintPasses() []pass {
	keys := make([]int32, len(h.p.items))
	hints := make([]int64, len(h.p.items))
	order := make([]int32, len(h.p.items))
	hinted := false
	for k, i := range h.p.lead {
		order[k], hints[k] = int32(k), infinite
		if b := &h.p.buffers[i]; b.Hinted {
			hints[k], hinted = b.Hint, true
		}
	}
	if !hinted {
		return nil
	}
	slices.SortStableFunc(order, func(a, b int32) int { return cmp.Compare(hints[a], hints[b]) })
	for place, i := range order {
		keys[i] = int32(place)
	}
	var out []pass
	if len(h.p.items) <= firstFitLimit || !h.p.isArcs {
		out = append(out, pass{name: "first-fit/hints", order: -1, offsets: func(*worker, int64) []int64 { return h.p.firstFit(keys) }})
	}
	if h.p.isArcs {
		out = append(out, pass{name: "valley/hints", order: -1, offsets: func(w *worker, limit int64) []int64 { return h.pass(w, 0, keys, false, limit) }})
	}
	return out
}

// run does passes until one meets the target, on several goroutines. The first in the list that meets it wins, else the lowest, else the first of those:
// which one finished first does not matter. Passes beyond the winner need not end.
func (h *portfolio) run(passes []pass) {
	type outcome struct {
		offsets []int64
		arena   int64
	}
	var mu sync.Mutex
	next, hit := 0, len(passes)
	best := outcome{arena: h.best.ArenaBytes}
	at := -1
	blended := int64(infinite)
	if h.blend != nil {
		blended = h.blendArena
	}
	work := func(w *worker) {
		for {
			mu.Lock()
			k := next
			next++
			if k >= hit || k > 0 && h.ctx.Err() != nil {
				mu.Unlock()
				return
			}
			limit := best.arena
			if passes[k].blend != nil { // the next generation wants the best blend, even where another pass was better
				limit = blended
			}
			mu.Unlock()
			offsets := passes[k].offsets(w, limit)
			if offsets == nil {
				continue
			}
			arena := h.p.arena(offsets)
			mu.Lock()
			passes[k].arena = arena
			if passes[k].blend != nil {
				blended = min(blended, arena)
			}
			if arena <= h.target {
				hit = min(hit, k)
			}
			better := arena < best.arena || arena == best.arena && k < at
			if best.arena <= h.target && arena <= h.target {
				better = k < at
			}
			if better {
				best, at = outcome{append([]int64(nil), offsets...), arena}, k
			}
			mu.Unlock()
		}
	}
	var group sync.WaitGroup
	for k := range min(max(h.options.Workers, 1), len(passes)) {
		if k == len(h.workers) {
			h.workers = append(h.workers, h.newWorker())
		}
		group.Go(func() { work(h.workers[k]) })
	}
	group.Wait()
	h.best.Passes += min(hit+1, len(passes))
	for _, p := range passes[:min(hit+1, len(passes))] {
		if p.blend != nil && p.arena > 0 && (h.blend == nil || p.arena < h.blendArena) {
			h.blend, h.blendArena, h.blendSeed, h.blendDirection, h.blendAhead = p.blend, p.arena, p.seed, p.direction, p.ahead
		}
	}
	if at >= 0 {
		if passes[at].order >= 0 {
			h.order, h.direction, h.ahead = passes[at].order, passes[at].direction, passes[at].ahead
		}
		h.take(passes[at].name, best.offsets)
	}
}

// smallLimit is the number of items up to which the exact search comes before the blends, and above which only the first named orders are tried:
// blends do more for the time.
const smallLimit = 1500

// largeLimit is the number of items above which a pass takes about a second, and sorting for a named order half of that.
const largeLimit = 300_000

// largeEnough is the default of Options.Enough above largeLimit.
const largeEnough = 1000

// place runs everything: named orders; the exact search, which for small problems does more than other orders; blends of the features of the named
// orders drawn at random, then blends near the best one, then zones.
func (s *search) place() {
	if len(s.p.items) == 0 {
		s.take("empty", []int64{})
		return
	}
	h := s.newPortfolio()
	h.run(h.fixedPasses())
	small := len(s.p.items) <= smallLimit
	if small {
		s.refine(s.nodes())
	}
	if s.p.isArcs && s.options.Tries >= 0 {
		h.blends()
	}
	if !small {
		s.refine(s.nodes())
	}
}

// blends searches among blends, as long as the target is not met.
func (h *portfolio) blends() {
	s := h.search
	tries := s.options.Tries
	if tries == 0 {
		tries = max(min(300, 4_000_000/len(s.p.items)), 9)
	}
	rng := rand.New(rand.NewPCG(1, 1))
	draw := func(count int, from func() (w blend, direction int, ahead bool)) {
		var passes []pass
		for range count {
			w, d, ahead := from()
			seed := rng.Uint64()
			passes = append(passes, pass{name: [2]string{"blend", "blend-backward"}[d], order: -1, direction: d, ahead: ahead, blend: &w, seed: seed,
				offsets: func(wk *worker, limit int64) []int64 {
					return h.pass(wk, d, h.directions[d].blended(w, seed, wk.keys), ahead, limit)
				}})
		}
		h.run(passes)
	}
	enough := func() bool { return s.best.ArenaBytes <= h.target || s.done() }
	// A round is so many draws, and then so many generations beside the best blend.
	k := 0
	draws, generations := 8, 2
	if len(s.p.items) > largeLimit {
		draws, generations = 4, 1
	}
	for left := tries * 2 / 3; left > 0 && !enough(); left -= draws + generations*generation {
		draw(draws, func() (blend, int, bool) { k++; return drawBlend(rng), k % 2, k/2%2 == 0 })
		for g := 0; g < generations && h.blend != nil && !enough(); g++ {
			draw(generation, func() (blend, int, bool) { return h.blend.near(rng), h.blendDirection, h.blendAhead })
		}
	}
	if !enough() {
		h.zones(tries / 3)
	}
}

// generation is the number of blends that are tried beside the best one before a new best one is chosen: a constant, so that it does not matter
// how many goroutines try them.
const generation = 4
