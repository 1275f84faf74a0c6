package cpu

import (
	"fmt"
	gort "runtime"
	"sync"
	"sync/atomic"
	"time"

	"aitk/ir/plan"
	"aitk/runtime"
)

// queueTasks is how far the caller may run ahead of a lane.
const queueTasks = 256

// chunkBytes bounds one memmove: the runtime cannot stop a goroutine inside it, and a collection would wait.
const chunkBytes = 1 << 20

type taskKind uint8

const (
	taskCopy taskKind = iota
	taskKernel
	taskWait
)

// task is an entry of a lane's queue.
type task struct {
	kind     taskKind
	dst, src runtime.Slice
	kernel   runtime.Kernel
	on       *lane // taskWait: go on when this lane has finished so many tasks
	tasks    uint64
}

// lane is a queue of tasks that one goroutine works off in order. There can be no deadlock between lanes: a task waits only for tasks that
// were queued before it, and the caller, who queues them, waits only for tasks that are queued.
type lane struct {
	id     plan.Lane
	delay  func(plan.Lane)
	worker *worker // kernels on this lane run here, not on the pool

	issued uint64 // tasks queued; the caller's alone
	done   atomic.Uint64

	mu     sync.Mutex
	moved  sync.Cond // issue, completion or close
	ring   [queueTasks]task
	queued uint64 // issued, as the lane sees it
	err    error
	closed bool
	ended  sync.WaitGroup
}

func newLane(id plan.Lane, delay func(plan.Lane)) *lane {
	l := &lane{id: id, delay: delay}
	l.moved.L = &l.mu
	if id == plan.Host {
		l.worker = &worker{}
	}
	l.ended.Add(1)
	go l.loop()
	return l
}

// put queues a task, waiting while the queue is full.
func (l *lane) put(t task) {
	l.mu.Lock()
	for l.queued-l.done.Load() == queueTasks {
		l.moved.Wait()
	}
	l.ring[l.queued%queueTasks] = t
	l.queued++
	l.issued = l.queued
	l.mu.Unlock()
	l.moved.Broadcast()
}

// await returns when the lane has finished its first n tasks. It watches for a moment before it parks: copies are often just done.
func (l *lane) await(n uint64) {
	if l.done.Load() >= n {
		return
	}
	for start := time.Now(); time.Since(start) < spinFor; gort.Gosched() {
		if l.done.Load() >= n {
			return
		}
	}
	l.mu.Lock()
	for l.done.Load() < n {
		l.moved.Wait()
	}
	l.mu.Unlock()
}

// takeError returns and forgets the first error since the last call.
func (l *lane) takeError() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.err
	l.err = nil
	return err
}

func (l *lane) close() {
	l.mu.Lock()
	l.closed = true
	l.mu.Unlock()
	l.moved.Broadcast()
	l.ended.Wait()
}

// loop is the lane's life.
func (l *lane) loop() {
	defer l.ended.Done()
	for n := uint64(0); ; n++ {
		l.mu.Lock()
		for l.queued == n && !l.closed {
			l.moved.Wait()
		}
		if l.queued == n {
			l.mu.Unlock()
			return
		}
		t := &l.ring[n%queueTasks] // stays until done counts it
		l.mu.Unlock()
		err := l.do(t)
		*t = task{}
		l.mu.Lock()
		if l.err == nil {
			l.err = err
		}
		l.done.Store(n + 1)
		l.mu.Unlock()
		l.moved.Broadcast()
	}
}

func (l *lane) do(t *task) error {
	switch t.kind {
	case taskWait:
		t.on.await(t.tasks)
		return nil
	case taskKernel:
		return l.launch(t.kernel)
	}
	if l.delay != nil {
		l.delay(l.id)
	}
	return move(t.dst, t.src)
}

// launch runs a kernel on the lane itself: the pool belongs to the compute lane, and results do not depend on who runs the tiles.
func (l *lane) launch(k runtime.Kernel) error {
	if l.worker == nil {
		return fmt.Errorf("the %v lane runs no kernels", l.id)
	}
	switch k := k.(type) {
	case *job:
		return k.serial(l.worker)
	case sequence:
		for _, k := range k {
			if err := l.launch(k); err != nil {
				return err
			}
		}
		return nil
	}
	return k.Run()
}

// move copies a stretch of one arena to another. The disk space has no memory: its arenas read and write.
func move(dst, src runtime.Slice) error {
	from, to := src.Arena.Host(), dst.Arena.Host()
	switch {
	case to == nil:
		return dst.Arena.Upload(dst.Offset, from[src.Offset:src.Offset+src.Bytes])
	case from == nil:
		return src.Arena.Download(to[dst.Offset:dst.Offset+dst.Bytes], src.Offset)
	}
	from, to = from[src.Offset:src.Offset+src.Bytes], to[dst.Offset:dst.Offset+dst.Bytes]
	for len(from) > 0 {
		n := min(len(from), chunkBytes)
		copy(to[:n], from[:n])
		from, to = from[n:], to[n:]
	}
	return nil
}
