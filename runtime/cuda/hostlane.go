//go:build cuda && linux

package cuda

import (
	"fmt"
	gort "runtime"
	"sync"

	"gorgonia.org/cu"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
)

type taskKind uint8

const (
	taskCopy taskKind = iota
	taskAwait
	taskEvent
)

// task is an entry of a goroutine lane's queue.
type task struct {
	kind     taskKind
	at       place
	dst, src runtime.Slice
	on       *hostLane // taskAwait: go on when this lane has finished so many tasks
	tasks    uint64
	event    cu.Event // taskEvent: go on when a stream has passed it
}

// hostLane is a lane that a goroutine works off: the lanes between storage and pinned memory. There can be no deadlock: a task waits only
// for what was queued or issued before it.
type hostLane struct {
	id     plan.Lane
	dev    *Device
	issued uint64 // the caller's alone

	mu     sync.Mutex
	moved  sync.Cond
	queue  []task
	done   uint64
	err    error
	closed bool
	ended  sync.WaitGroup
}

// host is the goroutine of a lane, started when it is first used.
func (d *Device) host(l plan.Lane) *hostLane {
	if d.hosts[l] == nil {
		h := &hostLane{id: l, dev: d}
		h.moved.L = &h.mu
		h.ended.Add(1)
		go h.loop()
		d.hosts[l] = h
	}
	return d.hosts[l]
}

// hostCopy queues a copy between storage and pinned memory.
func (d *Device) hostCopy(l plan.Lane, dst, src runtime.Slice) error {
	for _, s := range []runtime.Slice{dst, src} {
		if s.Space != ir.Disk && s.Space != ir.Pinned {
			return fmt.Errorf("the %v lane of the cuda device cannot reach %v memory", l, s.Space)
		}
	}
	d.batch.mixed = true
	d.host(l).put(task{kind: taskCopy, dst: dst, src: src})
	return nil
}

func (h *hostLane) put(t task) {
	t.at = h.dev.place
	h.mu.Lock()
	h.queue = append(h.queue, t)
	h.mu.Unlock()
	h.issued++
	h.moved.Broadcast()
}

func (h *hostLane) await(n uint64) {
	h.mu.Lock()
	for h.done < n {
		h.moved.Wait()
	}
	h.mu.Unlock()
}

// takeError returns and forgets the first error since the last call.
func (h *hostLane) takeError() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.err
	h.err = nil
	return err
}

func (h *hostLane) close() {
	h.mu.Lock()
	h.closed = true
	h.mu.Unlock()
	h.moved.Broadcast()
	h.ended.Wait()
}

// loop is the lane's life, on a thread of its own that has the context. The thread ends with the goroutine.
func (h *hostLane) loop() {
	defer h.ended.Done()
	gort.LockOSThread()
	current := cu.SetCurrentContext(h.dev.ctx)
	for {
		h.mu.Lock()
		for len(h.queue) == 0 && !h.closed {
			h.moved.Wait()
		}
		if len(h.queue) == 0 {
			h.mu.Unlock()
			return
		}
		t := h.queue[0]
		h.queue = h.queue[1:]
		h.mu.Unlock()
		err := advised(current)
		if err == nil {
			err = t.do()
		}
		h.mu.Lock()
		if h.err == nil && err != nil {
			h.err = fmt.Errorf("%v, on the %v lane: %w", t.at, h.id, err)
		}
		h.done++
		h.mu.Unlock()
		h.moved.Broadcast()
	}
}

func (t *task) do() error {
	switch t.kind {
	case taskAwait:
		t.on.await(t.tasks)
		return nil
	case taskEvent:
		return advised(t.event.Synchronize())
	}
	from, to := t.src.Arena.Host(), t.dst.Arena.Host()
	switch {
	case t.src.Bytes == 0:
		return nil
	case to == nil:
		return t.dst.Arena.Upload(t.dst.Offset, from[t.src.Offset:t.src.Offset+t.src.Bytes])
	case from == nil:
		return t.src.Arena.Download(to[t.dst.Offset:t.dst.Offset+t.dst.Bytes], t.src.Offset)
	}
	copy(to[t.dst.Offset:t.dst.Offset+t.dst.Bytes], from[t.src.Offset:t.src.Offset+t.src.Bytes])
	return nil
}
