package gen

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

func types(vs []*ir.Value) []ir.Type {
	all := make([]ir.Type, len(vs))
	for i, v := range vs {
		all[i] = v.Type
	}
	return all
}

func asBug(err error, b **ir.Bug) bool { return errors.As(err, b) }

// sampleText is an op's sample as a graph of one node, good or bad.
func sampleText(s ir.Sample) string {
	var b strings.Builder
	b.WriteString("graph @sample\n")
	ts := s.Types
	for _, t := range s.In {
		ts = append(ts, t.Type)
	}
	var in string
	for i, t := range ts {
		fmt.Fprintf(&b, "%%%d = input \"i%d\" : %v\n", i, i, t)
		in += fmt.Sprintf(" %%%d", i)
	}
	outs := 0
	if s.Err == "" {
		out, err := s.Op.Infer(ts)
		if err != nil {
			panic(err)
		}
		outs = len(out)
	} else {
		outs = 1
	}
	for i := range outs {
		fmt.Fprintf(&b, "%%%d ", len(ts)+i)
	}
	fmt.Fprintf(&b, "= %s%s\n", ir.FormatOp(s.Op), in)
	return b.String()
}

// TestSamplesAsText sends every sample of every op through the text form: good ones come back with the same attributes, bad ones fail with
// the same message.
func TestSamplesAsText(t *testing.T) {
	for _, o := range op.All() {
		for i, s := range o.(ir.Sampler).Samples() {
			text := sampleText(s)
			g, err := ir.Parse(text, op.Vocabulary())
			switch {
			case s.Err == "" && err != nil:
				t.Errorf("%s sample %d: %v\n%s", ir.OpName(o), i, err, text)
			case s.Err == "" && ir.FormatOp(g.Nodes[0].Op) != ir.FormatOp(s.Op):
				t.Errorf("%s sample %d: %s became %s", ir.OpName(o), i, ir.FormatOp(s.Op), ir.FormatOp(g.Nodes[0].Op))
			case s.Err != "" && err == nil:
				t.Errorf("%s sample %d: no error, want %q\n%s", ir.OpName(o), i, s.Err, text)
			}
		}
	}
}

// TestTextOfGraphs holds the fixed point on large graphs, where the fuzzer hardly gets.
func TestTextOfGraphs(t *testing.T) {
	for seed := range uint64(60) {
		g := Graph(options(seed))
		text := g.String()
		h, err := ir.Parse(text, op.Vocabulary())
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, text)
		}
		if again := h.String(); again != text {
			t.Fatalf("seed %d: printed\n%s\nthen\n%s", seed, text, again)
		}
		if ir.Hash(g) != ir.Hash(h) {
			t.Errorf("seed %d: the hash changed", seed)
		}
		for i, n := range g.Nodes {
			if !ir.SameOp(n.Op, h.Nodes[i].Op) {
				t.Errorf("seed %d: %#v became %#v", seed, n.Op, h.Nodes[i].Op)
			}
		}
	}
}
