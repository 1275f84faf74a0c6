package ptx

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// kernelC writes one kernel as a C function over a warp; ptxrt.h says how such a function runs.
//
// Before:                                  After (rest: live lanes that are elsewhere):
//
//	L:  add.s32 %r1, %r1, 1;                B1: LANES { uint32_t xr1 = R->xr1[l], xr2 = R->xr2[l]; int32_t xp1;
//	    setp.lt.s32 %p1, %r1, %r2;                  xr1 = xr1 + 1; xp1 = -((int32_t)xr1 < (int32_t)xr2);
//	    @%p1 bra L;                                 R->xr1[l] = w->lm[l] ? xr1 : R->xr1[l]; ... }
//	                                            t = m & ptx_bits(R->xp1); if (!rest && t == m) goto B1; ...
//
// A run of pure instructions becomes one loop over the lanes in which registers are scalars; only what is read later goes back to its array,
// and only in lanes that run.
type kernelC struct {
	m *Module
	e *Entry
	f *flat

	params                              map[string]paramPlace
	spaces                              map[string]string // variable -> C expression of its address
	spaceOf                             map[string]string
	sharedBytes, localBytes, paramBytes int64
	flags                               int
	arrays                              map[string]bool // registers that need their array
	number                              []int           // of a block: lanes at the lowest run first
	at                                  *Inst           // at work on
	out                                 strings.Builder
}

type paramPlace struct{ offset, bytes int64 }

// maxRun bounds a loop's length: beyond it compilers stop vectorising.
const maxRun = 96

func newKernelC(m *Module, e *Entry) *kernelC {
	t := &kernelC{m: m, e: e, f: flatten(e), params: map[string]paramPlace{}, spaces: map[string]string{}, spaceOf: map[string]string{}, arrays: map[string]bool{}}
	for _, p := range e.Params {
		off := alignUp(t.paramBytes, p.AlignBytes())
		t.params[p.Name] = paramPlace{off, p.SizeBytes()}
		t.paramBytes = off + p.SizeBytes()
	}
	var extern []*Var
	used := t.symbols()
	for _, v := range m.Vars {
		if v.Space != ".shared" {
			t.place(v, "at_"+cName(v.Name))
		} else if used[v.Name] {
			if v.Linkage == ".extern" || v.SizeBytes() == 0 {
				extern = append(extern, v)
			} else {
				t.shared(v)
			}
		}
	}
	for _, v := range t.f.vars {
		switch v.Space {
		case ".shared":
			if v.SizeBytes() == 0 {
				extern = append(extern, v)
			} else {
				t.shared(v)
			}
		case ".local":
			off := alignUp(t.localBytes, v.AlignBytes())
			t.place(v, fmt.Sprintf("(PTX_LOCAL_BASE + %dull)", off))
			t.localBytes = off + v.SizeBytes()
		default:
			t.f.fail(v.Line, "%s variable %s inside a kernel is not accepted", v.Space, v.Name)
		}
	}
	for _, v := range extern { // dynamic shared memory begins where the static ends
		t.sharedBytes = alignUp(t.sharedBytes, max(16, v.AlignBytes()))
	}
	for _, v := range extern {
		t.place(v, fmt.Sprintf("(PTX_SHARED_BASE + %dull)", t.sharedBytes))
	}
	if t.sharedBytes > 1<<20 || t.localBytes > 1<<20 {
		t.f.fail(e.Line, "more than 1 MiB of shared or local memory")
	}
	return t
}

// symbols are the names that the kernel's instructions mention.
func (t *kernelC) symbols() map[string]bool {
	used := map[string]bool{}
	var walk func(o Operand)
	walk = func(o Operand) {
		if o.Kind == Sym {
			used[o.Name] = true
		}
		for _, e := range o.Elems {
			walk(e)
		}
	}
	for _, i := range t.f.code {
		for _, a := range i.Args {
			walk(a)
		}
	}
	return used
}

func (t *kernelC) shared(v *Var) {
	off := alignUp(t.sharedBytes, v.AlignBytes())
	t.place(v, fmt.Sprintf("(PTX_SHARED_BASE + %dull)", off))
	t.sharedBytes = off + v.SizeBytes()
}

func (t *kernelC) place(v *Var, address string) {
	t.spaces[v.Name], t.spaceOf[v.Name] = address, v.Space
}

func alignUp(n, a int64) int64 { return (n + a - 1) / a * a }

// address is a variable's address as a C expression, and its space.
func (t *kernelC) address(name string, line int) (string, string) {
	if a, ok := t.spaces[name]; ok {
		return a, t.spaceOf[name]
	}
	t.f.fail(line, "%s is not declared", name)
	return "0", ""
}

func (t *kernelC) linef(format string, args ...any) {
	fmt.Fprintf(&t.out, format, args...)
	t.out.WriteByte('\n')
}

// function writes the kernel and its register file.
func (t *kernelC) function(name string) string {
	bs := t.f.blocks()
	t.number = order(bs)
	at := map[string]int{}
	for n, b := range bs {
		if b.label != "" {
			at[b.label] = n
		}
	}
	for n, b := range bs {
		t.accepted(func() { t.block(b, n, at) })
	}
	if len(t.f.errs) > 0 {
		return ""
	}
	body := t.out.String()
	t.out.Reset()
	t.linef("typedef struct {")
	for _, r := range slices.Sorted(maps.Keys(t.arrays)) {
		t.linef("\t%s %s[32] __attribute__((aligned(64)));", cType(t.f.width[r]), r)
	}
	t.linef("\tchar end_;\n} %s_regs;", name)
	t.linef("static int %s(ptx_warp *restrict w) { // %s", name, t.e.Name)
	t.linef("\t%s_regs *restrict R = w->regs;\n\tconst ptx_host *host = w->host;\n\tuint32_t m, rest, t;", name)
	t.linef("dispatch:\n\tswitch (ptx_pick(w, &m, &rest)) {")
	for n := range bs {
		t.linef("\tcase %d: goto B%d;", t.number[n], n)
	}
	t.linef("\tdefault: return PTX_EXITED;\n\t}")
	t.out.WriteString(body)
	t.linef("hang:\n\thost->fault(w, m, \"does not end: too many branches taken\");\n\treturn PTX_FAULT;\n}")
	return t.out.String()
}

// accepted runs f and turns an instruction that it cannot say in C into an error with its line.
func (t *kernelC) accepted(f func()) {
	defer func() {
		switch r := recover().(type) {
		case nil:
		case unaccepted:
			t.f.fail(t.at.Line, "%s is not accepted: %s", t.at, string(r))
		default:
			panic(r)
		}
	}()
	f()
}

// block writes one block: runs of pure instructions, calls of the host, and the way out.
func (t *kernelC) block(b *block, n int, at map[string]int) {
	t.linef("B%d:;", n)
	flops := 0
	for _, i := range b.code {
		flops += flopsOf(i)
	}
	if flops > 0 {
		t.linef("\tw->insts += %d; w->flops += %dull * __builtin_popcount(m);", len(b.code), flops)
	} else {
		t.linef("\tw->insts += %d;", len(b.code))
	}
	runs := t.runs(b)
	after := liveAfter(b, runs)
	k := 0
	for n, r := range runs {
		for ; k < r.start; k++ {
			t.at = b.code[k]
			t.call(b.code[k])
		}
		t.lanes(b.code[r.start:r.end], r.texts, after[n])
		k = r.end
	}
	for ; k < len(b.code); k++ {
		t.at = b.code[k]
		if endsBlock(t.at) {
			t.wayOut(t.at, n, at)
			return
		}
		t.call(t.at)
	}
	t.fallThrough(n)
}

// run is a stretch of pure instructions that becomes one loop.
type run struct {
	start, end int
	texts      []string
}

func (t *kernelC) runs(b *block) []run {
	var out []run
	var cur *run
	for k, i := range b.code {
		text, slow, ok := "", false, false
		t.at = i
		if !endsBlock(i) {
			text, slow, ok = t.pure(i)
		}
		if !ok {
			cur = nil
			continue
		}
		if cur == nil || slow || len(cur.texts) >= maxRun {
			out = append(out, run{start: k})
			cur = &out[len(out)-1]
		}
		cur.texts = append(cur.texts, text)
		cur.end = k + 1
		if slow {
			cur = nil
		}
	}
	return out
}

func (t *kernelC) fallThrough(n int) {
	t.linef("\tif (rest) { ptx_park(w, m, %d); goto dispatch; }\n\tgoto B%d;", t.number[n+1], n+1)
}

// liveAfter tells for each run what is read after it.
func liveAfter(b *block, runs []run) []map[string]bool {
	out := make([]map[string]bool, len(runs))
	live := maps.Clone(b.liveOut)
	next := len(runs) - 1
	for k := len(b.code) - 1; k >= 0; k-- {
		if next >= 0 && runs[next].end == k+1 {
			out[next] = maps.Clone(live)
			next--
		}
		effects(b.code[k], func(string) {}, func(r string) { delete(live, r) })
		effects(b.code[k], func(r string) { live[r] = true }, func(string) {})
	}
	return out
}

// lanes writes a loop over the lanes. live is what is read afterwards.
func (t *kernelC) lanes(code []*Inst, texts []string, live map[string]bool) {
	var order []string
	loaded, defined, seen := map[string]bool{}, map[string]bool{}, map[string]bool{}
	note := func(r string) {
		if !seen[r] {
			seen[r] = true
			order = append(order, r)
		}
	}
	for _, i := range code {
		effects(i, func(r string) {
			note(r)
			if !defined[r] {
				loaded[r] = true
			}
		}, func(r string) {
			note(r)
			defined[r] = true
		})
	}
	t.linef("\tLANES {")
	for _, r := range order {
		if loaded[r] {
			t.arrays[r] = true
			t.linef("\t\t%s %s = R->%s[l];", cType(t.f.width[r]), r, r)
		} else {
			t.linef("\t\t%s %s;", cType(t.f.width[r]), r)
		}
	}
	for _, s := range texts {
		t.linef("\t\t%s", s)
	}
	for _, r := range order {
		if defined[r] && live[r] {
			t.arrays[r] = true
			t.linef("\t\tR->%s[l] = w->lm[l] ? %s : R->%s[l];", r, r, r)
		}
	}
	t.linef("\t}")
}

// guardMask is the mask of lanes in which a guarded instruction acts.
func (t *kernelC) guardMask(i *Inst) string {
	if i.Guard == "" {
		return "m"
	}
	t.arrays[i.Guard] = true
	if i.Not {
		return "(m & ~ptx_bits(R->" + i.Guard + "))"
	}
	return "(m & ptx_bits(R->" + i.Guard + "))"
}

// wayOut writes a block's last instruction.
func (t *kernelC) wayOut(i *Inst, n int, at map[string]int) {
	next := n + 1
	switch i.Opcode {
	case "bra":
		if len(i.Args) != 1 || i.Args[0].Kind != Sym {
			t.f.fail(i.Line, "%s: expected a label", i)
			return
		}
		to := at[i.Args[0].Name]
		fuel := ""
		if to <= n {
			fuel = "if (--w->fuel < 0) goto hang; "
		}
		if i.Guard == "" {
			t.linef("\t%sif (rest) { ptx_park(w, m, %d); goto dispatch; }\n\tgoto B%d;", fuel, t.number[to], to)
			return
		}
		t.linef("\tt = %s;", t.guardMask(i))
		t.linef("\tif (!rest && t == m) { %sgoto B%d; }", fuel, to)
		t.linef("\tif (!rest && t == 0) goto B%d;", next)
		t.linef("\t%s", fuel)
		t.linef("\tptx_park(w, t, %d); ptx_park(w, m & ~t, %d); goto dispatch;", t.number[to], t.number[next])
	case "brx":
		labels := []string(nil)
		if len(i.Args) == 2 && i.Args[0].Kind == Reg {
			labels = t.f.targets[i.Args[1].Name]
		}
		if len(labels) == 0 || i.Guard != "" {
			t.f.fail(i.Line, "%s: expected a register and a list of labels", i)
			return
		}
		t.arrays[i.Args[0].Name] = true
		t.linef("\tif (--w->fuel < 0) goto hang;")
		for k, l := range labels {
			t.linef("\tt = 0; LANES t |= (uint32_t)(R->%s[l] == %d) << l;\n\tptx_park(w, m & t, %d);", i.Args[0].Name, k, t.number[at[l]])
		}
		t.linef("\tgoto dispatch;")
	case "ret", "exit":
		t.linef("\tt = %s; w->live &= ~t;", t.guardMask(i))
		if i.Guard == "" {
			t.linef("\tif (!rest) return PTX_EXITED;\n\tgoto dispatch;")
		} else {
			t.linef("\tif (t == 0 && !rest) goto B%d;\n\tptx_park(w, m & ~t, %d); goto dispatch;", next, t.number[next])
		}
	case "trap":
		t.linef("\tt = %s; w->line = %d;", t.guardMask(i), i.Line)
		t.linef("\tif (t) { host->fault(w, t, \"trap\"); return PTX_FAULT; }")
		t.fallThrough(n)
	case "bar", "barrier":
		t.barrier(i, next)
	default:
		panic("ptx: block ends with " + i.Opcode)
	}
}
