package ir

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// scanner reads one line. It keeps its first error, with at where it happened, and reads nothing more after it, so that callers look
// once, at the end of a statement.
type scanner struct {
	text string
	at   int
	err  error
}

func (s *scanner) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *scanner) failf(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func (s *scanner) space() {
	for s.err == nil && s.at < len(s.text) && (s.text[s.at] == ' ' || s.text[s.at] == '\t' || s.text[s.at] == '\r') {
		s.at++
	}
}

// next is the character after spaces; 0 at the end of the line or the start of a comment, and after an error.
func (s *scanner) next() byte {
	s.space()
	if s.err != nil || s.at >= len(s.text) || s.text[s.at] == '#' {
		return 0
	}
	return s.text[s.at]
}

// found describes what stands at the cursor, for messages.
func (s *scanner) found() string {
	c := s.next()
	switch {
	case c == 0:
		return "the end of the line"
	case wordChar(c):
		t := scanner{text: s.text, at: s.at}
		return strconv.Quote(t.word(""))
	case c < ' ' || c > '~':
		return fmt.Sprintf("byte 0x%02x", c)
	}
	return strconv.Quote(string(c))
}

func (s *scanner) accept(c byte) bool {
	if s.next() != c || c == 0 {
		return false
	}
	s.at++
	return true
}

func (s *scanner) expect(c byte) {
	if s.err == nil && !s.accept(c) {
		s.failf("found %s where %q was expected", s.found(), string(c))
	}
}

func (s *scanner) end() {
	if s.err == nil && s.next() != 0 {
		s.failf("found %s where the line should end", s.found())
	}
}

// wordChar covers names, numbers, module paths and base64.
func wordChar(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '.' || c == '/' || c == '+' || c == '-'
}

func isWord(t string) bool {
	for i := range len(t) {
		if !wordChar(t[i]) {
			return false
		}
	}
	return t != ""
}

func (s *scanner) word(what string) string {
	if !wordChar(s.next()) {
		s.failf("found %s where %s was expected", s.found(), what)
		return ""
	}
	start := s.at
	for s.at < len(s.text) && wordChar(s.text[s.at]) {
		s.at++
	}
	return s.text[start:s.at]
}

// acceptWord reads the word w if it stands next.
func (s *scanner) acceptWord(w string) bool {
	start := s.at
	if wordChar(s.next()) && s.word("") == w {
		return true
	}
	s.at = start
	return false
}

func (s *scanner) quoted() string {
	if s.next() != '"' {
		s.failf("found %s where a quoted string was expected", s.found())
		return ""
	}
	q, err := strconv.QuotedPrefix(s.text[s.at:])
	if err != nil {
		s.failf("string is not closed or has a bad escape")
		return ""
	}
	s.at += len(q)
	t, err := strconv.Unquote(q)
	if err != nil {
		s.failf("bad escape in %s", q)
	}
	return t
}

// name reads a word or a quoted string; atom writes one.
func (s *scanner) name(what string) string {
	if s.next() == '"' {
		return s.quoted()
	}
	return s.word(what)
}

func atom(t string) string {
	if isWord(t) {
		return t
	}
	return strconv.Quote(t)
}

func (s *scanner) boolean() bool {
	start := s.at
	switch s.word("true or false") {
	case "true":
		return true
	case "false":
	default:
		s.at = start
		s.failf("found %s where true or false was expected", s.found())
	}
	return false
}

func (s *scanner) integer() int64 {
	s.space()
	start := s.at
	w := s.word("a number")
	x, err := strconv.ParseInt(w, 10, 64)
	if err != nil {
		s.at = start
		s.failf("%q is not a 64-bit integer", w)
	}
	return x
}

func (s *scanner) float() float64 {
	s.space()
	start := s.at
	w := s.word("a number")
	switch w {
	case "nan":
		return math.NaN()
	case "inf":
		return math.Inf(1)
	case "-inf":
		return math.Inf(-1)
	}
	x, err := strconv.ParseFloat(w, 64)
	if err != nil || strings.ContainsAny(w, "_xXpP") {
		s.at = start
		s.failf("%q is not a number that a float64 holds", w)
	}
	return x
}

func (s *scanner) integers() []int64 {
	var xs []int64
	s.expect('[')
	for s.err == nil && !s.accept(']') {
		if len(xs) > 0 {
			s.expect(',')
		}
		xs = append(xs, s.integer())
	}
	return xs
}

// valueID reads %12. limit bounds the number: slices are made as long as the largest one.
func (s *scanner) valueID(limit ID) ID {
	s.expect('%')
	start := s.at
	w := s.word("the number of a value")
	x, err := strconv.ParseUint(w, 10, 31)
	switch {
	case s.err != nil:
	case err != nil:
		s.at = start
		s.failf("%q is not the number of a value", w)
	case ID(x) >= limit:
		s.at = start
		s.failf("value number %d is too large for a text of this length", x)
	}
	return ID(x)
}

// typ reads a type as Type.String writes it, and checks that its size can be computed.
func (s *scanner) typ() Type {
	s.space()
	start := s.at
	var t Type
	w := s.word("a type")
	if p, ok := ParseSpace(w); ok {
		t.Space = p
		w = s.word("an element type")
	}
	d, ok := ParseDType(w)
	if !ok && s.err == nil {
		s.at = start
		s.failf("%q is not an element type", w)
	}
	t.DType = d
	t.Shape = s.integers()
	if s.err == nil {
		if err := t.Shape.Check(); err != nil {
			s.at = start
			s.fail(err)
		}
	}
	return t
}
