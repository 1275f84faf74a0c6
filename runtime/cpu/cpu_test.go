package cpu

import (
	"testing"

	"aitk/ir"
	"aitk/runtime"
	"aitk/runtime/devicetest"
)

func TestConformance(t *testing.T) {
	devicetest.Run(t, devicetest.Options{
		Open:   func() (runtime.Device, error) { return Open(Options{Threads: 2}), nil },
		DTypes: []ir.DType{ir.F64, ir.F16, ir.BF16},
	})
}
