//go:build cuda && linux

package main

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"aitk/internal/fakecuda"
)

var lost = flag.Int("lost", 61, "try every so many calls of the driver as the one that fails")

// TestCUDAScripts drives the program with the fake driver in the place of NVIDIA's. Its scripts have besides
//
//	fake clean               no check of the driver has found anything in any run so far; reports are shown
//	fake set NAME VALUE      a setting of the fake
//	arena FILE               set $ARENA to the device arena of a plan's JSON, $LESS to one byte less
//	broken CODE EXIT         train with call 1 of the driver failing with the code, with call 1+lost, ... until none fails; each time want exit 1 or EXIT, and
//	                         then that resuming makes whole.safetensors
func TestCUDAScripts(t *testing.T) {
	lib, err := fakecuda.Build("")
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	p := scriptParams("script_cuda")
	golden := p.Setup
	p.Setup = func(e *testscript.Env) error {
		if err := golden(e); err != nil {
			return err
		}
		ctl, err := lib.NewControl(filepath.Join(e.WorkDir, "fake"))
		if err != nil {
			return err
		}
		e.Defer(func() { ctl.Close() })
		e.Values["fake"] = ctl
		e.Vars = append(e.Vars, ctl.Env()...)
		return nil
	}
	p.Cmds = maps.Clone(p.Cmds)
	p.Cmds["fake"] = fakeCommand
	p.Cmds["arena"] = setArena
	p.Cmds["broken"] = breakCalls
	testscript.Run(t, p)
}

func fakeCommand(ts *testscript.TestScript, neg bool, args []string) {
	ctl := ts.Value("fake").(*fakecuda.Control)
	switch {
	case len(args) == 1 && args[0] == "clean":
		ts.Check(ctl.Clean())
		if ctl.Get("launches") == 0 {
			ts.Fatalf("nothing was launched")
		}
	case len(args) == 3 && args[0] == "set":
		n, err := strconv.ParseInt(args[2], 10, 64)
		ts.Check(err)
		ctl.Set(args[1], n)
	default:
		ts.Fatalf("usage: fake clean | fake set NAME VALUE")
	}
}

func setArena(ts *testscript.TestScript, neg bool, args []string) {
	var doc struct {
		Arena map[string]int64 `json:"arena_bytes"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc))
	ts.Setenv("ARENA", strconv.FormatInt(doc.Arena["device"], 10))
	ts.Setenv("LESS", strconv.FormatInt(doc.Arena["device"]-1, 10))
}

func breakCalls(ts *testscript.TestScript, neg bool, args []string) {
	ctl := ts.Value("fake").(*fakecuda.Control)
	code, err := strconv.ParseInt(args[0], 10, 64)
	ts.Check(err)
	other, err := strconv.Atoi(args[1])
	ts.Check(err)
	whole := ts.ReadFile("whole.safetensors")
	train := func(more ...string) (int, string) {
		err := ts.Exec("aitk", append(strings.Fields("train model.onnx --data batches.safetensors --device cuda --quiet --steps 5 --checkpoint ck --every 1"), more...)...)
		exit, ok := errors.AsType[*exec.ExitError](err)
		switch {
		case err == nil:
			return 0, ""
		case !ok:
			ts.Check(err)
		}
		return exit.ExitCode(), ts.ReadFile("stderr")
	}
	ctl.Set("failCode", code)
	defer ctl.Set("failAtCall", 0)
	failures, resumed := 0, 0
	for n := int64(1); ; n += int64(*lost) {
		ts.Check(os.RemoveAll(ts.MkAbs("ck")))
		ctl.Set("failAtCall", n)
		exit, said := train()
		if exit == 0 {
			if n < 200 { // a graph that cannot be captured is done without
				continue
			}
			break
		}
		failures++
		if exit != 1 && exit != other || !strings.Contains(said, "aitk: ") || !strings.Contains(said, "; ") || strings.Contains(said, "goroutine ") {
			ts.Fatalf("call %d fails with %d: exit %d and\n%s", n, code, exit, said)
		}
		ctl.Set("failAtCall", 0)
		more := []string{"--save", "again.safetensors"}
		if list, err := os.ReadDir(ts.MkAbs("ck")); err == nil && len(list) > 0 {
			more = append(more, "--resume", "latest")
			resumed++
		}
		if exit, said := train(more...); exit != 0 {
			ts.Fatalf("call %d had failed with %d, and the run does not go on: exit %d and\n%s", n, code, exit, said)
		}
		if ts.ReadFile("again.safetensors") != whole {
			ts.Fatalf("call %d had failed with %d: the run goes on to other bits", n, code)
		}
	}
	ts.Logf("code %d: %d runs failed, %d of them went on from a checkpoint", code, failures, resumed)
	if failures < 4 || resumed == 0 {
		ts.Fatalf("%d runs failed, %d went on from a checkpoint", failures, resumed)
	}
}
