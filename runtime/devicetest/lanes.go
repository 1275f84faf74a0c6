package devicetest

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
)

// refuses runs an op on content that it must refuse.
func (s *suite) refuses(t *testing.T, number int, o ir.Op, in []ir.Tensor) {
	dev := s.open(t)
	m := newMaker(dev.Name())
	if err := m.single("bad", testCase{op: o, in: in}); err != nil {
		t.Fatal(err)
	}
	e, err := runtime.Load(m.plan(), dev, runtime.Options{Poison: true})
	if err != nil {
		dev.Close()
		if ir.KindOf(err) == ir.Unsupported {
			t.Skip("reported by the ops themselves")
		}
		t.Fatal(err)
	}
	defer e.Close()
	for i, x := range in {
		if err := e.SetInput("bad", fmt.Sprint(i), x.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Run(context.Background(), "bad"); err == nil {
		t.Errorf("sample %d, %s: index out of range was accepted", number, ir.FormatOp(o))
	}
}

// rounds is how often the shuttle goes; together they keep every lane busy at once.
const rounds = 12

// Shuttle is a plan of a program "step" with input "x" and result "sum", both f32[n], whose results come out right only if copies wait for what
// they copy and compute waits for copies. Each round k sends a = x*(k+1) away, overwrites its bytes, and adds what comes back to the sum. Host memory has room for two rounds, so a round waits
// for the copy back of the round before the last, in this run or, with Back 1, in the run before.
func Shuttle(device string, n int64) *plan.Plan {
	m := newMaker(device)
	m.program("step")
	t := ir.T(ir.F32, n)
	x := m.input("x", t)
	sum := m.mustExec(op.Sub{}, x, x)
	factor := m.mustExec(op.Fill{DType: ir.F32, Value: 1})
	one := m.mustExec(op.Fill{DType: ir.F32, Value: 1})
	host := [2]int64{}
	var back []int32 // by round: instruction that copies back
	var waits []*plan.Wait
	for k := range rounds {
		a := m.mustExec(op.Mul{}, x, factor)
		multiplied := m.pc() - 1
		m.wait(plan.D2H, multiplied, 0)
		if k >= 2 {
			m.wait(plan.D2H, back[k-2], 0)
		} else {
			m.wait(plan.D2H, 0, 1) // which instruction is known when all stand
			waits = append(waits, m.prog.Instrs[m.pc()-1].(*plan.Wait))
		}
		if k >= 2 { // the bytes of the round before the last
			m.next[ir.Pinned] = host[k%2]
		}
		host[k%2] = m.next[ir.Pinned]
		h, out := m.copy(plan.D2H, plan.CopySwapOut, ir.Pinned, a)
		m.wait(plan.Compute, out, 0)
		spoiled, err := m.exec(op.Neg{}, []int{0}, a)
		if err != nil {
			panic(ir.Bugf("%v", err))
		}
		m.wait(plan.H2D, out, 0)
		in, at := m.copy(plan.H2D, plan.CopySwapIn, ir.Device, h)
		m.die(h)
		back = append(back, at)
		m.wait(plan.Compute, at, 0)
		both := m.mustExec(op.Sub{}, in, spoiled[0])
		sum = m.mustExec(op.Add{}, sum, both)
		factor = m.mustExec(op.Add{}, factor, one)
	}
	for i, w := range waits {
		w.On = back[rounds-2+i]
	}
	m.result("sum", sum)
	return m.plan()
}

// lanes runs the shuttle several times in a row, with and without poison.
func (s *suite) lanes(t *testing.T) {
	const n = 20011
	for _, poison := range []bool{false, true} {
		t.Run(fmt.Sprintf("poison=%v", poison), func(t *testing.T) {
			dev := s.open(t)
			p := Shuttle(dev.Name(), n)
			e, err := runtime.Load(p, dev, runtime.Options{Poison: poison})
			if err != nil {
				dev.Close()
				t.Fatal(err)
			}
			defer e.Close()
			ctx := context.Background()
			for run := range 4 {
				x, want := ir.NewTensor(ir.T(ir.F32, n)), ir.NewTensor(ir.T(ir.F32, n))
				for i := range x.F {
					x.F[i] = float64((i + run) % 16)
					want.F[i] = x.F[i] * rounds * (rounds + 1)
				}
				if err := e.SetInput("step", "x", x.Encode()); err != nil {
					t.Fatal(err)
				}
				if err := e.Run(ctx, "step"); err != nil {
					t.Fatal(err)
				}
				got := make([]byte, want.Type.Bytes())
				if err := e.Result("step", "sum", got); err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(got, want.Encode()) {
					y, _ := ir.DecodeTensor(want.Type, got)
					t.Fatalf("run %d: %v", run, compare(op.Add{}, y, want))
				}
			}
			if n := testing.AllocsPerRun(10, func() { err = e.Run(ctx, "step") }); n != 0 || err != nil {
				t.Errorf("a run allocates %v times, error %v", n, err)
			}
			for _, a := range p.Arenas {
				if e.HighWaterBytes(a.Space) != a.Bytes {
					t.Errorf("the device saw %d bytes of a %v arena of %d", e.HighWaterBytes(a.Space), a.Space, a.Bytes)
				}
			}
			if moved := e.MovedBytes(plan.CopySwapOut); moved%(rounds*4*n) != 0 || moved == 0 {
				t.Errorf("%d bytes went out", moved)
			}
		})
	}
}

// load tries what Load must refuse and what Replay must show.
func (s *suite) load(t *testing.T) {
	dev := s.open(t)
	p := Shuttle("another", 8)
	if _, err := runtime.Load(p, dev, runtime.Options{}); ir.KindOf(err) != ir.Usage {
		t.Errorf("a plan for another device: %v", err)
	}
	p.Profile.Device = dev.Name()
	e, err := runtime.Load(p, dev, runtime.Options{})
	if err != nil {
		dev.Close()
		t.Fatal(err)
	}
	defer e.Close()
	if err := e.SetInput("step", "x", make([]byte, 3)); err == nil {
		t.Error("an input of the wrong size was accepted")
	}
	x := ir.NewTensor(ir.T(ir.F32, 8))
	for i := range x.F {
		x.F[i] = float64(i)
	}
	if err := e.SetInput("step", "x", x.Encode()); err != nil {
		t.Fatal(err)
	}
	execs := 0
	err = e.Replay(context.Background(), "step", func(pc int, x *plan.Exec, read func(int, []byte) error) error {
		execs++
		if _, ok := x.Op.(op.Neg); !ok {
			return nil
		}
		dst := make([]byte, x.Out[0].Type.Bytes())
		if err := read(0, dst); err != nil {
			return err
		}
		y, err := ir.DecodeTensor(x.Out[0].Type, dst)
		if err == nil && y.F[7] >= 0 {
			err = fmt.Errorf("instruction %d: element 7 is %v after Neg", pc, y.F[7])
		}
		return err
	})
	if err != nil || execs != 3+5*rounds {
		t.Errorf("replay showed %d instructions, error %v", execs, err)
	}
	cancelled, cancel := context.WithCancel(context.Background())
	cancel()
	if err := e.Run(cancelled, "step"); err == nil {
		t.Error("a cancelled run ran")
	}
}
