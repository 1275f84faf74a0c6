package e2e

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"aitk/internal/safetensors"
	"aitk/ir"
)

// cnnDigits is the convolutional network of testdata on the real digits: no golden, but it runs everywhere.
func cnnDigits() run {
	here := filepath.Join("..", "..", "testdata")
	return run{dir: filepath.Join(here, "onnx"), file: "cnn_digits.onnx", data: filepath.Join(here, "data", "digits.safetensors")}
}

// cut takes batches from a file of samples, and the settings that the command line would take for classes.
func (x *trainer) cut(t testing.TB) {
	file, err := safetensors.Open(x.data)
	check(t, err)
	t.Cleanup(func() { file.Close() })
	x.batches = &cutter{file: file, size: 32}
	x.g.Loss.Type, x.g.Loss.ClassAxis = "cross_entropy", 1
	o := &x.g.Optimizer
	o.Type, o.LR, o.Betas, o.Eps, o.WeightDecay = "adamw", 1e-3, []float64{0.9, 0.999}, 1e-8, 0.01
	x.steps = 8
}

// cutter cuts batches of size samples from a file: step i gets the samples from i*size on. Images become f32, labels i64.
type cutter struct {
	file *safetensors.File
	size int64
}

// find is the tensor behind "step<i>.<input>", the type of a batch of it and the first element of step i.
func (c *cutter) find(name string) (info safetensors.Info, batch ir.Type, first int64, ok bool) {
	var step int64
	var input string
	if _, err := fmt.Sscanf(strings.Replace(name, ".", " ", 1), "step%d %s", &step, &input); err != nil {
		return info, batch, 0, false
	}
	info, ok = c.file.Info(input)
	if !ok || info.Type.Shape[0] < (step+1)*c.size {
		return info, batch, 0, false
	}
	batch = ir.T(ir.F32, append(ir.Shape{c.size}, info.Type.Shape[1:]...)...)
	if input == "target" {
		batch.DType = ir.I64
	}
	return info, batch, step * batch.Shape.Elems(), true
}

func (c *cutter) Info(name string) (safetensors.Info, bool) {
	info, batch, _, ok := c.find(name)
	info.Name, info.Type, info.Bytes = name, batch, batch.Bytes()
	return info, ok
}

func (c *cutter) ReadTensor(name string, dst []byte) error {
	info, batch, first, ok := c.find(name)
	if !ok {
		return fmt.Errorf("no batch %q", name)
	}
	raw := make([]byte, batch.Elems()) // bytes: the file holds u8
	if err := c.file.ReadAt(info.Name, raw, first); err != nil {
		return err
	}
	x := ir.NewTensor(batch)
	for i, b := range raw {
		if x.F != nil {
			x.F[i] = float64(b)
		} else {
			x.I[i] = int64(b)
		}
	}
	copy(dst, x.Encode())
	return nil
}
