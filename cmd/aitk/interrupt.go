package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"
)

// sameSignal is how long after the first signal another one counts as the same: timeout(1) and shells send one to the process and one to
// its group.
const sameSignal = 300 * time.Millisecond

// stopWithin is how long after the first signal the program may take to end where no step is to be finished.
const stopWithin = 2 * time.Second

// patience is the key of a context's *atomic.Bool: whether the program may take its time after a signal.
type patience struct{}

// patient says that from now on a signal is answered when the step is finished and a checkpoint written.
func patient(ctx context.Context) {
	if p, ok := ctx.Value(patience{}).(*atomic.Bool); ok {
		p.Store(true)
	}
}

// interruptible is cancelled by the first SIGINT or SIGTERM: the step that runs is finished and a checkpoint is written. Whatever else is
// under way ends a little later whether it has noticed or not. The second signal ends the program at once.
func interruptible(stderr io.Writer) (context.Context, func()) {
	mayTakeTime := &atomic.Bool{}
	ctx, cancel := context.WithCancel(context.WithValue(context.Background(), patience{}, mayTakeTime))
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		first := time.Now()
		cancel()
		late := time.After(stopWithin)
		for {
			select {
			case <-late:
				if mayTakeTime.Load() {
					continue
				}
				fmt.Fprintln(stderr, "aitk: interrupted")
				os.Exit(exitInterrupted)
			case <-signals:
				if time.Since(first) > sameSignal {
					fmt.Fprintln(stderr, "aitk: interrupted twice, stopping at once")
					os.Exit(exitInterrupted)
				}
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		cancel()
	}
}
