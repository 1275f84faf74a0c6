package conformance

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"aitk/importer"
	"aitk/ir"
)

// TestMatrixIsTrue holds the columns of docs/ops.md against what the importer makes of the corpus: an operator has a gradient exactly if one arrives at a float
// operand in some case of it, and works in the interpreter and on the device exactly if its cases pass there.
func TestMatrixIsTrue(t *testing.T) {
	most := 2 // cases of an operator
	if *full {
		most = 12
	}
	samples := map[string][]*testCase{}
	for _, c := range index(t) {
		if len(c.ops) == 1 && skipped(c) == "" && !strings.HasPrefix(c.name, "light/") && len(samples[c.ops[0]]) < most {
			samples[c.ops[0]] = append(samples[c.ops[0]], c)
		}
	}
	r := &runner{dir: t.TempDir()}
	defer r.close()
	var without []string
	held := 0
	for _, row := range importer.Matrix() {
		name := row.Op
		if row.Domain != "" {
			name = row.Domain + "." + row.Op
		}
		list := samples[name]
		if !row.Imported() {
			for _, c := range list {
				if v := r.forward(c); v.stage == "" {
					t.Errorf("%s: the matrix says %q, and %v passes", name, row.Import, c)
				}
			}
			continue
		}
		if len(list) == 0 {
			without = append(without, name)
			continue
		}
		held++
		said := strings.HasPrefix(row.Grad, "yes")
		arrives, asked := false, false
		for _, c := range list {
			if v := r.forward(c); (v.stage == "") != (row.Ref == "yes" && row.CPU == "yes") {
				t.Errorf("%s: the matrix says ref %s and cpu %s, and %v: %s %s", name, row.Ref, row.CPU, c, v.stage, v.reason)
			}
			some, any, err := r.reach(c)
			if err != nil {
				t.Errorf("%s: %v: %v", name, c, err)
			}
			arrives, asked = arrives || some, asked || any
		}
		if said && !arrives && strings.Contains(row.Grad, "straight through the rounding of what the graph quantizes") {
			without = append(without, name+" (a gradient only behind a QuantizeLinear)")
			continue
		}
		if asked && arrives != said {
			t.Errorf("%s: the matrix says gradient %q; one arrives at an operand: %v (%v)", name, row.Grad, arrives, list)
		}
		if !asked && said {
			without = append(without, name+" (no case with a float operand left)")
		}
	}
	t.Logf("%d operators held; without a case of their own: %s", held, strings.Join(without, ", "))
}

// reach tells whether the gradient of a case's float outputs arrives at one of its float inputs, and whether it has such.
func (r *runner) reach(c *testCase) (arrives, asked bool, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
	}()
	o, err := r.openCase(c)
	if err != nil || len(o.inputs) == 0 {
		return false, false, err
	}
	m, err := o.importCase(o.inputs[0])
	if err != nil {
		return false, false, err
	}
	g := m.graph
	has := make([]bool, g.NumValues())
	for _, x := range g.Results {
		if x.Value.Type.DType.IsFloat() {
			has[x.Value.ID] = true
		}
	}
	nodes := slices.Clone(g.Nodes)
	b := &ir.Builder{G: g, Phase: ir.Backward}
	for _, n := range slices.Backward(nodes) {
		d, ok := n.Op.(ir.Differentiable)
		dOut := make([]*ir.Value, len(n.Out))
		any := false
		for k, v := range n.Out {
			if has[v.ID] && v.Type.DType.IsFloat() {
				dOut[k], any = g.NewValue("", v.Type), true
			}
		}
		if !ok || !any {
			continue
		}
		for k, dx := range d.Grad(b, n, dOut) {
			has[n.In[k].ID] = has[n.In[k].ID] || dx != nil
		}
	}
	for _, v := range g.Inputs {
		if v.Name[0] != '$' && v.Type.DType.IsFloat() {
			asked, arrives = true, arrives || has[v.ID]
		}
	}
	return arrives, asked, nil
}
