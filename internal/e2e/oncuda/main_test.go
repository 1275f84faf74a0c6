//go:build cuda && linux

package oncuda

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"aitk/internal/fakecuda"
	"aitk/runtime/cuda"
)

// The driver is bound before main: the test binary starts itself again with the fake driver in its environment. AITK_GPU=1 uses the machine's own.
func TestMain(m *testing.M) {
	if os.Getenv("AITK_LIBCUDA") != "" || os.Getenv("AITK_GPU") != "" {
		os.Exit(m.Run())
	}
	lib, err := fakecuda.Build("")
	if errors.Is(err, fakecuda.ErrNoCompiler) {
		os.Exit(m.Run()) // every test skips and says why
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	dir, err := os.MkdirTemp("", "aitk-oncuda-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	ctl, err := lib.NewControl(filepath.Join(dir, "control"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	cmd := exec.Command(os.Args[0], os.Args[1:]...)
	cmd.Env = append(os.Environ(), ctl.Env()...)
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	err = cmd.Run()
	os.RemoveAll(dir)
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		os.Exit(exit.ExitCode())
	case err != nil:
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
}

// fake is the control of the fake driver, with its counters at zero; nil on a real device.
func fake(t testing.TB) *fakecuda.Control {
	t.Helper()
	if d := cuda.Describe(); d.Reason != "" {
		t.Skipf("no device answers: %s", d.Reason)
	}
	path := os.Getenv("AITK_FAKE")
	if path == "" {
		return nil
	}
	ctl, err := fakecuda.OpenControl(path)
	check(t, err)
	t.Cleanup(func() { ctl.Close() })
	ctl.Reset()
	return ctl
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
