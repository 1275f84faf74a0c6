package ptx

import (
	"slices"
	"strings"
)

// entry reads a kernel from .entry on.
func (p *parser) entry(m *Module, linkage string) (err error) {
	e := &Entry{Linkage: linkage, Line: p.tok.line}
	if err := p.advance(); err != nil {
		return err
	}
	if e.Name, err = p.word("a kernel's name"); err != nil {
		return err
	}
	if err := p.declare(e.Name); err != nil {
		return err
	}
	if err := p.params(e); err != nil {
		return err
	}
	for p.tok.kind == tokWord && strings.HasPrefix(p.tok.text, ".") {
		if err := p.perf(e); err != nil {
			return err
		}
	}
	if p.is(";") {
		return p.errorf("kernel %s is declared without a body", e.Name)
	}
	if e.Body, err = p.body(0); err != nil {
		return err
	}
	m.Entries = append(m.Entries, e)
	return nil
}

func (p *parser) params(e *Entry) error {
	if ok, err := p.accept("("); err != nil || !ok {
		return err
	}
	for !p.is(")") {
		if !p.is(".param") {
			return p.errorf("expected .param, found %q", p.tok.text)
		}
		v, err := p.variable("")
		if err != nil {
			return err
		}
		if slices.ContainsFunc(e.Params, func(w *Var) bool { return w.Name == v.Name }) {
			return p.errorf("parameter %s is declared twice", v.Name)
		}
		e.Params = append(e.Params, v)
		if ok, err := p.accept(","); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	return p.expect(")")
}

func (p *parser) perf(e *Entry) error {
	d := Perf{Name: p.tok.text}
	switch d.Name {
	case ".maxntid", ".reqntid", ".minnctapersm", ".maxnctapersm", ".maxnreg":
	case ".noreturn":
		e.Perf = append(e.Perf, d)
		return p.advance()
	default:
		return p.errorf("unexpected %s after a kernel's parameters", d.Name)
	}
	if err := p.advance(); err != nil {
		return err
	}
	for {
		n, err := p.integer(1 << 20)
		if err != nil {
			return err
		}
		d.Args = append(d.Args, n)
		if ok, err := p.accept(","); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	if len(d.Args) > 3 {
		return p.errorf("%s has more than three numbers", d.Name)
	}
	e.Perf = append(e.Perf, d)
	return nil
}

// body reads { statements }.
func (p *parser) body(depth int) ([]Stmt, error) {
	if depth > maxDepth {
		return nil, p.errorf("scopes nest too deeply")
	}
	if err := p.expect("{"); err != nil {
		return nil, err
	}
	var out []Stmt
	for !p.is("}") {
		if p.tok.kind == tokEOF {
			return nil, p.errorf("kernel does not end")
		}
		if ok, err := p.accept(";"); err != nil {
			return nil, err
		} else if ok { // inline assembly leaves empty statements
			continue
		}
		s, err := p.statement(depth)
		if err != nil {
			return nil, err
		}
		if s != nil {
			out = append(out, s...)
		}
	}
	return out, p.advance()
}

func (p *parser) statement(depth int) ([]Stmt, error) {
	t := p.tok
	switch {
	case p.is("{"):
		body, err := p.body(depth + 1)
		return []Stmt{&Scope{body}}, err
	case p.is("@"):
		return p.inst()
	case t.kind != tokWord:
		return nil, p.errorf("unexpected %q", t.text)
	case t.text == ".loc" || t.text == ".file":
		return nil, p.skipLine()
	case t.text == ".pragma":
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.tok.kind != tokString {
			return nil, p.errorf(".pragma without text")
		}
		s := &Pragma{p.tok.text}
		if err := p.advance(); err != nil {
			return nil, err
		}
		return []Stmt{s}, p.expect(";")
	case t.text == ".reg":
		return p.regs()
	case t.text == ".shared" || t.text == ".local" || t.text == ".const" || t.text == ".global":
		v, err := p.variable("")
		if err != nil {
			return nil, err
		}
		return []Stmt{v}, p.expect(";")
	case strings.HasPrefix(t.text, "."):
		return nil, p.errorf("unexpected directive %s", t.text)
	}
	if err := p.advance(); err != nil {
		return nil, err
	}
	if p.is(":") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		if p.is(".branchtargets") {
			return p.targets(t)
		}
		return []Stmt{&Label{t.text, t.line}}, nil
	}
	return p.instAfter(t, "", false)
}

// targets reads the labels after "name: .branchtargets".
func (p *parser) targets(name token) ([]Stmt, error) {
	s := &Targets{Name: name.text, Line: name.line}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for {
		l, err := p.word("a label")
		if err != nil {
			return nil, err
		}
		s.Labels = append(s.Labels, l)
		if ok, err := p.accept(","); err != nil {
			return nil, err
		} else if !ok {
			return []Stmt{s}, p.expect(";")
		}
	}
}

// regs reads .reg .type names;
func (p *parser) regs() ([]Stmt, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	vec, typ := 1, ""
	for p.tok.kind == tokWord && strings.HasPrefix(p.tok.text, ".") {
		switch mod := p.tok.text[1:]; {
		case mod == "v2" || mod == "v4":
			vec = int(mod[1] - '0')
		case TypeBits(mod) > 0 && typ == "":
			typ = mod
		default:
			return nil, p.errorf("unexpected .%s in a register declaration", mod)
		}
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if typ == "" {
		return nil, p.errorf("register declaration without a type")
	}
	var out []Stmt
	for {
		r := &RegDecl{Type: typ, Vec: vec, Line: p.tok.line}
		var err error
		if r.Name, err = p.word("a register"); err != nil {
			return nil, err
		}
		if ok, err := p.accept("<"); err != nil {
			return nil, err
		} else if ok {
			if r.Count, err = p.integer(maxRegs); err != nil {
				return nil, err
			}
			if r.Count == 0 {
				return nil, p.errorf("%s<0> declares nothing", r.Name)
			}
			if err := p.expect(">"); err != nil {
				return nil, err
			}
		}
		out = append(out, r)
		if ok, err := p.accept(","); err != nil {
			return nil, err
		} else if !ok {
			return out, p.expect(";")
		}
	}
}

// inst reads an instruction that begins with a guard.
func (p *parser) inst() ([]Stmt, error) {
	if err := p.advance(); err != nil {
		return nil, err
	}
	not, err := p.accept("!")
	if err != nil {
		return nil, err
	}
	guard, err := p.word("a predicate")
	if err != nil {
		return nil, err
	}
	t := p.tok
	if _, err := p.word("an instruction"); err != nil {
		return nil, err
	}
	return p.instAfter(t, guard, not)
}

// instAfter reads the operands of the instruction t.
func (p *parser) instAfter(t token, guard string, not bool) ([]Stmt, error) {
	words := strings.Split(t.text, ".")
	if slices.Contains(words, "") {
		return nil, &Error{t.line, "malformed instruction " + t.text}
	}
	i := &Inst{Guard: guard, Not: not, Opcode: words[0], Mods: words[1:], Line: t.line}
	for !p.is(";") {
		o, err := p.operand(0)
		if err != nil {
			return nil, err
		}
		i.Args = append(i.Args, o)
		if ok, err := p.accept(","); err != nil {
			return nil, err
		} else if !ok {
			break
		}
	}
	return []Stmt{i}, p.expect(";")
}

// operand reads one operand, pairs included.
func (p *parser) operand(depth int) (Operand, error) {
	o, err := p.simple(depth)
	if err != nil {
		return o, err
	}
	ok, err := p.accept("|")
	if err != nil || !ok {
		return o, err
	}
	q, err := p.simple(depth)
	return Operand{Kind: Pair, Elems: []Operand{o, q}}, err
}

func (p *parser) simple(depth int) (Operand, error) {
	if depth > maxDepth {
		return Operand{}, p.errorf("operands nest too deeply")
	}
	t := p.tok
	switch {
	case p.is("-"):
		if err := p.advance(); err != nil {
			return Operand{}, err
		}
		if p.tok.kind != tokNumber {
			return Operand{}, p.errorf("expected a number after -")
		}
		o, err := number(p.tok, true)
		if err != nil {
			return o, err
		}
		return o, p.advance()
	case t.kind == tokNumber:
		o, err := number(t, false)
		if err != nil {
			return o, err
		}
		return o, p.advance()
	case p.is("!"):
		if err := p.advance(); err != nil {
			return Operand{}, err
		}
		name, err := p.word("a predicate")
		return Operand{Kind: Reg, Name: name, Not: true}, err
	case p.is("{"):
		return p.list("}", Vec, depth)
	case p.is("("):
		return p.list(")", Group, depth)
	case p.is("["):
		return p.memory(depth)
	case t.kind == tokWord:
		if err := p.advance(); err != nil {
			return Operand{}, err
		}
		return p.named(t)
	}
	return Operand{}, p.errorf("unexpected %q", t.text)
}

// named is a register, a sink or a symbol with an offset.
func (p *parser) named(t token) (Operand, error) {
	if t.text == "_" {
		return Operand{Kind: Sink}, nil
	}
	if strings.HasPrefix(t.text, ".") {
		return Operand{}, &Error{t.line, "unexpected " + t.text}
	}
	o := Operand{Kind: Sym, Name: t.text}
	if t.text[0] == '%' {
		o.Kind = Reg
	}
	return o, p.offset(&o)
}

// offset reads +4 or +-4 or -4 after a base.
func (p *parser) offset(o *Operand) error {
	sign := p.is("-")
	if !sign && !p.is("+") {
		return nil
	}
	if err := p.advance(); err != nil {
		return err
	}
	if !sign {
		var err error
		if sign, err = p.accept("-"); err != nil {
			return err
		}
	}
	n, err := p.integer(1 << 40)
	if sign {
		n = -n
	}
	o.Off = n
	return err
}

func (p *parser) list(end string, kind Kind, depth int) (Operand, error) {
	o := Operand{Kind: kind}
	if err := p.advance(); err != nil {
		return o, err
	}
	for !p.is(end) {
		e, err := p.operand(depth + 1)
		if err != nil {
			return o, err
		}
		o.Elems = append(o.Elems, e)
		if ok, err := p.accept(","); err != nil {
			return o, err
		} else if !ok {
			break
		}
	}
	return o, p.expect(end)
}

// memory reads [base+offset]; the offset moves from the base to the Mem operand.
func (p *parser) memory(depth int) (Operand, error) {
	if err := p.advance(); err != nil {
		return Operand{}, err
	}
	base, err := p.simple(depth + 1)
	if err != nil {
		return Operand{}, err
	}
	if base.Kind != Reg && base.Kind != Sym && base.Kind != Int || base.Not {
		return Operand{}, p.errorf("address is neither register, symbol nor number")
	}
	o := Operand{Kind: Mem, Off: base.Off}
	base.Off = 0
	if base.Kind == Int {
		if err := p.offset(&o); err != nil {
			return o, err
		}
	}
	o.Elems = []Operand{base}
	return o, p.expect("]")
}
