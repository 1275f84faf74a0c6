package train

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/train/data"
)

// call is a program with its inputs and results found and checked once, so that running it needs no search that can fail.
type call struct {
	exe     *runtime.Executable
	name    string
	feed    *data.Feed // nil: it takes no data
	scalars []scalar
	results []result
}

// scalar is a reserved input.
type scalar struct {
	name string
	t    ir.Type
	raw  []byte
}

// result is a result that is read after the program.
type result struct {
	name string
	t    ir.Type
	raw  []byte
}

// reserved are the contents of the reserved inputs.
type reserved struct {
	step, micro, seed, valid int64
	lr                       float64
}

// ports are the inputs of a program as the data sees them.
func ports(p *plan.Program) []data.Port {
	out := make([]data.Port, len(p.Inputs))
	for i, x := range p.Inputs {
		out[i] = data.Port{Name: x.Name, Type: x.Ref.Type}
	}
	return out
}

// newCall binds a program; src is nil where no data is wanted. Of the results those named are read.
func newCall(exe *runtime.Executable, name string, src *data.Source, labels data.Labels, results ...string) (*call, error) {
	p, _ := exe.Plan().Program(name)
	if p == nil {
		return nil, &ir.Error{Kind: ir.Unsupported, Cause: fmt.Errorf("the plan has no program %q", name), Remedy: "compile it for this purpose"}
	}
	c := &call{exe: exe, name: name}
	var problems []string
	takesData := false
	for _, in := range p.Inputs {
		t := in.Ref.Type
		if !strings.HasPrefix(in.Name, "$") {
			takesData = true
			continue
		}
		isInt := in.Name == "$step" || in.Name == "$micro" || in.Name == "$seed" || in.Name == "$valid"
		if (!isInt || t.DType != ir.I64) && (in.Name != "$lr" || t.DType != ir.F32) || t.Elems() != 1 {
			problems = append(problems, fmt.Sprintf("reserved input %q %v", in.Name, t))
		}
		c.scalars = append(c.scalars, scalar{in.Name, t, make([]byte, t.Bytes())})
	}
	for _, r := range p.Results {
		if slices.Contains(results, r.Name) {
			c.results = append(c.results, result{r.Name, r.Ref.Type, make([]byte, r.Ref.Type.Bytes())})
		}
	}
	if len(problems) > 0 {
		return nil, &ir.Error{Kind: ir.Unsupported, Cause: fmt.Errorf("program %s has what no run can give: %s", name, strings.Join(problems, ", "))}
	}
	if !takesData {
		return c, nil
	}
	if src == nil {
		return nil, &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("program %s needs data", name), Remedy: "give --data"}
	}
	var err error
	c.feed, err = src.Bind(ports(p), labels)
	return c, err
}

// takes tells whether the program has a reserved input.
func (c *call) takes(name string) bool {
	return slices.ContainsFunc(c.scalars, func(s scalar) bool { return s.name == name })
}

// result finds a result; nil if the program does not give it.
func (c *call) result(name string) *result {
	for i := range c.results {
		if c.results[i].name == name {
			return &c.results[i]
		}
	}
	return nil
}

// set writes all inputs: what the feed holds, and the reserved ones.
func (c *call) set(v *reserved) error {
	if c.feed != nil {
		for i := range c.feed.Ports() {
			if err := c.exe.SetInput(c.name, c.feed.Name(i), c.feed.Bytes(i)); err != nil {
				return err
			}
		}
	}
	for i := range c.scalars {
		s := &c.scalars[i]
		switch s.name {
		case "$lr":
			binary.LittleEndian.PutUint32(s.raw, math.Float32bits(float32(v.lr)))
		case "$step":
			binary.LittleEndian.PutUint64(s.raw, uint64(v.step))
		case "$micro":
			binary.LittleEndian.PutUint64(s.raw, uint64(v.micro))
		case "$seed":
			binary.LittleEndian.PutUint64(s.raw, uint64(v.seed))
		case "$valid":
			binary.LittleEndian.PutUint64(s.raw, uint64(v.valid))
		}
		if err := c.exe.SetInput(c.name, s.name, s.raw); err != nil {
			return err
		}
	}
	return nil
}

// read reads all results.
func (c *call) read() error {
	for i := range c.results {
		if err := c.exe.Result(c.name, c.results[i].name, c.results[i].raw); err != nil {
			return err
		}
	}
	return nil
}

// float is element i of a float result.
func (r *result) float(i int64) float64 {
	le := binary.LittleEndian
	switch r.t.DType {
	case ir.F64:
		return math.Float64frombits(le.Uint64(r.raw[8*i:]))
	case ir.F32:
		return float64(math.Float32frombits(le.Uint32(r.raw[4*i:])))
	case ir.F16:
		return float64(ir.F16ToF32(le.Uint16(r.raw[2*i:])))
	case ir.BF16:
		return float64(ir.BF16ToF32(le.Uint16(r.raw[2*i:])))
	}
	return math.NaN()
}

// scalarOf is the one element of a float result, NaN if the program does not give it.
func (c *call) scalarOf(name string) float64 {
	if r := c.result(name); r != nil {
		return r.float(0)
	}
	return math.NaN()
}
