package calibrate

import (
	"reflect"
	"testing"
	"time"

	"aitk/runtime/cpu"
)

// TestMeasure measures little: that every rate is there and is one that a machine can have. What they are is the machine's affair.
func TestMeasure(t *testing.T) {
	dev := cpu.Open(cpu.Options{Threads: 1})
	defer dev.Close()
	r, err := Measure(dev, Options{ArenaBytes: 2 << 20, Least: 50 * time.Microsecond})
	if err != nil {
		t.Fatal(err)
	}
	v := reflect.ValueOf(*r)
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch f := v.Field(i); {
		case f.Kind() == reflect.Int64 && f.Int() <= 0, f.Kind() == reflect.Float64 && !(f.Float() > 0 && f.Float() < 1e18):
			t.Errorf("%s is %v", name, f)
		}
	}
	if r.LaunchSeconds > 1 || r.CopySeconds > 1 {
		t.Errorf("a launch takes %v s, a copy %v s", r.LaunchSeconds, r.CopySeconds)
	}
	if _, err := Measure(dev, Options{ArenaBytes: 1000}); err == nil {
		t.Error("measured in 1000 bytes")
	}
}
