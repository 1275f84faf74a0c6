// Package ptx reads, judges, writes and translates PTX, the assembly text that CUDA drivers compile: Parse makes a Module, Lint says for each
// instruction the least target and PTX version, Write gives the text back, TranslateC turns it into C that runs the kernels on a CPU.
//
// The package knows no kernel of anybody, no driver and nothing else of this repository. It accepts call-free kernels, the language that
// clang writes for plain C and what such code adds by inline assembly: what it does not know is an error with its line, never a guess.
//
// Invariants: Parse never panics and allocates no more than a multiple of the text's length; Parse(Write(m)) equals m but for line
// numbers; TranslateC of one text is always the same C.
package ptx

import (
	"fmt"
	"strings"
)

// Version is a PTX version, 7.0 is {7, 0}.
type Version struct{ Major, Minor int }

// Less orders versions.
func (v Version) Less(w Version) bool {
	return v.Major < w.Major || v.Major == w.Major && v.Minor < w.Minor
}

func (v Version) String() string { return fmt.Sprintf("%d.%d", v.Major, v.Minor) }

// Module is one PTX text.
type Module struct {
	Version     Version
	Target      string // sm_80, sm_90a
	SM          int    // 80
	ArchOnly    bool   // sm_90a: runs on that architecture only
	Options     []string
	AddressBits int
	Vars        []*Var
	Entries     []*Entry
}

// Entry finds a kernel; nil if there is none of that name.
func (m *Module) Entry(name string) *Entry {
	for _, e := range m.Entries {
		if e.Name == name {
			return e
		}
	}
	return nil
}

// Var is a variable or a kernel's parameter.
type Var struct {
	Linkage string // .visible, .extern, .weak, .common or empty
	Space   string // .param .shared .local .global .const
	Align   int64  // 0: that of the type
	Type    string // .u32, .b8; without the dot
	Vec     int    // elements of a vector type, else 1
	Name    string
	Dims    []int64 // empty: a scalar; a zero first dimension: size given elsewhere
	Init    []Operand
	PtrAttr []string // .ptr .global .align 4, of parameters
	Line    int
}

// MaxVarBytes bounds what one variable may declare.
const MaxVarBytes = 1 << 30

// SizeBytes is the variable's size.
func (v *Var) SizeBytes() int64 {
	n := int64(TypeBits(v.Type)/8) * int64(max(v.Vec, 1))
	for _, d := range v.Dims {
		n *= d
	}
	return n
}

// AlignBytes is the variable's alignment.
func (v *Var) AlignBytes() int64 {
	if v.Align > 0 {
		return v.Align
	}
	return max(1, int64(TypeBits(v.Type)/8)*int64(max(v.Vec, 1)))
}

// Entry is a kernel.
type Entry struct {
	Linkage string
	Name    string
	Params  []*Var
	Perf    []Perf // .maxntid and its kin, in their order
	Body    []Stmt
	Line    int
}

// Perf is a directive between a kernel's parameters and its body.
type Perf struct {
	Name string // .maxntid
	Args []int64
}

// PerfArgs returns the numbers of a directive, nil if the kernel has none of that name.
func (e *Entry) PerfArgs(name string) []int64 {
	for _, p := range e.Perf {
		if p.Name == name {
			return p.Args
		}
	}
	return nil
}

// Stmt is one of *Label, *Inst, *RegDecl, *Var, *Scope, *Targets, *Pragma and nothing else.
type Stmt interface{ stmt() }

// Label is a place to branch to.
type Label struct {
	Name string
	Line int
}

// RegDecl declares registers: one name, or with Count > 0 Name0 to Name(Count-1).
type RegDecl struct {
	Type  string // pred, b32, f64 ...
	Vec   int
	Name  string
	Count int64
	Line  int
}

// Scope is a { } block with names of its own.
type Scope struct{ Body []Stmt }

// Targets names the labels that a brx.idx chooses from.
type Targets struct {
	Name   string
	Labels []string
	Line   int
}

// Pragma is a hint; it changes nothing.
type Pragma struct{ Text string }

// Inst is one instruction.
type Inst struct {
	Guard  string // predicate register, empty if there is none
	Not    bool   // guard is negated
	Opcode string // first word: ld
	Mods   []string
	Args   []Operand
	Line   int
}

func (*Label) stmt()   {}
func (*RegDecl) stmt() {}
func (*Var) stmt()     {}
func (*Scope) stmt()   {}
func (*Targets) stmt() {}
func (*Pragma) stmt()  {}
func (*Inst) stmt()    {}

// Name is the opcode with its modifiers as written: ld.global.f32.
func (i *Inst) Name() string {
	if len(i.Mods) == 0 {
		return i.Opcode
	}
	return i.Opcode + "." + strings.Join(i.Mods, ".")
}

// Has tells whether the instruction carries a modifier.
func (i *Inst) Has(mod string) bool {
	for _, m := range i.Mods {
		if m == mod {
			return true
		}
	}
	return false
}

// Types are the instruction's type modifiers in their order: cvt.rn.f16.f32 has f16, f32.
func (i *Inst) Types() []string {
	var out []string
	for _, m := range i.Mods {
		if TypeBits(m) > 0 {
			out = append(out, m)
		}
	}
	return out
}

// Kind says what an operand is.
type Kind uint8

// The kinds of operands.
const (
	Reg   Kind = iota // %r1; Not: !%p1; also special registers (%tid.x)
	Int               // 42: Bits is its two's complement
	F32               // 0f3F800000: Bits
	F64               // 0d...: Bits
	Sym               // label or variable, with Off
	Mem               // [register, symbol or number + Off]: Elems[0] is the base
	Vec               // {a, b}
	Pair              // a|b
	Sink              // _
	Group             // (a, b): the list form of call and brx; kept for messages
)

// Operand is an operand.
type Operand struct {
	Kind  Kind
	Name  string
	Not   bool
	Bits  uint64
	Off   int64
	Elems []Operand
}

// TypeBits is the width of a type without its dot, 0 if the word is no type. Pairs of narrow floats count as a whole.
func TypeBits(t string) int {
	switch t {
	case "pred":
		return 1
	case "b8", "u8", "s8", "e4m3", "e5m2":
		return 8
	case "b16", "u16", "s16", "f16", "bf16", "e4m3x2", "e5m2x2":
		return 16
	case "b32", "u32", "s32", "f32", "f16x2", "bf16x2", "tf32":
		return 32
	case "b64", "u64", "s64", "f64":
		return 64
	case "b128":
		return 128
	}
	return 0
}

// Error is a fault of a text, with its line.
type Error struct {
	Line int
	Text string
}

func (e *Error) Error() string { return fmt.Sprintf("ptx line %d: %s", e.Line, e.Text) }
