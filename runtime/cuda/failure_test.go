//go:build cuda && linux

package cuda

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"aitk/internal/fakecuda"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
)

// chain is a plan of n additions on the compute lane: x + x + x ...
func chain(n int, elems int64) *plan.Plan {
	t := ir.T(ir.F32, elems)
	p := &plan.Plan{Tool: "test", Profile: plan.Profile{Device: "cuda"}}
	buffer := func(i int) plan.Ref {
		id := plan.BufferID(len(p.Buffers))
		p.Symbols = append(p.Symbols, plan.Symbol{Value: ir.ID(i), Bytes: t.Bytes()})
		start := int32(max(0, i-1))
		p.Buffers = append(p.Buffers, plan.Buffer{Type: t, Offset: int64(i) * 4096, Bytes: t.Bytes(), Holds: plan.SymbolID(i), Category: plan.CatTemporary,
			Live: []plan.Span{{Start: start, End: int32(n)}}})
		return plan.Ref{Buffer: id, Type: t}
	}
	x := buffer(0)
	p.Buffers[0].Category = plan.CatInput
	prog := plan.Program{Name: "step", Repeat: true, Inputs: []plan.Port{{Name: "x", Ref: x}}}
	sum := x
	for i := range n {
		y := buffer(i + 1)
		prog.Instrs = append(prog.Instrs, &plan.Exec{Op: op.Add{}, In: []plan.Ref{sum, x}, Out: []plan.Ref{y}, Scratch: plan.NoBuffer, Picos: 1, Origin: ir.Origin{Node: "add." + string(rune('a'+i))}})
		sum = y
	}
	prog.Results = []plan.Port{{Name: "sum", Ref: sum}}
	p.Programs = []plan.Program{prog}
	p.Arenas = []plan.Arena{{Space: ir.Device, Bytes: int64(n)*4096 + t.Bytes(), BudgetBytes: -1, Align: 256}}
	return p
}

func load(t *testing.T, p *plan.Plan, opt Options) *runtime.Executable {
	t.Helper()
	dev, err := Open(opt)
	if err != nil {
		t.Fatal(err)
	}
	e, err := runtime.Load(p, dev, runtime.Options{})
	if err != nil {
		dev.Close()
		t.Fatal(err)
	}
	return e
}

// TestGraphs: the third run of a program is launched as a graph, with the same bits; Flat never is.
func TestGraphs(t *testing.T) {
	ctl := fake(t)
	if ctl == nil {
		t.Skip("counts what the fake driver counts")
	}
	for _, flat := range []bool{false, true} {
		ctl.Reset()
		e := load(t, chain(12, 100), Options{Flat: flat})
		x := ir.NewTensor(ir.T(ir.F32, 100))
		for run := range 4 {
			for i := range x.F {
				x.F[i] = float64(i + run)
			}
			if err := e.SetInput("step", "x", x.Encode()); err != nil {
				t.Fatal(err)
			}
			if err := e.Run(context.Background(), "step"); err != nil {
				t.Fatal(err)
			}
			raw := make([]byte, 400)
			if err := e.Result("step", "sum", raw); err != nil {
				t.Fatal(err)
			}
			got, _ := ir.DecodeTensor(x.Type, raw)
			for i, v := range got.F {
				if v != 13*x.F[i] {
					t.Fatalf("run %d: element %d is %v, want %v", run, i, v, 13*x.F[i])
				}
			}
		}
		want := int64(2)
		if flat {
			want = 0
		}
		if n := ctl.Get("graphLaunches"); n != want {
			t.Errorf("flat %v: %d runs were launched as a graph, want %d", flat, n, want)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		clean(t, ctl)
		for _, leak := range []string{"leakedAllocations", "leakedStreams"} {
			if n := ctl.Get(leak); n != 0 {
				t.Errorf("%s: %d", leak, n)
			}
		}
	}
}

// TestLostDevice: a device that breaks down in the middle of a run is an error of that run which names what ran, and Close still comes back. The
// fake counts launches since the process began, so this one has a process of its own.
func TestLostDevice(t *testing.T) {
	if fake(t) == nil {
		t.Skip("breaks the fake driver alone")
	}
	if os.Getenv("AITK_LOST") == "" {
		lib, err := fakecuda.Build("")
		if err != nil {
			t.Fatal(err)
		}
		ctl, err := lib.NewControl(filepath.Join(t.TempDir(), "control"))
		if err != nil {
			t.Fatal(err)
		}
		defer ctl.Close()
		ctl.Set("failAtLaunch", 5)
		cmd := exec.Command(os.Args[0], "-test.run", "^TestLostDevice$")
		cmd.Env = append(append(os.Environ(), ctl.Env()...), "AITK_LOST=1")
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return
	}
	e := load(t, chain(12, 100), Options{})
	err := e.Run(context.Background(), "step")
	if err == nil {
		t.Fatal("the device broke down and nobody noticed")
	}
	if text := err.Error(); !strings.Contains(text, "Add") || !strings.Contains(text, `(node "add.`) || !strings.Contains(text, "program step, instruction ") {
		t.Errorf("the error does not say what ran: %v", err)
	}
	_ = e.Close() // a lost context cannot be freed: only that it comes back matters
}
