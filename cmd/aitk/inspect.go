package main

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"aitk/importer"
	"aitk/ir"
	"aitk/ir/plan"
)

func inspectCommand() command {
	return command{name: "inspect", args: "MODEL|PLAN", min: 1, max: 1, short: "what is in a model or plan: inputs, outputs, dims, ops, parameters", run: inspect,
		long: `Nothing is bound and no weight is read. A parameter's reason says why it is trained or not; what the model uses and aitk does not know
is listed at the end.`}
}

// The document of inspect --json.
type inspection struct {
	Schema      string             `json:"schema"`
	File        string             `json:"file"`
	Kind        string             `json:"kind"` // model, plan
	Producer    string             `json:"producer,omitempty"`
	IRVersion   int64              `json:"ir_version,omitempty"`
	Opset       int64              `json:"opset,omitempty"`
	Device      string             `json:"device,omitempty"`
	Options     map[string]string  `json:"options,omitempty"`
	Inputs      []inspectedValue   `json:"inputs"`
	Outputs     []inspectedValue   `json:"outputs"`
	Dims        []inspectedDim     `json:"dims"`
	Nodes       int                `json:"nodes"`
	Ops         []inspectedOp      `json:"ops"`
	Parameters  []inspectedParam   `json:"parameters"`
	Programs    []inspectedProgram `json:"programs,omitempty"`
	Unsupported string             `json:"unsupported,omitempty"`
}

type inspectedValue struct {
	Name  string   `json:"name"`
	DType string   `json:"dtype"`
	Shape []string `json:"shape"` // sizes and names of dimensions
}

type inspectedDim struct {
	Name  string   `json:"name"`
	Bound bool     `json:"bound"`
	Size  int64    `json:"size,omitempty"`
	Where []string `json:"where"`
}

type inspectedOp struct {
	Op    string `json:"op"`
	Count int    `json:"count"`
}

type inspectedParam struct {
	Name      string   `json:"name"`
	DType     string   `json:"dtype"`
	Shape     []int64  `json:"shape"`
	Bytes     int64    `json:"bytes"`
	Role      string   `json:"role"`
	Trainable bool     `json:"trainable"`
	Reason    string   `json:"reason,omitempty"`
	Aliases   []string `json:"aliases,omitempty"`
	Content   string   `json:"content"` // file, literal, fill, zero, absent
}

type inspectedProgram struct {
	Name         string `json:"name"`
	Instructions int    `json:"instructions"`
}

func inspect(c *call) error {
	s, err := c.open(c.args[0])
	if err != nil {
		return err
	}
	var d *inspection
	if s.plan != nil {
		d = inspectPlan(s.path, s.plan)
	} else {
		m, err := importer.Inspect(s.path)
		if err != nil {
			return err
		}
		d = inspectModel(m)
	}
	if c.wants("json") {
		return c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error { return writeJSON(w, d) }})
	}
	return d.write(c.stdout)
}

func inspectModel(m *importer.Model) *inspection {
	d := newInspection(m.Path, "model")
	d.Producer, d.IRVersion, d.Opset, d.Nodes = m.Producer, m.IRVersion, m.Opset, m.Nodes
	values := func(list []importer.ValueInfo) (out []inspectedValue) {
		for _, v := range list {
			out = append(out, inspectedValue{v.Name, v.DType.String(), append([]string{}, v.Shape...)})
		}
		return out
	}
	d.Inputs = append(d.Inputs, values(m.Inputs)...)
	d.Outputs = append(d.Outputs, values(m.Outputs)...)
	for _, x := range m.Dims {
		d.Dims = append(d.Dims, inspectedDim{x.Name, x.Bound, x.Size, append([]string{}, x.Where...)})
	}
	for _, o := range m.Ops {
		d.Ops = append(d.Ops, inspectedOp{o.Op, o.Count})
	}
	for _, p := range m.Params {
		d.Parameters = append(d.Parameters, inspectedParam{p.Name, p.Type.DType.String(), append([]int64{}, p.Type.Shape...), p.Type.Bytes(),
			p.Role.String(), p.Trainable, p.Reason, p.Aliases, contentWord(p.Init.Kind)})
	}
	if m.Unsupported != nil {
		d.Unsupported = m.Unsupported.Error()
	}
	return d
}

func newInspection(file, kind string) *inspection {
	return &inspection{Schema: "aitk.inspect/1", File: file, Kind: kind, Inputs: []inspectedValue{}, Outputs: []inspectedValue{}, Dims: []inspectedDim{},
		Ops: []inspectedOp{}, Parameters: []inspectedParam{}}
}

func contentWord(k ir.InitKind) string {
	switch k {
	case ir.InitZero:
		return "zero"
	case ir.InitFill:
		return "fill"
	case ir.InitFile:
		return "file"
	case ir.InitLiteral:
		return "literal"
	}
	return "absent"
}

func inspectPlan(path string, p *plan.Plan) *inspection {
	d := newInspection(path, "plan")
	d.Producer, d.Device, d.Options = p.Tool, p.Profile.Device+" ("+p.Profile.Name+")", map[string]string{}
	for _, o := range p.Options {
		d.Options[o.Key] = o.Value
	}
	for _, x := range p.Dims {
		d.Dims = append(d.Dims, inspectedDim{x.Name, true, x.Size, []string{}})
	}
	counts := map[string]int{}
	var order []string
	for i := range p.Programs {
		pr := &p.Programs[i]
		d.Programs = append(d.Programs, inspectedProgram{pr.Name, len(pr.Instrs)})
		if pr.Name != "step" {
			continue
		}
		d.Inputs, d.Outputs = append(d.Inputs, ports(pr.Inputs)...), append(d.Outputs, ports(pr.Results)...)
		for _, in := range pr.Instrs {
			x, ok := in.(*plan.Exec)
			if !ok {
				continue
			}
			d.Nodes++
			name := ir.OpName(x.Op)
			if counts[name]++; counts[name] == 1 {
				order = append(order, name)
			}
		}
	}
	for _, name := range order {
		d.Ops = append(d.Ops, inspectedOp{name, counts[name]})
	}
	for _, x := range p.Params {
		d.Parameters = append(d.Parameters, inspectedParam{Name: x.Name, DType: x.Type.DType.String(), Shape: append([]int64{}, x.Type.Shape...), Bytes: x.Type.Bytes(),
			Role: x.Role.String(), Trainable: x.Trainable, Aliases: x.Aliases, Content: contentWord(x.Init.Kind)})
	}
	return d
}

func ports(list []plan.Port) (out []inspectedValue) {
	for _, x := range list {
		v := inspectedValue{x.Name, x.Ref.Type.DType.String(), []string{}}
		for _, n := range x.Ref.Type.Shape {
			v.Shape = append(v.Shape, fmt.Sprint(n))
		}
		out = append(out, v)
	}
	return out
}

// write is the form for reading.
func (d *inspection) write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "%s %s", d.Kind, d.File)
	if d.Kind == "model" {
		fmt.Fprintf(t, ": opset %d, IR version %d", d.Opset, d.IRVersion)
	} else {
		fmt.Fprintf(t, ": for %s", d.Device)
	}
	if d.Producer != "" {
		fmt.Fprintf(t, ", made by %s", visible(d.Producer))
	}
	fmt.Fprintf(t, ", %d nodes\n", d.Nodes)
	list := func(title string, values []inspectedValue) {
		for _, v := range values {
			fmt.Fprintf(t, "%s\t%s\t%s[%s]\n", title, visible(v.Name), v.DType, visible(strings.Join(v.Shape, ",")))
		}
	}
	list("input", d.Inputs)
	list("output", d.Outputs)
	for _, x := range d.Dims {
		state := fmt.Sprintf("unbound, bind with --dim %s=N or by the data", visible(x.Name))
		if x.Bound {
			state = fmt.Sprint(x.Size)
		}
		fmt.Fprintf(t, "dim\t%s\t%s\t%s\n", visible(x.Name), state, visible(strings.Join(x.Where, ", ")))
	}
	for _, p := range d.Programs {
		fmt.Fprintf(t, "program\t%s\t%d instructions\n", visible(p.Name), p.Instructions)
	}
	var ops []string
	for _, o := range d.Ops {
		ops = append(ops, fmt.Sprintf("%s x%d", visible(o.Op), o.Count))
	}
	fmt.Fprintf(t, "ops\t%s\n\n", strings.Join(ops, ", "))
	d.writeParams(t)
	if d.Unsupported != "" {
		fmt.Fprintf(t, "\n%s\n", d.Unsupported)
	}
	return t.Flush()
}

func (d *inspection) writeParams(t io.Writer) {
	var trained, all int64
	fmt.Fprintln(t, "parameter\ttype\tbytes\trole\ttrains\twhy")
	for _, p := range d.Parameters {
		trains := "no"
		if p.Trainable {
			trains = "yes"
			trained += p.Bytes
		}
		all += p.Bytes
		name := p.Name
		if len(p.Aliases) > 0 {
			name += " = " + strings.Join(p.Aliases, " = ")
		}
		why := p.Reason
		if p.Content == "absent" {
			why = strings.TrimPrefix(why+"; the file lacks its content", "; ")
		}
		fmt.Fprintf(t, "%s\t%s%s\t%d\t%s\t%s\t%s\n", visible(name), p.DType, strings.ReplaceAll(fmt.Sprint(p.Shape), " ", ","), p.Bytes, p.Role, trains, visible(why))
	}
	fmt.Fprintf(t, "%d parameters, %s; %s of it trains\n", len(d.Parameters), plan.FormatBytes(all), plan.FormatBytes(trained))
}
