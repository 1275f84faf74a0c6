package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// This file writes what goes through the host's table: memory, warp-wide operations, barriers.

func (t *kernelC) unknown(i *Inst) { t.f.fail(i.Line, "%s is not accepted", i.Name()) }

// spaceC is the space of a memory instruction.
func (t *kernelC) spaceC(i *Inst) string {
	for _, m := range i.Mods {
		switch m {
		case "global":
			return "PTX_GLOBAL"
		case "shared", "shared::cta":
			return "PTX_SHARED"
		case "local":
			return "PTX_LOCAL"
		case "const":
			return "PTX_CONST"
		}
	}
	return "PTX_GENERIC"
}

// lanesOf gives an expression for the array of an operand's lanes in registers of the given width. What has no such array is copied into
// one, by a statement that goes before.
func (t *kernelC) lanesOf(o Operand, width int, line int, before *strings.Builder) string {
	if o.Kind == Sink {
		return "0"
	}
	own := o.Kind == Reg && special(o.Name) == 0
	if own {
		t.arrays[o.Name] = true
		if t.f.width[o.Name] == width {
			return "R->" + o.Name
		}
	}
	tmp := fmt.Sprintf("t%d_", strings.Count(before.String(), "[32]"))
	fmt.Fprintf(before, "%s %s[32]; ", cType(width), tmp)
	switch {
	case own:
		from := t.f.width[o.Name]
		if from == 1 || width == 1 {
			t.f.fail(line, "register %s is of another kind", o.Name)
		}
		fmt.Fprintf(before, "ptx_copy%d_%d(%s, R->%s); ", from, width, tmp, o.Name)
	case o.Kind == Reg:
		fmt.Fprintf(before, "LANES %s[l] = %s; ", tmp, t.raw(o, line))
	default:
		fmt.Fprintf(before, "ptx_fill%d(%s, %s); ", width, tmp, t.raw(o, line))
	}
	return tmp
}

// memory gives the array of base addresses (0 if all are alike) and the offset of a Mem operand.
func (t *kernelC) memory(o Operand, i *Inst, before *strings.Builder) (addr, off string) {
	if o.Kind != Mem {
		t.f.fail(i.Line, "%s: %s is no address", i.Opcode, o)
		return "0", "0"
	}
	base := o.Elems[0]
	if base.Kind == Reg {
		return t.lanesOf(base, 64, i.Line, before), strconv.FormatInt(o.Off, 10)
	}
	return "0", fmt.Sprintf("(int64_t)%s + %d", t.raw(base, i.Line), o.Off)
}

// emit writes a call of the host, preceded by what it needs.
func (t *kernelC) emit(i *Inst, before string, format string, args ...any) {
	call := fmt.Sprintf(format, args...)
	open, end := "", ""
	if i.Guard != "" {
		open, end = fmt.Sprintf("if ((t = %s)) { ", t.guardMask(i)), " }"
	} else if before != "" {
		open, end = "{ ", " }"
	}
	t.linef("\t%s%sw->line = %d; if (host->%s) return PTX_FAULT;%s", open, before, i.Line, call, end)
}

func (t *kernelC) mask(i *Inst) string {
	if i.Guard != "" {
		return "t"
	}
	return "m"
}

// call writes an instruction that is not pure.
func (t *kernelC) call(i *Inst) {
	switch i.Opcode {
	case "ld", "ldu", "st":
		t.loadStore(i)
	case "atom", "red":
		t.atomic(i)
	case "shfl", "vote", "match", "redux":
		t.warpOp(i)
	case "mma":
		t.mma(i)
	case "ldmatrix":
		t.ldmatrix(i)
	case "cp":
		t.copyAsync(i)
	case "membar", "fence":
		t.flags |= 4
		t.emit(i, "", "fence(w, %s)", t.mask(i))
	case "bar", "barrier": // bar.warp.sync
		if len(i.Args) != 1 {
			t.unknown(i)
			return
		}
		var b strings.Builder
		members := t.lanesOf(i.Args[0], 32, i.Line, &b)
		t.emit(i, b.String(), "warpsync(w, %s, %s)", t.mask(i), members)
	default:
		t.unknown(i)
	}
}

func vecOf(i *Inst) int {
	for _, m := range i.Mods {
		if m == "v2" || m == "v4" || m == "v8" {
			return int(m[1] - '0')
		}
	}
	return 1
}

func (t *kernelC) loadStore(i *Inst) {
	ty := i.Types()
	if len(i.Args) < 2 || len(ty) != 1 || ty[0] == "pred" || ty[0] == "b128" || i.Has("param") {
		t.unknown(i)
		return
	}
	data, mem := i.Args[0], i.Args[1]
	if i.Opcode == "st" {
		data, mem = mem, data
	}
	elems := []Operand{data}
	if data.Kind == Vec {
		elems = data.Elems
	}
	if len(elems) != vecOf(i) {
		t.f.fail(i.Line, "%s: %d values", i.Name(), len(elems))
		return
	}
	var b strings.Builder
	addr, off := t.memory(mem, i, &b)
	bytes := TypeBits(ty[0]) / 8
	width := 0
	for _, e := range elems { // registers of one vector are of one width; numbers take the type's
		if e.Kind == Reg {
			width = t.f.width[e.Name]
		}
	}
	if width == 0 {
		width = max(16, bytes*8)
	}
	if width < bytes*8 {
		t.f.fail(i.Line, "%s: register is narrower than the type", i)
		return
	}
	var regs []string
	for _, e := range elems {
		if i.Opcode != "st" && e.Kind != Reg && e.Kind != Sink || i.Opcode == "st" && e.Kind == Sink {
			t.f.fail(i.Line, "%s: operand %s", i, e)
		}
		if i.Opcode != "st" && e.Kind == Reg && (t.f.width[e.Name] != width || special(e.Name) > 0) {
			t.f.fail(i.Line, "%s: registers of different widths", i)
		}
		regs = append(regs, t.lanesOf(e, width, i.Line, &b))
	}
	if i.Opcode == "st" {
		t.emit(i, b.String(), "store(w, %s, %s, %s, %s, %d, %d, (const void *const[]){%s}, %d)", t.mask(i), addr, off, t.spaceC(i), bytes, len(elems),
			strings.Join(regs, ", "), width/8)
		return
	}
	t.emit(i, b.String(), "load(w, %s, %s, %s, %s, %d, %d, (void *const[]){%s}, %d, %d)", t.mask(i), addr, off, t.spaceC(i), bytes, len(elems),
		strings.Join(regs, ", "), width/8, btoi(isSigned(ty[0])))
}

func (t *kernelC) atomic(i *Inst) {
	ops := map[string]string{"add": "ADD", "min": "MIN", "max": "MAX", "inc": "INC", "dec": "DEC", "and": "AND", "or": "OR", "xor": "XOR", "exch": "EXCH", "cas": "CAS"}
	types := map[string]string{"u32": "U32", "b32": "U32", "s32": "S32", "f32": "F32", "u64": "U64", "b64": "U64", "s64": "S64", "f64": "F64",
		"f16": "F16", "f16x2": "F16X2", "bf16": "BF16", "bf16x2": "BF16X2", "b16": "B16"}
	op := ""
	for _, m := range i.Mods {
		if o, ok := ops[m]; ok {
			op = o
		}
	}
	ty := i.Types()
	args := i.Args
	dst := Operand{Kind: Sink}
	if i.Opcode == "atom" && len(args) > 0 {
		dst, args = args[0], args[1:]
	}
	if op == "" || len(ty) != 1 || types[ty[0]] == "" || len(args) != 2+btoi(op == "CAS") || isFloat(ty[0]) && op != "ADD" && op != "EXCH" && op != "CAS" || vecOf(i) != 1 {
		t.unknown(i)
		return
	}
	t.flags |= 2
	width := max(16, TypeBits(ty[0]))
	var b strings.Builder
	addr, off := t.memory(args[0], i, &b)
	a := t.lanesOf(args[1], width, i.Line, &b)
	c := "0"
	if op == "CAS" {
		c = t.lanesOf(args[2], width, i.Line, &b)
	}
	d := "0"
	if dst.Kind == Reg {
		if t.f.width[dst.Name] != width {
			t.f.fail(i.Line, "%s: result register has another width", i)
		}
		d = t.lanesOf(dst, width, i.Line, &b)
	}
	t.emit(i, b.String(), "atom(w, %s, %s, %s, %s, PTX_OP_%s, PTX_T_%s, %s, %s, %s)", t.mask(i), addr, off, t.spaceC(i), op, types[ty[0]], d, a, c)
}

// warpOp is shfl, vote, match, redux; only the .sync forms exist on the targets that matter.
func (t *kernelC) warpOp(i *Inst) {
	if !i.Has("sync") || len(i.Args) < 2 {
		t.unknown(i)
		return
	}
	d, p := i.Args[0], Operand{Kind: Sink}
	if d.Kind == Pair {
		d, p = d.Elems[0], d.Elems[1]
	}
	var b strings.Builder
	ok := t.lanesOf(p, 1, i.Line, &b)
	last := t.lanesOf(i.Args[len(i.Args)-1], 32, i.Line, &b)
	mode := ""
	for _, m := range i.Mods {
		switch m {
		case "up", "down", "bfly", "idx", "all", "any", "uni", "ballot", "add", "min", "max", "and", "or", "xor":
			mode = strings.ToUpper(m)
		}
	}
	switch {
	case i.Opcode == "shfl" && len(i.Args) == 5 && mode != "":
		a, n, c := t.lanesOf(i.Args[1], 32, i.Line, &b), t.lanesOf(i.Args[2], 32, i.Line, &b), t.lanesOf(i.Args[3], 32, i.Line, &b)
		t.emit(i, b.String(), "shfl(w, %s, PTX_SHFL_%s, %s, %s, %s, %s, %s, %s)", t.mask(i), mode, t.lanesOf(d, 32, i.Line, &b), ok, a, n, c, last)
	case i.Opcode == "vote" && len(i.Args) == 3 && mode != "" && i.Args[1].Kind == Reg:
		not := i.Args[1].Not
		width := 1
		if mode == "BALLOT" {
			width = 32
		}
		t.emit(i, b.String(), "vote(w, %s, PTX_VOTE_%s, %s, R->%s, %d, %s)", t.mask(i), mode, t.lanesOf(d, width, i.Line, &b), i.Args[1].Name, btoi(not), last)
		t.arrays[i.Args[1].Name] = true
	case i.Opcode == "match" && len(i.Args) == 3:
		ty := i.Types()
		bits := 32
		if len(ty) == 1 {
			bits = TypeBits(ty[0])
		}
		a := t.lanesOf(i.Args[1], bits, i.Line, &b)
		t.emit(i, b.String(), "match(w, %s, %d, %d, %s, %s, %s, %s)", t.mask(i), btoi(i.Has("all")), bits/8, t.lanesOf(d, 32, i.Line, &b), ok, a, last)
	case i.Opcode == "redux" && len(i.Args) == 3 && mode != "" && len(i.Types()) == 1 && TypeBits(i.Types()[0]) == 32 && !isFloat(i.Types()[0]):
		typ := "U32"
		if i.Has("s32") {
			typ = "S32"
		}
		a := t.lanesOf(i.Args[1], 32, i.Line, &b)
		t.emit(i, b.String(), "redux(w, %s, PTX_OP_%s, PTX_T_%s, %s, %s, %s)", t.mask(i), mode, typ, t.lanesOf(d, 32, i.Line, &b), a, last)
	default:
		t.unknown(i)
	}
}

// mma accepts the shapes m16n8k* with A by rows and B by columns.
func (t *kernelC) mma(i *Inst) {
	ty := i.Types()
	k := 0
	for _, m := range i.Mods {
		if s, ok := strings.CutPrefix(m, "m16n8k"); ok {
			k, _ = strconv.Atoi(s)
		}
	}
	if len(ty) != 4 || len(i.Args) != 4 || !i.Has("row") || !i.Has("col") || ty[1] != ty[2] || ty[0] != ty[3] {
		t.unknown(i)
		return
	}
	kinds := map[string]struct {
		ks  [2]int
		acc string
		per int // elements a register
	}{"f16": {[2]int{8, 16}, "f32", 2}, "bf16": {[2]int{8, 16}, "f32", 2}, "tf32": {[2]int{4, 8}, "f32", 1}, "s8": {[2]int{16, 32}, "s32", 4}, "u8": {[2]int{16, 32}, "s32", 4}}
	kind, ok := kinds[ty[1]]
	if !ok || kind.acc != ty[0] || k != kind.ks[0] && k != kind.ks[1] {
		t.unknown(i)
		return
	}
	na, nb := 16*k/32/kind.per, 8*k/32/kind.per
	lists := make([]string, 4)
	var b strings.Builder
	for n, want := range []int{4, na, nb, 4} {
		elems := i.Args[n].Elems
		if i.Args[n].Kind != Vec { // a fragment of one register may stand bare
			elems = []Operand{i.Args[n]}
		}
		if len(elems) != want {
			t.f.fail(i.Line, "%s: operand %d has %d registers, expected %d", i.Name(), n, len(elems), want)
			return
		}
		var regs []string
		for _, e := range elems {
			if n == 0 && (e.Kind != Reg || t.f.width[e.Name] != 32) {
				t.f.fail(i.Line, "%s: result %s", i.Name(), e)
			}
			regs = append(regs, t.lanesOf(e, 32, i.Line, &b))
		}
		lists[n] = strings.Join(regs, ", ")
	}
	t.emit(i, b.String(), "mma(w, %s, PTX_MMA_%s, %d, (void *const[]){%s}, (const void *const[]){%s}, (const void *const[]){%s}, (const void *const[]){%s})",
		t.mask(i), strings.ToUpper(ty[1]), k, lists[0], lists[1], lists[2], lists[3])
}

func (t *kernelC) ldmatrix(i *Inst) {
	n := 0
	for _, m := range i.Mods {
		switch m {
		case "x1", "x2", "x4":
			n = int(m[1] - '0')
		}
	}
	if len(i.Args) != 2 || !i.Has("m8n8") || !i.Has("b16") || n == 0 {
		t.unknown(i)
		return
	}
	elems := []Operand{i.Args[0]}
	if i.Args[0].Kind == Vec {
		elems = i.Args[0].Elems
	}
	if len(elems) != n {
		t.f.fail(i.Line, "%s: %d registers", i.Name(), len(elems))
		return
	}
	var b strings.Builder
	var regs []string
	for _, e := range elems {
		regs = append(regs, t.lanesOf(e, 32, i.Line, &b))
	}
	addr, off := t.memory(i.Args[1], i, &b)
	t.emit(i, b.String(), "ldmatrix(w, %s, %d, %d, (uint32_t *const[]){%s}, %s, %s, %s)", t.mask(i), n, btoi(i.Has("trans")), strings.Join(regs, ", "), addr, off, t.spaceC(i))
}

// copyAsync is cp.async and what commits and waits for it.
func (t *kernelC) copyAsync(i *Inst) {
	switch {
	case i.Has("commit_group") && len(i.Args) == 0:
		t.emit(i, "", "cpcommit(w, %s)", t.mask(i))
	case i.Has("wait_all") && len(i.Args) == 0:
		t.emit(i, "", "cpwait(w, %s, -1)", t.mask(i))
	case i.Has("wait_group") && len(i.Args) == 1 && i.Args[0].Kind == Int && i.Args[0].Bits < 1<<20:
		t.emit(i, "", "cpwait(w, %s, %d)", t.mask(i), i.Args[0].Bits)
	case i.Has("async") && (i.Has("ca") || i.Has("cg")) && (len(i.Args) == 3 || len(i.Args) == 4) && i.Args[2].Kind == Int:
		bytes := i.Args[2].Bits
		if bytes != 16 && (i.Has("cg") || bytes != 4 && bytes != 8) {
			t.f.fail(i.Line, "%s: %d bytes", i.Name(), bytes)
			return
		}
		var b strings.Builder
		dst, dstOff := t.memory(i.Args[0], i, &b)
		src, srcOff := t.memory(i.Args[1], i, &b)
		valid := "0"
		if len(i.Args) == 4 {
			valid = t.lanesOf(i.Args[3], 32, i.Line, &b)
		}
		t.emit(i, b.String(), "cpasync(w, %s, %s, %s, %s, %s, %d, %s)", t.mask(i), dst, dstOff, src, srcOff, bytes, valid)
	default:
		t.unknown(i)
	}
}

// barrier is bar.sync, barrier.sync and bar.arrive: the warp returns and goes on at the next block.
func (t *kernelC) barrier(i *Inst, next int) {
	if !i.Has("sync") && !i.Has("arrive") || len(i.Args) < 1 || len(i.Args) > 2 || i.Guard != "" {
		t.unknown(i)
		return
	}
	t.flags |= 1
	num := func(k int) string {
		if k >= len(i.Args) {
			return "0"
		}
		if o := i.Args[k]; o.Kind == Reg && special(o.Name) == 0 {
			t.arrays[o.Name] = true
			return fmt.Sprintf("R->%s[__builtin_ctz(m)]", o.Name)
		}
		return t.raw(i.Args[k], i.Line)
	}
	t.linef("\tw->line = %d; w->bar_id = %s; w->bar_count = %s; w->bar_mask = m; w->bar_arrive = %d;", i.Line, num(0), num(1), btoi(i.Has("arrive")))
	t.linef("\tptx_park(w, m, %d);\n\treturn PTX_BARRIER;", t.number[next])
}

// flopsOf counts the floating-point operations of one lane.
func flopsOf(i *Inst) int {
	ty := i.Types()
	if len(ty) == 0 || !isFloat(ty[0]) {
		return 0
	}
	n := 0
	switch i.Opcode {
	case "fma", "mad":
		n = 2
	case "add", "sub", "mul", "div", "rcp", "sqrt", "rsqrt", "ex2", "lg2", "tanh", "sin", "cos", "min", "max":
		n = 1
	case "mma":
		for _, m := range i.Mods {
			if s, ok := strings.CutPrefix(m, "m16n8k"); ok {
				k, _ := strconv.Atoi(s)
				return 2 * 16 * 8 * k / 32
			}
		}
	}
	if half(ty[0]) != "" {
		n *= 2
	}
	return n
}
