package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"aitk/importer"
	"aitk/internal/safetensors"
	"aitk/internal/weights"
	"aitk/ir"
	"aitk/runtime/train/checkpoint"
)

func exportCommand() command {
	return command{name: "export", args: "PLAN|MODEL|CHECKPOINT -o OUT.safetensors|OUT.onnx", min: 1, max: 1, short: "parameters as safetensors under their authors' names, or the trained model as ONNX", run: export,
		long: `With -o OUT.onnx the model is written again, with the weights of --weights or --resume under the names and in the order and orientation of
the file, in the form for inference: batch norm by its running statistics, dropout gone (--training-form keeps both). The data of a large model
lies beside it in OUT.onnx.data.

With -o OUT.safetensors: of a plan or model: its weights and statistics, with --resume as a checkpoint of its run has them. Of a checkpoint alone: the trained
weights and statistics that it holds, without the state of the optimizer. A tied weight stands once, under its first name.

With --adapter the adapters of --lora alone, from a plan (with --resume as trained) or a checkpoint, in the keys of another tool; -o is a file or, for
PEFT, a folder. With --merge all weights, adapters added to theirs, from a plan and --resume.`}
}

// exported is a parameter to write and how to read it.
type exported struct {
	safetensors.Spec
	aliases []string
	read    func(dst []byte) error
}

func export(c *call) error {
	if c.out == "" {
		return usagef("export needs -o OUT.safetensors or -o OUT.onnx")
	}
	if c.wantsONNX() {
		return c.exportONNX(c.args[0])
	}
	if err := c.notAnInput(c.out); err != nil {
		return err
	}
	params := c.exportedParams
	switch {
	case c.adapter != "" && c.merge:
		return usagef("--adapter writes adapters alone, --merge weights with adapters in them: give one")
	case c.adapter != "":
		return exportAdapter(c)
	case c.merge:
		params = c.exportMerged
	}
	list, metadata, err := params(c.args[0])
	if err != nil {
		return err
	}
	if len(list) == 0 {
		return ir.Errorf(ir.Failed, ir.Origin{File: c.args[0]}, "there is no weight and no statistic to export")
	}
	if c.out != "-" {
		return writeExport(c.out, metadata, list)
	}
	dir, err := os.MkdirTemp("", "aitk-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "out.safetensors")
	if err := writeExport(path, metadata, list); err != nil {
		return err
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	_, err = c.stdout.Write(raw)
	return err
}

func writeExport(path string, metadata map[string]string, list []exported) error {
	byName := map[string]exported{}
	var specs []safetensors.Spec
	for _, x := range list {
		byName[x.Name] = x
		specs = append(specs, x.Spec)
		for _, a := range x.aliases {
			metadata[a] = x.Name
		}
	}
	return safetensors.WriteFile(path, metadata, specs, func(s safetensors.Spec) ([]byte, error) {
		raw := make([]byte, s.Type.Bytes())
		return raw, byName[s.Name].read(raw)
	})
}

// exportedParams lists what the argument has to give.
func (c *call) exportedParams(arg string) ([]exported, map[string]string, error) {
	metadata := map[string]string{"format": "pt"}
	if st, err := os.Stat(arg); err == nil && st.IsDir() {
		ck, err := findCheckpoint(c, arg)
		if err != nil {
			return nil, nil, err
		}
		c.closing(ck)
		metadata["model"], metadata["graph_sha256"], metadata["step"] = ck.Manifest.Model, ck.Manifest.GraphSum, fmt.Sprint(ck.Manifest.Step)
		return trainedOf(ck), metadata, nil
	}
	s, err := c.open(arg)
	if err != nil {
		return nil, nil, err
	}
	r := weights.NewReader()
	c.closing(r)
	var list []exported
	add := func(name string, t ir.Type, role ir.Role, aliases []string, in ir.Init) {
		if role == ir.Weight || role == ir.Statistic {
			list = append(list, exported{safetensors.Spec{Name: name, Type: t}, aliases, func(dst []byte) error { return r.ReadAt(name, t, &in, dst, 0) }})
		}
	}
	if s.plan != nil {
		metadata["model"], metadata["graph_sha256"] = s.plan.Model, s.plan.GraphSum
		for _, p := range s.plan.Params {
			if p.Init.Packed() && !p.Trainable { // as the model has it
				if p.Of != "" {
					continue
				}
				p.Type, p.Init.Pack = p.Init.Pack.Source, ir.Packing{}
			}
			add(p.Name, p.Type, p.Role, p.Aliases, p.Init)
		}
	} else {
		m, err := importer.Inspect(s.path)
		if err != nil {
			return nil, nil, err
		}
		metadata["model"] = filepath.Base(s.path)
		g := ir.NewGraph("parameters")
		for _, p := range m.Params {
			q := g.AddParam(p.Name, p.Type)
			q.Role, q.Aliases, q.Init = p.Role, p.Aliases, p.Init
		}
		if c.weights != "" {
			if err := c.replaceWeights(g); err != nil {
				return nil, nil, err
			}
		}
		for _, p := range g.Params {
			add(p.Name, p.Type, p.Role, p.Aliases, p.Init)
		}
	}
	if c.resume == "" {
		return list, metadata, nil
	}
	ck, err := c.openCheckpoint()
	if err != nil {
		return nil, nil, err
	}
	c.closing(ck)
	metadata["step"] = fmt.Sprint(ck.Manifest.Step)
	return list, metadata, overlay(list, ck)
}

// overlay makes parameters that the checkpoint holds come from it.
func overlay(list []exported, ck *checkpoint.Checkpoint) error {
	var errs []error
	hits := 0
	for i := range list {
		x := &list[i]
		in, ok := ck.Params.Info(x.Name)
		if !ok {
			continue
		}
		hits++
		if !in.Type.Equal(x.Type) {
			errs = append(errs, usagef("checkpoint %s has %q as %v, here it is %v", ck.Path, x.Name, in.Type, x.Type))
		}
		name := x.Name
		x.read = func(dst []byte) error { return ck.Params.ReadTensor(name, dst) }
	}
	if hits == 0 {
		errs = append(errs, usagef("checkpoint %s has none of these parameters", ck.Path))
	}
	return errors.Join(errs...)
}

// trainedOf lists a checkpoint's weights and statistics. It holds logical tensors under their names; the optimizer's stand beside a tensor of the
// same type, with a suffix.
func trainedOf(ck *checkpoint.Checkpoint) []exported {
	var list []exported
	for _, x := range ck.Params.Infos() {
		if isState(ck, x) {
			continue
		}
		name := x.Name
		list = append(list, exported{safetensors.Spec{Name: name, Type: x.Type}, nil, func(dst []byte) error { return ck.Params.ReadTensor(name, dst) }})
	}
	return list
}

func isState(ck *checkpoint.Checkpoint, x safetensors.Info) bool {
	for _, suffix := range []string{".m", ".v", ".momentum", ".grad"} {
		of, ok := strings.CutSuffix(strings.TrimRight(x.Name, "_"), suffix)
		if !ok {
			continue
		}
		if w, found := ck.Params.Info(of); found && w.Type.Equal(x.Type) {
			return true
		}
	}
	return false
}
