package ptx

import (
	"fmt"
	"strings"
)

// flat is a kernel without scopes: registers and labels have names that are unique in the kernel and fit for C, instructions stand in one
// list, variables are gathered.
type flat struct {
	code    []*Inst        // labels are instructions of opcode ":"
	regs    []string       // C names in the order of first use
	width   map[string]int // of a register by its C name: 1 (predicate), 16, 32, 64
	vars    []*Var         // of the kernel, Name unique
	targets map[string][]string
	errs    []*Error
}

// names is what a scope declares.
type names struct {
	outer   *names
	suffix  string
	exact   map[string]string // register -> type
	ranges  map[string]*RegDecl
	labels  map[string]bool
	vars    map[string]string
	targets map[string]bool
}

func (f *flat) fail(line int, format string, args ...any) {
	f.errs = append(f.errs, &Error{line, fmt.Sprintf(format, args...)})
}

func flatten(e *Entry) *flat {
	f := &flat{width: map[string]int{}, targets: map[string][]string{}}
	scopes := 0
	var walk func(body []Stmt, n *names)
	walk = func(body []Stmt, n *names) {
		for _, s := range body { // labels may be used before they stand; registers and variables come first by the language's rules
			switch s := s.(type) {
			case *Label:
				if n.labels[s.Name] {
					f.fail(s.Line, "label %s stands twice", s.Name)
				}
				n.labels[s.Name] = true
			case *Targets:
				n.targets[s.Name] = true
			}
		}
		for _, s := range body {
			switch s := s.(type) {
			case *RegDecl:
				if s.Vec > 1 || s.Type == "b128" {
					f.fail(s.Line, "vector register %s is not accepted", s.Name)
				}
				if s.Count > 0 {
					n.ranges[s.Name] = s
				} else {
					n.exact[s.Name] = s.Type
				}
			case *Var:
				v := *s
				v.Name = cName(s.Name) + n.suffix
				n.vars[s.Name] = v.Name
				f.vars = append(f.vars, &v)
			case *Label:
				f.code = append(f.code, &Inst{Opcode: ":", Mods: []string{cName(s.Name) + n.suffix}, Line: s.Line})
			case *Targets:
				var ls []string
				for _, l := range s.Labels {
					if _, u := n.label(l); u != "" {
						ls = append(ls, u)
					} else {
						f.fail(s.Line, "label %s does not exist", l)
					}
				}
				f.targets[cName(s.Name)+n.suffix] = ls
			case *Pragma:
			case *Scope:
				scopes++
				walk(s.Body, newNames(n, fmt.Sprintf("_s%d", scopes)))
			case *Inst:
				f.code = append(f.code, f.inst(s, n))
			}
		}
	}
	walk(e.Body, newNames(nil, ""))
	return f
}

func newNames(outer *names, suffix string) *names {
	return &names{outer: outer, suffix: suffix, exact: map[string]string{}, ranges: map[string]*RegDecl{},
		labels: map[string]bool{}, vars: map[string]string{}, targets: map[string]bool{}}
}

// cName turns a PTX name into letters that C takes: $L__BB0_1 is dL__BB0_1.
func cName(s string) string {
	return strings.NewReplacer("%", "", "$", "d_", ".", "_o_").Replace(s)
}

func (n *names) label(name string) (kind, unique string) {
	for ; n != nil; n = n.outer {
		if n.labels[name] {
			return "label", cName(name) + n.suffix
		}
		if n.targets[name] {
			return "targets", cName(name) + n.suffix
		}
	}
	return "", ""
}

// register finds a register's C name and type.
func (n *names) register(name string) (string, string) {
	stem := strings.TrimRight(name, "0123456789")
	digits := name[len(stem):]
	for ; n != nil; n = n.outer {
		if t, ok := n.exact[name]; ok {
			return "x" + cName(name) + n.suffix, t
		}
		// %r1<5> declares %r10: try each cut between prefix and number
		for cut := range len(digits) {
			d, ok := n.ranges[stem+digits[:cut]]
			if !ok || digits[cut] == '0' && len(digits)-cut > 1 || len(digits)-cut > 9 {
				continue
			}
			i := int64(0)
			for _, c := range digits[cut:] {
				i = i*10 + int64(c-'0')
			}
			if i < d.Count {
				return "x" + cName(name) + n.suffix, d.Type
			}
		}
	}
	return "", ""
}

func (n *names) variable(name string) string {
	for ; n != nil; n = n.outer {
		if u, ok := n.vars[name]; ok {
			return u
		}
	}
	return ""
}

// special are the special registers that can be read, with their widths.
func special(name string) int {
	switch name {
	case "%tid.x", "%tid.y", "%tid.z", "%ntid.x", "%ntid.y", "%ntid.z", "%ctaid.x", "%ctaid.y", "%ctaid.z", "%nctaid.x", "%nctaid.y", "%nctaid.z",
		"%laneid", "%warpid", "%nwarpid", "%lanemask_eq", "%lanemask_lt", "%lanemask_le", "%lanemask_gt", "%lanemask_ge":
		return 32
	}
	return 0
}

func (f *flat) inst(i *Inst, n *names) *Inst {
	c := *i
	if c.Guard != "" {
		c.Guard = f.use(c.Guard, n, i.Line)
	}
	c.Args = make([]Operand, len(i.Args))
	for k := range i.Args {
		c.Args[k] = f.operand(i.Args[k], n, i)
	}
	return &c
}

func (f *flat) use(name string, n *names, line int) string {
	u, t := n.register(name)
	if u == "" {
		f.fail(line, "register %s is not declared", name)
		return "x"
	}
	if _, seen := f.width[u]; !seen {
		w := TypeBits(t)
		if w == 8 {
			w = 16
		}
		f.width[u] = w
		f.regs = append(f.regs, u)
	}
	return u
}

func (f *flat) operand(o Operand, n *names, i *Inst) Operand {
	switch o.Kind {
	case Reg:
		if special(o.Name) == 0 {
			o.Name = f.use(o.Name, n, i.Line)
		}
	case Sym:
		if i.Opcode == "bra" || i.Opcode == "brx" {
			_, u := n.label(o.Name)
			if u == "" {
				f.fail(i.Line, "label %s does not exist", o.Name)
			}
			o.Name = u
		} else if u := n.variable(o.Name); u != "" {
			o.Name = u
		} else if _, t := n.register(o.Name); t != "" { // registers need no percent sign
			o.Kind, o.Name = Reg, f.use(o.Name, n, i.Line)
		}
	case Mem, Vec, Pair, Group:
		elems := make([]Operand, len(o.Elems))
		for k := range o.Elems {
			elems[k] = f.operand(o.Elems[k], n, i)
		}
		o.Elems = elems
	}
	return o
}
