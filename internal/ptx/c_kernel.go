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
//	L:  add.s32 %r1, %r1, 1;                B1: lane3(w, R->xr1, 0x1u);
//	    setp.lt.s32 %p1, %r1, %r2;              lane4(w, R->xp1, R->xr1, R->xr2);
//	    @%p1 bra L;                             t = m & ptx_bits(R->xp1); if (!rest && t == m) goto B1; ...
//
//	static void lane3(const ptx_warp *restrict w, uint32_t *restrict p0, uint32_t k0) {
//		LANES { uint32_t r0 = p0[l]; r0 = r0 + k0; p0[l] = w->lm[l] ? r0 : p0[l]; }
//	}
//
// Why calls and not loops in place: one loop over the lanes for each run of instructions, with registers as scalars, ran a register-tiled matmul at 0.64
// instead of 0.44 GFLOP/s with all checks on, but a compiler that vectorises every loop anew took 12 s for a kernel file of 77 KB, now 0.9 s.
// Instructions that differ only in registers and constants share one function; a module has about a hundred.
type kernelC struct {
	mod *moduleC
	m   *Module
	e   *Entry
	f   *flat

	params                              map[string]paramPlace
	spaces                              map[string]string // variable -> C expression of its address
	spaceOf                             map[string]string
	sharedBytes, localBytes, paramBytes int64
	flags                               int
	arrays                              map[string]bool // registers that need their array
	number                              []int           // of a block: lanes at the lowest run first
	at                                  *Inst           // at work on
	lifting                             bool            // constants become arguments of the lane function
	constants                           []constant
	out                                 strings.Builder
}

type paramPlace struct{ offset, bytes int64 }

func newKernelC(mod *moduleC, e *Entry) *kernelC {
	m := mod.m
	t := &kernelC{mod: mod, m: m, e: e, f: flatten(e), params: map[string]paramPlace{}, spaces: map[string]string{}, spaceOf: map[string]string{}, arrays: map[string]bool{}}
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
	// nothing but calls and jumps: optimising those takes longer than all lane functions together
	t.linef("static __attribute__((optimize(\"O0\"))) int %s(ptx_warp *restrict w) { // %s", name, t.e.Name)
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
	for _, i := range b.code {
		t.at = i
		if endsBlock(i) {
			t.wayOut(i, n, at)
			return
		}
		t.constants, t.lifting = nil, true
		text, pure := t.pure(i)
		t.lifting = false
		if pure {
			t.lane(i, text)
		} else {
			t.call(i)
		}
	}
	t.fallThrough(n)
}

func (t *kernelC) fallThrough(n int) {
	t.linef("\tif (rest) { ptx_park(w, m, %d); goto dispatch; }\n\tgoto B%d;", t.number[n+1], n+1)
}

// lane calls the function that does an instruction's statement in every running lane.
func (t *kernelC) lane(i *Inst, text string) {
	if text == "" || len(t.f.errs) > 0 {
		return
	}
	var regs []string
	used, defined := map[string]bool{}, map[string]bool{}
	note := func(r string) {
		if !used[r] && !defined[r] {
			regs = append(regs, r)
		}
	}
	effects(i, func(r string) { note(r); used[r] = true }, func(r string) { note(r); defined[r] = true })
	place := map[string]string{}
	var params, load, store strings.Builder
	call := "w"
	for k, r := range regs {
		t.arrays[r] = true
		place[r] = fmt.Sprintf("r%d", k)
		c := cType(t.f.width[r])
		fmt.Fprintf(&params, ", %s *restrict p%d", c, k)
		call += ", R->" + r
		if used[r] {
			fmt.Fprintf(&load, "%s r%d = p%d[l]; ", c, k, k)
		} else {
			fmt.Fprintf(&load, "%s r%d; ", c, k)
		}
		if defined[r] {
			fmt.Fprintf(&store, " p%d[l] = w->lm[l] ? r%d : p%d[l];", k, k, k)
		}
	}
	for k, e := range t.constants {
		fmt.Fprintf(&params, ", %s k%d", cType(e.width), k)
		call += ", " + e.expr
	}
	f := fmt.Sprintf("(const ptx_warp *restrict w%s) {\n\tLANES { %s%s%s }\n}", params.String(), load.String(), rename(text, place), store.String())
	t.linef("\t%s(%s);", t.mod.laneFunction(f), call)
}

// rename replaces identifiers in C text.
func rename(text string, names map[string]string) string {
	var b strings.Builder
	for k := 0; k < len(text); {
		n := k
		for n < len(text) && (text[n] == '_' || text[n] >= '0' && text[n] <= '9' || text[n] >= 'a' && text[n] <= 'z' || text[n] >= 'A' && text[n] <= 'Z') {
			n++
		}
		if n == k {
			b.WriteByte(text[k])
			k++
			continue
		}
		word := text[k:n]
		if to, ok := names[word]; ok {
			word = to
		}
		b.WriteString(word)
		k = n
	}
	return b.String()
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
