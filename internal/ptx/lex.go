package ptx

import (
	"strconv"
	"strings"
)

type tokenKind uint8

const (
	tokEOF    tokenKind = iota
	tokWord             // identifier, opcode with modifiers, directive, register
	tokNumber           // begins with a digit
	tokString           // text between quotes
	tokPunct            // one character
)

type token struct {
	kind tokenKind
	text string
	line int
}

// lexer cuts a text into tokens; words keep their dots and "::", so ld.global.L1::no_allocate.f32 is one token.
type lexer struct {
	src  string
	pos  int
	line int
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '$' || c == '%' || c == '.'
}

// skipBlank passes white space and both kinds of comments.
func (l *lexer) skipBlank() error {
	for l.pos < len(l.src) {
		c := l.src[l.pos]
		rest := l.src[l.pos:]
		switch {
		case c == '\n':
			l.line++
			l.pos++
		case c == ' ' || c == '\t' || c == '\r':
			l.pos++
		case strings.HasPrefix(rest, "//"):
			if end := strings.IndexByte(rest, '\n'); end >= 0 {
				l.pos += end
			} else {
				l.pos = len(l.src)
			}
		case strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest, "*/")
			if end < 0 {
				return &Error{l.line, "comment does not end"}
			}
			l.line += strings.Count(rest[:end], "\n")
			l.pos += end + 2
		default:
			return nil
		}
	}
	return nil
}

func (l *lexer) next() (token, error) {
	if err := l.skipBlank(); err != nil {
		return token{}, err
	}
	if l.pos >= len(l.src) {
		return token{kind: tokEOF, line: l.line}, nil
	}
	start, c := l.pos, l.src[l.pos]
	switch {
	case c == '"':
		end := strings.IndexByte(l.src[l.pos+1:], '"')
		if end < 0 || strings.Contains(l.src[l.pos+1:l.pos+1+end], "\n") {
			return token{}, &Error{l.line, "text between quotes does not end on its line"}
		}
		l.pos += end + 2
		return token{tokString, l.src[start+1 : l.pos-1], l.line}, nil
	case isWordByte(c):
		for l.pos < len(l.src) {
			if isWordByte(l.src[l.pos]) {
				l.pos++
			} else if strings.HasPrefix(l.src[l.pos:], "::") {
				l.pos += 2
			} else {
				break
			}
		}
		kind := tokWord
		if c >= '0' && c <= '9' {
			kind = tokNumber
		}
		return token{kind, l.src[start:l.pos], l.line}, nil
	case c > ' ' && c < 0x7f:
		l.pos++
		return token{tokPunct, l.src[start:l.pos], l.line}, nil
	}
	return token{}, &Error{l.line, "unexpected byte " + strconv.QuoteRune(rune(c))}
}

// number reads an integer or a hexadecimal float; neg is a minus sign before it.
func number(t token, neg bool) (Operand, error) {
	s := t.text
	bad := func() (Operand, error) { return Operand{}, &Error{t.line, "malformed number " + strconv.Quote(s)} }
	hexFloat := func(digits int, kind Kind, sign uint64) (Operand, error) {
		v, err := strconv.ParseUint(s[2:], 16, digits*4)
		if err != nil || len(s) != 2+digits {
			return bad()
		}
		if neg {
			v ^= sign
		}
		return Operand{Kind: kind, Bits: v}, nil
	}
	if len(s) > 2 && s[0] == '0' {
		switch s[1] {
		case 'f', 'F':
			return hexFloat(8, F32, 1<<31)
		case 'd', 'D':
			return hexFloat(16, F64, 1<<63)
		}
	}
	if strings.Contains(s, ".") {
		return Operand{}, &Error{t.line, "decimal float " + strconv.Quote(s) + ": write 0f or 0d and its bits"}
	}
	if strings.Contains(s, "_") {
		return bad()
	}
	v, err := strconv.ParseUint(strings.TrimSuffix(s, "U"), 0, 64)
	if err != nil {
		return bad()
	}
	if neg {
		v = -v
	}
	return Operand{Kind: Int, Bits: v}, nil
}
