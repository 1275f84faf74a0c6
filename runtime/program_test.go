package runtime_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/cpu"
	"aitk/runtime/null"
)

// small is a plan with one mutable parameter w of 16 elements: init loads it through a pinned staging buffer half its size, step replaces
// it in place by relu(w) and gives a copy, save stores it.
//
//	device   0 w, w'   64 y      pinned   0 staging
func small() *plan.Plan {
	t := ir.T(ir.F32, 16)
	half := ir.Type{DType: ir.F32, Shape: ir.Shape{8}, Space: ir.Pinned}
	disk := t
	disk.Space = ir.Disk
	tensor := ir.NewTensor(t)
	for i := range tensor.F {
		tensor.F[i] = float64(i) - 7.5
	}
	part := func(b plan.BufferID, space ir.Space, at int64) plan.Ref {
		u := half
		u.Space = space
		return plan.Ref{Buffer: b, Offset: at, Type: u}
	}
	const (
		file, w, staging, w2, y = 0, 1, 2, 3, 4
	)
	home := []plan.Residency{{Param: 0, Buffer: w}}
	load := func(dst, src plan.Ref, lane plan.Lane, kind plan.CopyKind) plan.Instr {
		return &plan.Copy{Lane: lane, Dst: dst, Src: src, Kind: kind}
	}
	return &plan.Plan{
		Tool: "test", Profile: plan.Profile{Device: "cpu"},
		Arenas: []plan.Arena{{Space: ir.Device, Bytes: 128, BudgetBytes: -1, Align: 64}, {Space: ir.Pinned, Bytes: 32, BudgetBytes: -1, Align: 64}},
		Symbols: []plan.Symbol{
			{Name: "w", Program: -1, Bytes: 64}, {Name: "w'", Program: 1, Bytes: 64}, {Name: "y", Program: 1, Value: 1, Bytes: 64},
		},
		Buffers: []plan.Buffer{
			file:    {Name: "w.file", Type: disk, Bytes: 64, Holds: 0},
			w:       {Name: "w", Type: t, Bytes: 64, Holds: 0, Live: []plan.Span{{Program: 0, Start: 0, End: 7}, {Program: 1, Start: 0, End: 1}, {Program: 2, Start: 0, End: 1}}},
			staging: {Name: "staging", Type: half, Bytes: 32, Holds: 0, Category: plan.CatStaging, Live: []plan.Span{{Program: 0, Start: 0, End: 7}}},
			w2:      {Name: "w'", Type: t, Bytes: 64, Holds: 1, Live: []plan.Span{{Program: 1, Start: 1, End: 2}}},
			y:       {Name: "y", Type: t, Offset: 64, Bytes: 64, Holds: 2, Live: []plan.Span{{Program: 1, Start: 0, End: 2}}},
		},
		Params: []plan.Param{{Name: "w", Type: t, Trainable: true, Mutable: true, Storage: file, Init: ir.Init{Kind: ir.InitLiteral, Literal: tensor.Encode()}}},
		Programs: []plan.Program{
			{Name: "init", Exit: home, Instrs: []plan.Instr{
				load(part(staging, ir.Pinned, 0), part(file, ir.Disk, 0), plan.Read, plan.CopyLoad),
				&plan.Wait{Lane: plan.H2D, On: 0},
				load(part(w, ir.Device, 0), part(staging, ir.Pinned, 0), plan.H2D, plan.CopySwapIn),
				&plan.Wait{Lane: plan.Read, On: 2},
				load(part(staging, ir.Pinned, 0), part(file, ir.Disk, 32), plan.Read, plan.CopyLoad),
				&plan.Wait{Lane: plan.H2D, On: 4},
				load(part(w, ir.Device, 32), part(staging, ir.Pinned, 0), plan.H2D, plan.CopySwapIn),
			}},
			{Name: "step", Repeat: true, Entry: home, Exit: []plan.Residency{{Param: 0, Buffer: w2}}, Instrs: []plan.Instr{
				&plan.Exec{Op: op.LeakyRelu{Alpha: 1}, In: []plan.Ref{{Buffer: w, Type: t}}, Out: []plan.Ref{{Buffer: y, Type: t}}, Scratch: plan.NoBuffer, Origin: ir.Origin{Node: "copy"}},
				&plan.Exec{Op: op.Relu{}, In: []plan.Ref{{Buffer: w, Type: t}}, Out: []plan.Ref{{Buffer: w2, Type: t}}, Scratch: plan.NoBuffer, Origin: ir.Origin{Node: "update"}},
			}, Results: []plan.Port{{Name: "y", Ref: plan.Ref{Buffer: y, Type: t}}}},
			{Name: "save", Entry: home, Exit: home, Instrs: []plan.Instr{
				&plan.Copy{Lane: plan.Write, Dst: plan.Ref{Buffer: file, Type: disk}, Src: plan.Ref{Buffer: w, Type: t}, Kind: plan.CopySave},
			}},
		},
	}
}

func open(t *testing.T) *cpu.Device {
	d := cpu.Open(cpu.Options{Threads: 1})
	t.Cleanup(func() { d.Close() })
	return d
}

// TestTrainedParameter goes the whole way of a parameter: storage, staging, device, update in place, storage.
func TestTrainedParameter(t *testing.T) {
	for _, poison := range []bool{false, true} {
		p := small()
		store := runtime.NewMemory(p)
		e, err := runtime.Load(p, open(t), runtime.Options{Storage: store, Poison: poison})
		if err != nil {
			t.Fatal(err)
		}
		ctx := context.Background()
		for _, name := range []string{"init", "step", "save"} {
			if err := e.Run(ctx, name); err != nil {
				t.Fatal(err)
			}
		}
		want, err := ir.DecodeTensor(p.Params[0].Type, p.Params[0].Init.Literal)
		if err != nil {
			t.Fatal(err)
		}
		y := make([]byte, 64)
		if err := e.Result("step", "y", y); err != nil || !slices.Equal(y, p.Params[0].Init.Literal) {
			t.Errorf("result y: %x, error %v", y, err)
		}
		for i := range want.F {
			want.F[i] = max(0, want.F[i])
		}
		if !slices.Equal(store.Get(0), want.Encode()) {
			t.Errorf("poison=%v: saved %x, want %x", poison, store.Get(0), want.Encode())
		}
		if n := testing.AllocsPerRun(5, func() { err = errors.Join(e.Run(ctx, "step"), e.Run(ctx, "save")) }); n != 0 || err != nil {
			t.Errorf("step and save allocate %v times, error %v", n, err)
		}
		for s, want := range map[ir.Space]int64{ir.Device: 128, ir.Pinned: 32, ir.Disk: 0} {
			if got := e.HighWaterBytes(s); got != want {
				t.Errorf("the device saw %d bytes of space %v, want %d", got, s, want)
			}
		}
		if got := e.ProgramHighWaterBytes("save", ir.Device); got != 64 {
			t.Errorf("program save reached up to %d bytes, want 64", got)
		}
		if e.MovedBytes(plan.CopyLoad) != 64 || e.MovedBytes(plan.CopySwapIn) != 64 || e.MovedBytes(plan.CopySave) != 64*7 {
			t.Errorf("moved %d, %d, %d bytes", e.MovedBytes(plan.CopyLoad), e.MovedBytes(plan.CopySwapIn), e.MovedBytes(plan.CopySave))
		}
	}
}

// TestNull: the null device runs the same plan and counts the same bytes.
func TestNull(t *testing.T) {
	d := null.Open()
	e, err := runtime.Load(small(), d, runtime.Options{Storage: runtime.NewMemory(small()), AnyDevice: true})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"init", "step", "step", "save"} {
		if err := e.Run(context.Background(), name); err != nil {
			t.Fatal(err)
		}
	}
	s := d.Stats()
	if s.HighWater != [ir.NumSpaces]int64{ir.Device: 128, ir.Pinned: 32} || s.Arenas != s.HighWater {
		t.Errorf("saw %v of arenas of %v", s.HighWater, s.Arenas)
	}
	if got := s.Lanes[plan.Read]; got.Copies != 2 || got.CopiedBytes != 64 || got.Waits != 1 || got.Records != 2 {
		t.Errorf("lane read: %+v", got)
	}
	if got := s.Lanes[plan.Compute]; got.Launches != 4 || s.Kernels != 2 {
		t.Errorf("lane compute: %+v, %d kernels", got, s.Kernels)
	}
}

// TestRefused lists what Load and Run say of plans, storages and requests that do not work out.
func TestRefused(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *plan.Plan, o *runtime.Options)
		load   string
		run    string
	}{
		{name: "good"},
		{name: "no storage", change: func(_ *plan.Plan, o *runtime.Options) { o.Storage = nil }, load: `buffer "w.file" is in the disk space, and no storage was given`},
		{name: "other device", change: func(p *plan.Plan, _ *runtime.Options) { p.Profile.Device = "cuda" }, load: `made for device "cuda", not for "cpu"`},
		{name: "wrong plan", change: func(p *plan.Plan, _ *runtime.Options) { p.Buffers[4].Offset = 0 }, load: "overlap"},
		{name: "short content", change: func(p *plan.Plan, o *runtime.Options) {
			m := runtime.NewMemory(p)
			m.Set(0, make([]byte, 40))
			o.Storage = m
		}, run: `loading parameter "w"`},
		{name: "no such kernel", change: func(p *plan.Plan, _ *runtime.Options) {
			p.Programs[1].Instrs[0].(*plan.Exec).Op = strange{}
			p.Programs[1].Instrs[1].(*plan.Exec).Op = strange{In: true}
		}, load: "strange has no cpu kernel"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := small()
			o := runtime.Options{Storage: runtime.NewMemory(p)}
			if c.change != nil {
				c.change(p, &o)
			}
			e, err := runtime.Load(p, open(t), o)
			says(t, "Load", err, c.load)
			if err == nil {
				says(t, "Run", e.Run(context.Background(), "init"), c.run)
			}
		})
	}
	p := small()
	e, err := runtime.Load(p, open(t), runtime.Options{Storage: runtime.NewMemory(p)})
	if err != nil {
		t.Fatal(err)
	}
	says(t, "Run", e.Run(context.Background(), "eval"), `no program "eval"`)
	says(t, "SetInput", e.SetInput("step", "x", nil), `program step has no input "x"`)
	says(t, "Result", e.Result("step", "z", nil), `program step has no result "z"`)
	says(t, "Result", e.Result("step", "y", make([]byte, 3)), `has 64 bytes, the room for it 3`)
}

func says(t *testing.T, what string, err error, want string) {
	t.Helper()
	switch {
	case want == "" && err != nil:
		t.Errorf("%s: %v", what, err)
	case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
		t.Errorf("%s: got %v, want %q", what, err, want)
	}
}

// strange is an op of no vocabulary.
type strange struct{ In bool }

func (strange) Infer(in []ir.Type) ([]ir.Type, error) { return in, nil }
func (strange) Alias() []ir.AliasPair                 { return []ir.AliasPair{{Out: 0, In: 0}} }
func (strange) Stateful() bool                        { return false }
func (strange) Stream() uint64                        { return 0 }

// TestReplayNamesNode: an error of visit comes back, and outputs can be read right after their instruction.
func TestReplayNamesNode(t *testing.T) {
	p := small()
	e, err := runtime.Load(p, open(t), runtime.Options{Storage: runtime.NewMemory(p)})
	if err != nil {
		t.Fatal(err)
	}
	ctx := context.Background()
	if err := e.Run(ctx, "init"); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("stop")
	var seen []string
	err = e.Replay(ctx, "step", func(_ int, x *plan.Exec, read func(int, []byte) error) error {
		seen = append(seen, x.Origin.Node)
		raw := make([]byte, 64)
		if err := read(0, raw); err != nil {
			return err
		}
		if y, err := ir.DecodeTensor(x.Out[0].Type, raw); err != nil || y.F[0] < 0 {
			return err
		}
		return stop
	})
	if !errors.Is(err, stop) || !slices.Equal(seen, []string{"copy", "update"}) {
		t.Errorf("saw %v, error %v", seen, err)
	}
}

// TestInitialBytes covers content that needs no file.
func TestInitialBytes(t *testing.T) {
	for _, c := range []struct {
		t    ir.Type
		init ir.Init
		want []byte
	}{
		{ir.T(ir.F32, 2), ir.Init{Kind: ir.InitFill, Fill: 1}, []byte{0, 0, 128, 63, 0, 0, 128, 63}},
		{ir.T(ir.I32, 3), ir.Init{Kind: ir.InitFill, Fill: -1}, slices.Repeat([]byte{255}, 12)},
		{ir.T(ir.I4, 3), ir.Init{Kind: ir.InitFill, Fill: 2}, []byte{0x22, 0x22}},
		{ir.T(ir.BF16, 0), ir.Init{Kind: ir.InitFill, Fill: 2}, []byte{}},
		{ir.T(ir.U8, 2), ir.Init{}, []byte{0, 0}},
		{ir.T(ir.U8, 2), ir.Init{Kind: ir.InitLiteral, Literal: []byte{7, 8}}, []byte{7, 8}},
		{ir.T(ir.U8, 2), ir.Init{Kind: ir.InitFile}, nil},
	} {
		got := runtime.InitialBytes(&plan.Param{Type: c.t, Init: c.init})
		if !slices.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%v %v: got %v, want %v", c.t, c.init.Kind, got, c.want)
		}
	}
}
