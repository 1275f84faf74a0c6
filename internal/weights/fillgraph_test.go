package weights

import (
	"reflect"
	"strings"
	"testing"

	"aitk/ir"
)

func TestFillGraph(t *testing.T) {
	graph := func() *ir.Graph {
		g := ir.NewGraph("g")
		for _, p := range []struct {
			name  string
			typ   ir.Type
			alias []string
		}{{"tok.weight", ir.T(ir.F32, 16, 8), []string{"head.weight"}}, {"fc.weight", ir.T(ir.F32, 4, 8), nil}, {"fc.bias", ir.T(ir.BF16, 4), nil}, {"norm.weight", ir.T(ir.F32, 8, 1, 1), nil}} {
			q := g.AddParam(p.name, p.typ)
			q.Init.Kind, q.Aliases, q.Trainable = ir.InitAbsent, p.alias, true
		}
		return g
	}
	tensor := func(name string, d ir.DType, s ...int64) Tensor {
		return Tensor{Name: name, Type: ir.T(d, s...), At: ir.Location{Path: "w", Bytes: ir.T(d, s...).Bytes()}}
	}
	all := func(prefix string) []Tensor {
		return []Tensor{tensor(prefix+"head.weight", ir.F32, 16, 8), tensor(prefix+"fc.weight", ir.F32, 8, 4), tensor(prefix+"fc.bias", ir.F32, 4), tensor(prefix+"norm.weight", ir.F32, 8)}
	}
	for _, c := range []struct {
		name string
		have []Tensor
		want Filled
		err  string
	}{
		{name: "alias, transpose, cast, ones", have: all(""), want: Filled{Used: 4, Transposed: []string{"fc.weight"}, Cast: []string{"fc.bias"}}},
		{name: "prefix in the file", have: all("model."), want: Filled{Used: 4, Transposed: []string{"fc.weight"}, Cast: []string{"fc.bias"}, Prefix: "model."}},
		{name: "missing and left over", have: []Tensor{tensor("fc.weight", ir.F32, 4, 8), tensor("other", ir.F32, 1)},
			want: Filled{Used: 1, Left: []string{"other"}, Missing: []string{"tok.weight", "fc.bias", "norm.weight"}}},
		{name: "all that does not fit", have: []Tensor{tensor("fc.weight", ir.F32, 5, 8), tensor("fc.bias", ir.I64, 4)}, err: `tensor "fc.weight" is f32[5,8], the parameter f32[4,8]; tensor "fc.bias" is i64[4]`},
		{name: "nothing", have: []Tensor{tensor("x", ir.F32, 1)}, want: Filled{Left: []string{"x"}, Missing: []string{"tok.weight", "fc.weight", "fc.bias", "norm.weight"}}},
	} {
		g := graph()
		got, err := FillGraph(g, c.have)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) || ir.KindOf(err) != ir.Usage {
				t.Errorf("%s: error %v, want %q", c.name, err, c.err)
			}
			continue
		}
		if err != nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %+v, %v, want %+v", c.name, got, err, c.want)
		}
		if c.want.Used == 4 && (!g.Params[1].Init.File.Transposed || !g.Params[2].Init.Packed() || g.Params[0].Init.Kind != ir.InitFile) {
			t.Errorf("%s: first contents %+v", c.name, g.Params)
		}
	}
	g := ir.NewGraph("g") // the graph has a prefix that the file has not
	g.AddParam("m.fc.weight", ir.T(ir.F32, 4, 8)).Init.Kind = ir.InitAbsent
	if got, err := FillGraph(g, all("")[1:2]); err != nil || got.Used != 1 || got.Prefix != "-m." {
		t.Errorf("%+v, %v", got, err)
	}
}
