// Package runtime turns a plan into numbers. Load checks the plan again, allocates its arenas once and resolves every kernel with its
// addresses; after that a program run is a dull loop over instructions that allocates nothing. The package knows no pass and no model
// format. Devices live in packages below it (cpu, cuda, null); runtime/ref interprets graphs and is no device.
package runtime

import (
	"context"

	"aitk/ir"
	"aitk/ir/plan"
)

// Device is where a plan runs. Calls come from one goroutine.
type Device interface {
	// Name is the device of plan.Profile that it runs: cpu, cuda, null.
	Name() string
	// Alloc makes the arena of a space, once per space, before any kernel is resolved. bytes is exactly plan.Arena.Bytes.
	Alloc(space ir.Space, bytes int64) (Arena, error)
	// Kernel resolves an instruction with the addresses of its operands; scratch is empty where the plan has none. An error names what is
	// missing. The kernel may keep the slices.
	Kernel(x *plan.Exec, in, out []Slice, scratch Slice) (Kernel, error)
	// Launch queues a kernel on a lane.
	Launch(lane plan.Lane, k Kernel) error
	// Copy queues a copy on a lane. It is asynchronous. A slice in the disk space is a stretch of a parameter: its Arena has no host memory, and
	// the device calls Download (load) or Upload (save) in the copy's turn.
	Copy(lane plan.Lane, dst, src Slice) error
	// Record marks the end of what is queued on a lane so far. Events are reused: slot is a number below Events.
	Record(lane plan.Lane, slot int32) error
	// Wait queues on a lane: go no further until what Record marked in slot has finished.
	Wait(lane plan.Lane, slot int32) error
	// Events says how many event slots the plan needs; called once in Load.
	Events(n int) error
	// Sync waits until every lane is empty and returns the first error of a kernel or copy.
	Sync(ctx context.Context) error
	// Close frees arenas and lanes; after it the device is unusable.
	Close() error
}

// Locator is implemented by devices that name places of the plan in messages, since what they queue fails later. At says which instruction of which program
// the calls that follow belong to: Kernel in Load, the others in a run.
type Locator interface {
	At(program string, pc int32)
}

// Kernel is a resolved instruction. Run does the work on the calling goroutine or queues it on its device's stream.
type Kernel interface{ Run() error }

// Arena is one allocation of a device.
type Arena interface {
	// Bytes is its size.
	Bytes() int64
	// Host is the memory as a host slice, nil where the host cannot address it.
	Host() []byte
	// Upload and Download move bytes between the host and the arena, synchronously; they are for inputs and results between runs.
	Upload(offset int64, src []byte) error
	Download(dst []byte, offset int64) error
}

// Slice is a stretch of an arena. Every Slice that a device is handed counts towards the measured high-water mark.
type Slice struct {
	Arena  Arena
	Space  ir.Space
	Offset int64
	Bytes  int64
}

// Storage is where parameters are loaded from and saved to: the disk space of a plan. Offsets are relative to the parameter.
type Storage interface {
	ReadParam(param int32, dst []byte, offset int64) error
	WriteParam(param int32, src []byte, offset int64) error
}
