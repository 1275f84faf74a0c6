package main

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"text/tabwriter"

	"aitk/importer"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/ir/plan"
	"aitk/runtime"
	"aitk/runtime/cpu"
	"aitk/runtime/cuda"
)

func opsCommand() command {
	return command{name: "ops", short: "the core ops: shape rule, meaning, gradient, kernels", run: listOps,
		long: `shape: the op says the types of its results. eval: what gives its meaning, a plain evaluation (own) or simpler ops (parts). grad: a rule of its
own, or the reason why there is none. cpu: asked of the device with the op's own samples; view ops have no instruction, swaps become copies. cuda: the same of
the CUDA device, whether or not this binary has it. With --onnx it is the operators of ONNX instead, with the opsets in which each changed.`}
}

// opRow is a row of the matrix.
type opRow struct {
	Op         string   `json:"op"`
	Synopsis   string   `json:"synopsis"`
	Attributes []string `json:"attributes"`
	Shape      bool     `json:"shape"`
	Eval       string   `json:"eval"` // own, parts
	Grad       string   `json:"grad"` // own, or empty
	NoGrad     string   `json:"no_grad_reason,omitempty"`
	CPU        string   `json:"cpu"`  // yes, view, copy, no: what is missing
	CUDA       string   `json:"cuda"` // likewise, of the device that has the build tag
	Stateful   bool     `json:"stateful"`
	Random     bool     `json:"random"`
}

func listOps(c *call) error {
	if c.onnx {
		return listONNX(c)
	}
	probe, err := newKernelProbe()
	if err != nil {
		return err
	}
	defer probe.dev.Close()
	var rows []opRow
	synopses := op.Synopses()
	for _, o := range op.All() {
		r := describeOp(o, probe)
		r.Synopsis = synopses[r.Op]
		rows = append(rows, r)
	}
	if c.wants("json") {
		return c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error { return writeJSON(w, rows) }})
	}
	t := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "op\tshape\teval\tgrad\tcpu\tcuda\twhat it is")
	for _, r := range rows {
		grad := r.Grad
		if grad == "" {
			grad = "none: " + r.NoGrad
		}
		what := r.Synopsis
		if len(r.Attributes) > 0 {
			what += " {" + strings.Join(r.Attributes, " ") + "}"
		}
		fmt.Fprintf(t, "%s\tyes\t%s\t%s\t%s\t%s\t%s\n", r.Op, r.Eval, grad, r.CPU, r.CUDA, what)
	}
	return t.Flush()
}

// listONNX prints what the importer makes of the operators of ONNX.
func listONNX(c *call) error {
	if c.wants("json") {
		return c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error { return writeJSON(w, importer.Matrix()) }})
	}
	return importer.WriteMatrix(c.stdout)
}

func describeOp(o ir.Op, probe *kernelProbe) opRow {
	r := opRow{Op: ir.OpName(o), Attributes: attributes(o), Shape: true, Eval: "parts", Stateful: ir.IsStateful(o), CPU: probe.ask(o)}
	r.CUDA = cudaKernel(o, r.CPU)
	if _, ok := o.(ir.Evaluator); ok {
		r.Eval = "own"
	}
	if e, ok := o.(ir.Effects); ok {
		r.Random = e.Stream() != 0
	}
	for _, s := range samplesOf(o) {
		if e, ok := s.Op.(ir.Effects); ok && e.Stream() != 0 {
			r.Random = true
		}
	}
	if _, ok := o.(ir.Differentiable); ok {
		r.Grad = "own"
	} else if n, ok := o.(ir.NoGrad); ok {
		r.NoGrad = n.NoGradReason()
	}
	return r
}

// cudaKernel tells the same of the CUDA device: what runs nothing or is a copy on one device is so on the other.
func cudaKernel(o ir.Op, onCPU string) string {
	switch {
	case onCPU == "view" || onCPU == "copy":
		return onCPU
	case cuda.HasKernel(o):
		return "yes"
	}
	return "no: the device has no kernel for it"
}

// attributes lists the op's fields by the names that the text form has.
func attributes(o ir.Op) []string {
	names := []string{}
	t := reflect.TypeOf(o)
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Anonymous || !f.IsExported() { // shared methods, no attributes
			continue
		}
		kind := f.Type.String()
		kind = kind[strings.LastIndexByte(kind, '.')+1:]
		names = append(names, strings.ToLower(f.Name[:1])+f.Name[1:]+":"+strings.ToLower(kind))
	}
	return names
}

// samplesOf are the good samples of an op.
func samplesOf(o ir.Op) []ir.Sample {
	s, ok := o.(ir.Sampler)
	if !ok {
		return nil
	}
	var good []ir.Sample
	for _, x := range s.Samples() {
		if x.Err == "" {
			good = append(good, x)
		}
	}
	return good
}

// kernelProbe asks the CPU device for kernels without running any.
type kernelProbe struct {
	dev   *cpu.Device
	arena runtime.Arena
	align int64
}

// newKernelProbe opens a device with an arena that holds the operands of the largest sample.
func newKernelProbe() (*kernelProbe, error) {
	p := &kernelProbe{align: 64}
	var most int64
	for _, o := range op.All() {
		for _, s := range samplesOf(o) {
			in, out, err := sampleTypes(s)
			if err != nil {
				continue
			}
			n := p.rounded(ir.WorkOf(s.Op, in, out).ScratchBytes)
			for _, t := range append(in, out...) {
				n += p.rounded(t.Bytes())
			}
			most = max(most, n)
		}
	}
	p.dev = cpu.Open(cpu.Options{Threads: 1})
	var err error
	p.arena, err = p.dev.Alloc(ir.Device, most)
	return p, err
}

func (p *kernelProbe) rounded(n int64) int64 { return (n + p.align - 1) / p.align * p.align }

func sampleTypes(s ir.Sample) (in, out []ir.Type, err error) {
	for _, x := range s.In {
		in = append(in, x.Type)
	}
	out, err = s.Op.Infer(in)
	return in, out, err
}

// ask tells whether the device has kernels for all good samples of an op.
func (p *kernelProbe) ask(o ir.Op) string {
	answer := "no sample"
	for _, s := range samplesOf(o) {
		in, out, err := sampleTypes(s)
		if err != nil {
			return "no: " + err.Error()
		}
		if a := ir.AliasesOf(s.Op); len(out) == 1 && len(a) > 0 && a[0].View {
			return "view"
		}
		for _, t := range append(in, out...) {
			if t.Space != ir.Device {
				return "copy"
			}
		}
		if _, err := p.kernel(s.Op, in, out); err != nil {
			return "no: " + err.Error()
		}
		answer = "yes"
	}
	return answer
}

func (p *kernelProbe) kernel(o ir.Op, in, out []ir.Type) (runtime.Kernel, error) {
	at := int64(0)
	take := func(bytes int64) runtime.Slice {
		s := runtime.Slice{Arena: p.arena, Space: ir.Device, Offset: at, Bytes: bytes}
		at += p.rounded(bytes)
		return s
	}
	places := func(types []ir.Type) (refs []plan.Ref, slices []runtime.Slice) {
		for i, t := range types {
			refs = append(refs, plan.Ref{Buffer: plan.BufferID(i), Type: t})
			slices = append(slices, take(t.Bytes()))
		}
		return refs, slices
	}
	x := &plan.Exec{Op: o, Scratch: plan.NoBuffer}
	var inAt, outAt []runtime.Slice
	x.In, inAt = places(in)
	x.Out, outAt = places(out)
	return p.dev.Kernel(x, inAt, outAt, take(ir.WorkOf(o, in, out).ScratchBytes))
}
