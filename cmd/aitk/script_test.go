package main

import (
	"encoding/json"
	"errors"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// The scripts of testdata/script drive the program as its users do. Besides testscript's own commands they have
//
//	code N aitk ARGS...          run, and want that exit code
//	json FILE key[=value]...     want keys (a.b.c) in a JSON file, with values where given; FILE may be stdout
//	model FILE [OP]              write a small model: x f32[batch,4] -> Gemm fc -> OP (default Relu) -> logits [batch,3]
//	tensors FILE NAME=TYPE:WHAT  write safetensors: images=u8[8,4]:ramp target=i64[8]:2
//	cut FILE N OUT               the first N bytes (negative: all but the last -N)
//	flip FILE AT                 change one byte in place
//	minimum FILE                 set $MIN to minimum_budget_bytes of a plan's JSON, $BELOW to one less
//
// and the golden model of testdata/golden/mlp_digits as model.onnx with batches.safetensors.

var updateScripts = flag.Bool("update", false, "write what the scripts' commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"aitk": main})
}

func TestScripts(t *testing.T) { testscript.Run(t, scriptParams("script")) }

// scriptParams are for the scripts of a folder of testdata.
func scriptParams(folder string) testscript.Params {
	return testscript.Params{
		Dir:           filepath.Join(root, "testdata", folder),
		UpdateScripts: *updateScripts,
		Setup: func(e *testscript.Env) error {
			golden := filepath.Join(root, "testdata", "golden", "mlp_digits")
			for _, name := range []string{"model.onnx", "batches.safetensors"} {
				raw, err := os.ReadFile(filepath.Join(golden, name))
				if err != nil {
					return err
				}
				if err := os.WriteFile(filepath.Join(e.WorkDir, name), raw, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": wantCode, "json": wantJSON, "model": writeModel, "tensors": writeTensors, "cut": cutFile, "flip": flipByte,
			"minimum": setMinimum,
		},
	}
}

func wantCode(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: code N COMMAND ARGS...")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		exit, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d; stderr:\n%s", got, want, ts.ReadFile("stderr"))
	}
}

func wantJSON(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: json FILE key[=value]...")
	}
	var doc any
	if err := json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc); err != nil {
		ts.Fatalf("%s: %v", args[0], err)
	}
	for _, a := range args[1:] {
		path, want, hasValue := strings.Cut(a, "=")
		x := doc
		ok := true
		for _, key := range strings.Split(path, ".") {
			if list, isList := x.([]any); isList {
				i, err := strconv.Atoi(key)
				if ok = err == nil && i < len(list); !ok {
					break
				}
				x = list[i]
				continue
			}
			object, _ := x.(map[string]any)
			if x, ok = object[key]; !ok {
				break
			}
		}
		got, err := json.Marshal(x)
		ts.Check(err)
		if s, isText := x.(string); isText {
			got = []byte(s)
		}
		if good := ok && (!hasValue || string(got) == want); good == neg {
			ts.Fatalf("%s: %s is %s (there: %v)", args[0], a, got, ok)
		}
	}
}

func cutFile(ts *testscript.TestScript, _ bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	raw := []byte(ts.ReadFile(args[0]))
	if n < 0 {
		n += len(raw)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), raw[:n], 0o644))
}

func flipByte(ts *testscript.TestScript, _ bool, args []string) {
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	raw := []byte(ts.ReadFile(args[0]))
	if at < 0 {
		at += len(raw)
	}
	raw[at] ^= 1
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), raw, 0o644))
}

func setMinimum(ts *testscript.TestScript, _ bool, args []string) {
	var doc struct {
		Minimum int64 `json:"minimum_budget_bytes"`
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &doc))
	ts.Setenv("MIN", strconv.FormatInt(doc.Minimum, 10))
	ts.Setenv("BELOW", strconv.FormatInt(doc.Minimum-1, 10))
}
