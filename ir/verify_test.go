package ir_test

import (
	"strings"
	"testing"

	"aitk/ir"
)

// TestVerify breaks a sound graph in one way each.
func TestVerify(t *testing.T) {
	cases := []struct {
		name, want string
		spoil      func(g *ir.Graph)
	}{
		{"sound", "", func(g *ir.Graph) {}},
		{"order", "is not defined before this node", func(g *ir.Graph) { g.Nodes[0], g.Nodes[1] = g.Nodes[1], g.Nodes[0] }},
		{"foreign operand", "is not defined before this node", func(g *ir.Graph) { g.Nodes[1].In[0] = ir.NewGraph("").AddInput("q", ir.T(ir.F32, 2)) }},
		{"missing operand", "operand 0 is missing", func(g *ir.Graph) { g.Nodes[1].In[0] = nil }},
		{"operand count", "wants 1 operand, has 0", func(g *ir.Graph) { g.Nodes[0].In = nil }},
		{"type", "output 0 is f32[3], the operation gives f32[2]", func(g *ir.Graph) { g.Nodes[0].Out[0].Type = ir.T(ir.F32, 3) }},
		{"outputs", "Same has 1 outputs, the node 2", func(g *ir.Graph) { g.Nodes[0].Out = append(g.Nodes[0].Out, g.NewValue("", ir.T(ir.F32))) }},
		{"same number", "number %0 is taken", func(g *ir.Graph) { g.Nodes[0].Out[0].ID = 0 }},
		{"large number", "is not below", func(g *ir.Graph) { g.Nodes[0].Out[0].ID = 99 }},
		{"same node number", "node number 0 is taken", func(g *ir.Graph) { g.Nodes[1].ID = 0 }},
		{"defined twice", "is defined twice", func(g *ir.Graph) { g.Nodes = append(g.Nodes, g.Nodes[0]) }},
		{"definition", "does not point back", func(g *ir.Graph) { g.Nodes[0].Out[0].Def = nil }},
		{"leaf with a node", "does not point back", func(g *ir.Graph) { g.Inputs[0].Def = g.Nodes[0] }},
		{"phase", "unknown phase 9", func(g *ir.Graph) { g.Nodes[0].Phase = 9 }},
		{"no op", "has no operation", func(g *ir.Graph) { g.Nodes[1].Op = nil }},
		{"no node", "has no operation", func(g *ir.Graph) { g.Nodes[1] = nil }},
		{"no name", "has no name", func(g *ir.Graph) { g.Inputs[0].Name = "" }},
		{"same name", "the same name", func(g *ir.Graph) { g.Params[0].Name = "x" }},
		{"result name", "empty or taken", func(g *ir.Graph) { g.Results[0].Name = "" }},
		{"result value", `result "y": its value is not in the graph`, func(g *ir.Graph) { g.Results[0].Value = g.NewValue("", ir.T(ir.F32)) }},
		{"new content", "is not in the graph", func(g *ir.Graph) { g.Params[0].Next = g.NewValue("", ir.T(ir.F32, 2)) }},
		{"new content's type", "its new content %0 is f32[2]", func(g *ir.Graph) { g.Params[0].Next = g.Inputs[0]; g.Params[0].Type = ir.T(ir.F64, 2) }},
		{"constant", "needs 4 bytes, its data has 3", func(g *ir.Graph) { g.Consts[0].Data = g.Consts[0].Data[:3] }},
		{"role", "unknown role 77", func(g *ir.Graph) { g.Params[0].Role = 77 }},
		{"trainable", "trainable, but moment", func(g *ir.Graph) { g.Params[0].Trainable, g.Params[0].Role = true, ir.Moment }},
		{"init", "unknown kind 50", func(g *ir.Graph) { g.Params[0].Init.Kind = 50 }},
		{"literal", "its literal has 0", func(g *ir.Graph) { g.Params[0].Init.Kind = ir.InitLiteral }},
		{"file", "its place in the file has 1 at 0", func(g *ir.Graph) { g.Params[0].Init = ir.Init{Kind: ir.InitFile, File: ir.Location{Bytes: 1}} }},
		{"transposed", "cannot be stored transposed", func(g *ir.Graph) {
			g.Params[0].Init = ir.Init{Kind: ir.InitFile, File: ir.Location{Bytes: 8, Transposed: true}}
		}},
		{"dtype", "no element type", func(g *ir.Graph) { g.Inputs[0].Type.DType = 99 }},
		{"space", "is no space", func(g *ir.Graph) { g.Inputs[0].Type.Space = 99 }},
		{"shape", "negative or too large", func(g *ir.Graph) { g.Inputs[0].Type.Shape = ir.Shape{1 << 62, 4} }},
		{"copy of a stranger", "does not stand before it", func(g *ir.Graph) { g.Nodes[0].CopyOf = g.Nodes[2] }},
		{"copy of a copy", "recomputes a recompute", func(g *ir.Graph) { g.Nodes[1].CopyOf, g.Nodes[2].CopyOf = g.Nodes[0], g.Nodes[1] }},
		{"copy of another op", "recomputes another operation", func(g *ir.Graph) { g.Nodes[3].CopyOf = g.Nodes[0] }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			g := must(ir.Parse(`graph @g
%0 = input "x" : f32[2]
%1 = param "w" : f32[2]
%2 = const : f32[] [1]
%3 = Same %0
%4 = Same %3
%5 = Same %4
%6 = Join %5 %1
update %1 %6
result "y" %6`, vocabulary()))
			c.spoil(g)
			err := ir.Verify(g)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
	g := full()
	g.Nodes[0].Phase, g.Results[0].Name, g.Params[0].Role = 9, "", 77
	if err := ir.Verify(g); err == nil || !strings.Contains(err.Error(), "breaks 4 rules") { // the role forbids trainable as well
		t.Errorf("got %v", err)
	}
}

func TestHash(t *testing.T) {
	base := ir.Hash(full())
	if len(base) != 64 {
		t.Fatal(base)
	}
	same := map[string]func(g *ir.Graph){
		"nothing":    func(g *ir.Graph) {},
		"model file": func(g *ir.Graph) { g.Nodes[0].Origin.File = "elsewhere" },
		"weights' file": func(g *ir.Graph) {
			g.Params[0].Init.File.Path, g.Params[0].Init.File.Offset = "elsewhere", 0
		},
		"reason":  func(g *ir.Graph) { g.Params[0].Reason = "" },
		"numbers": func(g *ir.Graph) { g.NewValue("", ir.T(ir.F32)); g.Nodes[0].Out[0].ID = 77 },
	}
	other := map[string]func(g *ir.Graph){
		"attribute": func(g *ir.Graph) { g.Nodes[0].Op = Same{K: 1} },
		"operand":   func(g *ir.Graph) { g.Nodes[3].In[1] = g.Inputs[0] },
		"content":   func(g *ir.Graph) { g.Params[0].Init.File.SHA256 = "abc124" },
		"literal":   func(g *ir.Graph) { g.Params[1].Init.Literal[0] = 9 },
		"constant":  func(g *ir.Graph) { g.Consts[0].Data[0] = 9 },
		"phase":     func(g *ir.Graph) { g.Nodes[0].Phase = ir.Backward },
		"name":      func(g *ir.Graph) { g.Params[0].Name = "q" },
		"result":    func(g *ir.Graph) { g.Results[0].Value = g.Inputs[0] },
		"update":    func(g *ir.Graph) { g.Params[0].Next = nil },
		"trainable": func(g *ir.Graph) { g.Params[0].Trainable = false },
	}
	for name, change := range same {
		g := full()
		if change(g); ir.Hash(g) != base {
			t.Errorf("%s changes the hash", name)
		}
	}
	for name, change := range other {
		g := full()
		if change(g); ir.Hash(g) == base {
			t.Errorf("%s does not change the hash", name)
		}
	}
	// Without a digest the place in the file is what identifies the content.
	g, h := full(), full()
	g.Params[0].Init.File.SHA256, h.Params[0].Init.File.SHA256 = "", ""
	h.Params[0].Init.File.Offset++
	if ir.Hash(g) == ir.Hash(h) {
		t.Error("two places in a file have one hash")
	}
}
