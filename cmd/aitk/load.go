package main

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/term"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/cpu"
	"aitk/runtime/cuda"
	"aitk/runtime/null"
	"aitk/runtime/train"
	"aitk/runtime/train/metrics"
)

// loaded is a plan on a device.
type loaded struct {
	*runtime.Executable
	counts *null.Device // set on the null device
}

// load opens the device and makes the plan executable there.
func (c *call) load(p *plan.Plan) (*loaded, *train.Store, error) {
	name := c.device
	if name == "" {
		name = p.Profile.Device
	}
	x := &loaded{}
	var dev runtime.Device
	switch name {
	case "cpu":
		dev = cpu.Open(cpu.Options{Threads: int(c.threads)})
	case "null":
		x.counts = null.Open()
		dev = x.counts
	case "cuda":
		var err error
		if dev, err = cuda.Open(cuda.Options{}); err != nil {
			return nil, nil, err
		}
	default:
		return nil, nil, usagef("the plan is for device %s, which this build does not have: compile the model again for --device cpu, or try it with --device null", name)
	}
	store := train.NewStore(p)
	var err error
	x.Executable, err = runtime.Load(p, dev, runtime.Options{Storage: store, AnyDevice: name == "null"})
	if err != nil {
		return nil, nil, errors.Join(err, dev.Close())
	}
	return x, store, nil
}

// countSteps steps through a plan on the null device. Data has no meaning there.
func (c *call) countSteps(x *loaded) error {
	steps := c.steps
	if steps == 0 {
		steps = 1
	}
	p := x.Plan()
	names := []string{"init"}
	for range steps {
		names = append(names, "step")
		if u, _ := p.Program("update"); u != nil {
			names = append(names, "update")
		}
	}
	for _, name := range names {
		if err := x.Run(c.ctx, name); err != nil {
			return err
		}
	}
	s := x.counts.Stats()
	fmt.Fprintf(c.stdout, "%d kernels resolved; ran init and %d steps, computing nothing\n", s.Kernels, steps)
	for l, n := range s.Lanes {
		if n != (null.LaneStats{}) {
			fmt.Fprintf(c.stdout, "%v: %d launches, %d copies of %s, %d waits\n", plan.Lane(l), n.Launches, n.Copies, plan.FormatBytes(n.CopiedBytes), n.Waits)
		}
	}
	for space, n := range s.HighWater {
		if s.Arenas[space] > 0 {
			fmt.Fprintf(c.stdout, "%v: highest address %d of an arena of %d bytes\n", ir.Space(space), n, s.Arenas[space])
		}
	}
	return nil
}

// progress is the line of a run: nothing with --quiet, rewritten in place on a terminal.
func (c *call) progress() *metrics.Progress {
	if c.quiet {
		return nil
	}
	f, ok := c.stderr.(*os.File)
	return metrics.NewProgress(c.stderr, ok && term.IsTerminal(int(f.Fd())))
}
