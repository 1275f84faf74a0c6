package passes

import (
	"crypto/sha256"
	"encoding/hex"

	"aitk/ir"
)

// literals makes every constant a parameter of role Literal, named by its content, so that programs share equal ones and that they are
// loaded, placed and swapped like weights that never change.
func literals(g *ir.Graph) {
	sub := make([]*ir.Value, g.NumValues())
	for _, c := range g.Consts {
		h := sha256.New()
		h.Write([]byte(c.Type.String()))
		h.Write(c.Data)
		name := "$const/" + hex.EncodeToString(h.Sum(nil)[:8])
		p := g.Param(name)
		if p == nil {
			p = g.AddParam(name, c.Type)
			p.Role = ir.Literal
			p.Init = ir.Init{Kind: ir.InitLiteral, Literal: c.Data}
			p.Reason = "constant of the graph"
		}
		sub[c.ID] = p.Value
	}
	g.Consts = nil
	g.Replace(sub)
}
