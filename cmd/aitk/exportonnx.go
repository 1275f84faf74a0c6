package main

import (
	"strings"

	"aitk/importer"
	"aitk/ir"
)

// exportONNX writes the model again with trained weights: those of --weights, and on top those of a checkpoint.
func (c *call) exportONNX(path string) error {
	if c.out == "-" {
		return usagef("an ONNX model may take two files: export it with -o OUT.onnx")
	}
	list, _, err := c.exportedParams(path)
	if err != nil {
		return err
	}
	by := map[string]*exported{}
	for i := range list {
		by[list[i].Name] = &list[i]
	}
	model := path
	if s, err := c.open(path); err != nil {
		return err
	} else if s.plan != nil {
		return usagef("%s is a plan: name the model, and the weights with --weights or --resume", path)
	} else {
		model = s.path
	}
	return importer.Export(model, c.out, importer.ExportOptions{Training: c.training, Value: func(name string, t ir.Type, dst []byte) (bool, error) {
		x := by[name]
		if x == nil || !x.Type.Equal(t) {
			return false, nil
		}
		return true, x.read(dst)
	}})
}

// wantsONNX tells whether the output is to be a model.
func (c *call) wantsONNX() bool { return strings.HasSuffix(strings.ToLower(c.out), ".onnx") }
