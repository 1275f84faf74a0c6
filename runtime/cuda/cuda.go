// Package cuda runs plans on an NVIDIA GPU through gorgonia.org/cu, with kernels of its own. It is built with the tag cuda (Linux, cgo); without
// the tag Open says how to build it. The tag needs a C compiler and nothing of CUDA: include/cuda.h is ours, drv binds the driver at run time.
//
// # How it works
//
// A device has one allocation in device memory and one in pinned host memory, each as large as the plan's arena; the pinned one ends with a
// page to which kernels report bad data. Three non-blocking streams are the lanes compute, h2d and d2h; the lanes read and write are goroutines
// that move parameters between storage and pinned memory. The legacy default stream carries nothing but inputs and results between runs.
//
// Calls of Launch, Copy, Record and Wait append to a list (batch.go), which is issued a few at a time with the goroutine locked to its thread
// and the context made current. The list of a run that was seen before, and that no goroutine lane took part in, is captured once as a CUDA graph and
// launched as one from then on (graph.go). Whatever fails while it is issued is kept and returned by Sync with the op that it belongs to.
//
// # How a kernel is written
//
// kernels/NAME.c has the code of a family of ops, NAME.go the geometry: a function that switches on b.x.Op and answers nil, nil for ops of other
// families; families (kernel.go) lists these functions, HasKernel (ops.go) the ops. C is compiled to PTX by clang ahead of time (kernels/generate.sh) for two targets, sm_75
// and sm_80, and for several element types; a text is compiled by the driver when a plan first needs it.
//
// # Tensor cores, and several ops in one kernel
//
// Products of f16 and bf16 (f16 alone on compute capability 7.5) go through mma.sync: MatMul (matmulmma.c), Conv and its gradients (convmma.c), Attention and
// its gradient for rows of up to 128 elements (attentionmma.h). Small or odd shapes, f32 and f64, and the gradient to a mask have plain tiles. Which kernel serves depends on
// types and shapes alone.
//
// A MatMul with a Dequantize of its weight before it, a bias or another tensor added after it, and an activation after that is one kernel (fuse.go) where they are
// neighbours in the plan and nobody else reads what lies between. It rounds wherever the ops do, so that it makes no difference to a bit; devicetest compares. The plan
// does not know of it: the room for what lies between stays.
//
// Invariants of every kernel:
//   - No launch allocates, and no argument changes between runs: arguments are addresses inside the arenas and numbers known when the plan is loaded.
//   - The bits of a result depend on the operands alone: sums are taken in an order that depends on shapes alone, there are no float atomics,
//     and contraction of a*b+c is written out (fma) or off.
//   - f16 and bf16 are computed in f32 and rounded once; sums of f32 are kept in f64 where memory is what limits, in f32 in products of matrices.
//   - An output may share all bytes with an operand where the op says so: a thread reads an element before it writes the same one, and no thread
//     reads what another one writes without a barrier between.
//   - Partial sums between two launches of one op lie in the plan's scratch (ir.Work.PartialBytes): a module has no memory of its own but tables.
//   - Data that no type rules out (an index out of range) is clamped and reported; Sync returns the error.
//
// The package must not know passes, the graph, files, or flags; drv alone reads the environment. What was never run on hardware stands in the
// README. Windows and macOS are not built; arm64 has trampolines that were never run.
package cuda
