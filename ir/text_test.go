package ir_test

import (
	"math"
	"reflect"
	"strings"
	"testing"

	"aitk/ir"
)

// must ends a test that a shape rule or the parser spoils.
func must[T any](x T, err error) T {
	if err != nil {
		panic(err)
	}
	return x
}

// full is a graph with everything that the text form can hold, with names that would break a careless printer.
func full() *ir.Graph {
	g := ir.NewGraph("net <b>\n\"x\"")
	x := g.AddInput("x\x00\u202e</script>", ir.T(ir.F32, 2, 3))
	g.AddInput("$step", ir.T(ir.I64))
	w := g.AddParam("fc1.weight", ir.T(ir.F32, 2, 3))
	w.Trainable, w.Reason, w.Aliases = true, "operand 1 of \"Gemm\"", []string{"tied,a", "tied\"b"}
	w.Init = ir.Init{Kind: ir.InitFile, File: ir.Location{Path: "dir with space/w.bin", Offset: 8, Bytes: 24, Transposed: true, SHA256: "abc123"}}
	frozen := g.AddParam("frozen", ir.T(ir.I8, 3))
	frozen.Init = ir.Init{Kind: ir.InitLiteral, Literal: []byte{1, 255, 128}}
	m := g.AddParam("fc1.weight/m", ir.T(ir.F32, 2, 3))
	m.Role, m.Of, m.Init = ir.Moment, "fc1.weight", ir.Init{Kind: ir.InitFill, Fill: math.Copysign(0, -1)}
	g.AddParam("late", ir.T(ir.BF16, 1<<20, 1<<20)).Init.Kind = ir.InitAbsent
	b := &ir.Builder{G: g}
	for _, f := range []float64{0, math.Copysign(0, -1), math.Inf(1), math.Inf(-1), math.NaN(), 0.1, 1e-300, 1 << 60} {
		b.Scalar(ir.F64, f)
		b.Scalar(ir.F32, f)
		b.Scalar(ir.F16, f)
		b.Scalar(ir.BF16, f)
	}
	g.AddConst(ir.T(ir.F32), []byte{1, 0, 0xc0, 0x7f}) // NaN with a payload
	g.AddConst(ir.T(ir.Bool, 2), []byte{0, 1})
	g.AddConst(ir.T(ir.Bool, 1), []byte{2})
	g.AddConst(ir.T(ir.I4, 3), []byte{0x8f, 0x07})
	g.AddConst(ir.T(ir.I4, 3), []byte{0x8f, 0x77}) // unused nibble set
	g.AddConst(ir.T(ir.U8, 3, 0), nil)
	g.AddConst(ir.T(ir.I32, 17), make([]byte, 68)).Name = "long"
	b.Ints(math.MinInt64, math.MaxInt64)
	b.Origin = ir.Origin{File: "my model.onnx", Node: "fc1/Gemm", OpType: "com.x.Gemm", Opset: 17, Index: 3, Scope: "layers.0/attn <i>"}
	h := b.Add(Same{}, x)
	h.Name = "h1 \"quoted\""
	b.Origin = ir.Origin{Node: "recompute", File: "other.onnx"}
	h2 := b.Multi(Halve{}, h)
	h2[1].Name = "second"
	b.Origin = ir.Origin{Index: -1}
	s := b.Add(Move{To: ir.Pinned}, h2[0])
	b.Origin = ir.Origin{File: "my model.onnx"}
	b.Phase = ir.Backward
	b.Multi(Sink{}, s, h)
	b.Origin = ir.Origin{}
	r := b.Add(Same{}, x)
	r.Def.CopyOf = h.Def
	b.Origin = ir.Origin{File: "my model.onnx", Node: "of"}
	r2 := b.Add(Same{}, x)
	r2.Def.CopyOf, r2.Def.Phase = h.Def, ir.Forward
	b.Phase = ir.Update
	w2 := b.Add(Join{}, w.Value, r)
	w.Next = w2
	all := Same{Flag: true, K: math.MinInt64, U: math.MaxUint64, X: math.Inf(-1), Name: "a\n\"<", List: []int64{-1, 0, 5},
		Shape: ir.Shape{2}, DType: ir.BF16, ToXY: ir.Disk}
	for _, f := range []float64{math.NaN(), math.Copysign(0, -1), 5e-324, math.MaxFloat64, 1.5, 3} {
		all.X = f
		b.Add(all, r2)
	}
	g.Results = []ir.Result{{Name: "loss\t<", Value: w2}, {Name: "x", Value: x}}
	return g
}

func TestPrintParseIsAFixedPoint(t *testing.T) {
	g := full()
	if err := ir.Verify(g); err != nil {
		t.Fatal(err)
	}
	text := g.String()
	h, err := ir.Parse(text, vocabulary())
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if again := h.String(); again != text {
		t.Errorf("printed\n%s\nthen\n%s", text, again)
	}
	for _, c := range text {
		if c != '\n' && (c < ' ' || c == 0x7f || c == '\u202e') {
			t.Errorf("the text holds %q", c)
		}
	}
	// The text does not hide what it loses: compare the graphs themselves, but for NaN, which is unequal to itself.
	for i, n := range g.Nodes {
		m := h.Nodes[i]
		if s, ok := n.Op.(Same); (!ok || !math.IsNaN(s.X)) && !ir.SameOp(n.Op, m.Op) || n.Origin != m.Origin || n.Phase != m.Phase || (n.CopyOf == nil) != (m.CopyOf == nil) {
			t.Errorf("node %d: %+v became %+v", i, n, m)
		}
		for j := range n.Out {
			if n.Out[j].Name != m.Out[j].Name || n.Out[j].ID != m.Out[j].ID || !n.Out[j].Type.Equal(m.Out[j].Type) {
				t.Errorf("node %d output %d: %+v became %+v", i, j, n.Out[j], m.Out[j])
			}
		}
	}
	for i, p := range g.Params {
		q := *h.Params[i]
		if (p.Next == nil) != (q.Next == nil) || !p.Type.Equal(q.Type) || p.ID != q.ID {
			t.Errorf("parameter %q: %+v became %+v", p.Name, p, q)
		}
		q.Value, q.Next = p.Value, p.Next
		if !reflect.DeepEqual(*p, q) {
			t.Errorf("parameter %q: %+v became %+v", p.Name, *p, q)
		}
	}
	for i, c := range g.Consts {
		if d := h.Consts[i]; string(c.Data) != string(d.Data) || c.Name != d.Name {
			t.Errorf("constant %d: %v became %v", i, c.Data, d.Data)
		}
	}
}

// TestText shows the form itself, written by hand: shorthand on the left, what is printed on the right.
func TestText(t *testing.T) {
	const in = `# a comment
graph @mlp
%0 = input "x" : f32[2]   # another
%1 = param "w" : f32[2] init=zero
  %7 "h" = Same{k=2,flag=true} %0
%8 %9=b Halve %7
= Sink %8 %9
%10 =r Same{flag=true,k=2} %0 ; recompute of %7
%11 = Move{to=pinned} %10 ; fc/Gemm op=Gemm index=3
update %1 %10
result "y" %11`
	const want = `graph @mlp
  %0 = input "x" : f32[2]
  %1 = param "w" frozen weight : f32[2]
  %7 "h" = Same{flag=true,k=2} %0 : f32[2]
  %8 %9 =b Halve %7 : f32[2], f32[2]
  = Sink %8 %9
  %10 =r Same{flag=true,k=2} %0 : f32[2]  ; recompute of %7
  %11 = Move{to=pinned} %10 : pinned f32[2]  ; fc/Gemm op=Gemm index=3
  update %1 %10
  result "y" %11
`
	g, err := ir.Parse(in, vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	if got := g.String(); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if g.NumValues() != 12 || g.NumNodes() != 5 {
		t.Errorf("%d values, %d nodes", g.NumValues(), g.NumNodes())
	}
}

func TestParseRefuses(t *testing.T) {
	const head = "graph @g\n%0 = input \"x\" : f32[2]\n"
	cases := []struct{ text, want string }{
		{"", "1:1: the text holds no graph"},
		{"grape", `1:1: found "grape" where graph`},
		{"graph x", `1:7: found "x" where "@"`},
		{head + "%1 = Nope %0", "3:6: unknown operation Nope"},
		{head + "%1 = Same %5", "3:11: %5 is not defined above"},
		{head + "%0 = Same %0", "3:1: %0 is defined twice"},
		{head + "%1 = Join %0", "3:6: Join: operands differ"},
		{head + "%1 %2 = Same %0", "3:1: Same has 1 outputs, not 2"},
		{head + "%1 = Same %0 : f32[3]", "output 0 of Same is f32[2], not f32[3]"},
		{head + "%1 = Same %0 : f32[2], f32[2]", "2 types for 1 outputs"},
		{head + "%1 = Same{q=1} %0", "3:11: Same has no attribute q"},
		{head + "%1 = Same{k=1,k=1} %0", "3:15: attribute k stands twice"},
		{head + "%1 = Same{k=1.5} %0", `3:13: "1.5" is not a 64-bit integer`},
		{head + "%1 = Same{u=-1} %0", "not an unsigned"},
		{head + "%1 = Same{x=1e999} %0", "not a number"},
		{head + "%1 = Same{flag=1} %0", "where true or false"},
		{head + "%1 = Same{dType=f31} %0", "not an element type"},
		{head + "%1 = Same{toXY=moon} %0", "not a space"},
		{head + "%1 = Same{name=\"a} %0", "string is not closed"},
		{head + "%1 = Same{list=[1,]} %0", `found "]" where a number`},
		{head + "%1 =z Same %0", `"z" on the equals sign`},
		{head + "%1 =r Same %0", "a recompute has r"},
		{head + "%1 = Same %0 ; recompute of %0", "%0 comes from no node"},
		{head + "%1 = Same %0 ; a b", `found "b" where op, index`},
		{head + "%1 = Same %0 ; a index=1 index=2", "index stands twice"},
		{head + "%1 = Same %0 ; a index=3000000000", "too large"},
		{head + "%1 = Same %0 )", "where the line should end"},
		{head + "%1 = Panic %0", "internal error: shape rule of Panic"},
		{head + "%2000000000 = Same %0", "too large for a text of this length"},
		{head + "%x = Same %0", "not the number of a value"},
		{head + "%1 = const : f32[2] [1]", "literal has 1 elements, f32[2] needs 2"},
		{head + "%1 = const : f32[99999999999,9999] [1]", "literal has 1 elements"},
		{head + "%1 = const : f32[999999999999999999,99999] [1]", "too large"},
		{head + "%1 = const : u8[1] [256]", "256 does not fit u8"},
		{head + "%1 = const : u8[4] base64(AAAA)", "literal has 3 bytes, u8[4] needs 4"},
		{head + "%1 = const : u8[2] base64(AAB)", "literal:"},
		{head + "%1 = param \"w\" lost : f32[2]", `"lost" is not a role`},
		{head + "%1 = param \"w\" : f32[2] color=1", "where init, of, aliases or reason"},
		{head + "%1 = param \"w\" : f32[2] init=file(\"a\",bytes=1,bytes=1)", "bytes stands twice"},
		{head + "%1 = param \"w\" : f32[2] init=file(\"a\",bytes=1)", "needs 8 bytes, its place in the file has 1"},
		{head + "%1 = param \"x\" : f32[2]", "another input or parameter has the same name"},
		{head + "%1 = param \"w\" : f32[3]\nupdate %1 %0", "is f32[3], its new content %0 is f32[2]"},
		{head + "update %0 %0", "%0 is no parameter"},
		{head + "%1 = param \"w\" : f32[2]\nupdate %1 %0\nupdate %1 %0", "updated twice"},
		{head + "result \"y\" %0\nresult \"y\" %0", `the name "y" is empty or taken`},
		{head + "output %0", "where a value, result or update"},
		{head + "\x80", "byte 0x80"},
		{head + "%1 =r Join %0 %0 ; recompute of %2\n", "%2 is not defined above"},
		{head + "%1 = Same %0\n%2 =r Same{k=1} %0 ; recompute of %1\n", "recomputes another operation: %1 = Same %0"},
	}
	for _, c := range cases {
		g, err := ir.Parse(c.text, vocabulary())
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s\ngot %v, want %q\n%v", c.text, err, c.want, g)
		}
	}
	// All problems at once, without those that follow from others.
	_, err := ir.Parse(head+"%1 = Nope %0\n%2 = Same %1\n%3 = Same{q=1} %0\nresult \"r\" %2", vocabulary())
	if err == nil || strings.Count(err.Error(), "\n") != 1 || ir.KindOf(err) != ir.Unsupported {
		t.Errorf("got %v", err)
	}
	_, err = ir.Parse(head+strings.Repeat("?\n", 1000), vocabulary())
	if err == nil || strings.Count(err.Error(), "\n") != 19 {
		t.Errorf("got %v", err)
	}
}

func TestParseAllocatesNothingDeclared(t *testing.T) {
	const text = "graph @g\n%0 = input \"x\" : f32[99999999,99999999]\n%1 = Size{dims=[9999999999,9999]}\n%1000000 = Same %1\n"
	g, err := ir.Parse(text, vocabulary())
	if err != nil {
		t.Fatal(err)
	}
	if g.String() == "" || g.NumValues() != 1000001 {
		t.Error(g.NumValues())
	}
}

func TestFormatOp(t *testing.T) {
	cases := []struct {
		op   ir.Op
		want string
	}{
		{Same{}, "Same"},
		{Same{List: []int64{}, Shape: ir.Shape{}}, "Same"},
		{Same{X: math.Copysign(0, -1)}, "Same{x=-0}"},
		{Same{Flag: true, DType: ir.F16, ToXY: ir.Pinned, U: 3}, "Same{flag=true,u=3,dType=f16,toXY=pinned}"},
	}
	for _, c := range cases {
		if got := ir.FormatOp(c.op); got != c.want {
			t.Errorf("got %s, want %s", got, c.want)
		}
		back, err := ir.ParseOp(c.want, vocabulary())
		if err != nil || ir.FormatOp(back) != c.want {
			t.Errorf("%s became %v, %v", c.want, back, err)
		}
	}
	if _, err := ir.ParseOp("Same{k=1} x", vocabulary()); err == nil || !strings.Contains(err.Error(), "column 11") {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(full().String())
	f.Add("graph @g\n%0 = input \"x\" : f32[2]\n%1 %2 =b Halve %0 : f32[2], f32[2] ; a/b op=Q index=1 file=z\nresult \"y\" %1\n")
	f.Add("graph @g file=m\n%1 = param \"w\" trainable : bf16[2] init=[1,nan] of=\"q\" aliases=[\"a\"]\nupdate %1 %1")
	f.Add("graph @g\n%3 = const : i4[3] base64(AAA)\n=u Sink %3\n%4 = Panic")
	vocab := vocabulary()
	f.Fuzz(func(t *testing.T, text string) {
		g, err := ir.Parse(text, vocab)
		if err != nil {
			return
		}
		once := g.String()
		h, err := ir.Parse(once, vocab)
		if err != nil {
			t.Fatalf("cannot read what was printed: %v\n%s", err, once)
		}
		if twice := h.String(); once != twice {
			t.Fatalf("printed\n%s\nthen\n%s", once, twice)
		}
		if ir.Hash(g) != ir.Hash(h) {
			t.Fatalf("the hash changed:\n%s", once)
		}
	})
}

func TestSameOp(t *testing.T) {
	nan := math.NaN()
	cases := []struct {
		a, b ir.Op
		want bool
	}{
		{Same{}, Same{}, true},
		{Same{}, Join{}, false},
		{Same{List: []int64{}}, Same{}, true},
		{Same{List: []int64{1, 2}}, Same{List: []int64{1, 2}}, true},
		{Same{List: []int64{1, 2}}, Same{List: []int64{1, 3}}, false},
		{Same{Shape: ir.Shape{1}}, Same{}, false},
		{Same{X: math.Copysign(0, -1)}, Same{}, false},
		{Same{X: nan}, Same{X: nan}, true},
		{Same{Name: "a"}, Same{Name: "b"}, false},
		{Same{DType: ir.F32}, Same{DType: ir.F64}, false},
		{nil, Same{}, false},
		{nil, nil, true},
	}
	for _, c := range cases {
		if got := ir.SameOp(c.a, c.b); got != c.want {
			t.Errorf("%+v and %+v: %v", c.a, c.b, got)
		}
	}
}
