package ptx

import "fmt"

// floatOp is the raw result of float arithmetic, empty if it is unknown.
func (t *kernelC) floatOp(i *Inst, typ string) string {
	if rounds(i) || i.Has("relu") || i.Has("xorsign") || i.Has("oob") {
		return ""
	}
	var args []string
	for _, a := range i.Args[1:] {
		args = append(args, t.raw(a, i.Line))
	}
	if h := half(typ); h != "" {
		lo, hi := make([]string, len(args)), make([]string, len(args))
		for k, a := range args {
			lo[k], hi[k] = "("+a+" & 0xffff)", "("+a+" >> 16)"
		}
		l, u := floatScalar(i, h, lo), floatScalar(i, h, hi)
		if l == "" {
			return ""
		}
		return fmt.Sprintf("(uint32_t)(%s) | (uint32_t)(%s) << 16", l, u)
	}
	return floatScalar(i, typ, args)
}

func floatScalar(i *Inst, typ string, raw []string) string {
	width := TypeBits(typ)
	sign := map[int]string{16: "0x8000u", 32: "0x80000000u", 64: "0x8000000000000000ull"}[width]
	switch i.Opcode { // on the sign alone
	case "neg":
		return raw[0] + " ^ " + sign
	case "abs":
		return raw[0] + " & ~" + sign
	case "copysign":
		return fmt.Sprintf("(%s & ~%s) | (%s & %s)", raw[1], sign, raw[0], sign)
	}
	v := make([]string, len(raw))
	for k, r := range raw {
		v[k] = valueC(r, typ)
		if i.Has("ftz") && typ == "f32" {
			v[k] = "ftz(" + v[k] + ")"
		}
	}
	e := ""
	approx := i.Has("approx")
	switch i.Opcode {
	case "add":
		e = v[0] + " + " + v[1]
	case "sub":
		e = v[0] + " - " + v[1]
	case "mul":
		e = v[0] + " * " + v[1]
	case "div":
		e = v[0] + " / " + v[1]
	case "fma", "mad":
		switch width {
		case 16:
			e = fmt.Sprintf("odd((double)%s * %s + %s)", v[0], v[1], v[2])
		case 32:
			e = fmt.Sprintf("__builtin_fmaf(%s, %s, %s)", v[0], v[1], v[2])
		default:
			e = fmt.Sprintf("__builtin_fma(%s, %s, %s)", v[0], v[1], v[2])
		}
	case "min", "max":
		name := i.Opcode + "f"
		if width == 64 {
			name = i.Opcode + "d"
		} else if i.Has("NaN") {
			name += "_nan"
		}
		e = fmt.Sprintf("%s(%s, %s)", name, v[0], v[1])
	case "rcp":
		e = "1.0f / " + v[0]
		if width == 64 {
			e = "1.0 / " + v[0]
		}
	case "sqrt":
		e = "__builtin_sqrtf(" + v[0] + ")"
		if width == 64 {
			e = "__builtin_sqrt(" + v[0] + ")"
		}
	case "rsqrt":
		e = "rsqrt_approx(" + v[0] + ")"
		if width == 64 {
			e = "1.0 / __builtin_sqrt(" + v[0] + ")"
		}
	case "ex2", "lg2", "tanh":
		if !approx || width == 64 {
			return ""
		}
		e = i.Opcode + "_approx(" + v[0] + ")"
	case "sin", "cos":
		if !approx || width != 32 {
			return ""
		}
		e = i.Opcode + "f(" + v[0] + ")"
	default:
		return ""
	}
	if i.Has("ftz") && typ == "f32" {
		e = "ftz(" + e + ")"
	}
	if i.Has("sat") {
		if width == 64 {
			e = "satd(" + e + ")"
		} else {
			e = "sat(" + e + ")"
		}
	}
	return bitsC(e, typ)
}

// intOp is the raw result of integer arithmetic, empty if it is unknown.
func (t *kernelC) intOp(i *Inst, typ string) string {
	width := TypeBits(typ)
	if width < 16 || width > 64 || typ == "pred" {
		return ""
	}
	signed := isSigned(typ)
	var raw, v []string
	for _, a := range i.Args[1:] {
		raw = append(raw, t.raw(a, i.Line))
		v = append(v, valueC(t.raw(a, i.Line), typ))
	}
	un := fmt.Sprintf("u%d", width)
	u := func(k int) string { return valueC(raw[k], un) } // unsigned arithmetic wraps, as PTX does
	sfx := "u"
	if signed {
		sfx = "s"
	}
	switch i.Opcode {
	case "add", "sub":
		op := map[string]string{"add": "+", "sub": "-"}[i.Opcode]
		if i.Has("sat") {
			if typ != "s32" {
				return ""
			}
			e := fmt.Sprintf("((int64_t)%s %s (int64_t)%s)", v[0], op, v[1])
			return fmt.Sprintf("(uint32_t)(int32_t)(%s > 2147483647 ? 2147483647 : %s < -2147483647 - 1 ? -2147483647 - 1 : %s)", e, e, e)
		}
		return bitsC(u(0)+" "+op+" "+u(1), typ)
	case "neg":
		return bitsC("0u - "+u(0), typ)
	case "abs":
		return bitsC(fmt.Sprintf("%s < 0 ? 0u - %s : %s", v[0], u(0), u(0)), typ)
	case "mul":
		return mulC(i, typ, raw)
	case "mad":
		if i.Has("sat") {
			return ""
		}
		m := mulC(i, typ, raw)
		if m == "" {
			return ""
		}
		if i.Has("wide") {
			return fmt.Sprintf("(%s)(%s) + (%s)%s", cType(2*width), m, cType(2*width), raw[2])
		}
		return bitsC(fmt.Sprintf("(%s)(%s) + %s", cType(max(width, 32)), m, u(2)), typ)
	case "mul24", "mad24":
		if !i.Has("lo") || width != 32 {
			return ""
		}
		e := fmt.Sprintf("(%s & 0xffffffu) * (%s & 0xffffffu)", u(0), u(1))
		if signed {
			e = fmt.Sprintf("(uint32_t)((int32_t)(%s << 8) >> 8) * (uint32_t)((int32_t)(%s << 8) >> 8)", u(0), u(1))
		}
		if i.Opcode == "mad24" {
			e += " + " + u(2)
		}
		return bitsC(e, typ)
	case "div", "rem":
		w := max(width, 32)
		return bitsC(fmt.Sprintf("%s%s%d(%s, %s)", i.Opcode, sfx, w, v[0], v[1]), typ)
	case "min":
		return bitsC(fmt.Sprintf("%s < %s ? %s : %s", v[0], v[1], v[0], v[1]), typ)
	case "max":
		return bitsC(fmt.Sprintf("%s > %s ? %s : %s", v[0], v[1], v[0], v[1]), typ)
	case "sad":
		return bitsC(fmt.Sprintf("%s + (%s < %s ? %s - %s : %s - %s)", u(2), v[0], v[1], u(1), u(0), u(0), u(1)), typ)
	case "shl":
		return fmt.Sprintf("shl%d(%s, (uint32_t)%s)", width, u(0), raw[1])
	case "shr":
		return bitsC(fmt.Sprintf("shr%s%d(%s, (uint32_t)%s)", sfx, width, u(0), raw[1]), typ)
	case "shf":
		left, wrap := i.Has("l"), i.Has("wrap")
		if left == i.Has("r") || wrap == i.Has("clamp") {
			return ""
		}
		return fmt.Sprintf("shf(%s, %s, %s, %d, %d)", raw[0], raw[1], raw[2], btoi(left), btoi(wrap))
	case "lop3":
		if i.Args[4].Kind != Int || i.Has("or") || i.Has("and") {
			return ""
		}
		return fmt.Sprintf("lop3(%s, %s, %s, %d)", raw[0], raw[1], raw[2], i.Args[4].Bits&255)
	case "prmt":
		mode := ""
		for _, m := range []string{"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"} {
			if i.Has(m) {
				mode = "_" + m
			}
		}
		return fmt.Sprintf("prmt%s(%s, %s, %s)", mode, raw[0], raw[1], raw[2])
	case "bfe":
		return bitsC(fmt.Sprintf("bfe(%s, %s, %s, %d, %d)", u(0), raw[1], raw[2], width, btoi(signed)), typ)
	case "bfi":
		return fmt.Sprintf("bfi(%s, %s, %s, %s, %d)", u(0), u(1), raw[2], raw[3], width)
	case "bfind":
		return fmt.Sprintf("bfind(%s, %d, %d, %d)", u(0), width, btoi(signed), btoi(i.Has("shiftamt")))
	case "popc":
		return fmt.Sprintf("(uint32_t)__builtin_popcountll(%s)", u(0))
	case "clz":
		return fmt.Sprintf("clz%d(%s)", width, u(0))
	case "brev":
		return fmt.Sprintf("brev%d(%s)", width, u(0))
	case "fns":
		return fmt.Sprintf("fns(%s, %s, (int32_t)%s)", raw[0], raw[1], raw[2])
	case "dp4a":
		ty := i.Types()
		if len(ty) != 2 {
			return ""
		}
		return fmt.Sprintf("dp4a(%s, %s, %s, %d, %d)", raw[0], raw[1], raw[2], btoi(isSigned(ty[0])), btoi(isSigned(ty[1])))
	}
	return ""
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// mulC is a product in the half that the instruction asks for.
func mulC(i *Inst, typ string, raw []string) string {
	width := TypeBits(typ)
	a, b := valueC(raw[0], typ), valueC(raw[1], typ)
	un := fmt.Sprintf("u%d", width)
	wide := fmt.Sprintf("(%s)((int64_t)%s * (int64_t)%s)", cType(64), a, b)
	if !isSigned(typ) {
		wide = fmt.Sprintf("((uint64_t)%s * (uint64_t)%s)", a, b)
	}
	switch {
	case i.Has("wide") && width <= 32:
		return fmt.Sprintf("(%s)%s", cType(2*width), wide)
	case i.Has("hi") && width == 64:
		if isSigned(typ) {
			return fmt.Sprintf("mulhis64(%s, %s)", a, b)
		}
		return fmt.Sprintf("mulhiu64(%s, %s)", a, b)
	case i.Has("hi"):
		return bitsC(fmt.Sprintf("%s >> %d", wide, width), typ)
	case i.Has("lo"):
		return bitsC(fmt.Sprintf("%s * %s", valueC(raw[0], un), valueC(raw[1], un)), typ)
	}
	return ""
}

// carryOp is an addition or subtraction that makes or takes a carry.
func (t *kernelC) carryOp(i *Inst, typ string) string {
	width := TypeBits(typ)
	if width != 32 && width != 64 || i.Opcode == "madc" || i.Opcode == "mad" {
		return t.madCarry(i, typ)
	}
	un := fmt.Sprintf("u%d", width)
	a, b := t.typed(i.Args[1], un, i.Line), t.typed(i.Args[2], un, i.Line)
	wide, in := "unsigned __int128", "0"
	if width == 32 {
		wide = "uint64_t"
	}
	if readsCarry(i) {
		in = carry
	}
	t.f.width[carry] = 32
	op := "+"
	if i.Opcode == "sub" || i.Opcode == "subc" {
		op = "-"
	}
	s := fmt.Sprintf("{ %s s_ = (%s)%s %s %s %s %s; ", wide, wide, a, op, b, op, in)
	s += t.assign(i, i.Args[0], fmt.Sprintf("(%s)s_", cType(width)))
	if i.Has("cc") {
		s += t.assign(i, Operand{Kind: Reg, Name: carry}, fmt.Sprintf("(uint32_t)(s_ >> %d) & 1", width))
	}
	return s + " }"
}

func (t *kernelC) madCarry(i *Inst, typ string) string {
	if TypeBits(typ) != 32 || len(i.Args) != 4 {
		t.f.fail(i.Line, "%s is not accepted", i.Name())
		return ""
	}
	t.f.width[carry] = 32
	m := mulC(i, typ, []string{t.raw(i.Args[1], i.Line), t.raw(i.Args[2], i.Line)})
	in := "0"
	if readsCarry(i) {
		in = carry
	}
	s := fmt.Sprintf("{ uint64_t s_ = (uint64_t)(uint32_t)(%s) + (uint32_t)%s + %s; ", m, t.raw(i.Args[3], i.Line), in)
	s += t.assign(i, i.Args[0], "(uint32_t)s_")
	if i.Has("cc") {
		s += t.assign(i, Operand{Kind: Reg, Name: carry}, "(uint32_t)(s_ >> 32) & 1")
	}
	return s + " }"
}
