//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/internal/fakecuda"
	"aitk/ir"
	"aitk/runtime"
	"aitk/runtime/cuda/drv"
	"aitk/runtime/devicetest"
)

// The driver is bound before main, so TestMain starts the test binary again with the fake driver named in its environment. AITK_GPU=1 uses the
// machine's own driver instead (make test-gpu).
func TestMain(m *testing.M) {
	if os.Getenv("AITK_LIBCUDA") != "" || os.Getenv("AITK_GPU") != "" {
		os.Exit(m.Run())
	}
	code, err := again()
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		os.Exit(m.Run()) // every test skips and says why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	os.Exit(code)
}

func again() (int, error) {
	lib, err := fakecuda.Build("")
	if err != nil {
		return 0, err
	}
	dir, err := os.MkdirTemp("", "aitk-cuda-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	ctl, err := lib.NewControl(filepath.Join(dir, "control"))
	if err != nil {
		return 0, err
	}
	defer ctl.Close()
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), ctl.Env()...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// fake is the control of the fake driver with its settings as they begin; nil on a real device. Tests skip where there is neither.
func fake(t testing.TB) *fakecuda.Control {
	t.Helper()
	if err := drv.Status(); err != nil {
		t.Skipf("no device answers: %v", err)
	}
	path := os.Getenv("AITK_FAKE")
	if path == "" {
		return nil
	}
	ctl, err := fakecuda.OpenControl(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ctl.Close() })
	ctl.Reset()
	return ctl
}

// clean fails where the fake found something.
func clean(t testing.TB, ctl *fakecuda.Control) {
	t.Helper()
	if ctl == nil {
		return
	}
	for _, name := range fakecuda.Faults() {
		if n := ctl.Get(name); n != 0 {
			t.Errorf("the driver counts %d %s", n, name)
		}
	}
	if t.Failed() {
		t.Log(strings.Join(first(ctl.Reports(), 8), "\n"))
	}
}

func first(lines []string, n int) []string { return lines[:min(n, len(lines))] }

// prepare has the fake driver compile the texts of some modules (all that begin like this) side by side.
func prepare(t testing.TB, ctl *fakecuda.Control, arch string, modules ...string) {
	t.Helper()
	if ctl == nil {
		return
	}
	lib, err := fakecuda.Build("")
	if err != nil {
		t.Fatal(err)
	}
	entries, err := texts.ReadDir("kernels/" + arch)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, e := range entries {
		if len(modules) > 0 && !slices.ContainsFunc(modules, func(m string) bool { return strings.HasPrefix(e.Name(), m) }) {
			continue
		}
		raw, err := texts.ReadFile("kernels/" + arch + "/" + e.Name())
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, string(raw))
	}
	if err := lib.Prepare(list...); err != nil {
		t.Fatal(err)
	}
}

func TestConformance(t *testing.T) {
	ctl := fake(t)
	prepare(t, ctl, "sm_80")
	devicetest.Run(t, devicetest.Options{
		Open:   func() (runtime.Device, error) { return Open(Options{}) },
		DTypes: []ir.DType{ir.F64, ir.F16, ir.BF16},
	})
	clean(t, ctl)
}
