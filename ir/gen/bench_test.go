package gen

import (
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

// BenchmarkText is printing, parsing (with Verify) and hashing at the size of a large model's training step.
func BenchmarkText(b *testing.B) {
	g := Graph(Options{Nodes: 10_000, Params: true, Loss: true})
	text, vocab := g.String(), op.Vocabulary()
	for _, c := range []struct {
		name string
		run  func()
	}{
		{"print", func() { _ = g.String() }},
		{"parse", func() { _, _ = ir.Parse(text, vocab) }},
		{"verify", func() { _ = ir.Verify(g) }},
		{"hash", func() { _ = ir.Hash(g) }},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				c.run()
			}
		})
	}
}
