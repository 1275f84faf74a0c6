package main

import (
	"aitk/internal/safetensors"
	"aitk/ir"
)

// readInputs reads the tensors that --input binds to inputs of the graph, by input.
func (c *call) readInputs() (map[string]ir.Tensor, error) {
	inputs := map[string]ir.Tensor{}
	for _, in := range c.inputs {
		x, err := readTensor(in.file, in.name)
		if err != nil {
			return nil, err
		}
		inputs[in.name] = x
	}
	return inputs, nil
}

// readTensor reads the tensor of a name from a safetensors file, or the only one.
func readTensor(path, name string) (ir.Tensor, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return ir.Tensor{}, cannotOpen("--input "+name, path, err)
	}
	defer f.Close()
	x, ok := f.Info(name)
	if !ok && len(f.Infos()) == 1 {
		x, ok = f.Infos()[0], true
	}
	if !ok {
		return ir.Tensor{}, usagef("--input %s: %s holds no tensor of that name", name, path)
	}
	raw := make([]byte, x.Bytes)
	if err := f.ReadTensor(x.Name, raw); err != nil {
		return ir.Tensor{}, err
	}
	return ir.DecodeTensor(x.Type, raw)
}
