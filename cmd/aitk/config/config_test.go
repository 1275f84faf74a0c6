package config

import (
	"reflect"
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		text string
		want []Entry
	}{
		{"", nil},
		{"# nothing\n", nil},
		{"---\n", nil},
		{"loss: mse\n", []Entry{{"loss", []string{"mse"}, 1}}},
		{"\ndim: [batch=64, seq=128]\nclip-norm: 1e-3\n", []Entry{{"dim", []string{"batch=64", "seq=128"}, 2}, {"clip-norm", []string{"1e-3"}, 3}}},
		{"seed: 007\nquiet: true\nbudget: 60%\n", []Entry{{"seed", []string{"007"}, 1}, {"quiet", []string{"true"}, 2}, {"budget", []string{"60%"}, 3}}},
		{"freeze:\n- a.*\n- \"b: c\"\n", []Entry{{"freeze", []string{"a.*", "b: c"}, 1}}},
		{"freeze: []\n", []Entry{{"freeze", nil, 1}}},
	} {
		got, err := Parse([]byte(c.text))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%q: %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
	for text, want := range map[string]string{
		"- a\n":                    "line 1: wanted a mapping",
		"just text\n":              "wanted a mapping",
		"a: {b: c}\n":              `line 1: "a": wanted a value`,
		"a: 1\nb:\n- [x]\nc: ~\n":  `line 3: "b"`,
		"a: 1\n\nc:\n":             `line 3: "c": wanted a value`,
		"a: 1\nb: 2\na: 3\n":       `line 3: "a" stands on line 1 already`,
		"[a]: 1\n":                 "a key is a flag's name",
		"a: &x 1\nb: *x\n":         `line 1: "a": wanted a value`,
		"a: 1\n---\nb: 2\n":        "wanted one document",
		"a: [1\n":                  "line",
		strings.Repeat("#", 2<<20): "longer than",
	} {
		if got, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %+v, %v; want %q", text, got, err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte("dim: [a=1]\nloss: mse\n"))
	f.Add([]byte("a: &x [*x]\n"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		list, err := Parse(raw)
		for _, e := range list {
			if err == nil && e.Line < 1 {
				t.Errorf("%+v has no line", e)
			}
		}
	})
}
