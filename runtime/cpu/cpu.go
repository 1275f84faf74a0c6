// Package cpu runs plans on the processor with kernels in portable Go.
//
// A device has two kinds of lanes. The compute lane is the calling goroutine: Launch runs the kernel and returns when it has finished,
// a kernel spreading its tiles over a persistent pool of workers. Every other lane is a goroutine with a queue, so that copies between
// arenas really run beside compute and the waits of a plan really order something.
//
// How a kernel is written. A family of ops has one file, named like the file of package op that declares them, with one function
//
//	func unaryKernel(b *builder) (runtime.Kernel, error)
//
// that switches on b.x.Op and returns nil, nil for ops of other families; families (kernel.go) lists these functions. The function looks at the
// types once, takes typed views of the operands' bytes, and hands a body to b.ranges, b.tiles, b.serial or b.sequence, which make the job.
// unaryFloat in unary.go is the example to follow.
//
// Invariants of every kernel:
//   - Run allocates nothing: what it needs is made when it is built, closures and index tables included; temporary floats come from the
//     worker that runs the tile (worker.f64), larger ones from the planned scratch bytes or from the worker's panels.
//   - The bits of a result depend on the operands alone. Tile boundaries depend on shapes, never on the number of workers; a sum is taken
//     inside one tile in the order that the op states, or over partial sums of fixed extent that are then added in index order.
//   - Floats narrower than f64 are computed in float64 and rounded once when they are stored (floats.load and floats.store); a second, faster
//     body for f32 alone needs a benchmark beside it. Write float32(a*b) + c: Go fuses on arm64 and not on amd64.
//   - An output may share all bytes with an operand where the op says so (ir.AliasPair): within a tile read before writing the same elements,
//     and let no tile read what another tile writes.
//   - Data that no type rules out (an index out of range) is an error that Run returns; it names index, extent and axis.
//
// The package must not know passes, the graph, files, or flags; it reads no environment.
package cpu
