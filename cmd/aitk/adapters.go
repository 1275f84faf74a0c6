package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aitk/internal/adapter"
	"aitk/internal/safetensors"
	"aitk/internal/weights"
	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes"
)

// adapterInit opens the files that --lora names when the pass asks for them. A file that cannot be read holds no adapter; adapterProblems says why.
func (c *call) adapterInit() func(file, module string) (passes.AdapterTensors, bool) {
	c.adapters = map[string]*adapter.File{}
	return func(file, module string) (passes.AdapterTensors, bool) {
		f, opened := c.adapters[file]
		if !opened {
			var err error
			if f, err = adapter.Open(file); err != nil {
				c.adapterErr = errors.Join(c.adapterErr, cannotOpen("--lora init", file, err))
			}
			c.adapters[file] = f
		}
		if f == nil {
			return passes.AdapterTensors{}, false
		}
		m, ok := f.Find(module)
		if !ok {
			return passes.AdapterTensors{}, false
		}
		return passes.AdapterTensors{A: passes.AdapterTensor(m.A), B: passes.AdapterTensor(m.B), Alpha: m.Alpha}, true
	}
}

// tellUnusedAdapters says what adapter files hold beside what was asked of them.
func (c *call) tellUnusedAdapters() {
	for _, name := range slices.Sorted(maps.Keys(c.adapters)) {
		if f := c.adapters[name]; f != nil && len(f.Unused()) > 0 {
			c.note("%s: these adapters are for weights that the model has not or --lora does not name: %s", name, listed(f.Unused()))
		}
	}
}

// adapterSource is where export finds adapters and their contents.
type adapterSource struct {
	list    []plan.Adapter
	read    func(name string) (adapter.Content, error)
	weights []plan.Param // of a plan; nil for a checkpoint alone
}

// openAdapters opens a plan, with --resume at a checkpoint of its run, or a checkpoint alone.
func (c *call) openAdapters(arg string) (*adapterSource, map[string]string, error) {
	metadata := map[string]string{}
	s := &adapterSource{}
	var options []plan.Option
	if st, err := os.Stat(arg); err == nil && st.IsDir() {
		ck, err := findCheckpoint(c, arg)
		if err != nil {
			return nil, nil, err
		}
		c.closing(ck)
		for _, o := range ck.Manifest.Settings {
			options = append(options, plan.Option{Key: o.Key, Value: o.Value})
		}
		metadata["model"], metadata["step"] = ck.Manifest.Model, fmt.Sprint(ck.Manifest.Step)
		s.read = fromTensors(ck.Params)
	} else {
		src, err := c.open(arg)
		if err != nil {
			return nil, nil, err
		}
		if src.plan == nil {
			return nil, nil, usagef("%s is a model, which has no adapters: give a plan or a checkpoint", arg)
		}
		options, s.weights = src.plan.Options, src.plan.Params
		metadata["model"] = src.plan.Model
		s.read = c.firstContents(src.plan)
		if c.resume != "" {
			ck, err := c.openCheckpoint()
			if err != nil {
				return nil, nil, err
			}
			c.closing(ck)
			metadata["step"] = fmt.Sprint(ck.Manifest.Step)
			s.read = fromTensors(ck.Params)
		}
	}
	var err error
	if s.list, err = plan.Adapters(options); err != nil {
		return nil, nil, err
	}
	if len(s.list) == 0 {
		return nil, nil, usagef("%s has no adapters: it was not trained with --lora", arg)
	}
	return s, metadata, nil
}

// fromTensors reads adapters from a file of tensors under their parameters' names.
func fromTensors(f *safetensors.File) func(name string) (adapter.Content, error) {
	return func(name string) (adapter.Content, error) {
		x, ok := f.Info(name)
		if !ok || x.Type.DType != ir.F32 {
			return adapter.Content{}, usagef("%s has no float32 tensor %q", f.Path(), name)
		}
		raw := make([]byte, x.Bytes)
		return adapter.Content{Shape: x.Type.Shape, Raw: raw}, f.ReadTensor(name, raw)
	}
}

// firstContents reads the adapters that a plan begins with.
func (c *call) firstContents(p *plan.Plan) func(name string) (adapter.Content, error) {
	r := weights.NewReader()
	c.closing(r)
	return func(name string) (adapter.Content, error) {
		for i := range p.Params {
			if q := &p.Params[i]; q.Name == name {
				raw, err := r.Bytes(q.Name, q.Type, &q.Init)
				return adapter.Content{Shape: q.Type.Shape, Raw: raw}, err
			}
		}
		return adapter.Content{}, fmt.Errorf("the plan has no parameter %q", name)
	}
}

// exportAdapter writes the adapters alone.
func exportAdapter(c *call) error {
	s, metadata, err := c.openAdapters(c.args[0])
	if err != nil {
		return err
	}
	style, err := adapter.ParseStyle(c.adapter)
	if err != nil {
		return err
	}
	if c.out == "-" {
		return usagef("--adapter needs a file or a folder behind -o")
	}
	path := c.out
	if style == adapter.PEFT && !strings.HasSuffix(path, ".safetensors") { // a folder, as PEFT loads it
		if err := os.MkdirAll(path, 0o777); err != nil {
			return err
		}
		path = filepath.Join(path, "adapter_model.safetensors")
	}
	var entries []adapter.Entry
	for _, a := range s.list {
		e := adapter.Entry{Module: a.Module(), Scale: a.Scale}
		if e.A, err = s.read(a.A); err != nil {
			return err
		}
		if e.B, err = s.read(a.B); err != nil {
			return err
		}
		entries = append(entries, e)
	}
	return adapter.Write(path, entries, adapter.Options{Style: style, Metadata: metadata})
}

// exportMerged lists the model's weights with their adapters added. Weights that the plan holds in fewer bits are taken as the model has them: what
// is added is what was trained beside the others.
func (c *call) exportMerged(arg string) ([]exported, map[string]string, error) {
	s, metadata, err := c.openAdapters(arg)
	if err != nil {
		return nil, nil, err
	}
	if s.weights == nil {
		return nil, nil, usagef("--merge needs the weights: give the plan, and the checkpoint with --resume")
	}
	metadata["format"] = "pt"
	byWeight := map[string]plan.Adapter{}
	for _, a := range s.list {
		byWeight[a.Weight] = a
	}
	r := weights.NewReader()
	c.closing(r)
	var list []exported
	for i := range s.weights {
		q := &s.weights[i]
		if q.Role != ir.Weight && q.Role != ir.Statistic || q.Of != "" {
			continue
		}
		t, in := q.Init.Described(q.Type), q.Init
		in.Pack = ir.Packing{}
		read := func(dst []byte) error { return r.ReadAt(q.Name, t, &in, dst, 0) }
		if a, ok := byWeight[q.Name]; ok {
			if a.Shared {
				return nil, nil, usagef("weight %q is read in other places too, where its adapter is not added (a tied embedding, say): merged it would change these; export the adapters with --adapter", q.Name)
			}
			if !t.DType.IsFloat() {
				return nil, nil, usagef("weight %q is %v in the model's file: an adapter cannot be added to it", q.Name, t)
			}
			read = func(dst []byte) error { return s.merge(r, q, t, &in, a, dst) }
		}
		list = append(list, exported{safetensors.Spec{Name: q.Name, Type: t}, q.Aliases, read})
	}
	return list, metadata, nil
}

func (s *adapterSource) merge(r *weights.Reader, q *plan.Param, t ir.Type, in *ir.Init, a plan.Adapter, dst []byte) error {
	if err := r.ReadAt(q.Name, t, in, dst, 0); err != nil {
		return err
	}
	ca, err := s.read(a.A)
	if err != nil {
		return err
	}
	cb, err := s.read(a.B)
	if err != nil {
		return err
	}
	d, err := adapter.NewDelta(t, ca, cb, a.Scale, a.InOut)
	if err != nil {
		return fmt.Errorf("weight %q: %w", q.Name, err)
	}
	return d.Apply(t, dst)
}
