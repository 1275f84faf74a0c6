package ir_test

import (
	"strings"
	"testing"

	"aitk/ir"
)

func TestMatchGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"*.bias", "h.0.mlp.bias", true},
		{"*.bias", "bias", false},
		{"*", "", true},
		{"", "", true},
		{"", "a", false},
		{"h.?.w", "h.1.w", true},
		{"h.?.w", "h.10.w", false},
		{"*ln_*.weight", "transformer/h.0.ln_1.weight", true},
		{"*ln_*.weight", "transformer/h.0.ln_1.weights", false},
		{"a*b*c", "abbcbc", true},
		{"a*b*c", "abbcb", false},
		{"[a]", "a", false},
		{"é?", "éß", true},
		{"a?c", "ac", false},
		{"*a*a*a*b", strings.Repeat("a", 100), false},
	} {
		if got := ir.MatchGlob(c.pattern, c.name); got != c.want {
			t.Errorf("%q matches %q: %v", c.pattern, c.name, got)
		}
	}
}
