package ir

import (
	"fmt"
	"math"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// Attributes are the exported fields of an op's struct type, found by one reflective walk. The text names them in lower camel case and
// leaves out zero fields; an empty list counts as zero. A field is a bool, int64, uint64, float64, string, DType, Space, or a list of int64.

// FormatOp is an op with its attributes as the text form has it: MatMul{transB=true}.
func FormatOp(o Op) string {
	var b strings.Builder
	writeOp(&b, o)
	return b.String()
}

// ParseOp is the inverse of FormatOp.
func ParseOp(text string, vocab Vocabulary) (Op, error) {
	s := scanner{text: text}
	o := s.op(vocab)
	s.end()
	if s.err != nil {
		return nil, fmt.Errorf("column %d: %w", s.at+1, s.err)
	}
	return o, nil
}

// SameOp tells whether two ops are of one type with the same attributes, as the text form has them: an absent list is an empty one, and floats are the
// same where their bits are. (== panics on ops with lists, reflect.DeepEqual takes 0 for -0.)
func SameOp(a, b Op) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	v, w := reflect.ValueOf(a), reflect.ValueOf(b)
	if v.Type() != w.Type() {
		return false
	}
	if v.Kind() != reflect.Struct {
		return v.Equal(w)
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() && !sameAttr(v.Field(i), w.Field(i)) {
			return false
		}
	}
	return true
}

func sameAttr(v, w reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice:
		if v.Len() != w.Len() {
			return false
		}
		for i := range v.Len() {
			if v.Index(i).Int() != w.Index(i).Int() {
				return false
			}
		}
		return true
	case reflect.Float64:
		return math.Float64bits(v.Float()) == math.Float64bits(w.Float())
	}
	return v.Equal(w)
}

func writeOp(b *strings.Builder, o Op) {
	if o == nil {
		b.WriteByte('?')
		return
	}
	v := reflect.ValueOf(o)
	b.WriteString(v.Type().Name())
	if v.Kind() != reflect.Struct {
		return
	}
	open := byte('{')
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() || zeroAttr(v.Field(i)) {
			continue
		}
		b.WriteByte(open)
		open = ','
		b.WriteString(attrName(f.Name))
		b.WriteByte('=')
		writeAttr(b, v.Field(i), f.Name, v.Type().Name())
	}
	if open == ',' {
		b.WriteByte('}')
	}
}

// attrName turns a field name into lower camel case: TransB is transB, DType is dType, K is k.
func attrName(field string) string {
	r := []rune(field)
	for i := range r {
		if i > 0 && i+1 < len(r) && unicode.IsLower(r[i+1]) || !unicode.IsUpper(r[i]) {
			break
		}
		r[i] = unicode.ToLower(r[i])
	}
	return string(r)
}

// zeroAttr tells whether a field is left out. Negative zero is not zero.
func zeroAttr(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Slice:
		return v.Len() == 0
	case reflect.Float64:
		return math.Float64bits(v.Float()) == 0
	}
	return v.IsZero()
}

func writeAttr(b *strings.Builder, v reflect.Value, field, op string) {
	switch x := v.Interface().(type) {
	case DType:
		b.WriteString(x.String())
		return
	case Space:
		b.WriteString(x.String())
		return
	}
	switch {
	case v.Kind() == reflect.Bool:
		b.WriteString(strconv.FormatBool(v.Bool()))
	case v.Kind() == reflect.Int64:
		b.WriteString(strconv.FormatInt(v.Int(), 10))
	case v.Kind() == reflect.Uint64:
		b.WriteString(strconv.FormatUint(v.Uint(), 10))
	case v.Kind() == reflect.Float64:
		b.WriteString(formatFloat(v.Float(), 64))
	case v.Kind() == reflect.String:
		b.WriteString(strconv.Quote(v.String()))
	case v.Kind() == reflect.Slice && v.Type().Elem().Kind() == reflect.Int64:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			b.WriteString(strconv.FormatInt(v.Index(i).Int(), 10))
		}
		b.WriteByte(']')
	default:
		panic(Bugf("attribute %s of %s has type %v, which the text form does not know", field, op, v.Type()))
	}
}

// formatFloat is the shortest text that gives the same float of that width back.
func formatFloat(x float64, bits int) string {
	switch {
	case math.IsNaN(x):
		return "nan"
	case math.IsInf(x, 1):
		return "inf"
	case math.IsInf(x, -1):
		return "-inf"
	}
	return strconv.FormatFloat(x, 'g', -1, bits)
}

// op reads a name and attributes; nil after an error.
func (s *scanner) op(vocab Vocabulary) Op {
	s.space()
	start := s.at
	name := s.word("an operation")
	if s.err != nil {
		return nil
	}
	t, ok := vocab[name]
	if !ok {
		s.at = start
		s.fail(Errorf(Unsupported, Origin{}, "unknown operation %s", name))
		return nil
	}
	v := reflect.New(t).Elem()
	if s.accept('{') {
		seen := map[string]bool{}
		for s.err == nil && !s.accept('}') {
			if len(seen) > 0 {
				s.expect(',')
			}
			s.space()
			start := s.at
			attr := s.word("an attribute")
			f := attrField(v, attr)
			switch {
			case s.err != nil:
			case !f.IsValid():
				s.at = start
				s.failf("%s has no attribute %s", name, attr)
			case seen[attr]:
				s.at = start
				s.failf("attribute %s stands twice", attr)
			default:
				seen[attr] = true
				s.expect('=')
				s.attr(f)
			}
		}
	}
	if s.err != nil {
		return nil
	}
	o, ok := v.Interface().(Op)
	if !ok {
		panic(Bugf("the vocabulary's %s is no operation", name))
	}
	return o
}

// attrField finds the settable field behind an attribute's name.
func attrField(v reflect.Value, attr string) reflect.Value {
	if v.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	for i := range v.NumField() {
		if f := v.Type().Field(i); f.IsExported() && attrName(f.Name) == attr {
			return v.Field(i)
		}
	}
	return reflect.Value{}
}

func (s *scanner) attr(v reflect.Value) {
	if s.err != nil {
		return
	}
	s.space()
	start := s.at
	switch v.Interface().(type) {
	case DType:
		d, ok := ParseDType(s.word("an element type"))
		if !ok {
			s.at = start
			s.failf("not an element type")
		}
		v.SetUint(uint64(d))
		return
	case Space:
		p, ok := ParseSpace(s.word("a space"))
		if !ok {
			s.at = start
			s.failf("not a space")
		}
		v.SetUint(uint64(p))
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(s.boolean())
	case reflect.Int64:
		v.SetInt(s.integer())
	case reflect.Uint64:
		w := s.word("a number")
		x, err := strconv.ParseUint(w, 10, 64)
		if err != nil {
			s.at = start
			s.failf("%q is not an unsigned 64-bit integer", w)
		}
		v.SetUint(x)
	case reflect.Float64:
		v.SetFloat(s.float())
	case reflect.String:
		v.SetString(s.quoted())
	case reflect.Slice:
		xs := s.integers()
		if len(xs) == 0 {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), len(xs), len(xs)))
		for i, x := range xs {
			v.Index(i).SetInt(x)
		}
	default:
		panic(Bugf("attribute of type %v, which the text form does not know", v.Type()))
	}
}
