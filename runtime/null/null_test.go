package null

import (
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
)

type nothing struct{}

func (nothing) Infer(in []ir.Type) ([]ir.Type, error) { return in, nil }

// TestRefuses: what no device could do is an error here, and what any could do is none.
func TestRefuses(t *testing.T) {
	d := Open()
	a, err := d.Alloc(ir.Device, 128)
	if err != nil {
		t.Fatal(err)
	}
	other, err := Open().Alloc(ir.Device, 128)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Events(2); err != nil {
		t.Fatal(err)
	}
	at := func(a runtime.Arena, offset, bytes int64) runtime.Slice {
		return runtime.Slice{Arena: a, Space: ir.Device, Offset: offset, Bytes: bytes}
	}
	kernel := func(s, scratch runtime.Slice) error {
		_, err := d.Kernel(&plan.Exec{Op: nothing{}}, []runtime.Slice{s}, nil, scratch)
		return err
	}
	for _, c := range []struct {
		name string
		err  error
		want string
	}{
		{"kernel", kernel(at(a, 64, 64), runtime.Slice{}), ""},
		{"kernel outside", kernel(at(a, 65, 64), runtime.Slice{}), "nothing: bytes 65 to 129 lie outside the device arena of 128"},
		{"scratch outside", kernel(at(a, 0, 64), at(a, -1, 1)), "scratch: bytes -1 to 0"},
		{"another device's arena", kernel(at(other, 0, 64), runtime.Slice{}), "no device arena of this device"},
		{"copy", d.Copy(plan.Compute, at(a, 0, 8), at(a, 8, 8)), ""},
		{"copy of two sizes", d.Copy(plan.H2D, at(a, 0, 8), at(a, 8, 9)), "a copy of 9 bytes into 8"},
		{"copy outside", d.Copy(plan.H2D, at(a, 124, 8), at(a, 8, 8)), "bytes 124 to 132"},
		{"wait for nothing", d.Wait(plan.Compute, 1), "which nobody recorded"},
		{"record", d.Record(plan.H2D, 1), ""},
		{"wait", d.Wait(plan.Compute, 1), ""},
		{"no such slot", d.Record(plan.H2D, 2), "event slot 2 of 2"},
		{"upload outside", a.Upload(120, make([]byte, 9)), "bytes 120 to 129"},
		{"second arena", second(d), "a second arena"},
	} {
		if (c.want == "") != (c.err == nil) || c.err != nil && !strings.Contains(c.err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, c.err, c.want)
		}
	}
	if got := d.Stats().HighWater[ir.Device]; got != 128 {
		t.Errorf("high water %d, want 128", got)
	}
}

func second(d *Device) error {
	_, err := d.Alloc(ir.Device, 1)
	return err
}
