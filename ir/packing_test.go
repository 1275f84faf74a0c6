package ir_test

import (
	"math"
	"strings"
	"testing"

	"aitk/ir"
)

// What is made from other floats, and what is drawn, reads back as it was printed.
func TestPackingText(t *testing.T) {
	const text = `graph @g
  %0 = param "w" frozen weight : i4[2,3] pack=("nf4","codes",bf16[2,3],axis=1,block=64,double) init=file("m.bin",offset=8,bytes=12,transposed,sha256=ab) of="v"
  %1 = param "s" frozen weight : f32[2] pack=("int8","scales",f16[2,2]) init=[1,2,3,4]
  %2 = param "a" trainable weight : f32[4] init=uniform(0.5,18446744073709551615)
  %3 = param "b" frozen weight : f32[4] pack=("cast","codes",f16[4]) init=absent
`
	g, err := ir.Parse(text, vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	if got := g.String(); got != text {
		t.Errorf("got\n%s\nwant\n%s", got, text)
	}
	if k := g.Params[0].Init.Pack; k.Format != "nf4" || k.Block != 64 || !k.Double || !k.Source.Equal(ir.T(ir.BF16, 2, 3)) {
		t.Errorf("%+v", k)
	}
	if n := len(g.Params[1].Init.Literal); n != 8 {
		t.Errorf("a literal of %d bytes", n)
	}
	base := ir.Hash(g)
	for i, change := range []func(){
		func() { g.Params[0].Init.Pack.Block = 32 },
		func() { g.Params[2].Init.Seed++ },
	} {
		if change(); ir.Hash(g) == base {
			t.Errorf("change %d leaves the hash", i)
		}
	}
}

func TestPackingIsChecked(t *testing.T) {
	const head = "graph @g\n%0 = param \"w\" : i8[2] "
	for _, c := range []struct{ text, want string }{
		{`pack=("int8","codes",f32[2]) init=[1,2,3]`, "literal has 3 elements, f32[2] needs 2"},
		{`pack=("int8","codes",f32[2]) init=file("a",bytes=2)`, "f32[2] needs 8 bytes"},
		{`pack=("int8","codes",i32[2]) init=absent`, "packed from i32[2]"},
		{`pack=("","codes",f32[2])`, "needs a format"},
		{`pack=("int8","codes",f32[2],axis=1,axis=1)`, "axis stands twice"},
		{`pack=("int8","codes",f32[2],size=1)`, "where axis, block or double"},
		{`init=absent pack=("int8","codes",f32[2])`, "pack"},
		{`init=uniform(1,-3)`, "not a seed"},
		{`init=uniform(1,3)`, "i8[2] cannot be drawn evenly"},
	} {
		if _, err := ir.Parse(head+c.text, vocabulary()); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", c.text, err, c.want)
		}
	}
}

// Draws lie in [-1,1), are the same for the same seed, and look even.
func TestUniform(t *testing.T) {
	const n = 1 << 16
	sum, squares := 0.0, 0.0
	for i := range int64(n) {
		x := float64(ir.UniformAt(7, i))
		if !(x >= -1 && x < 1) || ir.UniformAt(7, i) != float32(x) {
			t.Fatalf("draw %d is %v", i, x)
		}
		sum += x
		squares += x * x
	}
	if mean, variance := sum/n, squares/n; math.Abs(mean) > 0.01 || math.Abs(variance-1.0/3) > 0.01 {
		t.Errorf("mean %v, mean square %v", mean, variance)
	}
	if ir.UniformAt(7, 0) == ir.UniformAt(8, 0) {
		t.Error("two seeds draw the same")
	}
}
