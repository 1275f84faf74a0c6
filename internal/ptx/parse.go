package ptx

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const (
	maxRegs  = 1 << 20 // of one declaration
	maxDepth = 64      // of scopes and nested operands
)

// parser holds one token of look-ahead. Every method returns the first error; after it the parser is of no further use.
type parser struct {
	lex lexer
	tok token
	// entries and variables seen, against doubles
	names map[string]bool
}

// Parse reads a PTX text. An error is an *Error.
func Parse(text string) (*Module, error) {
	p := &parser{lex: lexer{src: text, line: 1}, names: map[string]bool{}}
	if err := p.advance(); err != nil {
		return nil, err
	}
	m := &Module{AddressBits: 64}
	for p.tok.kind != tokEOF {
		if err := p.top(m); err != nil {
			return nil, err
		}
	}
	if m.Version == (Version{}) || m.Target == "" {
		return nil, p.errorf(".version and .target must be given")
	}
	return m, nil
}

func (p *parser) errorf(format string, args ...any) error {
	return &Error{p.tok.line, fmt.Sprintf(format, args...)}
}

func (p *parser) advance() (err error) {
	p.tok, err = p.lex.next()
	return err
}

func (p *parser) is(text string) bool { return p.tok.kind != tokString && p.tok.text == text }

// accept takes a token if it is there.
func (p *parser) accept(text string) (bool, error) {
	if !p.is(text) {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) expect(text string) error {
	if !p.is(text) {
		return p.errorf("expected %q, found %q", text, p.tok.text)
	}
	return p.advance()
}

// word takes an identifier.
func (p *parser) word(what string) (string, error) {
	if p.tok.kind != tokWord {
		return "", p.errorf("expected %s, found %q", what, p.tok.text)
	}
	s := p.tok.text
	return s, p.advance()
}

// integer takes a non-negative number up to limit.
func (p *parser) integer(limit int64) (int64, error) {
	if p.tok.kind != tokNumber {
		return 0, p.errorf("expected a number, found %q", p.tok.text)
	}
	o, err := number(p.tok, false)
	if err != nil {
		return 0, err
	}
	if o.Kind != Int || o.Bits > uint64(limit) {
		return 0, p.errorf("number %s is above %d", p.tok.text, limit)
	}
	return int64(o.Bits), p.advance()
}

// top reads one directive, variable or kernel of the module.
func (p *parser) top(m *Module) error {
	switch {
	case p.is(".version"):
		return p.version(m)
	case p.is(".target"):
		return p.target(m)
	case p.is(".address_size"):
		if err := p.advance(); err != nil {
			return err
		}
		bits, err := p.integer(64)
		if err == nil && bits != 64 {
			err = p.errorf(".address_size %d: 64 is all that is known", bits)
		}
		m.AddressBits = int(bits)
		return err
	case p.is(".file") || p.is(".loc"):
		return p.skipLine()
	case p.is(".section"):
		return p.section()
	}
	linkage, err := p.linkage()
	if err != nil {
		return err
	}
	switch {
	case p.is(".entry"):
		return p.entry(m, linkage)
	case p.is(".func"):
		return p.errorf(".func: calls are not accepted, inline the function")
	case p.is(".shared") || p.is(".global") || p.is(".const"):
		v, err := p.variable(linkage)
		if err != nil {
			return err
		}
		m.Vars = append(m.Vars, v)
		return p.expect(";")
	}
	return p.errorf("unexpected %q", p.tok.text)
}

func (p *parser) linkage() (string, error) {
	if p.is(".visible") || p.is(".extern") || p.is(".weak") || p.is(".common") {
		s := p.tok.text
		return s, p.advance()
	}
	return "", nil
}

func (p *parser) version(m *Module) error {
	if err := p.advance(); err != nil {
		return err
	}
	a, b, ok := strings.Cut(p.tok.text, ".")
	major, err1 := strconv.Atoi(a)
	minor, err2 := strconv.Atoi(b)
	if !ok || err1 != nil || err2 != nil || major < 1 || major > 99 || minor < 0 || minor > 99 {
		return p.errorf(".version %q is no version", p.tok.text)
	}
	m.Version = Version{major, minor}
	return p.advance()
}

func (p *parser) target(m *Module) error {
	if err := p.advance(); err != nil {
		return err
	}
	name, err := p.word("a target")
	if err != nil {
		return err
	}
	digits, ok := strings.CutPrefix(name, "sm_")
	arch := strings.TrimRight(digits, "af")
	sm, err := strconv.Atoi(arch)
	if !ok || err != nil || sm < 10 || sm > 999 || len(digits) > len(arch)+1 {
		return p.errorf("target %q: expected sm_ and a number", name)
	}
	m.Target, m.SM, m.ArchOnly = name, sm, arch != digits
	for p.is(",") {
		if err := p.advance(); err != nil {
			return err
		}
		o, err := p.word("a target option")
		if err != nil {
			return err
		}
		m.Options = append(m.Options, o)
	}
	return nil
}

// skipLine passes what stands on the line of the current token: .file and .loc end without a semicolon.
func (p *parser) skipLine() error {
	line := p.tok.line
	for p.tok.kind != tokEOF && p.tok.line == line {
		if err := p.advance(); err != nil {
			return err
		}
	}
	return nil
}

// section passes debugging data.
func (p *parser) section() error {
	for !p.is("{") {
		if p.tok.kind == tokEOF {
			return p.errorf(".section without a body")
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
	for !p.is("}") {
		if p.tok.kind == tokEOF {
			return p.errorf(".section does not end")
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
	return p.advance()
}

// declare refuses a second variable or kernel of a name.
func (p *parser) declare(name string) error {
	if p.names[name] {
		return p.errorf("%s is declared twice", name)
	}
	p.names[name] = true
	return nil
}

// variable reads from the space on, up to but without the semicolon or comma.
func (p *parser) variable(linkage string) (*Var, error) {
	v := &Var{Linkage: linkage, Space: p.tok.text, Vec: 1, Line: p.tok.line}
	if err := p.advance(); err != nil {
		return nil, err
	}
	for {
		if p.tok.kind != tokWord || !strings.HasPrefix(p.tok.text, ".") {
			break
		}
		mod := p.tok.text[1:]
		if err := p.advance(); err != nil {
			return nil, err
		}
		var err error
		switch {
		case mod == "align":
			if v.Align, err = p.integer(1 << 16); err == nil && (v.Align == 0 || v.Align&(v.Align-1) != 0) {
				err = p.errorf(".align %d is no power of two", v.Align)
			}
		case mod == "v2":
			v.Vec = 2
		case mod == "v4":
			v.Vec = 4
		case mod == "ptr":
			v.PtrAttr, err = p.pointer()
		case mod == "attribute":
			err = p.errorf(".attribute is not accepted")
		case TypeBits(mod) >= 8 && v.Type == "":
			v.Type = mod
		default:
			err = p.errorf("unexpected .%s in a declaration", mod)
		}
		if err != nil {
			return nil, err
		}
	}
	if v.Type == "" {
		return nil, p.errorf("declaration without a type")
	}
	return v, p.declarator(v)
}

// pointer reads the attributes of a pointer parameter: .ptr .global .align 4
func (p *parser) pointer() ([]string, error) {
	out := []string{"ptr"}
	for p.tok.kind == tokWord && slices.Contains([]string{".global", ".shared", ".const", ".local"}, p.tok.text) {
		out = append(out, p.tok.text[1:])
		if err := p.advance(); err != nil {
			return nil, err
		}
	}
	if p.is(".align") {
		if err := p.advance(); err != nil {
			return nil, err
		}
		n, err := p.integer(1 << 16)
		if err != nil {
			return nil, err
		}
		out = append(out, "align", strconv.FormatInt(n, 10))
	}
	return out, nil
}

// declarator reads name, dimensions and initial values.
func (p *parser) declarator(v *Var) (err error) {
	if v.Name, err = p.word("a name"); err != nil {
		return err
	}
	bytes := int64(TypeBits(v.Type)/8) * int64(v.Vec)
	for p.is("[") {
		if err := p.advance(); err != nil {
			return err
		}
		d := int64(0)
		if !p.is("]") {
			if d, err = p.integer(MaxVarBytes); err != nil {
				return err
			}
		}
		v.Dims = append(v.Dims, d)
		if bytes *= d; bytes > MaxVarBytes || len(v.Dims) > 8 {
			return p.errorf("%s is larger than %d bytes", v.Name, MaxVarBytes)
		}
		if err := p.expect("]"); err != nil {
			return err
		}
	}
	if !p.is("=") {
		return nil
	}
	if err := p.advance(); err != nil {
		return err
	}
	return p.initial(v, 0)
}

// initial reads initial values; nested braces only say how dimensions nest.
func (p *parser) initial(v *Var, depth int) error {
	if !p.is("{") {
		o, err := p.operand(depth)
		if err != nil {
			return err
		}
		if o.Kind != Int && o.Kind != F32 && o.Kind != F64 {
			return p.errorf("initial value of %s is no number", v.Name)
		}
		v.Init = append(v.Init, o)
		return nil
	}
	if depth > maxDepth {
		return p.errorf("braces nest too deeply")
	}
	if err := p.advance(); err != nil {
		return err
	}
	for !p.is("}") {
		if err := p.initial(v, depth+1); err != nil {
			return err
		}
		if ok, err := p.accept(","); err != nil {
			return err
		} else if !ok {
			break
		}
	}
	return p.expect("}")
}
