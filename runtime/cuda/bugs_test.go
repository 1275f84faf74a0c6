//go:build cuda && linux

package cuda

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"gorgonia.org/cu"

	"aitk/internal/fakecuda"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/devicetest"
)

// The bugs that a runtime or a planner could have, planted one at a time between Load's check and the driver. Each must be reported, with the op and
// its place in the plan; a test that runs without complaint proves nothing about the checks.

// saboteur is the device with a bug.
type saboteur struct {
	*Device
	bug   *planted
	waits int // of the program so far, by order
}

// planted changes what the device is told. Every field may be nil.
type planted struct {
	name    string
	shuttle bool                                               // in the plan of copies, else in that of kernels
	open    func(*Device) error                                // before Load
	kernel  func(d *Device, k *kernel)                         // after an instruction was resolved
	skip    func(k *kernel) bool                               // this launch is forgotten
	wait    func(n int, l plan.Lane, slot int32) (int32, bool) // the n-th wait: another slot, or false to forget it
	record  func(l plan.Lane) plan.Lane                        // marks another lane
	copy    func(d *Device, l plan.Lane, dst, src *runtime.Slice) plan.Lane
	early   bool // Sync comes back before the device is done
	counter string
	words   []string // in the reports, or in the error of the run
}

func (s *saboteur) Kernel(x *plan.Exec, in, out []runtime.Slice, scratch runtime.Slice) (runtime.Kernel, error) {
	k, err := s.Device.Kernel(x, in, out, scratch)
	if err == nil && s.bug.kernel != nil {
		s.bug.kernel(s.Device, k.(*kernel))
	}
	return k, err
}

func (s *saboteur) Launch(l plan.Lane, k runtime.Kernel) error {
	if s.bug.skip != nil && s.bug.skip(k.(*kernel)) {
		return nil
	}
	return s.Device.Launch(l, k)
}

func (s *saboteur) Wait(l plan.Lane, slot int32) error {
	n := s.waits
	s.waits++
	if s.bug.wait != nil {
		other, ok := s.bug.wait(n, l, slot)
		if !ok {
			return nil
		}
		slot = other
	}
	return s.Device.Wait(l, slot)
}

func (s *saboteur) Record(l plan.Lane, slot int32) error {
	if s.bug.record != nil {
		l = s.bug.record(l)
	}
	return s.Device.Record(l, slot)
}

func (s *saboteur) Copy(l plan.Lane, dst, src runtime.Slice) error {
	if s.bug.copy != nil {
		l = s.bug.copy(s.Device, l, &dst, &src)
	}
	return s.Device.Copy(l, dst, src)
}

func (s *saboteur) Sync(ctx context.Context) error {
	s.waits = 0
	if !s.bug.early {
		return s.Device.Sync(ctx)
	}
	s.issue()
	s.batch.list, s.batch.issued, s.batch.live = s.batch.list[:0], 0, [streams]bool{}
	return nil
}

// line is a plan of one program on the compute lane: x[300,64] w[64,64] -> MatMul "fc" -> Add "skip" -> ReduceSum "sum" over rows, in stretches.
func line() *plan.Plan {
	p := &plan.Plan{Tool: "test", Profile: plan.Profile{Device: "cuda"}}
	prog := plan.Program{Name: "step", Repeat: true}
	at := int64(0)
	place := func(t ir.Type, holds bool) plan.Ref {
		id := plan.BufferID(len(p.Buffers))
		b := plan.Buffer{Type: t, Offset: at, Bytes: t.Bytes(), Holds: plan.NoSymbol, Category: plan.CatTemporary, Live: []plan.Span{{Start: int32(len(prog.Instrs)), End: 3}}}
		if holds {
			b.Holds = plan.SymbolID(len(p.Symbols))
			p.Symbols = append(p.Symbols, plan.Symbol{Value: ir.ID(len(p.Symbols)), Bytes: t.Bytes()})
		}
		p.Buffers = append(p.Buffers, b)
		at += (t.Bytes() + 255) / 256 * 256
		return plan.Ref{Buffer: id, Type: t}
	}
	input := func(name string, t ir.Type) plan.Ref {
		r := place(t, true)
		p.Buffers[r.Buffer].Category = plan.CatInput
		prog.Inputs = append(prog.Inputs, plan.Port{Name: name, Ref: r})
		return r
	}
	x, w := input("x", ir.T(ir.F32, 300, 64)), input("w", ir.T(ir.F32, 64, 64))
	exec := func(name string, o ir.Op, in ...plan.Ref) plan.Ref {
		types := make([]ir.Type, len(in))
		for i, r := range in {
			types[i] = r.Type
		}
		out, err := o.Infer(types)
		if err != nil {
			panic(err)
		}
		y := place(out[0], true)
		e := &plan.Exec{Op: o, In: in, Out: []plan.Ref{y}, Scratch: plan.NoBuffer, Picos: 1, Origin: ir.Origin{Node: name}}
		if work := ir.WorkOf(o, types, out); work.ScratchBytes+work.PartialBytes > 0 {
			s := place(ir.T(ir.U8, work.ScratchBytes+work.PartialBytes), false)
			p.Buffers[s.Buffer].Live[0].End = int32(len(prog.Instrs)) + 1
			e.Scratch = s.Buffer
		}
		prog.Instrs = append(prog.Instrs, e)
		return y
	}
	y := exec("fc", op.MatMul{}, x, w)
	z := exec("skip", op.Add{}, y, x)
	prog.Results = []plan.Port{{Name: "sum", Ref: exec("sum", op.ReduceSum{Axes: []int64{0}}, z)}}
	p.Programs = []plan.Program{prog}
	last := p.Buffers[len(p.Buffers)-1]
	p.Arenas = []plan.Arena{{Space: ir.Device, Bytes: last.Offset + last.Bytes, BudgetBytes: -1, Align: 256}}
	return p
}

// on changes the first launch of a node's kernel.
func on(node string, change func(d *Device, k *kernel, l *launch)) func(*Device, *kernel) {
	return func(d *Device, k *kernel) {
		if k.x.Origin.Node == node {
			change(d, k, &k.launches[0])
		}
	}
}

// edited makes the driver compile a text of ours in the place of the one that ships.
func edited(module string, edit func(string) string) func(*Device) error {
	return func(d *Device) error {
		ptx, err := text(module, d.arch)
		if err != nil {
			return err
		}
		changed := edit(ptx)
		if changed == ptx {
			return fmt.Errorf("the text of %s has nothing to edit", module)
		}
		return d.with(func() error {
			m, err := cu.LoadData(changed)
			d.modules[module] = m
			return err
		})
	}
}

// without forgets the n-th wait of a lane.
func without(lane plan.Lane, n int) func(int, plan.Lane, int32) (int32, bool) {
	seen := 0
	return func(i int, l plan.Lane, slot int32) (int32, bool) {
		if i == 0 {
			seen = 0
		}
		if l == lane {
			seen++
		}
		return slot, l != lane || seen != n+1
	}
}

// The first arguments of kernels: result, operands, then numbers.
const argResult, argFirst, argSecond = 0, 1, 2

func plantedBugs() []planted {
	fc, skip, sum := `program step, instruction 0, MatMul`, `program step, instruction 1, Add`, `program step, instruction 2, ReduceSum`
	size := func(s *runtime.Slice) int64 { return s.Bytes }
	return []planted{
		// waits and events
		{name: "a wait for a swap-in is forgotten", shuttle: true, wait: without(plan.Compute, 1), counter: "races", words: []string{"copy host to device at program step, instruction ", "Sub"}},
		{name: "a wait for a swap-out is forgotten", shuttle: true, wait: without(plan.Compute, 0), counter: "races", words: []string{"copy device to host at program step, instruction ", "Neg"}},
		{name: "a swap-out does not wait for its value", shuttle: true, wait: without(plan.D2H, 0), counter: "races", words: []string{"copy device to host at program step, instruction ", "Mul"}},
		{name: "a wait is for another event", shuttle: true, wait: func(i int, l plan.Lane, slot int32) (int32, bool) { return max(0, slot-1), true }, counter: "races", words: []string{"program step, instruction "}},
		{name: "events are recorded on the wrong stream", shuttle: true, record: func(plan.Lane) plan.Lane { return plan.H2D }, counter: "races", words: []string{"program step, instruction "}},
		{name: "copies stand on the wrong stream", shuttle: true, copy: func(d *Device, l plan.Lane, dst, src *runtime.Slice) plan.Lane { return plan.D2H + plan.H2D - l }, counter: "races",
			words: []string{"program step, instruction "}},
		{name: "the last wait for the device is forgotten", shuttle: true, early: true, counter: "races", words: []string{"program step, instruction ", "Add"}},
		// copies
		{name: "a copy moves half of its bytes", shuttle: true, copy: func(d *Device, l plan.Lane, dst, src *runtime.Slice) plan.Lane {
			dst.Bytes, src.Bytes = size(dst)/8*4, size(src)/8*4 // as if elements had two bytes
			return l
		}, counter: "uninitialised", words: []string{"program step, instruction ", "Sub"}},
		{name: "a copy ends in the next buffer", shuttle: true, copy: func(d *Device, l plan.Lane, dst, src *runtime.Slice) plan.Lane {
			if l == plan.H2D {
				dst.Offset += 4096
			}
			return l
		}, counter: "uninitialised", words: []string{"program step, instruction ", "Sub"}},
		{name: "two places in host memory are swapped", shuttle: true, copy: func(d *Device, l plan.Lane, dst, src *runtime.Slice) plan.Lane {
			if l == plan.D2H {
				dst.Offset = 4096 - dst.Offset
			}
			return l
		}, counter: "uninitialised", words: []string{"program step, instruction 12, Sub"}},
		{name: "a copy takes memory that is not pinned", shuttle: true, copy: func(d *Device, l plan.Lane, dst, src *runtime.Slice) plan.Lane {
			if l == plan.H2D && d.place.pc < 20 {
				src.Arena, src.Offset = &arena{host: make([]byte, src.Bytes), device: src.Arena.(*arena).device}, 0
			}
			return l
		}, counter: "unpinnedCopies", words: []string{"not pinned", "program step, instruction "}},
		// addresses and numbers of kernels
		{name: "a kernel writes over a weight", kernel: on("fc", func(d *Device, k *kernel, l *launch) { l.slots[argResult] = l.slots[argSecond] }), counter: "outOfRange", words: []string{fc, "in operand 1, which it may not write"}},
		{name: "operand and result are swapped", kernel: on("skip", func(d *Device, k *kernel, l *launch) {
			l.slots[argResult], l.slots[argFirst] = l.slots[argFirst], l.slots[argResult]
		}), counter: "outOfRange", words: []string{skip}},
		{name: "a pointer is stale", kernel: on("skip", func(d *Device, k *kernel, l *launch) {
			_ = d.with(func() error {
				p, err := cu.MemAlloc(1 << 20)
				l.slots[argFirst] = uint64(p)
				_ = cu.MemFree(p)
				return err
			})
		}), counter: "outOfBounds", words: []string{skip}},
		{name: "two operands' places are swapped", kernel: on("fc", func(d *Device, k *kernel, l *launch) {
			l.slots[argFirst], l.slots[argSecond] = l.slots[argSecond], l.slots[argFirst]
		}), counter: "uninitialised", words: []string{fc}},
		{name: "a bound is one too large", kernel: on("fc", func(d *Device, k *kernel, l *launch) { l.slots[3]++ }), counter: "outOfRange", words: []string{fc}},
		{name: "a grid is too small", kernel: on("fc", func(d *Device, k *kernel, l *launch) { l.grid[0]-- }), counter: "uninitialised", words: []string{skip}},
		{name: "scratch is an operand's place", kernel: on("sum", func(d *Device, k *kernel, l *launch) { l.slots[2] = l.slots[argFirst] }), counter: "outOfRange", words: []string{sum}},
		{name: "the function of another element type", kernel: on("skip", func(d *Device, k *kernel, l *launch) {
			f, err := d.function("arithmetic_f64", "arithmetic", k)
			if err != nil {
				panic(err)
			}
			l.fn = f
		}), counter: "outOfRange", words: []string{skip}},
		{name: "an instruction is forgotten", skip: func(k *kernel) bool { return k.x.Origin.Node == "fc" }, counter: "uninitialised", words: []string{skip}},
		{name: "the second launch of an op comes first", kernel: func(d *Device, k *kernel) {
			if len(k.launches) == 2 {
				k.launches[0], k.launches[1] = k.launches[1], k.launches[0]
			}
		}, counter: "uninitialised", words: []string{sum}},
		{name: "a block is larger than the kernel takes", kernel: on("fc", func(d *Device, k *kernel, l *launch) { l.block = 2048 }), counter: "refusedLaunches", words: []string{fc}},
		// the kernels' texts
		{name: "a barrier is missing", open: edited("matmul_f32", func(s string) string { return strings.Replace(s, "bar.sync", "// bar.sync", 1) }), counter: "sharedRaces", words: []string{fc, "missing barrier"}},
		{name: "a kernel's loop runs once too often", open: edited("reduce_f32", func(s string) string { return strings.Replace(s, "setp.lt.s64", "setp.le.s64", 12) }), counter: "uninitialised", words: []string{sum}},
	}
}

// TestPlantedBugs also runs both plans without any, which must be clean.
func TestPlantedBugs(t *testing.T) {
	ctl := fake(t)
	if ctl == nil {
		t.Skip("a real device has no checks")
	}
	bugs := plantedBugs()
	if len(bugs) < 15 {
		t.Fatalf("%d bugs", len(bugs))
	}
	for _, b := range append(bugs, planted{name: "none, in copies", shuttle: true}, planted{name: "none, in kernels"}) {
		t.Run(b.name, func(t *testing.T) {
			ctl.Reset()
			// A device that does not run things at once: what a host does too early then shows.
			ctl.Set("seed", 1)
			defer ctl.Set("seed", 0)
			err := sabotaged(t, &b)
			if b.counter == "" {
				if err != nil {
					t.Error(err)
				}
				clean(t, ctl)
				return
			}
			reports := ctl.Reports()
			if ctl.Get(b.counter) == 0 {
				for _, name := range fakecuda.Faults() {
					if n := ctl.Get(name); n != 0 {
						t.Logf("%s %d", name, n)
					}
				}
				t.Errorf("%s is 0; error %v\n%s", b.counter, err, strings.Join(first(reports, 4), "\n"))
				return
			}
			all := strings.Join(reports, "\n") + fmt.Sprint(err)
			for _, w := range b.words {
				if !strings.Contains(all, w) {
					t.Errorf("nothing says %q:\n%s\nerror %v", w, strings.Join(first(reports, 4), "\n"), err)
				}
			}
		})
	}
}

// sabotaged loads and runs a plan twice with a bug; the error is that of a run.
func sabotaged(t *testing.T, b *planted) error {
	dev, err := open(Options{Flat: true})
	if err != nil {
		t.Fatal(err)
	}
	if b.open != nil {
		if err := b.open(dev); err != nil {
			dev.Close()
			t.Fatal(err)
		}
	}
	p := line()
	if b.shuttle {
		p = devicetest.Shuttle("cuda", 1000)
	}
	e, err := runtime.Load(p, &saboteur{Device: dev, bug: b}, runtime.Options{})
	if err != nil {
		dev.Close()
		t.Fatal(err)
	}
	defer func() { _ = e.Close() }() // a device that broke cannot say goodbye
	for range 2 {
		for _, in := range p.Programs[0].Inputs {
			x := ir.NewTensor(in.Ref.Type)
			for i := range x.F {
				x.F[i] = float64(i % 7)
			}
			if err := e.SetInput("step", in.Name, x.Encode()); err != nil {
				return err
			}
		}
		if err := e.Run(context.Background(), "step"); err != nil {
			return err
		}
		out := p.Programs[0].Results[0]
		if err := e.Result("step", out.Name, make([]byte, out.Ref.Type.Bytes())); err != nil {
			return err
		}
	}
	return nil
}
