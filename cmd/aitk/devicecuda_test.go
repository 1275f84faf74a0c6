//go:build cuda && linux

package main

import (
	"encoding/json"
	"errors"
	"maps"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"aitk/internal/fakecuda"
)

// TestCUDAScripts drives the program with the fake driver in the place of NVIDIA's. Its scripts have besides
//
//	fake clean               no check of the driver has found anything in any run so far; reports are shown
//	fake set NAME VALUE      a setting of the fake
//	arena FILE               set $ARENA to the device arena of a plan's JSON, $LESS to one byte less
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
