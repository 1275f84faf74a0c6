package ptx

import (
	"fmt"
	"strings"
)

// convert is cvt.
func (t *kernelC) convert(i *Inst, ty []string) string {
	bits := ""
	if len(ty) == 2 {
		bits = t.conversion(i, ty[0], ty[1])
	}
	if bits == "" {
		t.f.fail(i.Line, "%s is not accepted", i.Name())
		return ""
	}
	return t.assign(i, i.Args[0], bits)
}

func (t *kernelC) conversion(i *Inst, to, from string) string {
	if half(to) != "" || isPairOfBytes(to) || isPairOfBytes(from) {
		return t.pairConversion(i, to, from)
	}
	a := t.typed(i.Args[1], from, i.Line)
	if i.Has("ftz") && from == "f32" {
		a = "ftz(" + a + ")"
	}
	switch {
	case to == "tf32" && from == "f32":
		if i.Has("rna") {
			return "tf32_rna(" + a + ")"
		}
		return "tf32_rn(" + a + ")"
	case isFloat(from) && isFloat(to):
		return floatToFloat(i, to, from, a)
	case isFloat(from):
		return floatToInt(i, to, a)
	case isFloat(to):
		return intToFloat(i, to, from, a)
	}
	if i.Has("sat") {
		return saturate(to, from, a)
	}
	return bitsC(a, to)
}

// saturate clamps an integer to another type's range. Unsigned 64-bit values are clamped above only.
func saturate(to, from, a string) string {
	bits := TypeBits(to)
	lo, hi := int64(0), int64(0)
	if isSigned(to) {
		lo, hi = -1<<(bits-1), 1<<(bits-1)-1
	} else if bits < 64 {
		hi = 1<<bits - 1
	} else {
		hi = 1<<63 - 1
	}
	if from == "u64" {
		if bits == 64 && !isSigned(to) {
			return a
		}
		return bitsC(fmt.Sprintf("%s > %dull ? %dull : %s", a, hi, hi, a), to)
	}
	v := "(int64_t)" + a
	if bits == 64 && isSigned(to) {
		return bitsC(v, to)
	}
	return bitsC(fmt.Sprintf("%s < %dll ? %dll : %s > %dll ? %dll : %s", v, lo, lo, v, hi, hi, v), to)
}

// roundC rounds a float value to an integral one as the modifier says.
func roundC(i *Inst, v string, double bool) string {
	sfx := "f"
	if double {
		sfx = ""
	}
	for mod, fn := range map[string]string{"rni": "rint", "rzi": "trunc", "rmi": "floor", "rpi": "ceil"} { // at most one is there
		if i.Has(mod) {
			return fmt.Sprintf("__builtin_%s%s(%s)", fn, sfx, v)
		}
	}
	return ""
}

func floatToFloat(i *Inst, to, from, a string) string {
	double := from == "f64"
	if r := roundC(i, a, double); r != "" {
		a = r
	}
	mode := ""
	for _, m := range []string{"rz", "rm", "rp"} {
		if i.Has(m) {
			mode = m
		}
	}
	narrow := TypeBits(to) < TypeBits(from)
	switch {
	case to == from || TypeBits(to) > TypeBits(from):
	case !narrow: // f16 <-> bf16
		return ""
	case to == "f32":
		if mode != "" {
			a = mode + "(" + a + ")"
		} else {
			a = "(float)" + a
		}
	case mode == "rz" && !double:
		name := map[string]string{"f16": "UHz", "bf16": "UBz"}[to]
		return name + "(" + a + ")"
	case mode != "":
		return ""
	case double:
		a = "odd(" + a + ")"
	}
	if to == "f64" && from != "f64" {
		a = "(double)" + a
	}
	if i.Has("relu") {
		a = "relu(" + a + ")"
	}
	if i.Has("sat") {
		if to == "f64" {
			a = "satd(" + a + ")"
		} else {
			a = "sat(" + a + ")"
		}
	}
	if i.Has("ftz") && to == "f32" {
		a = "ftz(" + a + ")"
	}
	return bitsC(a, to)
}

func floatToInt(i *Inst, to, a string) string {
	r := roundC(i, "(double)"+a, true)
	if r == "" {
		return ""
	}
	switch to {
	case "s64":
		return "tos64(" + r + ")"
	case "u64":
		return "tou64(" + r + ")"
	case "u8", "u16", "u32":
		return fmt.Sprintf("tou32(%s, %d.0)", r, int64(1)<<TypeBits(to)-1)
	case "s8", "s16", "s32":
		top := int64(1) << (TypeBits(to) - 1)
		return bitsC(fmt.Sprintf("toi32(%s, -%d.0, %d.0)", r, top, top-1), to)
	}
	return ""
}

func intToFloat(i *Inst, to, from, a string) string {
	mode := ""
	for _, m := range []string{"rz", "rm", "rp"} {
		if i.Has(m) {
			mode = m
		}
	}
	wide := TypeBits(from) == 64
	if mode != "" && (wide || to != "f32") {
		return ""
	}
	sat := ""
	if i.Has("sat") {
		sat = "sat"
	}
	switch to {
	case "f64":
		return bitsC("(double)"+a, to)
	case "f32":
		if mode != "" {
			return bitsC(fmt.Sprintf("%s(%s((double)%s))", sat, mode, a), to)
		}
		return bitsC(fmt.Sprintf("%s((float)%s)", sat, a), to)
	case "f16", "bf16":
		if wide { // 64-bit integers beyond double's 53 bits round twice; both formats overflow or have long lost such bits
			return bitsC("odd((double)"+a+")", to)
		}
		return bitsC("odd((double)"+a+")", to)
	}
	return ""
}

// pairConversion is a conversion that makes or takes two narrow floats at once; the first source becomes the upper half.
func (t *kernelC) pairConversion(i *Inst, to, from string) string {
	relu := func(v string) string {
		if i.Has("relu") {
			return "relu(" + v + ")"
		}
		return v
	}
	switch {
	case half(to) != "" && from == "f32" && len(i.Args) == 3:
		fn := map[string]string{"f16": "UH", "bf16": "UB"}[half(to)]
		if i.Has("rz") {
			fn += "z"
		} else if !i.Has("rn") {
			return ""
		}
		hi, lo := relu(t.typed(i.Args[1], "f32", i.Line)), relu(t.typed(i.Args[2], "f32", i.Line))
		return fmt.Sprintf("%s(%s) << 16 | %s(%s)", fn, hi, fn, lo)
	case isPairOfBytes(to) && from == "f32" && len(i.Args) == 3:
		fn := strings.TrimSuffix(to, "x2")
		hi, lo := relu(t.typed(i.Args[1], "f32", i.Line)), relu(t.typed(i.Args[2], "f32", i.Line))
		return fmt.Sprintf("%s(%s) << 8 | %s(%s)", fn, hi, fn, lo)
	case isPairOfBytes(to) && from == "f16x2":
		fn, a := strings.TrimSuffix(to, "x2"), t.raw(i.Args[1], i.Line)
		return fmt.Sprintf("%s(%s) << 8 | %s(%s)", fn, relu("H("+a+" >> 16)"), fn, relu("H("+a+" & 0xffff)"))
	case to == "f16x2" && isPairOfBytes(from):
		fn, a := "from_"+strings.TrimSuffix(from, "x2"), t.raw(i.Args[1], i.Line)
		return fmt.Sprintf("UH(%s) << 16 | UH(%s)", relu(fn+"(("+a+" >> 8) & 0xff)"), relu(fn+"("+a+" & 0xff)"))
	}
	return ""
}
