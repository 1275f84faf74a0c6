package ir

import (
	"errors"
	"fmt"
	"strings"
)

// maxProblems ends reading: a text in the wrong format would otherwise fail on every line.
const maxProblems = 20

// Parse reads the text form. The graph it returns has passed Verify. What is wrong is reported for all lines at once, each with line and
// column, counted from 1 in bytes; a line that only suffers from an earlier one is left out. Memory is bounded by the text: nothing is
// allocated because a type, a literal or a value's number declares it.
func Parse(text string, vocab Vocabulary) (*Graph, error) {
	p := &parser{vocab: vocab, values: map[ID]*Value{}, params: map[*Value]*Param{}, limit: ID(min(1<<30, max(1<<20, len(text))))}
	for line := range strings.Lines(text) {
		p.line++
		s := &scanner{text: strings.TrimRight(line, "\r\n")}
		if s.next() == 0 {
			continue
		}
		p.statement(s)
		if s.err != nil {
			p.problems = append(p.problems, fmt.Errorf("%d:%d: %w", p.line, s.at+1, s.err))
			if len(p.problems) == maxProblems || p.g == nil {
				break
			}
		}
	}
	if p.g == nil && len(p.problems) == 0 {
		p.problems = append(p.problems, errors.New("1:1: the text holds no graph"))
	}
	if len(p.problems) != 0 {
		all := errors.Join(p.problems...)
		return nil, &Error{Kind: KindOf(all), Cause: all}
	}
	for id := range p.values {
		p.g.numValues = max(p.g.numValues, id+1)
	}
	if err := Verify(p.g); err != nil {
		return nil, err
	}
	return p.g, nil
}

type parser struct {
	g        *Graph
	vocab    Vocabulary
	values   map[ID]*Value // nil entry: defined by a line that failed, so nothing is said about its uses
	params   map[*Value]*Param
	limit    ID
	file     string
	line     int
	problems []error
}

// statement reads one line. A failure is left in s.
func (p *parser) statement(s *scanner) {
	if p.g == nil {
		p.header(s)
		return
	}
	switch {
	case s.next() == '%' || s.next() == '=':
		p.definition(s)
	case s.acceptWord("result"):
		name := s.quoted()
		v, ok := p.use(s)
		s.end()
		if ok && s.err == nil {
			p.g.Results = append(p.g.Results, Result{name, v})
		}
	case s.acceptWord("update"):
		p.update(s)
	default:
		s.failf("found %s where a value, result or update was expected", s.found())
	}
}

func (p *parser) header(s *scanner) {
	if !s.acceptWord("graph") {
		s.failf("found %s where graph was expected", s.found())
		return
	}
	s.expect('@')
	var name string
	if s.next() != 0 {
		name = s.name("the graph's name")
	}
	if s.acceptWord("file") {
		s.expect('=')
		p.file = s.name("a file")
	}
	s.end()
	if s.err == nil {
		p.g = NewGraph(name)
	}
}

func (p *parser) update(s *scanner) {
	s.space()
	start := s.at
	v, okV := p.use(s)
	next, okNext := p.use(s)
	s.end()
	if s.err != nil || !okV || !okNext {
		return
	}
	x := p.params[v]
	switch {
	case x == nil:
		s.at = start
		s.failf("%%%d is no parameter", v.ID)
	case x.Next != nil:
		s.at = start
		s.failf("parameter %%%d is updated twice", v.ID)
	default:
		x.Next = next
	}
}

// use reads an operand. ok is false, without an error, where a failed line defined it.
func (p *parser) use(s *scanner) (v *Value, ok bool) {
	s.space()
	start := s.at
	id := s.valueID(p.limit)
	v, known := p.values[id]
	if s.err == nil && !known {
		s.at = start
		s.failf("%%%d is not defined above", id)
	}
	return v, s.err == nil && v != nil
}

// output is a value on the left of the equals sign.
type output struct {
	id   ID
	name string
}

// definition reads outputs, the equals sign, and what stands behind it. If that fails, the outputs are known but not used.
func (p *parser) definition(s *scanner) {
	var outs []output
	for s.next() == '%' {
		start := s.at
		o := output{id: s.valueID(p.limit)}
		if _, dup := p.values[o.id]; s.err == nil && dup {
			s.at = start
			s.failf("%%%d is defined twice", o.id)
		}
		if s.next() == '"' {
			o.name = s.quoted()
		}
		if s.err != nil {
			return
		}
		p.values[o.id] = nil
		outs = append(outs, o)
	}
	s.expect('=')
	var letters string
	if s.err == nil && s.at < len(s.text) && wordChar(s.text[s.at]) {
		letters = s.word("")
	}
	leaf := len(outs) == 1 && letters == ""
	switch {
	case leaf && s.acceptWord("input"):
		name := s.quoted()
		s.expect(':')
		t := s.typ()
		s.end()
		if s.err == nil {
			p.define(outs[0], p.g.AddInput(name, t)).Name = name
		}
	case leaf && s.acceptWord("param"):
		p.param(s, outs[0])
	case leaf && s.acceptWord("const"):
		s.expect(':')
		t := s.typ()
		data := s.literal(t)
		s.end()
		if s.err == nil {
			p.define(outs[0], p.g.AddConst(t, data))
		}
	default:
		p.node(s, outs, letters)
	}
}

// define gives a fresh value the number and name that the text has for it.
func (p *parser) define(o output, v *Value) *Value {
	v.ID, v.Name = o.id, o.name
	p.values[o.id] = v
	return v
}

func (p *parser) param(s *scanner, o output) {
	x := Param{}
	name := s.quoted()
	if !s.acceptWord("frozen") {
		x.Trainable = s.acceptWord("trainable")
	}
	if s.next() != ':' {
		x.Role = s.role()
	}
	s.expect(':')
	t := s.typ()
	seen := map[string]bool{}
	for s.next() != 0 {
		start := s.at
		key := s.word("init, of, aliases or reason")
		s.expect('=')
		switch {
		case seen[key]:
			s.at = start
			s.failf("%s stands twice", key)
		case key == "init":
			pack := x.Init.Pack
			x.Init = s.init(x.Init.Described(t))
			x.Init.Pack = pack
		case key == "pack" && !seen["init"]:
			x.Init.Pack = s.packing()
		case key == "of":
			x.Of = s.quoted()
		case key == "reason":
			x.Reason = s.quoted()
		case key == "aliases":
			s.expect('[')
			for s.err == nil && !s.accept(']') {
				if len(x.Aliases) > 0 {
					s.expect(',')
				}
				x.Aliases = append(x.Aliases, s.quoted())
			}
		default:
			s.at = start
			s.failf("found %q where init, of, aliases or reason was expected", key)
		}
		seen[key] = true
	}
	if s.err != nil {
		return
	}
	q := p.g.AddParam(name, t)
	p.define(o, q.Value).Name = name
	x.Value = q.Value
	*q = x
	p.params[q.Value] = q
}

func (s *scanner) role() Role {
	s.space()
	start := s.at
	w := s.word("a role")
	for i, n := range roleNames {
		if n == w {
			return Role(i)
		}
	}
	s.at = start
	s.failf("%q is not a role", w)
	return 0
}

func (s *scanner) init(t Type) (in Init) {
	switch {
	case s.acceptWord("absent"):
		in.Kind = InitAbsent
	case s.acceptWord("zero"):
	case s.acceptWord("fill"):
		in.Kind = InitFill
		s.expect('(')
		in.Fill = s.float()
		s.expect(')')
	case s.acceptWord("file"):
		in.Kind = InitFile
		in.File = s.location()
	case s.acceptWord("uniform"):
		in = s.uniform()
	default:
		in.Kind = InitLiteral
		in.Literal = s.literal(t)
	}
	return in
}

func (s *scanner) location() (l Location) {
	s.expect('(')
	l.Path = s.quoted()
	seen := map[string]bool{}
	for s.accept(',') {
		start := s.at
		key := s.word("offset, bytes, transposed or sha256")
		if seen[key] {
			s.at = start
			s.failf("%s stands twice", key)
		}
		seen[key] = true
		if key == "transposed" {
			l.Transposed = true
			continue
		}
		s.expect('=')
		switch key {
		case "offset":
			l.Offset = s.integer()
		case "bytes":
			l.Bytes = s.integer()
		case "sha256":
			l.SHA256 = s.name("a digest")
		default:
			s.at = start
			s.failf("found %q where offset, bytes, transposed or sha256 was expected", key)
		}
	}
	s.expect(')')
	return l
}

// node reads an application of an op.
func (p *parser) node(s *scanner, outs []output, letters string) {
	phase, isCopy := Forward, false
	for i := range NumPhases {
		switch letters {
		case phaseLetters[i]:
			phase = i
		case copyLetters[i]:
			phase, isCopy = i, true
		default:
			continue
		}
		letters = ""
		break
	}
	if letters != "" {
		s.failf("%q on the equals sign is no phase", letters)
	}
	s.space()
	opAt := s.at
	op := s.op(p.vocab)
	var in []*Value
	usable := true
	for s.next() == '%' {
		v, ok := p.use(s)
		usable = usable && ok
		in = append(in, v)
	}
	var types []Type
	typesAt := s.at
	if s.accept(':') {
		types = append(types, s.typ())
		for s.accept(',') {
			types = append(types, s.typ())
		}
	}
	origin, of, ofOK := p.note(s)
	s.end()
	switch {
	case s.err != nil || !usable || !ofOK:
		return
	case isCopy != (of != nil):
		s.failf("a recompute has r on its equals sign and \"recompute of\" behind its semicolon")
		return
	}
	n, err := p.infer(op, in)
	switch {
	case err != nil:
		s.at = opAt
		s.fail(fmt.Errorf("%s: %w", OpName(op), err))
		return
	case len(n.Out) != len(outs):
		s.at = 0
		s.failf("%s has %d outputs, not %d", OpName(op), len(n.Out), len(outs))
		return
	case types != nil && len(types) != len(outs):
		s.at = typesAt
		s.failf("%d types for %d outputs", len(types), len(outs))
		return
	}
	for i, t := range types {
		if !t.Equal(n.Out[i].Type) {
			s.at = typesAt
			s.failf("output %d of %s is %v, not %v", i, OpName(op), n.Out[i].Type, t)
			return
		}
	}
	for i, v := range n.Out {
		p.define(outs[i], v)
	}
	n.Phase, n.Origin, n.CopyOf = phase, origin, of
	p.g.Nodes = append(p.g.Nodes, n)
}

// infer makes the node. It is the first to show the text's attributes to the op, so a panic there becomes an error of this line, which says
// that it is our bug, instead of ending the program over a text.
func (p *parser) infer(op Op, in []*Value) (n *Node, err error) {
	defer func() {
		if r := recover(); r != nil {
			n, err = nil, Bugf("shape rule of %s: %v", FormatOp(op), r)
		}
	}()
	return p.g.NewNode(op, in...)
}

// note reads what stands after the semicolon; ok is false where it names a value of a failed line.
func (p *parser) note(s *scanner) (o Origin, of *Node, ok bool) {
	if !s.accept(';') {
		return o, nil, true
	}
	first := true
	if s.acceptWord("recompute") {
		if !s.acceptWord("of") {
			s.failf("found %s where of was expected", s.found())
		}
		s.space()
		start := s.at
		v, known := p.use(s)
		if !known {
			return o, nil, false
		}
		if of = v.Def; of == nil {
			s.at = start
			s.failf("%%%d comes from no node", v.ID)
		}
		if s.next() != 0 {
			s.expect(',')
		}
	}
	seen := map[string]bool{}
	for s.next() != 0 {
		start := s.at
		key := s.name("an origin")
		if !s.accept('=') {
			if !first {
				s.at = start
				s.failf("found %q where op, index, opset, scope or file was expected", key)
			}
			o.Node, first = key, false
			continue
		}
		first = false
		if seen[key] {
			s.at = start
			s.failf("%s stands twice", key)
		}
		seen[key] = true
		switch key {
		case "op":
			o.OpType = s.name("an operator")
		case "index":
			x := s.integer()
			o.Index = int32(x)
			if int64(o.Index) != x {
				s.failf("index %d is too large", x)
			}
		case "opset":
			o.Opset = s.integer()
		case "scope":
			o.Scope = s.name("a scope")
		case "file":
			o.File = s.name("a file")
		default:
			s.at = start
			s.failf("found %q where op, index, opset, scope or file was expected", key)
		}
	}
	if !seen["file"] && o != (Origin{}) {
		o.File = p.file
	}
	return o, of, true
}
