package ptx

import (
	"fmt"
	"slices"
	"strings"
)

// Need is what an instruction asks for at least.
type Need struct {
	SM      int // 80
	Version Version
	Why     string // the part that asks: "cp.async", ".L1::no_allocate"
}

// Finding is an instruction that a module's target or version does not have.
type Finding struct {
	Kernel string
	Line   int
	Text   string
}

func (f *Finding) Error() string {
	if f.Kernel == "" {
		return fmt.Sprintf("ptx line %d: %s", f.Line, f.Text)
	}
	return fmt.Sprintf("ptx line %d, kernel %s: %s", f.Line, f.Kernel, f.Text)
}

// Lint lists what needs more than the module declares: clang does not check inline assembly against the target, so a text may well hold what the driver
// refuses. Not checked: operands, counts of registers and bytes, and what the architecture-specific targets (sm_90a) add.
func Lint(m *Module) []*Finding {
	rs := rules()
	var out []*Finding
	if least, ok := leastVersion(m.SM); ok && m.Version.Less(least) {
		out = append(out, &Finding{Line: 1, Text: fmt.Sprintf("target sm_%d needs PTX %s, the text declares %s", m.SM, least, m.Version)})
	}
	for _, e := range m.Entries {
		var walk func(body []Stmt)
		walk = func(body []Stmt) {
			for _, s := range body {
				switch s := s.(type) {
				case *Scope:
					walk(s.Body)
				case *Inst:
					if s.Opcode == "call" {
						out = append(out, &Finding{e.Name, s.Line, "call: kernels must be call-free"})
						continue
					}
					n, known := require(s, rs)
					if !known {
						out = append(out, &Finding{e.Name, s.Line, s.Name() + " is no instruction that is known here"})
						continue
					}
					var lacks []string
					if m.SM < n.SM {
						lacks = append(lacks, fmt.Sprintf("target sm_%d, the text declares sm_%d", n.SM, m.SM))
					}
					if m.Version.Less(n.Version) {
						lacks = append(lacks, fmt.Sprintf("PTX %s, the text declares %s", n.Version, m.Version))
					}
					if lacks != nil {
						out = append(out, &Finding{e.Name, s.Line, fmt.Sprintf("%s needs %s", s.Name(), strings.Join(lacks, " and "))})
					}
				}
			}
		}
		walk(e.Body)
	}
	return out
}

// leastVersion is the first PTX version that knows a target.
func leastVersion(sm int) (Version, bool) {
	for _, t := range []struct {
		sm int
		v  Version
	}{{50, Version{4, 0}}, {52, Version{4, 1}}, {53, Version{4, 2}}, {60, Version{5, 0}}, {61, Version{5, 0}}, {62, Version{5, 0}}, {70, Version{6, 0}}, {72, Version{6, 1}},
		{75, Version{6, 3}}, {80, Version{7, 0}}, {86, Version{7, 1}}, {87, Version{7, 4}}, {89, Version{7, 8}}, {90, Version{7, 8}}, {100, Version{8, 6}}, {101, Version{8, 6}},
		{120, Version{8, 7}}, {103, Version{8, 8}}, {121, Version{8, 8}}} {
		if t.sm == sm {
			return t.v, true
		}
	}
	return Version{}, false
}

// Needs is the most that any instruction of the module asks for, and that instruction's name each.
func Needs(m *Module) (sm, version Need) {
	rs := rules()
	for _, e := range m.Entries {
		var walk func(body []Stmt)
		walk = func(body []Stmt) {
			for _, s := range body {
				if b, ok := s.(*Scope); ok {
					walk(b.Body)
				}
				if i, ok := s.(*Inst); ok {
					n, _ := require(i, rs)
					n.Why = i.Name()
					if n.SM > sm.SM {
						sm = n
					}
					if version.Version.Less(n.Version) {
						version = n
					}
				}
			}
		}
		walk(e.Body)
	}
	return sm, version
}

// Require is the least target and version for an instruction; known is false if the opcode is none.
func Require(i *Inst) (n Need, known bool) { return require(i, rules()) }

func require(i *Inst, rs []rule) (n Need, known bool) {
	for _, r := range rs {
		if !r.matches(i) {
			continue
		}
		known = known || r.names
		n.SM = max(n.SM, r.sm)
		if n.Version.Less(r.version) {
			n.Version = r.version
		}
	}
	return n, known
}

// rule says that an instruction of one of the opcodes that carries all of some modifiers needs a target and version. A modifier that ends in * stands
// for all with that beginning; two joined by a dot must be the last.
type rule struct {
	opcodes []string
	mods    []string
	sm      int
	version Version
	names   bool // the rule makes the opcode known
}

func (r *rule) matches(i *Inst) bool {
	if r.opcodes != nil && !slices.Contains(r.opcodes, i.Opcode) {
		return false
	}
	for _, want := range r.mods {
		if strings.Contains(want, ".") {
			if !strings.HasSuffix(i.Name(), "."+want) {
				return false
			}
			continue
		}
		if !slices.ContainsFunc(i.Mods, func(m string) bool {
			p, star := strings.CutSuffix(want, "*")
			return m == want || star && strings.HasPrefix(m, p)
		}) {
			return false
		}
	}
	return true
}
