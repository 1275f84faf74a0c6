package cpu

import (
	gort "runtime"
	"sync"
	"sync/atomic"
	"time"

	"aitk/runtime"
)

// blockElems is the length of a worker's block of temporaries: eight of them stay in the first cache.
const blockElems = 512

// numBlocks is how many blocks a body may use at once.
const numBlocks = 8

// panelElems is the extent of each of a worker's two packing panels and of its tile of sums.
const panelElems = 1 << 14

// worker is what a tile runs on: temporaries of fixed size that no other tile touches meanwhile.
type worker struct {
	blocks [numBlocks * blockElems]float64
	ints   [numBlocks * blockElems]int64
	panelA [panelElems]float64
	panelB [panelElems]float64
	tile   [panelElems]float64
	cursor cursor // of a window that slides
	parked atomic.Bool
	wake   chan struct{}
}

// f64 is temporary block i of blockElems elements; its content is whatever the tile before left.
func (w *worker) f64(i int) []float64 {
	return w.blocks[i*blockElems : (i+1)*blockElems : (i+1)*blockElems]
}

// i64 is temporary block i of integers.
func (w *worker) i64(i int) []int64 {
	return w.ints[i*blockElems : (i+1)*blockElems : (i+1)*blockElems]
}

// job is a kernel made of tiles. It is made once and run many times; Run resets it.
type job struct {
	pool  *pool
	tiles int
	body  func(w *worker, tile int) error

	next, done atomic.Int64
	mu         sync.Mutex
	errTile    int
	err        error
}

// Run spreads the tiles over the pool and returns when all have run.
func (j *job) Run() error {
	switch {
	case j.tiles == 0:
		return nil
	case j.tiles == 1 || len(j.pool.workers) == 1:
		return j.serial(j.pool.workers[0])
	}
	return j.pool.run(j)
}

// serial runs all tiles on one worker.
func (j *job) serial(w *worker) error {
	var first error
	for t := range j.tiles {
		if err := j.body(w, t); err != nil && first == nil {
			first = err
		}
	}
	return first
}

// work claims tiles until none is left, and tells whether it finished the last one. A worker that comes late, when the job was finished and
// started again, claims a tile of the new run like any other: the counters are reset in an order that makes this right (pool.run).
func (j *job) work(w *worker) (last bool) {
	for {
		t := int(j.next.Add(1)) - 1
		if t >= j.tiles {
			return last
		}
		if err := j.body(w, t); err != nil {
			j.mu.Lock()
			if j.err == nil || t < j.errTile {
				j.err, j.errTile = err, t
			}
			j.mu.Unlock()
		}
		last = j.done.Add(1) == int64(j.tiles)
	}
}

// pool is a set of workers that live as long as the device. Worker 0 is the caller of run; the others are goroutines that spin for a
// moment after each job, since the next one is usually microseconds away, and park after that.
type pool struct {
	workers []*worker
	current atomic.Pointer[job]
	epoch   atomic.Uint64 // counts jobs; workers watch it
	waiting atomic.Bool   // the caller has parked
	finish  chan struct{}
	closed  atomic.Bool
	wg      sync.WaitGroup
}

// spinFor is how long workers and caller look for work before they park.
const spinFor = 50 * time.Microsecond

func newPool(threads int) *pool {
	p := &pool{finish: make(chan struct{}, 1)}
	for i := range threads {
		w := &worker{wake: make(chan struct{}, 1)}
		p.workers = append(p.workers, w)
		if i > 0 {
			p.wg.Add(1)
			go p.loop(w)
		}
	}
	return p
}

// run posts a job, works on it, and waits for the tiles that others hold.
func (p *pool) run(j *job) error {
	j.err = nil
	j.done.Store(0)
	j.next.Store(0) // after done: a late worker that claims a tile now counts it in the new run
	p.current.Store(j)
	p.epoch.Add(1)
	wanted := j.tiles - 1
	for _, w := range p.workers[1:] {
		if wanted == 0 {
			break
		}
		wanted--
		if w.parked.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
	j.work(p.workers[0])
	all := int64(j.tiles)
	for start := time.Now(); j.done.Load() != all; {
		if time.Since(start) < spinFor {
			gort.Gosched()
			continue
		}
		p.waiting.Store(true)
		if j.done.Load() != all {
			<-p.finish // a late wake of the job before is possible: look again
		}
		p.waiting.Store(false)
	}
	return j.err
}

// loop is a worker's life.
func (p *pool) loop(w *worker) {
	defer p.wg.Done()
	var seen uint64
	for !p.closed.Load() {
		if e := p.epoch.Load(); e != seen {
			seen = e
			if j := p.current.Load(); j.work(w) && p.waiting.CompareAndSwap(true, false) {
				select {
				case p.finish <- struct{}{}:
				default:
				}
			}
			continue
		}
		if p.spin(seen) {
			continue
		}
		w.parked.Store(true)
		if p.epoch.Load() != seen || p.closed.Load() {
			if w.parked.CompareAndSwap(true, false) {
				continue
			}
		}
		<-w.wake
	}
}

// spin waits for a new epoch for a moment.
func (p *pool) spin(seen uint64) bool {
	for start := time.Now(); time.Since(start) < spinFor; {
		for range 64 {
			if p.epoch.Load() != seen {
				return true
			}
		}
		gort.Gosched()
	}
	return p.epoch.Load() != seen || p.closed.Load()
}

// close ends the workers. No job may be running.
func (p *pool) close() {
	p.closed.Store(true)
	for _, w := range p.workers[1:] {
		if w.parked.CompareAndSwap(true, false) {
			w.wake <- struct{}{}
		}
	}
	p.wg.Wait()
}

var _ runtime.Kernel = (*job)(nil)
