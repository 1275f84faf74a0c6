package importer

import (
	"bytes"
	"errors"

	"aitk/importer/onnxpb"
	"aitk/ir"
)

// ImportBytes is Import for a model in memory; name stands for the file in messages. All weights become literals, which share raw; data beside the
// model is refused.
func ImportBytes(name string, raw []byte, opt Options) (*Model, error) {
	m, err := onnxpb.Read(bytes.NewReader(raw), int64(len(raw)), onnxpb.Limits{})
	if err == nil && m.Graph == nil {
		err = errors.New("not an ONNX model: it holds no graph")
	}
	if err != nil {
		return nil, &ir.Error{Origin: ir.Origin{File: name}, Cause: err}
	}
	f := &file{path: name, raw: raw, model: m}
	defer f.Close()
	return importFile(f, opt)
}
