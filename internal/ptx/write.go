package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// Write gives the module's text in one fixed layout. Comments and debugging data are gone.
func Write(m *Module) string {
	w := &writer{}
	w.linef(".version %s", m.Version)
	w.linef(".target %s", strings.Join(append([]string{m.Target}, m.Options...), ", "))
	w.linef(".address_size %d", m.AddressBits)
	for _, v := range m.Vars {
		w.linef("%s;", declaration(v))
	}
	for _, e := range m.Entries {
		w.entry(e)
	}
	return w.String()
}

type writer struct{ strings.Builder }

func (w *writer) linef(format string, args ...any) {
	fmt.Fprintf(w, format, args...)
	w.WriteByte('\n')
}

func (w *writer) entry(e *Entry) {
	w.WriteByte('\n')
	if e.Linkage != "" {
		w.WriteString(e.Linkage + " ")
	}
	w.linef(".entry %s(", e.Name)
	for i, p := range e.Params {
		comma := ","
		if i == len(e.Params)-1 {
			comma = ""
		}
		w.linef("\t%s%s", declaration(p), comma)
	}
	w.linef(")")
	for _, d := range e.Perf {
		w.WriteString(d.Name)
		for i, n := range d.Args {
			if i > 0 {
				w.WriteByte(',')
			}
			fmt.Fprintf(w, " %d", n)
		}
		w.WriteByte('\n')
	}
	w.body(e.Body, "")
}

func (w *writer) body(body []Stmt, indent string) {
	w.linef("%s{", indent)
	inner := indent + "\t"
	for _, s := range body {
		switch s := s.(type) {
		case *Label:
			w.linef("%s%s:", indent, s.Name)
		case *RegDecl:
			vec, count := "", ""
			if s.Vec > 1 {
				vec = ".v" + strconv.Itoa(s.Vec) + " "
			}
			if s.Count > 0 {
				count = "<" + strconv.FormatInt(s.Count, 10) + ">"
			}
			w.linef("%s.reg %s.%s %s%s;", inner, vec, s.Type, s.Name, count)
		case *Var:
			w.linef("%s%s;", inner, declaration(s))
		case *Scope:
			w.body(s.Body, inner)
		case *Targets:
			w.linef("%s%s: .branchtargets %s;", indent, s.Name, strings.Join(s.Labels, ", "))
		case *Pragma:
			w.linef("%s.pragma \"%s\";", inner, s.Text)
		case *Inst:
			w.linef("%s%s;", inner, s)
		default:
			panic(fmt.Sprintf("ptx: statement %T", s))
		}
	}
	w.linef("%s}", indent)
}

func declaration(v *Var) string {
	var b strings.Builder
	if v.Linkage != "" {
		b.WriteString(v.Linkage + " ")
	}
	b.WriteString(v.Space)
	if v.Align > 0 {
		fmt.Fprintf(&b, " .align %d", v.Align)
	}
	if v.Vec > 1 {
		fmt.Fprintf(&b, " .v%d", v.Vec)
	}
	b.WriteString(" ." + v.Type)
	for i, a := range v.PtrAttr {
		if i > 0 && v.PtrAttr[i-1] == "align" {
			b.WriteString(" " + a)
		} else {
			b.WriteString(" ." + a)
		}
	}
	b.WriteString(" " + v.Name)
	for _, d := range v.Dims {
		if d == 0 {
			b.WriteString("[]")
		} else {
			fmt.Fprintf(&b, "[%d]", d)
		}
	}
	if len(v.Init) > 0 {
		b.WriteString(" = " + Operand{Kind: Vec, Elems: v.Init}.String())
	}
	return b.String()
}

// String is the instruction without its semicolon.
func (i *Inst) String() string {
	var b strings.Builder
	if i.Guard != "" {
		b.WriteByte('@')
		if i.Not {
			b.WriteByte('!')
		}
		b.WriteString(i.Guard + " ")
	}
	b.WriteString(i.Name())
	for n, a := range i.Args {
		if n > 0 {
			b.WriteByte(',')
		}
		b.WriteString(" " + a.String())
	}
	return b.String()
}

func (o Operand) String() string {
	off := ""
	if o.Off != 0 {
		off = fmt.Sprintf("%+d", o.Off)
	}
	switch o.Kind {
	case Reg:
		if o.Not {
			return "!" + o.Name
		}
		return o.Name + off
	case Sym:
		return o.Name + off
	case Int:
		return strconv.FormatInt(int64(o.Bits), 10)
	case F32:
		return fmt.Sprintf("0f%08X", o.Bits)
	case F64:
		return fmt.Sprintf("0d%016X", o.Bits)
	case Sink:
		return "_"
	case Mem:
		return "[" + o.Elems[0].String() + off + "]"
	case Pair:
		return o.Elems[0].String() + "|" + o.Elems[1].String()
	case Vec, Group:
		parts := make([]string, len(o.Elems))
		for i, e := range o.Elems {
			parts[i] = e.String()
		}
		if o.Kind == Group {
			return "(" + strings.Join(parts, ", ") + ")"
		}
		return "{" + strings.Join(parts, ", ") + "}"
	}
	panic(fmt.Sprintf("ptx: operand kind %d", o.Kind))
}
