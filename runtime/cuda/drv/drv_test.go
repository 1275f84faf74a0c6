//go:build cuda && linux

package drv

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestAbsentDriver starts this test again with a driver that does not exist: the process must live, and Status must say what was looked for.
func TestAbsentDriver(t *testing.T) {
	if os.Getenv("AITK_LIBCUDA") == "/nowhere/libcuda.so" {
		err := Status()
		if err == nil || !strings.Contains(err.Error(), "/nowhere/libcuda.so") {
			t.Fatalf("status of a driver that is not there: %v", err)
		}
		if Library() != "/nowhere/libcuda.so" {
			t.Errorf("the library asked for is %q", Library())
		}
		if p, err := HostAlloc(16); err == nil || p != nil {
			t.Errorf("memory without a driver: %v, %v", p, err)
		}
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run", "^TestAbsentDriver$")
	cmd.Env = append(os.Environ(), "AITK_LIBCUDA=/nowhere/libcuda.so")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestBinaryNeedsLibcAlone looks for the driver among the libraries that the loader wants.
func TestBinaryNeedsLibcAlone(t *testing.T) {
	ldd, err := exec.LookPath("ldd")
	if err != nil {
		t.Skip("ldd is not here")
	}
	out, err := exec.Command(ldd, os.Args[0]).CombinedOutput()
	if err != nil {
		t.Skipf("ldd: %v", err)
	}
	if strings.Contains(string(out), "libcuda") {
		t.Errorf("the binary needs the driver to start:\n%s", out)
	}
}
