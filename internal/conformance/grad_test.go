package conformance

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
	"aitk/passes"
	"aitk/runtime/ref"
)

// golden is a tensor of grads.zip.
type golden struct {
	shape []int64
	x     []float64
}

// parseNPY reads an array of float64 or float32 as numpy writes it.
func parseNPY(raw []byte) (*golden, error) {
	if len(raw) < 10 || string(raw[:6]) != "\x93NUMPY" {
		return nil, errors.New("is no npy file")
	}
	n, at := int(binary.LittleEndian.Uint16(raw[8:])), 10
	if raw[6] > 1 {
		n, at = int(binary.LittleEndian.Uint32(raw[8:])), 12
	}
	head := string(raw[at : at+n])
	data := raw[at+n:]
	m := regexp.MustCompile(`'descr': '<f(\d)', 'fortran_order': False, 'shape': \(([^)]*)\)`).FindStringSubmatch(head)
	if m == nil {
		return nil, fmt.Errorf("npy header %q", head)
	}
	g := &golden{}
	count := 1
	for _, d := range strings.FieldsFunc(m[2], func(r rune) bool { return r == ',' || r == ' ' }) {
		k, err := strconv.Atoi(d)
		if err != nil {
			return nil, err
		}
		g.shape = append(g.shape, int64(k))
		count *= k
	}
	for i := range count {
		if m[1] == "4" {
			g.x = append(g.x, float64(math.Float32frombits(binary.LittleEndian.Uint32(data[4*i:]))))
		} else {
			g.x = append(g.x, math.Float64frombits(binary.LittleEndian.Uint64(data[8*i:])))
		}
	}
	return g, nil
}

func (r *runner) golden(name string) (*golden, error) {
	raw, err := r.read("grads.zip", name)
	if err != nil || raw == nil {
		return nil, err
	}
	return parseNPY(raw)
}

// gradCase is a line of grads.tsv.
type gradCase struct {
	*testCase
	from   string // case whose goldens hold
	inputs []string
}

// noSlope lists ops whose slope is 0 wherever they have one: on the way to a weight they are reported, and no gradient is made up.
var noSlope = []string{"Floor", "Ceil", "Round", "Sign", "Hardmax"}

// noComparison says why a golden is not what is wanted here.
func noComparison(c *testCase) string {
	switch {
	case strings.Contains(c.name, "dynamicquantizelinear"):
		return "exact slope of a rounding, where training wants the straight-through rule"
	case strings.Contains(c.name, "mod_fmod_0_signed_zero"):
		return "the reciprocal of 0"
	}
	return ""
}

// gradient holds the gradients of a case against its goldens. skip is a reason not to.
func (r *runner) gradient(c *gradCase) (v verdict, skip string) {
	stage := "load"
	defer func() {
		if p := recover(); p != nil {
			v = verdict{stage: stage, reason: fmt.Sprintf("panic: %.300v", p)}
		}
	}()
	fail := func(err error) (verdict, string) { return verdict{stage: stage, reason: err.Error()}, "" }
	o, err := r.openCase(c.testCase)
	if err != nil {
		return fail(err)
	}
	stage = "import"
	g, err := o.importCase(o.inputs[0])
	if err != nil {
		return fail(err)
	}
	if heavy(g.graph) {
		return v, "too large for the reference interpreter"
	}
	want := map[string]*golden{}
	for _, name := range c.inputs {
		if slices.Contains(g.bound, name) {
			stage = "import"
			return fail(fmt.Errorf("input %q had to be bound", name))
		}
		if want[name], err = r.golden(fmt.Sprintf("%s/grad_%s.npy", c.from, name)); err != nil {
			return fail(err)
		}
	}
	in, err := g.feeds(o.inputs[0])
	if err != nil {
		return fail(err)
	}
	values, err := params(g.graph)
	if err != nil {
		return fail(err)
	}
	stage = "passes"
	if err := r.appendLoss(c, o, g.graph); err != nil {
		return fail(err)
	}
	learn(g.graph, c.inputs, in, values)
	ctx := &passes.Context{Options: passes.Options{StopAfter: "autodiff", GradResult: true, NoEval: true, Output: "loss", VerifyEach: true}}
	if ctx.Options.Loss, err = passes.ParseLoss("output"); err != nil {
		return fail(err)
	}
	if err := passes.Run(ctx, g.graph, passes.Pipeline(), passes.Order()); err != nil {
		return fail(err)
	}
	stage = "ref"
	got, _, err := ref.Run(ctx.Program("step"), in, values)
	if err != nil {
		return fail(err)
	}
	for _, name := range c.inputs {
		if err := compareGradient(name, got["grad/"+name], want[name], values[name].Type.DType); err != nil {
			return fail(err)
		}
	}
	return v, ""
}

// appendLoss makes the sum over outputs of output times cotangent the result "loss".
func (r *runner) appendLoss(c *gradCase, o *opened, g *ir.Graph) error {
	b := &ir.Builder{G: g}
	var total *ir.Value
	for j, info := range o.model.Graph.Output {
		cot, err := r.golden(fmt.Sprintf("%s/cotangent_%d.npy", c.from, j))
		if err != nil {
			return err
		}
		if cot == nil {
			continue
		}
		y := g.Result(info.GetName())
		d := ir.F32
		if y.Type.DType == ir.F64 {
			d = ir.F64
		}
		if y.Type.DType != d {
			y = b.Add(op.Cast{To: d}, y)
		}
		t := ir.Tensor{Type: ir.T(d, cot.shape...), F: cot.x}
		if !t.Type.Shape.Equal(y.Type.Shape) {
			return fmt.Errorf("cotangent of %q has shape %v, the output %v", info.GetName(), cot.shape, y.Type.Shape)
		}
		part := b.Add(op.Mul{}, y, g.AddConst(t.Type, t.Encode()))
		var axes []int64
		for a := range cot.shape {
			axes = append(axes, int64(a))
		}
		part = b.Add(op.ReduceSum{Axes: axes}, part)
		switch {
		case total == nil:
			total = part
		case total.Type.DType != part.Type.DType:
			total = b.Add(op.Add{}, b.Add(op.Cast{To: ir.F64}, total), b.Add(op.Cast{To: ir.F64}, part))
		default:
			total = b.Add(op.Add{}, total, part)
		}
	}
	if total == nil {
		return errors.New("no output has a cotangent")
	}
	if total.Type.DType != ir.F32 {
		total = b.Add(op.Cast{To: ir.F32}, total)
	}
	g.Results = []ir.Result{{Name: "loss", Value: total}}
	return nil
}

// learn turns inputs into trainable parameters and freezes everything else.
func learn(g *ir.Graph, names []string, in, values map[string]ir.Tensor) {
	for _, p := range g.Params {
		p.Trainable = false
	}
	inputs := g.Inputs[:0:0]
	for _, v := range g.Inputs {
		if !slices.Contains(names, v.Name) {
			inputs = append(inputs, v)
			continue
		}
		g.Params = append(g.Params, &ir.Param{Value: v, Role: ir.Weight, Trainable: true})
		values[v.Name] = in[v.Name]
		delete(in, v.Name)
	}
	g.Inputs = inputs
	g.Renumber()
}

// compareGradient is lenient only where the golden is no number: near a kink.
func compareGradient(name string, got ir.Tensor, want *golden, d ir.DType) error {
	most := 0.0
	for _, w := range want.x {
		if a := math.Abs(w); !math.IsNaN(w) && !math.IsInf(w, 0) {
			most = max(most, a)
		}
	}
	limit := 1e-4*most + 1e-9
	if d == ir.F64 {
		limit = 1e-6*most + 1e-9
	}
	if d == ir.F16 || d == ir.BF16 {
		limit = 2e-2 * most
	}
	for i, w := range want.x {
		g := 0.0 // a parameter without influence has no gradient at all
		if got.F != nil {
			g = got.F[i]
		}
		if math.IsNaN(w) || g == w {
			continue
		}
		if !(math.Abs(g-w) <= limit) {
			return fmt.Errorf("gradient of %q: element %d is %v, want %v (limit %.2g)", name, i, g, w, limit)
		}
	}
	return nil
}

// gradCases reads grads.tsv: the cases of which we claim a gradient.
func gradCases(t testing.TB) []*gradCase {
	byName := map[string]*testCase{}
	for _, c := range index(t) {
		byName[c.archive+":"+c.name] = c
	}
	rows := table(t, "grads.tsv")
	inputs := map[string][]string{}
	for _, r := range rows {
		inputs[r["archive"]+":"+r["case"]] = strings.FieldsFunc(r["inputs"], func(c rune) bool { return c == ',' || c == ' ' || c == ';' })
	}
	var out []*gradCase
	for _, r := range rows {
		c := byName[r["archive"]+":"+r["case"]]
		if r["method"] == "none" || c == nil || c.smooth != "yes" {
			continue
		}
		g := &gradCase{testCase: c, from: r["case"], inputs: inputs[r["archive"]+":"+r["case"]]}
		if r["method"] == "alias" {
			g.from = r["same_as"]
			if len(g.inputs) == 0 {
				g.inputs = inputs[r["archive"]+":"+g.from]
			}
		}
		out = append(out, g)
	}
	return out
}

// TestGradients runs all goldens, or a sample.
func TestGradients(t *testing.T) {
	cases := gradCases(t)
	r := &runner{dir: t.TempDir()}
	defer r.close()
	pattern := regexp.MustCompile(*only)
	passed, failed, left := map[int]int{}, 0, map[string]int{}
	all := map[int]int{}
	for i, c := range cases {
		if !pattern.MatchString(c.String()) || !*full && *only == "" && i%19 != 0 {
			continue
		}
		if why := skipped(c.testCase); why != "" {
			left[why]++
			continue
		}
		if slices.ContainsFunc(c.ops, func(o string) bool { return slices.Contains(noSlope, o) }) && len(c.ops) == 1 {
			left["slope 0 everywhere: reported, not computed"]++
			continue
		}
		if why := noComparison(c.testCase); why != "" {
			left[why]++
			continue
		}
		v, skip := r.gradient(c)
		if skip != "" {
			left[skip]++
			continue
		}
		all[c.tier]++
		if v.stage == "" {
			passed[c.tier]++
			continue
		}
		if failed++; failed <= 60 || *full {
			t.Errorf("%v: %s: %.250s", c.testCase, v.stage, v.reason)
		}
	}
	for tier := range 4 {
		t.Logf("tier %d: gradients of %d of %d cases", tier, passed[tier], all[tier])
	}
	for why, n := range left {
		t.Logf("%d cases not run: %s", n, why)
	}
}
