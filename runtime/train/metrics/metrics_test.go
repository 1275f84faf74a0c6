package metrics_test

import (
	"bytes"
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"aitk/runtime/train/metrics"
)

// TestLines: a header, then one object a step with every number exact; what JSON cannot hold is null.
func TestLines(t *testing.T) {
	var b bytes.Buffer
	w := metrics.NewWriter(&b)
	if err := w.Header(struct {
		Schema string `json:"schema"`
	}{metrics.Schema}); err != nil {
		t.Fatal(err)
	}
	loss := float64(float32(2.3))
	steps := []metrics.Step{
		{Step: 0, Loss: loss, LR: 1e-7, GradNorm: 3, Seconds: 0.25, SamplesPerSecond: 128, DevicePeakBytes: 1 << 40, HostPeakBytes: 5, MovedBytes: 6},
		{Step: 1, Loss: math.NaN(), GradNorm: math.Inf(1), Evaluated: true, EvalLoss: 1.5, EvalMetric: "accuracy", EvalValue: 0.75, EvalSamples: 9},
	}
	for i := range steps {
		if err := w.Step(&steps[i]); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	want := []string{
		`{"schema":"aitk.metrics/1"}`,
		`{"step":0,"loss":2.299999952316284,"lr":1e-07,"grad_norm":3,"seconds":0.25,"samples_per_second":128,"device_peak_bytes":1099511627776,"host_peak_bytes":5,"moved_bytes":6}`,
		`{"step":1,"loss":null,"lr":0,"grad_norm":null,"seconds":0,"samples_per_second":0,"device_peak_bytes":0,"host_peak_bytes":0,"moved_bytes":0,"eval_loss":1.5,"eval_accuracy":0.75,"eval_samples":9}`,
	}
	for i, line := range lines {
		if line != want[i] {
			t.Errorf("line %d is\n%s\nwant\n%s", i, line, want[i])
		}
		if !json.Valid([]byte(line)) {
			t.Errorf("line %d is no JSON", i)
		}
	}
	if len(lines) != len(want) {
		t.Errorf("%d lines", len(lines))
	}
	var back struct{ Loss float64 }
	if err := json.Unmarshal([]byte(lines[1]), &back); err != nil || back.Loss != loss {
		t.Errorf("the loss reads back as %v, %v", back.Loss, err)
	}
	b.Grow(1 << 16)
	if n := testing.AllocsPerRun(50, func() { w.Step(&steps[0]) }); n != 0 {
		t.Errorf("a line allocates %v times", n)
	}
}

// TestProgress: a line now and then, or one that is rewritten and taken away.
func TestProgress(t *testing.T) {
	begin := time.Unix(1000, 0)
	at := func(s float64) time.Time { return begin.Add(time.Duration(s * float64(time.Second))) }
	for _, c := range []struct {
		terminal bool
		want     string
	}{
		{false, "step 11/40  loss 0.5  lr 0.1  64 samples/s  ETA 0:05:48\nhello\n"},
		{true, "\rstep 2/40  loss 0.5  lr 0.1  64 samples/s  ETA 0:00:19" +
			"\rstep 3/40  loss 0.5  lr 0.1  64 samples/s  ETA 0:00:19" +
			"\rstep 11/40  loss 0.5  lr 0.1  64 samples/s  ETA 0:05:48" +
			"\r" + strings.Repeat(" ", 55) + "\rhello\n"},
	} {
		var b bytes.Buffer
		p := metrics.NewProgress(&b, c.terminal)
		p.Begin(0, begin)
		s := metrics.Step{Loss: 0.5, LR: 0.1, SamplesPerSecond: 64}
		for _, x := range []struct {
			step    int64
			seconds float64
		}{{0, 0.1}, {1, 1}, {2, 1.5}, {3, 1.6}, {10, 132}} {
			s.Step = x.step
			p.Step(&s, 40, at(x.seconds))
		}
		p.Say("hello")
		p.Close()
		if b.String() != c.want {
			t.Errorf("terminal %v:\n%q\nwant\n%q", c.terminal, b.String(), c.want)
		}
	}
	var none *metrics.Progress
	none.Begin(0, begin)
	none.Step(&metrics.Step{}, 1, begin)
	none.Say("nothing")
	none.Close()
	if metrics.NewProgress(nil, true) != nil {
		t.Error("progress to nowhere")
	}
}
