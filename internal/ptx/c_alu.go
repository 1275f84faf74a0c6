package ptx

import (
	"fmt"
	"slices"
)

// pure gives the C statements of an instruction that touches nothing but its lane's registers. ok is false for the others.
func (t *kernelC) pure(i *Inst) (text string, ok bool) {
	ty := i.Types()
	typ := ""
	if len(ty) > 0 {
		typ = ty[len(ty)-1]
	}
	if hasResult(i) && len(i.Args) == 0 {
		t.f.fail(i.Line, "%s without operands", i.Opcode)
		return "", true
	}
	for _, x := range ty {
		if x == "b128" || i.Opcode != "cvt" && (isPairOfBytes(x) || x == "e4m3" || x == "e5m2" || x == "tf32" && i.Opcode != "mma") {
			t.f.fail(i.Line, "%s is not accepted", i.Name())
			return "", true
		}
	}
	need := func(n int) bool {
		if len(i.Args) < n {
			t.f.fail(i.Line, "%s needs %d operands", i.Opcode, n)
			return false
		}
		if typ == "" {
			t.f.fail(i.Line, "%s has no type", i.Opcode)
			return false
		}
		return true
	}
	one := func(bits string) (string, bool) { return t.assign(i, i.Args[0], bits), true }
	none := func() (string, bool) { return "", true }
	unknown := func() (string, bool) {
		t.f.fail(i.Line, "%s is not accepted", i.Name())
		return "", true
	}
	arg := func(n int, typ string) string { return t.typed(i.Args[n], typ, i.Line) }
	switch i.Opcode {
	case "ld":
		if !i.Has("param") {
			return "", false
		}
		return t.loadParam(i, typ), true
	case "mov":
		if !need(2) {
			return none()
		}
		return t.move(i, typ), true
	case "cvt":
		if !need(2) {
			return none()
		}
		return t.convert(i, ty), true
	case "cvta":
		if !need(2) {
			return none()
		}
		return one(t.windowed(i))
	case "setp":
		if !need(3) {
			return none()
		}
		return t.setp(i, typ), true
	case "set":
		if !need(3) || len(ty) < 2 {
			return unknown()
		}
		c := t.compare(i, typ, i.Args[1], i.Args[2])
		yes := "0xffffffffu"
		if ty[0] == "f32" {
			yes = "0x3f800000u"
		}
		return one(fmt.Sprintf("(%s) ? %s : 0u", c, yes))
	case "selp":
		if !need(4) {
			return none()
		}
		p := t.raw(i.Args[3], i.Line)
		w := t.f.width[i.Args[0].Name]
		return one(fmt.Sprintf("%s ? %s : %s", p, castTo(max(w, 16), t.raw(i.Args[1], i.Line)), castTo(max(w, 16), t.raw(i.Args[2], i.Line))))
	case "slct":
		if !need(4) || len(ty) < 2 {
			return unknown()
		}
		return one(fmt.Sprintf("(%s) >= 0 ? %s : %s", arg(3, ty[1]), t.raw(i.Args[1], i.Line), t.raw(i.Args[2], i.Line)))
	case "and", "or", "xor", "not", "cnot":
		if !need(2) || i.Opcode[0] != 'n' && i.Opcode[0] != 'c' && !need(3) {
			return none()
		}
		return one(t.logic(i, typ))
	case "prefetch", "prefetchu", "nanosleep", "pmevent", "discard":
		return none()
	case "activemask":
		return one("w->mask")
	case "testp":
		if !need(2) {
			return none()
		}
		return one("-(int32_t)(" + t.testp(i, typ) + ")")
	}
	if n := operands(i.Opcode); n == 0 {
		return "", false
	} else if !need(n + 1) {
		return none()
	}
	if isFloat(typ) {
		bits := t.floatOp(i, typ)
		if bits == "" {
			return unknown()
		}
		return one(bits)
	}
	if i.Has("cc") || readsCarry(i) {
		return t.carryOp(i, typ), true
	}
	bits := t.intOp(i, typ)
	if bits == "" {
		return unknown()
	}
	return one(bits)
}

// operands is how many sources an arithmetic opcode has, 0 if it is none.
func operands(opcode string) int {
	switch opcode {
	case "neg", "abs", "rcp", "sqrt", "rsqrt", "sin", "cos", "lg2", "ex2", "tanh", "bfind", "popc", "clz", "brev":
		return 1
	case "add", "sub", "mul", "mul24", "div", "rem", "min", "max", "shl", "shr", "addc", "subc", "copysign":
		return 2
	case "mad", "mad24", "madc", "fma", "sad", "shf", "prmt", "bfe", "fns", "dp4a":
		return 3
	case "lop3", "bfi":
		return 4
	}
	return 0
}

// loadParam reads the argument block; every lane reads the same, so no check is due.
func (t *kernelC) loadParam(i *Inst, typ string) string {
	if len(i.Args) != 2 || i.Args[1].Kind != Mem || i.Args[1].Elems[0].Kind != Sym || typ == "" {
		t.f.fail(i.Line, "%s: a parameter is read by its name", i)
		return ""
	}
	name, off := i.Args[1].Elems[0].Name, i.Args[1].Off
	p, ok := t.params[name]
	dsts := []Operand{i.Args[0]}
	if i.Args[0].Kind == Vec {
		dsts = i.Args[0].Elems
	}
	size := int64(TypeBits(typ) / 8)
	if !ok || off < 0 || off+size*int64(len(dsts)) > p.bytes || typ == "b128" || isPairOfBytes(typ) {
		t.f.fail(i.Line, "%s: no such parameter, or beyond its end", i)
		return ""
	}
	s := ""
	for k, d := range dsts {
		s += t.assign(i, d, bitsC(fmt.Sprintf("param%s(w, %s)", paramReader(typ), t.constant(fmt.Sprintf("%du", p.offset+off+int64(k)*size), 32)), intOf(typ)))
	}
	return s
}

func paramReader(typ string) string { return fmt.Sprint(TypeBits(typ)) }

func isPairOfBytes(typ string) bool { return typ == "e4m3x2" || typ == "e5m2x2" }

// intOf is the integer type of a type's width; signed ones stay signed.
func intOf(typ string) string {
	if isSigned(typ) {
		return typ
	}
	return fmt.Sprintf("u%d", TypeBits(typ))
}

// move is mov, packing and unpacking included.
func (t *kernelC) move(i *Inst, typ string) string {
	d, a := i.Args[0], i.Args[1]
	bits := TypeBits(typ)
	switch {
	case a.Kind == Vec && len(a.Elems) > 0:
		w := bits / len(a.Elems)
		e := ""
		for k, x := range a.Elems {
			if k > 0 {
				e += " | "
			}
			e += fmt.Sprintf("(%s)(%s) << %d", cType(max(bits, 32)), valueC(t.raw(x, i.Line), fmt.Sprintf("u%d", max(8, w))), k*w)
		}
		return t.assign(i, d, e)
	case d.Kind == Vec && len(d.Elems) > 0:
		w := bits / len(d.Elems)
		// the source may be one of the results
		s := fmt.Sprintf("{ %s src_ = %s; ", cType(max(bits, 32)), t.raw(a, i.Line))
		for k, x := range d.Elems {
			s += t.assign(i, x, fmt.Sprintf("(%s)(src_ >> %d)", cType(max(16, w)), k*w))
		}
		return s + " }"
	}
	if typ == "pred" {
		return t.assign(i, d, t.predicate(a, i.Line))
	}
	return t.assign(i, d, t.raw(a, i.Line))
}

// windowed is cvta: shared and local memory appear in generic addresses behind a window.
func (t *kernelC) windowed(i *Inst) string {
	a := t.typed(i.Args[1], "u64", i.Line)
	window := ""
	switch {
	case i.Has("shared") || i.Has("shared::cta"):
		window = "PTX_SHARED_WINDOW"
	case i.Has("local"):
		window = "PTX_LOCAL_WINDOW"
	case i.Has("global") || i.Has("const") || i.Has("param"):
		return a
	default:
		t.f.fail(i.Line, "%s is not accepted", i.Name())
	}
	if i.Has("to") {
		return a + " - " + window
	}
	return a + " + " + window
}

// compare is a comparison of two operands as a C truth value.
func (t *kernelC) compare(i *Inst, typ string, x, y Operand) string {
	a, b := t.typed(x, typ, i.Line), t.typed(y, typ, i.Line)
	if isFloat(typ) && i.Has("ftz") && typ == "f32" {
		a, b = "ftz("+a+")", "ftz("+b+")"
	}
	c, inv := "", map[string]string{"equ": "!=", "neu": "==", "ltu": ">=", "leu": ">", "gtu": "<=", "geu": "<"}
	plain := map[string]string{"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">", "hs": ">="}
	for _, m := range i.Mods {
		if op, ok := plain[m]; ok && c == "" {
			if op == "!=" && isFloat(typ) { // ordered: false for NaN
				return fmt.Sprintf("(%s < %s || %s > %s)", a, b, a, b)
			}
			c = op
		} else if op, ok := inv[m]; ok && c == "" {
			if m == "equ" { // unordered or equal
				return fmt.Sprintf("!(%s < %s || %s > %s)", a, b, a, b)
			}
			if m == "neu" {
				return fmt.Sprintf("(%s != %s)", a, b)
			}
			return fmt.Sprintf("!(%s %s %s)", a, op, b)
		} else if m == "num" {
			return fmt.Sprintf("(%s == %s && %s == %s)", a, a, b, b)
		} else if m == "nan" {
			return fmt.Sprintf("(%s != %s || %s != %s)", a, a, b, b)
		}
	}
	if c == "" {
		t.f.fail(i.Line, "%s compares in no known way", i.Name())
		c = "=="
	}
	return fmt.Sprintf("(%s %s %s)", a, c, b)
}

func (t *kernelC) setp(i *Inst, typ string) string {
	if half(typ) != "" || typ == "pred" {
		t.f.fail(i.Line, "%s is not accepted", i.Name())
		return ""
	}
	c := t.compare(i, typ, i.Args[1], i.Args[2])
	p, q := "-(int32_t)(c_)", "-(int32_t)!(c_)"
	if len(i.Args) == 4 {
		third := t.predicate(i.Args[3], i.Line)
		op := ""
		for m, o := range map[string]string{"and": "&", "or": "|", "xor": "^"} { // at most one is there
			if i.Has(m) {
				op = o
			}
		}
		if op == "" {
			t.f.fail(i.Line, "%s combines in no known way", i.Name())
		}
		p, q = p+" "+op+" b_", q+" "+op+" b_"
		c += "; int32_t b_ = " + third
	}
	d := i.Args[0]
	if d.Kind == Pair {
		return fmt.Sprintf("{ int c_ = %s; %s %s }", c, t.assign(i, d.Elems[0], p), t.assign(i, d.Elems[1], q))
	}
	return fmt.Sprintf("{ int c_ = %s; %s }", c, t.assign(i, d, p))
}

// predicate is a predicate operand as 0 or -1.
func (t *kernelC) predicate(o Operand, line int) string {
	if o.Not {
		return "~" + o.Name
	}
	if o.Kind == Int {
		return fmt.Sprintf("(%d)", -int(min(o.Bits, 1)))
	}
	return t.raw(o, line)
}

func (t *kernelC) logic(i *Inst, typ string) string {
	op := map[string]string{"and": "&", "or": "|", "xor": "^"}[i.Opcode]
	if typ == "pred" {
		a := t.predicate(i.Args[1], i.Line)
		if i.Opcode == "not" {
			return "~" + a
		}
		return fmt.Sprintf("%s %s %s", a, op, t.predicate(i.Args[2], i.Line))
	}
	a := t.typed(i.Args[1], typ, i.Line)
	switch i.Opcode {
	case "not":
		return "~" + a
	case "cnot":
		return fmt.Sprintf("(%s) == 0 ? 1u : 0u", a)
	}
	return fmt.Sprintf("%s %s %s", a, op, t.typed(i.Args[2], typ, i.Line))
}

func (t *kernelC) testp(i *Inst, typ string) string {
	a := t.typed(i.Args[1], typ, i.Line)
	for m, f := range map[string]string{"finite": "isfinite(%s)", "infinite": "isinf(%s)", "number": "!isnan(%s)", "notanumber": "isnan(%s)",
		"normal": "isnormal(%s)", "subnormal": "fpclassify(%s) == FP_SUBNORMAL"} { // at most one is there
		if i.Has(m) {
			return fmt.Sprintf(f, a)
		}
	}
	t.f.fail(i.Line, "%s is not accepted", i.Name())
	return "0"
}

// rounds tells whether the instruction asks for a rounding other than to nearest.
func rounds(i *Inst) bool {
	return slices.ContainsFunc(i.Mods, func(m string) bool { return m == "rz" || m == "rm" || m == "rp" || m == "rna" })
}
