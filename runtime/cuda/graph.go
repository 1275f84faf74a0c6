//go:build cuda && linux

package cuda

import (
	"aitk/ir/plan"
	"aitk/runtime/cuda/drv"
)

// graph is a list that was seen, and what it was captured as.
type graph struct {
	list []command
	exec *drv.Graph // nil: seen once, or not to be captured
	flat bool       // capturing failed: never again
}

// Lists shorter than this are issued as they are, and no more than so many are kept.
const (
	graphCommands = 8
	maxGraphs     = 8
)

// find looks for a captured list that begins as the queue does.
func (b *batch) find() *graph {
	for i := len(b.known) - 1; i >= 0; i-- {
		if g := b.known[i]; g.exec != nil && len(g.list) >= len(b.list) && equalCommands(b.list, g.list) {
			return g
		}
	}
	return nil
}

// remember captures the list that has just run if it ran before, else notes it.
func (d *Device) remember() error {
	b := &d.batch
	if !b.graphs || b.mixed || len(b.list) < graphCommands {
		return nil
	}
	for _, g := range b.known {
		if len(g.list) != len(b.list) || !equalCommands(g.list, b.list) {
			continue
		}
		if g.exec != nil || g.flat {
			return nil
		}
		return d.with(func() error {
			exec, err := d.capture(g.list)
			if err != nil {
				g.flat = true // the list works without; drivers differ in what they can capture
				return nil
			}
			g.exec = exec
			return nil
		})
	}
	if len(b.known) < maxGraphs {
		b.known = append(b.known, &graph{list: append([]command{}, b.list...)})
	}
	return nil
}

func equalCommands(x, y []command) bool {
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

// capture records a list as a graph without running it. The copy lanes leave the compute lane at the start and join it at the end, so that
// one stream holds all.
func (d *Device) capture(list []command) (*drv.Graph, error) {
	main := d.streams[plan.Compute]
	if err := drv.BeginCapture(main); err != nil {
		return nil, err
	}
	err := d.captured(list)
	exec, e := drv.EndCapture(main) // in any case: the stream must not stay in capture
	if err == nil {
		err = e
	}
	if err != nil && e == nil && exec != nil {
		_ = exec.Destroy() // the first error says more
	}
	return exec, err
}

func (d *Device) captured(list []command) error {
	main := d.streams[plan.Compute]
	if err := d.fork.Record(main); err != nil {
		return err
	}
	for l := 1; l < streams; l++ {
		if err := d.streams[l].Wait(d.fork, 0); err != nil {
			return err
		}
	}
	for i := range list {
		if err := d.do(&list[i], true); err != nil {
			return err
		}
	}
	for l := 1; l < streams; l++ {
		if err := d.joins[l].Record(d.streams[l]); err != nil {
			return err
		}
		if err := main.Wait(d.joins[l], 0); err != nil {
			return err
		}
	}
	return nil
}

// close frees the graphs.
func (b *batch) close() error {
	var first error
	for _, g := range b.known {
		if g.exec == nil {
			continue
		}
		if err := g.exec.Destroy(); err != nil && first == nil {
			first = err
		}
	}
	b.known = nil
	return first
}
