package op_test

import (
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

// TestSynopses: each op's comment begins with a sentence of one line that names it.
func TestSynopses(t *testing.T) {
	all := op.Synopses()
	for _, o := range op.All() {
		name := ir.OpName(o)
		s := all[name]
		if !strings.HasPrefix(s, name+" ") || len(s) < len(name)+5 || len(s) > 200 {
			t.Errorf("%s: synopsis %q of %d bytes, want a sentence of at most 200 that begins with the name", name, s, len(s))
		}
	}
	if len(all) != len(op.All()) {
		t.Errorf("%d synopses for %d ops", len(all), len(op.All()))
	}
}
