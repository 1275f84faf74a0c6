package passes_test

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/passes"
)

// The pipeline obeys its own order, and every pair means something: both passes exist, and swapping them is refused with the reason.
func TestPipelineOrder(t *testing.T) {
	list := slices.Concat(passes.Pipeline(), passes.Back())
	if err := passes.CheckPipeline(0, list, passes.Order()); err != nil {
		t.Fatal(err)
	}
	at := func(name string) int {
		return slices.IndexFunc(list, func(p passes.Pass) bool { return p.Name == name })
	}
	for _, o := range passes.Order() {
		a, b := at(o.First), at(o.Then)
		if a < 0 || b < 0 {
			t.Errorf("pair %s, %s: no such pass", o.First, o.Then)
			continue
		}
		if len(o.Reason) < 20 {
			t.Errorf("pair %s, %s has no reason: %q", o.First, o.Then, o.Reason)
		}
		swapped := slices.Clone(list)
		swapped[a], swapped[b] = swapped[b], swapped[a]
		if err := passes.CheckPipeline(0, swapped, passes.Order()); err == nil || !strings.Contains(err.Error(), o.Reason) {
			t.Errorf("swapping %s and %s: got %v", o.First, o.Then, err)
		}
	}
	for _, p := range list {
		if p.Doc == "" || p.Run == nil || strings.Contains(p.Synopsis(), "\n") {
			t.Errorf("pass %q lacks something", p.Name)
		}
	}
}

func TestCheckPipelineFollowsProperties(t *testing.T) {
	list := pick(t, []string{"schedule", "late-cse"})
	list = append(list, passes.Pass{Name: "needs", Needs: passes.Scheduled})
	err := passes.CheckPipeline(0, list, nil)
	if err == nil || !strings.Contains(err.Error(), "pass needs needs scheduled") {
		t.Errorf("got %v", err)
	}
	if err := passes.CheckPipeline(0, append(list[:1:1], list[2]), nil); err != nil {
		t.Error(err)
	}
	if err := passes.CheckPipeline(0, append(list[:1:1], list[0]), nil); err == nil {
		t.Error("a name stands twice")
	}
}

func tiny() *ir.Graph {
	g := ir.NewGraph("m")
	b := &ir.Builder{G: g}
	x := g.AddInput("x", ir.T(ir.F32, 2))
	g.Results = []ir.Result{{Name: "y", Value: b.Add(op.Exp{}, x)}}
	return g
}

// A bug in a pass becomes an error that names pass and program, and a reproducer that holds the graph as it went in.
func TestCrash(t *testing.T) {
	broken := []passes.Pass{{Name: "break", Run: func(ctx *passes.Context, g *ir.Graph) error {
		g.Nodes = nil
		panic(ir.Bugf("the sky fell"))
	}}}
	dir := t.TempDir() + "/new"
	o := passes.Options{CrashDir: dir}
	if err := o.Set("accumulate", "3"); err != nil {
		t.Fatal(err)
	}
	before := tiny().String()
	err := passes.Run(&passes.Context{Options: o}, tiny(), broken, nil)
	var bug *ir.Bug
	if !errors.As(err, &bug) || !strings.Contains(err.Error(), "pass break on program m") {
		t.Fatalf("got %v", err)
	}
	files, _ := os.ReadDir(dir)
	if len(files) != 1 || !strings.Contains(err.Error(), files[0].Name()) {
		t.Fatalf("%d files; error %v", len(files), err)
	}
	data, err := os.ReadFile(dir + "/" + files[0].Name())
	if err != nil {
		t.Fatal(err)
	}
	r, err := passes.DecodeReproducer(data)
	if err != nil {
		t.Fatal(err)
	}
	want := passes.Setting{Key: "accumulate", Value: "3"}
	if r.Graph != before || !slices.Equal(r.Passes, []string{"break"}) || !slices.Equal(r.Options, []passes.Setting{want}) || !strings.Contains(r.Failure, "the sky fell") {
		t.Errorf("reproducer:\n%s", data)
	}
	if !bytes.Equal(r.Encode(), data) {
		t.Error("encoding the decoded reproducer differs")
	}

	defer func() {
		if recover() != "not a Bug" {
			t.Error("a foreign panic was swallowed")
		}
	}()
	broken[0].Run = func(*passes.Context, *ir.Graph) error { panic("not a Bug") }
	_ = passes.Run(&passes.Context{}, tiny(), broken, nil)
}

func TestVerifyEachNamesThePass(t *testing.T) {
	broken := []passes.Pass{{Name: "forget", Run: func(ctx *passes.Context, g *ir.Graph) error {
		g.Nodes = nil
		return nil
	}}}
	err := passes.Run(&passes.Context{Options: passes.Options{VerifyEach: true}}, tiny(), broken, nil)
	if err == nil || !strings.Contains(err.Error(), "broken after pass forget") {
		t.Errorf("got %v", err)
	}
	if err := passes.Run(&passes.Context{}, tiny(), broken, nil); err != nil {
		t.Errorf("without verification: %v", err)
	}
}

func TestDriverOptions(t *testing.T) {
	run := func(o passes.Options) (*passes.Context, error) {
		ctx := &passes.Context{Options: o}
		return ctx, passes.Run(ctx, tiny(), passes.Pipeline(), passes.Order())
	}
	ran := func(ctx *passes.Context) string {
		var names []string
		for _, s := range ctx.Stats {
			names = append(names, s.Pass)
		}
		return strings.Join(names, " ")
	}
	var out bytes.Buffer
	ctx, err := run(passes.Options{StopAfter: "dce", Disable: []string{"fold"}, Print: &out, PrintAfter: []string{"cse"}, TimePasses: true})
	if err != nil || ran(ctx) != "canonicalize cse raise dce" {
		t.Errorf("ran %q, %v", ran(ctx), err)
	}
	if !strings.HasPrefix(out.String(), "# after cse\ngraph @m") || strings.Count(out.String(), "# after") != 1 {
		t.Errorf("printed %q", out.String())
	}
	for _, c := range []struct {
		o    passes.Options
		want string
	}{
		{passes.Options{StopAfter: "nowhere"}, `no pass is named "nowhere"`},
		{passes.Options{Disable: []string{"cze"}, PrintAfter: []string{"all", "fuse"}}, `no pass is named "cze"; no pass is named "fuse"`},
		{passes.Options{Disable: []string{"autodiff"}}, "pass autodiff is required"},
	} {
		if _, err := run(c.o); err == nil || !strings.Contains(err.Error(), c.want) || ir.KindOf(err) != ir.Usage {
			t.Errorf("got %v, want %s", err, c.want)
		}
	}
}
