//go:build cuda && linux

package cuda

import (
	"testing"

	"aitk/ir"
	"aitk/runtime"
	"aitk/runtime/devicetest"
)

// TestTuring runs products on a device of compute capability 7.5, which has tensor cores for f16 alone and no asynchronous copies.
func TestTuring(t *testing.T) {
	ctl := fake(t)
	if ctl == nil {
		t.Skip("a device is what it is: only the fake driver can be an older one")
	}
	ctl.Set("sm", 75)
	prepare(t, ctl, "sm_75", "matmul", "conv", "attention", "dequantize", "arithmetic", "activation")
	devicetest.Products(t, devicetest.Options{
		Open:   func() (runtime.Device, error) { return Open(Options{}) },
		DTypes: []ir.DType{ir.F16},
	})
	clean(t, ctl)
}
