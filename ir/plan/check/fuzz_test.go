package check_test

import (
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/ir/plan/check"
)

// TestNothingIsSpare: the good plan has no instruction, wait or span that it could do without.
func TestNothingIsSpare(t *testing.T) {
	g := good()
	for prog := range g.Programs {
		for pc := range g.Programs[prog].Instrs {
			m := goodMaker()
			m.drop(int32(prog), int32(pc))
			if check.Check(m.p) == nil {
				t.Errorf("%s pc %d dropped: not caught", g.Programs[prog].Name, pc)
			}
		}
	}
	for b := range g.Buffers {
		for k := range g.Buffers[b].Live {
			p := good()
			p.Buffers[b].Live = append(p.Buffers[b].Live[:k:k], p.Buffers[b].Live[k+1:]...)
			if check.Check(p) == nil {
				t.Errorf("buffer %q without its span %v: not caught", g.Buffers[b].Name, g.Buffers[b].Live[k])
			}
		}
	}
}

// leaves lists every number, string length and switch of a plan that an edit may change.
func leaves(v reflect.Value, out []reflect.Value) []reflect.Value {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			if _, isOp := v.Interface().(ir.Op); !isOp {
				out = leaves(v.Elem(), out)
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			out = leaves(v.Field(i), out)
		}
	case reflect.Slice:
		out = append(out, v)
		for i := range v.Len() {
			out = leaves(v.Index(i), out)
		}
	case reflect.Int32, reflect.Int64, reflect.Uint8, reflect.Bool:
		out = append(out, v)
	}
	return out
}

// edit changes one leaf; small changes and absurd ones.
func edit(v reflect.Value, how byte) {
	odd := []int64{0, 1, -1, 2, 3, 64, math.MaxInt32, math.MinInt32, math.MaxInt64, math.MinInt64, math.MaxInt64 / 4}
	x := odd[int(how)%len(odd)]
	switch v.Kind() {
	case reflect.Int32, reflect.Int64:
		if how >= 128 {
			x += v.Int()
		}
		v.SetInt(x)
	case reflect.Uint8:
		v.SetUint(uint64(how))
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Slice:
		if n := v.Len(); n > 0 && how >= 64 {
			v.Set(v.Slice(0, int(how)%n))
		} else if n > 0 {
			v.Set(reflect.Append(v, v.Index(int(how)%n)))
		}
	}
}

func wreckedPlan(edits []byte) *plan.Plan {
	p := good()
	for ; len(edits) >= 3; edits = edits[3:] {
		all := leaves(reflect.ValueOf(p), nil)
		edit(all[(int(edits[0])<<8|int(edits[1]))%len(all)], edits[2])
	}
	return p
}

// FuzzCheck: whatever a plan holds, the checker returns.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{0, 5, 200})
	f.Add([]byte{3, 5, 7, 1, 120, 9})
	f.Fuzz(func(t *testing.T, edits []byte) {
		if len(edits) <= 60 {
			_ = check.Check(wreckedPlan(edits))
		}
	})
}

func TestRandomEdits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 4000 {
		edits := make([]byte, 3*(1+r.IntN(4)))
		for i := range edits {
			edits[i] = byte(r.Uint32())
		}
		_ = check.Check(wreckedPlan(edits))
	}
	if err := check.Check(nil); err == nil {
		t.Error("no plan at all: not caught")
	}
	if err := check.Check(&plan.Plan{}); err != nil {
		t.Error(err) // nothing is promised and nothing is broken
	}
}
