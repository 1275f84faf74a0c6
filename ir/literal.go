package ir

import (
	"bytes"
	"encoding/base64"
	"strconv"
)

// readableElems is the longest literal that is printed as numbers; longer ones are base64.
const readableElems = 16

// formatLiteral is [1,2.5] for short literals, base64(...) for long ones and for those that numbers cannot give back bit by bit (NaNs with a
// payload, bools other than 0 and 1).
func formatLiteral(t Type, data []byte) string {
	if t.Shape.Check() == nil && t.Elems() <= readableElems {
		if text, ok := formatNumbers(t, data); ok {
			return text
		}
	}
	return "base64(" + base64.RawStdEncoding.EncodeToString(data) + ")"
}

func formatNumbers(t Type, data []byte) (string, bool) {
	x, err := DecodeTensor(t, data)
	if err != nil {
		return "", false
	}
	text := []byte{'['}
	for i, f := range x.F {
		bits := 32
		if t.DType == F64 {
			bits = 64
		}
		text = append(comma(text, i), formatFloat(f, bits)...)
	}
	for i, n := range x.I {
		if t.DType == Bool {
			text = strconv.AppendBool(comma(text, i), n != 0)
		} else {
			text = strconv.AppendInt(comma(text, i), n, 10)
		}
	}
	text = append(text, ']')
	s := scanner{text: string(text)}
	return string(text), bytes.Equal(s.literal(t), data) && s.err == nil
}

func comma(text []byte, i int) []byte {
	if i > 0 {
		text = append(text, ',')
	}
	return text
}

// literal reads what formatLiteral writes. Memory is taken for what stands there, never for what t declares.
func (s *scanner) literal(t Type) []byte {
	s.space()
	start := s.at
	if s.next() == '[' {
		return s.numbers(t)
	}
	if !s.acceptWord("base64") {
		s.failf("found %s where a literal was expected", s.found())
		return nil
	}
	s.expect('(')
	w := ""
	if s.next() != ')' {
		w = s.word("base64")
	}
	s.expect(')')
	if s.err != nil {
		return nil
	}
	raw, err := base64.RawStdEncoding.Strict().DecodeString(w)
	switch {
	case err != nil:
		s.at = start
		s.failf("literal: %v", err)
	case int64(len(raw)) != t.Bytes():
		s.at = start
		s.failf("literal has %d bytes, %v needs %d", len(raw), t, t.Bytes())
	}
	return raw
}

func (s *scanner) numbers(t Type) []byte {
	start := s.at
	s.expect('[')
	x := Tensor{Type: t}
	n := int64(0)
	for s.err == nil && !s.accept(']') {
		if n > 0 {
			s.expect(',')
		}
		switch {
		case t.DType.IsFloat():
			x.F = append(x.F, s.float())
		case t.DType == Bool:
			one := int64(0)
			if s.boolean() {
				one = 1
			}
			x.I = append(x.I, one)
		default:
			x.I = append(x.I, s.integer())
		}
		n++
	}
	if s.err != nil {
		return nil
	}
	if n != t.Elems() {
		s.at = start
		s.failf("literal has %d elements, %v needs %d", n, t, t.Elems())
		return nil
	}
	raw := x.Encode()
	if len(x.I) > 0 {
		back, err := DecodeTensor(t, raw)
		for i := range x.I {
			if err != nil || back.I[i] != x.I[i] {
				s.at = start
				s.failf("%d does not fit %v", x.I[i], t.DType)
				return nil
			}
		}
	}
	return raw
}
