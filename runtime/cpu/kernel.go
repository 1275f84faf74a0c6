package cpu

import (
	"fmt"
	"unsafe"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
)

// families lists the kernels. Each entry answers nil, nil for an op that is none of its own.
func families() []func(*builder) (runtime.Kernel, error) {
	return []func(*builder) (runtime.Kernel, error){
		unaryKernel,
		activationKernel,
		castKernel,
		arithmeticKernel,
		compareKernel,
		logicKernel,
		whereKernel,
		transposeKernel,
		expandKernel,
		concatKernel,
		sliceKernel,
		padKernel,
		fillKernel,
		triluKernel,
		cumsumKernel,
		gatherKernel,
		gatherElementsKernel,
		gatherNDKernel,
		argmaxKernel,
		topkKernel,
		reduceKernel,
		matmulKernel,
		convKernel,
		maxPoolKernel,
		avgPoolKernel,
		softmaxKernel,
		attentionKernel,
		layerNormKernel,
		rmsNormKernel,
		batchNormKernel,
		movingAverageKernel,
		crossEntropyKernel,
		dropoutKernel,
		dequantizeKernel,
		sgdKernel,
		adamKernel,
		finiteKernel,
	}
}

// builder is what a kernel is made from: the instruction, the places of its operands, and the device that will run it. It is gone
// when the kernel runs.
type builder struct {
	dev     *Device
	x       *plan.Exec
	in, out []runtime.Slice
	scratch runtime.Slice // Bytes is 0 where the plan gives none
}

// inType and outType are the types of the operands as this instruction reads and writes them.
func (b *builder) inType(i int) ir.Type  { return b.x.In[i].Type }
func (b *builder) outType(i int) ir.Type { return b.x.Out[i].Type }

// noKernel is the answer of a family to an operand type that it does not serve.
func (b *builder) noKernel(t ir.Type) error {
	return fmt.Errorf("%s has no cpu kernel for %v", ir.OpName(b.x.Op), t)
}

// view reads the bytes of a slice as elements of T, without copying. T is the storage of a dtype: float64, float32, uint16 (f16, bf16),
// int64, int32, int8, uint8 (bool too; packed i4 two to a byte).
func view[T any](s runtime.Slice) []T {
	if s.Bytes == 0 {
		return nil
	}
	raw := s.Arena.Host()[s.Offset : s.Offset+s.Bytes]
	var zero T
	size := unsafe.Sizeof(zero)
	p := unsafe.Pointer(unsafe.SliceData(raw))
	if uintptr(p)%size != 0 {
		panic(ir.Bugf("address %#x of the %v arena is not aligned to %d bytes", s.Offset, s.Space, size))
	}
	return unsafe.Slice((*T)(p), len(raw)/int(size))
}

// rangeElems is the usual extent of a tile of cheap elementwise work.
const rangeElems = 1 << 14

// ranges makes a kernel that runs body over [0, n) in tiles of grain indices; a tile is lo to hi, half-open.
func (b *builder) ranges(n, grain int, body func(w *worker, lo, hi int) error) runtime.Kernel {
	tiles := (n + grain - 1) / grain
	return b.tiles(tiles, func(w *worker, tile int) error {
		lo := tile * grain
		return body(w, lo, min(lo+grain, n))
	})
}

// tiles makes a kernel that runs body once for each tile in [0, n), in any order and on any worker. The error of the lowest tile wins.
func (b *builder) tiles(n int, body func(w *worker, tile int) error) runtime.Kernel {
	return &job{pool: b.dev.pool, tiles: n, body: body}
}

// serial makes a kernel of one tile.
func (b *builder) serial(body func(w *worker) error) runtime.Kernel {
	return b.tiles(1, func(w *worker, _ int) error { return body(w) })
}

// sequence makes a kernel that runs others one after the other, stopping at the first error: a reduction's partial sums, then their sum.
func (b *builder) sequence(ks ...runtime.Kernel) runtime.Kernel { return sequence(ks) }

type sequence []runtime.Kernel

func (s sequence) Run() error {
	for _, k := range s {
		if err := k.Run(); err != nil {
			return err
		}
	}
	return nil
}
