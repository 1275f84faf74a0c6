// Package metrics writes what a run measures: JSON lines for programs, and a line of progress for people. It must not know plans, data or
// how a run goes on; whoever runs hands it numbers.
//
// The first line is a header, {"schema":"aitk.metrics/1", ...}; then comes one object a step, see Step. Fields are added freely and none is
// changed silently: scripts read them.
//
// Invariants: a line is written at once and whole, so a killed run leaves a file that can be read to its last line; writing a step allocates
// nothing; a number that JSON cannot hold (NaN, infinity) is null.
package metrics

import (
	"encoding/json"
	"io"
	"math"
	"strconv"
)

// Schema names the version of the header.
const Schema = "aitk.metrics/1"

// Step is what one optimizer step measured. Fields of the evaluation are written only with Evaluated.
type Step struct {
	Step             int64   // from 0
	Loss             float64 // before the update, mean over microbatches
	LR               float64
	GradNorm         float64 // of the summed gradients, before clipping; NaN where the plan does not give it
	Seconds          float64
	SamplesPerSecond float64
	DevicePeakBytes  int64 // highest address that the device was handed so far
	HostPeakBytes    int64 // the same of pinned host memory
	MovedBytes       int64 // swapped out and in during this step

	Evaluated   bool
	EvalLoss    float64
	EvalMetric  string // name; "" or "loss": none besides the loss
	EvalValue   float64
	EvalSamples int64
}

// Writer writes JSON lines.
type Writer struct {
	w    io.Writer
	line []byte
}

// NewWriter writes to w, which it does not close.
func NewWriter(w io.Writer) *Writer { return &Writer{w: w, line: make([]byte, 0, 512)} }

// Header writes the first line: the fields of a struct, the first of which should be the schema.
func (w *Writer) Header(h any) error {
	raw, err := json.Marshal(h)
	if err != nil {
		return err
	}
	_, err = w.w.Write(append(raw, '\n'))
	return err
}

// Step writes a step's line.
func (w *Writer) Step(s *Step) error {
	w.line = append(w.line[:0], '{')
	w.int("step", s.Step)
	w.float("loss", s.Loss)
	w.float("lr", s.LR)
	w.float("grad_norm", s.GradNorm)
	w.float("seconds", s.Seconds)
	w.float("samples_per_second", s.SamplesPerSecond)
	w.int("device_peak_bytes", s.DevicePeakBytes)
	w.int("host_peak_bytes", s.HostPeakBytes)
	w.int("moved_bytes", s.MovedBytes)
	if s.Evaluated {
		w.float("eval_loss", s.EvalLoss)
		if s.EvalMetric != "" && s.EvalMetric != "loss" {
			w.name("eval_", s.EvalMetric)
			w.number(s.EvalValue)
		}
		w.int("eval_samples", s.EvalSamples)
	}
	w.line = append(w.line, '}', '\n')
	_, err := w.w.Write(w.line)
	return err
}

// name begins a field. Names are ours: they need no escaping.
func (w *Writer) name(prefix, name string) {
	if len(w.line) > 1 {
		w.line = append(w.line, ',')
	}
	w.line = append(w.line, '"')
	w.line = append(w.line, prefix...)
	w.line = append(w.line, name...)
	w.line = append(w.line, '"', ':')
}

func (w *Writer) int(name string, x int64) {
	w.name("", name)
	w.line = strconv.AppendInt(w.line, x, 10)
}

func (w *Writer) float(name string, x float64) {
	w.name("", name)
	w.number(x)
}

// number writes a float with every digit that it has.
func (w *Writer) number(x float64) {
	if math.IsNaN(x) || math.IsInf(x, 0) {
		w.line = append(w.line, "null"...)
		return
	}
	w.line = strconv.AppendFloat(w.line, x, 'g', -1, 64)
}
