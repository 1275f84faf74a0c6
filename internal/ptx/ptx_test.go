package ptx

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// corpus is every checked-in text, by file name.
func corpus(t testing.TB) map[string]string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.ptx")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		out[filepath.Base(f)] = string(b)
	}
	return out
}

// strip removes line numbers, which writing changes.
func strip(m *Module) *Module {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).Name == "Line" {
					v.Field(i).SetInt(0)
				} else {
					walk(v.Field(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(m))
	return m
}

func TestWriteIsReadBack(t *testing.T) {
	for name, text := range corpus(t) {
		m, err := Parse(text)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if f := Lint(m); f != nil {
			t.Errorf("%s: %v", name, f[0])
		}
		a, err := TranslateC(m)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if b, _ := TranslateC(m); a != b {
			t.Errorf("%s: two translations differ", name)
		}
		w := Write(m)
		again, err := Parse(w)
		if err != nil {
			t.Errorf("%s, written: %v", name, err)
			continue
		}
		if !reflect.DeepEqual(strip(m), strip(again)) {
			t.Errorf("%s: what was written reads differently", name)
		}
		if Write(again) != w {
			t.Errorf("%s: written twice, two texts", name)
		}
	}
}

const head = ".version 7.0\n.target sm_80\n.address_size 64\n"

func TestParse(t *testing.T) {
	m, err := Parse(head + `
		.extern .shared .align 16 .b8 smem[];
		.visible .const .align 4 .u32 tab[2][2] = {{1, 0x2}, {-3, 4}};
		.visible .entry k(.param .u64 .ptr .global .align 8 p, .param .align 4 .b8 s[12])
		.maxntid 256, 1, 1
		.minnctapersm 2
		{
			.reg .pred p;
			.reg .b64 %rd<3>;
			.pragma "nounroll";
			{ .reg .b32 t; mov.b32 t, 0f3f800000; }
			@!p ld.global.v2.b32 {_, %r}, [%rd1+-8];
			setp.lt.and.s32 p|_, 1, 2, !p;
			ret;
		}`)
	if err != nil {
		t.Fatal(err)
	}
	e := m.Entry("k")
	if e == nil || m.SM != 80 || m.Version != (Version{7, 0}) || len(m.Vars) != 2 || m.Vars[1].SizeBytes() != 16 || int64(m.Vars[1].Init[2].Bits) != -3 {
		t.Fatalf("module %+v", m)
	}
	if got := e.PerfArgs(".maxntid"); len(got) != 3 || got[0] != 256 || e.Params[1].SizeBytes() != 12 || e.Params[0].PtrAttr[1] != "global" {
		t.Errorf("entry %+v", e)
	}
	var texts []string
	for _, s := range e.Body {
		if i, ok := s.(*Inst); ok {
			texts = append(texts, i.String())
		}
	}
	if got := strings.Join(texts, "; "); got != "@!p ld.global.v2.b32 {_, %r}, [%rd1-8]; setp.lt.and.s32 p|_, 1, 2, !p; ret" {
		t.Errorf("instructions %s", got)
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", "ptx line 1: .version and .target must be given"},
		{".version 7", `.version "7" is no version`},
		{".version 7.0\n.target fish", `ptx line 2: target "fish"`},
		{head + ".address_size 32", "64 is all that is known"},
		{head + "/* ", "comment does not end"},
		{head + ".func f() { ret; }", "calls are not accepted"},
		{head + ".entry k() { add.s32 %r1 %r2; }", `expected ";", found "%r2"`},
		{head + ".entry k() { .reg .b32 %r<99999999>; }", "above 1048576"},
		{head + ".entry k() { .reg .b32 %r<0>; }", "declares nothing"},
		{head + ".entry k() { mov.f32 %f, 0f3F; }", "malformed number"},
		{head + ".entry k() { mov.f32 %f, 1.5; }", "write 0f or 0d"},
		{head + ".entry k() { ld..u32 %r, [%r]; }", "malformed instruction"},
		{head + ".entry k() { ld.u32 %r, [{%r}]; }", "address is neither"},
		{head + ".entry k() { ret;", "kernel does not end"},
		{head + ".entry k() { ret; }\n.entry k() { ret; }", "ptx line 5: k is declared twice"},
		{head + ".global .b8 big[1000000000][1000000000];", "larger than"},
		{head + ".global .b8 x = {" + strings.Repeat("{", 100), "nest too deeply"},
		{head + ".entry k() " + strings.Repeat("{", 100), "nest too deeply"},
		{head + ".entry k();", "without a body"},
		{head + ".entry k() .fish 3 { }", "unexpected .fish"},
		{head + "\x00", "unexpected byte"},
	} {
		_, err := Parse(c.text)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v, expected %q", c.text, err, c.want)
		}
	}
}

func TestTranslateErrors(t *testing.T) {
	for _, c := range []struct{ inst, want string }{
		{"add.s32 %r1, %r2, %z;", "register %z is not declared"},
		{"bra nowhere;", "label nowhere does not exist"},
		{"wmma.load.a.sync %r1;", "wmma.load.a.sync is not accepted"},
		{"ld.global.u32 %r1, [nothing];", "nothing is not declared"},
		{"ld.param.u32 %r1, [p+4];", "no such parameter"},
		{"add.rz.f32 %f1, %f1, %f1;", "add.rz.f32 is not accepted"},
		{"mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2}, {%r5, %r6}, {%f1, %f2, %f3, %f4};", "operand 1 has 2 registers, expected 4"},
		{"ld.global.u64 %r1, [%d1];", "narrower than the type"},
		{"ld.global.v2.u32 %r1, [%d1];", "1 values"},
		{"cp.async.cg.shared.global [%d1], [%d2], 8;", "8 bytes"},
		{"mov.u32 %tid.x, 1;", "cannot be written"},
		{"L: L: ret;", "stands twice"},
	} {
		m, err := Parse(moduleWith(80, Version{7, 0}, c.inst))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := TranslateC(m); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "kernel k") {
			t.Errorf("%s: %v, expected %q", c.inst, err, c.want)
		}
	}
}

// Lanes that part at a branch must meet again before the barrier, though compilers put rare blocks at the end of the text.
func TestOrder(t *testing.T) {
	for _, c := range []struct {
		next [][]int
		want []int
	}{
		{[][]int{{1, 3}, {4, 2}, {1, 3}, {}, {2}}, []int{0, 1, 3, 4, 2}},      // the example in order.go
		{[][]int{{2, 1}, {3}, {3}, {}}, []int{0, 1, 2, 3}},                    // a diamond; the halves may stand either way
		{[][]int{{1}, {1, 2}, {}}, []int{0, 1, 2}},                            // a loop of one block
		{[][]int{{1}, {4, 2}, {2, 3}, {1}, {}}, []int{0, 1, 2, 3, 4}},         // a loop in a loop, and what follows it
		{[][]int{{1}, {5, 2}, {3, 4}, {1}, {3}, {}}, []int{0, 1, 2, 4, 3, 5}}, // a rare block inside a loop
		{[][]int{{2}, {2}, {}}, []int{0, 2, 1}},                               // nobody gets to block 1
		{[][]int{{0, 1}, {}}, []int{0, 1}},                                    // a loop back to the entry
	} {
		bs := make([]*block, len(c.next))
		for i, n := range c.next {
			bs[i] = &block{next: n}
		}
		got := order(bs)
		// independent blocks may stand either way: judge edges that do not go back, not the numbers
		for u, n := range c.want {
			for v, m := range c.want {
				if n < m && connected(c.next, u, v) && !connected(c.next, v, u) && got[u] > got[v] {
					t.Errorf("%v: block %d has number %d, %d has %d", c.next, u, got[u], v, got[v])
				}
			}
		}
		if got[0] != 0 {
			t.Errorf("%v: the first block has number %d", c.next, got[0])
		}
	}
}

func connected(next [][]int, u, v int) bool {
	seen := map[int]bool{}
	var walk func(int) bool
	walk = func(u int) bool {
		if seen[u] {
			return false
		}
		seen[u] = true
		for _, w := range next[u] {
			if w == v || walk(w) {
				return true
			}
		}
		return false
	}
	return walk(u)
}

func FuzzParse(f *testing.F) {
	for name, text := range corpus(f) {
		if strings.Contains(name, "clang22") && len(text) < 6000 {
			f.Add(text)
		}
	}
	f.Add(head + ".entry k(.param .u64 p) .maxntid 1 { L: @!%p bra L; {a,_} = 1; }")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			return
		}
		Lint(m)
		TranslateC(m) // may refuse, must not panic
		w := Write(m)
		again, err := Parse(w)
		if err != nil {
			t.Fatalf("written text does not parse: %v\n%s", err, w)
		}
		if Write(again) != w {
			t.Fatalf("written twice, two texts:\n%s", w)
		}
	})
}

// FuzzTranslate puts the text inside a kernel that declares registers, so that more of it gets as far as the translator.
func FuzzTranslate(f *testing.F) {
	for line := range strings.Lines(verdicts) {
		if w := strings.SplitN(strings.TrimSpace(line), " ", 3); len(w) == 3 {
			f.Add(w[2])
		}
	}
	for _, s := range []string{"L: @%p1 bra L;", "brx.idx %r1, T; T: .branchtargets A, B; A: ret; B: exit;", "mov.b64 {%r1, %r2}, %d1;", "selp.f32 %f1, 0f00000000, %f2, %p1;",
		"set.eq.u32.s32 %r1, %r2, %r3;", "slct.f32.s32 %f1, %f2, %f3, %r1;", "st.global.v4.f32 [%d1], {%f1, %f2, 0f3F800000, %f3};", "atom.shared.cas.b64 %d1, [%r1], %d2, %d3;",
		"cvt.rni.sat.s8.f64 %r1, %g1;", "madc.lo.cc.u32 %r1, %r2, %r3, %r4;", "testp.normal.f32 %p1, %f1;", ".shared .f32 s[4]; ld.shared.f32 %f1, [s+4];"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		if m, err := Parse(moduleWith(80, Version{7, 0}, body)); err == nil {
			Lint(m)
			TranslateC(m)
		}
	})
}
