package ptx

import (
	"fmt"
	"strings"
)

// This file turns operands into C expressions. "Raw" is the register's bits as an unsigned integer; "typed" is the value that a type
// makes of them.

// unaccepted is what the functions below panic with when an instruction uses a type in a way that nothing here can say in C; function recovers it and
// reports the instruction.
type unaccepted string

// raw is the operand's bits. Symbols are addresses in their own space.
func (t *kernelC) raw(o Operand, line int) string {
	switch o.Kind {
	case Reg:
		if special(o.Name) > 0 {
			return t.specialC(o.Name)
		}
		return o.Name
	case Int:
		if int64(o.Bits) < 0 || o.Bits >= 1<<32 {
			return t.constant(fmt.Sprintf("0x%xull", o.Bits), 64)
		}
		return t.constant(fmt.Sprintf("0x%xu", o.Bits), 32)
	case F32:
		return t.constant(fmt.Sprintf("0x%08xu", o.Bits), 32)
	case F64:
		return t.constant(fmt.Sprintf("0x%016xull", o.Bits), 64)
	case Sym:
		a, _ := t.address(o.Name, line)
		return t.constant(fmt.Sprintf("(%s + (uint64_t)(%d))", a, o.Off), 64)
	}
	t.f.fail(line, "operand %s cannot be read as a number", o)
	return "0"
}

// constant is an expression that is alike in all lanes. While a lane function is written it becomes the function's argument, so that instructions which
// differ in nothing else share the function.
func (t *kernelC) constant(e string, width int) string {
	if !t.lifting {
		return e
	}
	t.constants = append(t.constants, constant{e, width})
	return fmt.Sprintf("k%d", len(t.constants)-1)
}

// constant is an argument of a lane function.
type constant struct {
	expr  string
	width int
}

func (t *kernelC) specialC(name string) string {
	part := map[byte]int{'x': 0, 'y': 1, 'z': 2}[name[len(name)-1]]
	switch stem, _, _ := strings.Cut(name, "."); stem {
	case "%tid":
		return fmt.Sprintf("w->tid[%d][l]", part)
	case "%ntid", "%ctaid", "%nctaid":
		return fmt.Sprintf("w->%s[%d]", stem[1:], part)
	case "%laneid":
		return "(uint32_t)l"
	case "%warpid":
		return "w->warp"
	case "%nwarpid":
		return "w->nwarps"
	case "%lanemask_eq":
		return "(1u << l)"
	case "%lanemask_lt":
		return "((1u << l) - 1)"
	case "%lanemask_le":
		return "((2u << l) - 1)"
	case "%lanemask_gt":
		return "(~((2u << l) - 1))"
	case "%lanemask_ge":
		return "(~((1u << l) - 1))"
	}
	panic("ptx: special register " + name)
}

// typed is the operand as a C value of a scalar type.
func (t *kernelC) typed(o Operand, typ string, line int) string { return valueC(t.raw(o, line), typ) }

func valueC(raw, typ string) string {
	switch typ {
	case "pred":
		return raw
	case "u8", "b8":
		return "(uint32_t)(uint8_t)" + raw
	case "s8":
		return "(int32_t)(int8_t)" + raw
	case "u16", "b16":
		return "(uint32_t)(uint16_t)" + raw
	case "s16":
		return "(int32_t)(int16_t)" + raw
	case "u32", "b32", "f16x2", "bf16x2":
		return "(uint32_t)" + raw
	case "s32":
		return "(int32_t)" + raw
	case "u64", "b64":
		return "(uint64_t)" + raw
	case "s64":
		return "(int64_t)" + raw
	case "f32", "tf32":
		return "F(" + raw + ")"
	case "f64":
		return "D(" + raw + ")"
	case "f16":
		return "H(" + raw + ")"
	case "bf16":
		return "B(" + raw + ")"
	}
	panic(unaccepted("value of type " + typ))
}

// bitsC is the raw result of a C value of a type; signed integers are extended to whatever register takes them.
func bitsC(value, typ string) string {
	switch typ {
	case "f32":
		return "U(" + value + ")"
	case "f64":
		return "UD(" + value + ")"
	case "f16":
		return "UH(" + value + ")"
	case "bf16":
		return "UB(" + value + ")"
	case "s8":
		return "(uint64_t)(int64_t)(int8_t)(" + value + ")"
	case "s16":
		return "(uint64_t)(int64_t)(int16_t)(" + value + ")"
	case "s32":
		return "(uint64_t)(int64_t)(int32_t)(" + value + ")"
	case "u8", "b8":
		return "(uint8_t)(" + value + ")"
	case "u16", "b16":
		return "(uint16_t)(" + value + ")"
	case "u32", "b32", "f16x2", "bf16x2":
		return "(uint32_t)(" + value + ")"
	case "u64", "b64", "s64":
		return "(uint64_t)(" + value + ")"
	}
	panic(unaccepted("result of type " + typ))
}

// assign is the statement that gives a register its new bits under the instruction's guard.
func (t *kernelC) assign(i *Inst, dst Operand, bits string) string {
	switch dst.Kind {
	case Sink:
		return ""
	case Reg:
		if special(dst.Name) > 0 {
			break
		}
		if i.Guard == "" {
			return fmt.Sprintf("%s = %s;", dst.Name, bits)
		}
		if i.Not {
			return fmt.Sprintf("%s = %s ? %s : %s;", dst.Name, i.Guard, dst.Name, castTo(t.f.width[dst.Name], bits))
		}
		return fmt.Sprintf("%s = %s ? %s : %s;", dst.Name, i.Guard, castTo(t.f.width[dst.Name], bits), dst.Name)
	}
	t.f.fail(i.Line, "%s cannot be written", dst)
	return ""
}

// castTo keeps both arms of a choice in one C type, which vectorises.
func castTo(width int, bits string) string { return "(" + cType(width) + ")(" + bits + ")" }

// cType is the C type of a register.
func cType(width int) string {
	switch width {
	case 1:
		return "int32_t"
	case 16:
		return "uint16_t"
	case 32:
		return "uint32_t"
	case 64:
		return "uint64_t"
	}
	panic(unaccepted(fmt.Sprintf("register of %d bits", width)))
}

// isFloat tells float types from integers.
func isFloat(typ string) bool {
	switch typ {
	case "f16", "bf16", "f32", "f64", "f16x2", "bf16x2", "tf32":
		return true
	}
	return false
}

func isSigned(typ string) bool { return typ[0] == 's' }

// half is the element type of a pair, empty for other types.
func half(typ string) string {
	switch typ {
	case "f16x2":
		return "f16"
	case "bf16x2":
		return "bf16"
	}
	return ""
}
