//go:build cuda && linux

package cuda

import (
	"fmt"
	"math"
	"unsafe"

	"gorgonia.org/cu"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/cuda/drv"
)

// families lists the kernels. Each entry answers nil, nil for an op that is none of its own.
func families() []func(*builder) (*kernel, error) {
	return []func(*builder) (*kernel, error){
		unaryKernel,
		activationKernel,
		castKernel,
		arithmeticKernel,
		compareKernel,
		logicKernel,
		whereKernel,
		shapeKernel,
		cumsumKernel,
		gatherKernel,
		scatterKernel,
		argmaxKernel,
		reduceKernel,
		matmulKernel,
		convKernel,
		attentionKernel,
		poolKernel,
		softmaxKernel,
		normKernel,
		batchNormKernel,
		crossEntropyKernel,
		dropoutKernel,
		dequantizeKernel,
		sgdKernel,
		adamKernel,
		finiteKernel,
	}
}

// builder is what a kernel is made from: the instruction and the places of its operands. It is gone when the kernel runs.
type builder struct {
	dev     *Device
	x       *plan.Exec
	in, out []runtime.Slice
	scratch runtime.Slice // Bytes is 0 where the plan gives none
	k       *kernel
}

// kernel is a resolved instruction: launches that run one after the other. It may have none.
type kernel struct {
	dev      *Device
	x        *plan.Exec
	at       place
	fused    []*plan.Exec // all that it does; nil: x alone
	launches []launch
	hints    [2]*drv.Hint // for a driver that checks: of the first launch, which takes the predicted time, and of the others; nil for others
	own      []stretch    // memory beside the operands that the launches touch
}

// stretch is memory that belongs to no operand: a module's own, or where faults are reported.
type stretch struct {
	at    uintptr
	bytes int64
	name  string
}

// launch is a function with its geometry and arguments.
type launch struct {
	fn     cu.Function
	name   string
	grid   [3]int
	block  int
	shared int
	slots  []uint64         // arguments, eight bytes each: cu copies as many of each
	params []unsafe.Pointer // of the slots
}

// Run implements runtime.Kernel.
func (k *kernel) Run() error { return k.dev.Launch(plan.Compute, k) }

// String names the instruction in messages.
func (k *kernel) String() string {
	s := fmt.Sprintf("%v, %s", k.at, ir.FormatOp(k.x.Op))
	if len(k.fused) > 0 {
		s = fmt.Sprintf("%v, %s", k.at, ir.FormatOp(k.fused[0].Op))
		for _, x := range k.fused[1:] {
			s += " + " + ir.FormatOp(x.Op)
		}
	}
	if k.x.Origin.Node != "" {
		s += fmt.Sprintf(" (node %q)", k.x.Origin.Node)
	}
	return s
}

// failed names the instruction that an error belongs to.
func (k *kernel) failed(err error) error {
	return &ir.Error{Kind: ir.Failed, Cause: fmt.Errorf("%s: %w", k, err), Remedy: remedy(err)}
}

// note prepares what a driver that checks is told before each launch: what the instruction may read and write.
func (k *kernel) note(in, out []runtime.Slice, scratch runtime.Slice) {
	if !drv.Checks() {
		return
	}
	predicted := k.x.Picos
	if len(k.fused) > 0 {
		predicted = 0
		for _, x := range k.fused {
			predicted += x.Picos
		}
	}
	for n, picos := range []int64{predicted, 0} {
		h := drv.NewHint(k.String(), picos)
		for i, s := range in {
			h.Allow(addressOf(s), s.Bytes, drv.MayRead, fmt.Sprintf("operand %d", i))
		}
		for i, s := range out {
			h.Allow(addressOf(s), s.Bytes, drv.MayRead|drv.MayWrite, fmt.Sprintf("output %d", i))
		}
		if scratch.Bytes > 0 {
			h.Allow(addressOf(scratch), scratch.Bytes, drv.MayRead|drv.MayWrite, "scratch")
		}
		for _, o := range k.own {
			h.Allow(o.at, o.bytes, drv.MayRead|drv.MayWrite, o.name)
		}
		k.hints[n] = h
	}
}

// hint is what a driver that checks is told of a launch.
func (k *kernel) hint(l *launch) *drv.Hint {
	if l == &k.launches[0] {
		return k.hints[0]
	}
	return k.hints[1]
}

// copied is a copy of the plan with its addresses.
type copied struct {
	at    place
	dst   uintptr
	src   uintptr
	moved int64
}

// copyHint is what a driver that checks is told before a copy.
func (d *Device) copyHint(dst, src runtime.Slice) *drv.Hint {
	if !drv.Checks() {
		return nil
	}
	key := copied{d.place, addressOf(dst), addressOf(src), src.Bytes}
	h, ok := d.copies[key]
	if !ok {
		h = drv.NewHint(fmt.Sprintf("%v, a copy", d.place), -1)
		h.Allow(addressOf(src), src.Bytes, drv.MayRead, "source")
		h.Allow(addressOf(dst), dst.Bytes, drv.MayWrite, "destination")
		d.copies[key] = h
	}
	return h
}

// announce tells the driver, where it listens, what the next operation on a stream may touch.
func announce(h *drv.Hint, s cu.Stream) error {
	if h == nil {
		return nil
	}
	return h.Announce(s)
}

// inType and outType are the types of the operands as this instruction reads and writes them.
func (b *builder) inType(i int) ir.Type  { return b.x.In[i].Type }
func (b *builder) outType(i int) ir.Type { return b.x.Out[i].Type }

// noKernel is the answer of a family to an operand type that it does not serve.
func (b *builder) noKernel(t ir.Type) error {
	return fmt.Errorf("%s has no cuda kernel for %v", ir.OpName(b.x.Op), t)
}

// launch adds a launch of a function of a module. Arguments are slices (their addresses), integers, floats and bools; a kernel takes integers as
// long or int, floats as double or float, and each has eight bytes here.
func (b *builder) launch(module, name string, grid [3]int, block, shared int, args ...any) error {
	for _, n := range grid {
		if n == 0 {
			return nil
		}
	}
	if grid[0] > math.MaxInt32 || grid[1] > 65535 || grid[2] > 65535 {
		return fmt.Errorf("%s asks for a grid of %v blocks, more than a device runs", ir.OpName(b.x.Op), grid)
	}
	fn, err := b.dev.function(module, name, b.k)
	if err != nil {
		return err
	}
	b.k.own = append(b.k.own, b.dev.globals[module]...)
	l := launch{fn: fn, name: module + "." + name, grid: grid, block: block, shared: shared, slots: make([]uint64, len(args)), params: make([]unsafe.Pointer, len(args))}
	for i, a := range args {
		switch a := a.(type) {
		case runtime.Slice:
			if a.Bytes > 0 {
				l.slots[i] = uint64(addressOf(a))
			}
		case uint64:
			l.slots[i] = a
		case int64:
			l.slots[i] = uint64(a)
		case int:
			l.slots[i] = uint64(a)
		case int32:
			l.slots[i] = uint64(uint32(a))
		case uint32:
			l.slots[i] = uint64(a)
		case float64:
			l.slots[i] = math.Float64bits(a)
		case float32:
			l.slots[i] = uint64(math.Float32bits(a))
		case bool:
			if a {
				l.slots[i] = 1
			}
		default:
			panic(ir.Bugf("argument %d of %s is a %T", i, name, a))
		}
		l.params[i] = unsafe.Pointer(&l.slots[i])
	}
	b.k.launches = append(b.k.launches, l)
	return nil
}

// partials is a stretch of the scratch, from a byte on, for what one launch leaves to the next. A plan that was made for another device may lack it.
func (b *builder) partials(at, bytes int64) (runtime.Slice, error) {
	s := b.scratch
	if s.Bytes < at+bytes {
		return s, fmt.Errorf("%s has %d bytes of scratch in this plan and needs %d here", ir.OpName(b.x.Op), s.Bytes, at+bytes)
	}
	s.Offset, s.Bytes = s.Offset+at, bytes
	return s, nil
}

// threads is the usual extent of a block.
const threads = 256

// blocksFor is a grid of blocks that covers n elements with a loop over the grid: each thread takes several where there are many.
func (d *Device) blocksFor(n int64) [3]int {
	const perThread = 4
	blocks := (n + threads*perThread - 1) / (threads * perThread)
	return [3]int{int(min(blocks, 32*int64(max(d.cores, 1)))), 1, 1}
}
