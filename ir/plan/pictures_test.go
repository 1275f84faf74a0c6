package plan_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"aitk/ir"
	"aitk/ir/plan"
)

// wellFormed reads a text to its end as XML.
func wellFormed(t *testing.T, text string) (rects int) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(text))
	d.Entity = xml.HTMLEntity
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			return rects
		}
		if err != nil {
			t.Fatalf("not well-formed: %v", err)
		}
		if e, ok := tok.(xml.StartElement); ok && e.Name.Local == "rect" {
			rects++
		}
	}
}

func TestSVG(t *testing.T) {
	for _, name := range []string{"", hostile} {
		p := measured(6, name)
		text := view(t, func(w *bytes.Buffer) error { return plan.WriteSVG(w, p) })
		rects := wellFormed(t, text)
		_, prog := p.Program("step")
		want := 0 // a rectangle for each stretch of life in the step, besides legend, background and frames
		for i := range p.Buffers {
			for _, s := range p.Buffers[i].Live {
				if b := &p.Buffers[i]; s.Program == prog && s.Start < s.End && b.Bytes > 0 && p.Arena(b.Type.Space) != nil && b.Type.Space != ir.Disk {
					want++
				}
			}
		}
		if got := strings.Count(text, "<title>") - strings.Count(text, "<title>peak"); got != want || rects < want {
			t.Errorf("%d rectangles with a title of %d, want %d", got, rects, want)
		}
		for _, s := range []string{"device arena", "budget 1.0 MiB", "optimizer-state"} {
			if !strings.Contains(text, s) {
				t.Errorf("no %q in the picture", s)
			}
		}
	}
	empty := &plan.Plan{}
	wellFormed(t, view(t, func(w *bytes.Buffer) error { return plan.WriteSVG(w, empty) }))
}

func TestHTML(t *testing.T) {
	p := measured(6, hostile)
	text := view(t, func(w *bytes.Buffer) error { return plan.WriteHTML(w, p) })
	_, body, ok := strings.Cut(text, "<body>")
	if !ok || strings.Contains(text, "<b>") || strings.Contains(text, "\x1b") {
		t.Errorf("a name broke out of the page")
	}
	wellFormed(t, "<body>"+strings.TrimSuffix(strings.TrimSpace(body), "</html>"))
	if !strings.Contains(text, "idle for long") {
		t.Errorf("the page does not say why a value is swapped")
	}
}

func TestTrace(t *testing.T) {
	p := measured(6, hostile)
	var d struct {
		TraceEvents []struct {
			Name, Ph, Cat string
			TS, Dur       float64
			PID, TID      int
		}
	}
	if err := json.Unmarshal([]byte(view(t, func(w *bytes.Buffer) error { return plan.WriteTrace(w, p) })), &d); err != nil {
		t.Fatal(err)
	}
	_, prog := p.Program("step")
	var busy [plan.NumLanes]float64
	copies := 0
	for _, e := range d.TraceEvents {
		if e.Ph == "X" && e.PID == int(prog)+1 && e.Cat != "stall" {
			busy[e.TID] += e.Dur
		}
		if e.Name == "swap-in" {
			copies++
		}
	}
	run := plan.Timeline(p, prog)
	for l := range busy {
		if got, want := busy[l], float64(run.Busy[l])/1e6; got < want*0.999 || got > want*1.001 {
			t.Errorf("lane %v is busy for %v us in the trace, %v by the simulator", plan.Lane(l), got, want)
		}
	}
	if copies == 0 {
		t.Error("no swap-in in the trace")
	}
}

// TestPprof adds up what the profile's samples say.
func TestPprof(t *testing.T) {
	p := measured(6, hostile)
	z, err := gzip.NewReader(strings.NewReader(view(t, func(w *bytes.Buffer) error { return plan.WritePprof(w, p) })))
	if err != nil {
		t.Fatal(err)
	}
	raw, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var sums [2]uint64
	for len(raw) > 0 {
		field, typ, n := protowire.ConsumeTag(raw)
		raw = raw[n:]
		if typ != protowire.BytesType {
			_, n = protowire.ConsumeVarint(raw)
			raw = raw[n:]
			continue
		}
		body, n := protowire.ConsumeBytes(raw)
		if n < 0 {
			t.Fatal("the profile is cut short")
		}
		raw = raw[n:]
		for field == 2 && len(body) > 0 {
			field, _, n := protowire.ConsumeTag(body)
			list, m := protowire.ConsumeBytes(body[n:])
			body = body[n+m:]
			for k := 0; field == 2 && len(list) > 0; k++ {
				v, n := protowire.ConsumeVarint(list)
				sums[k] += v
				list = list[n:]
			}
		}
	}
	_, prog := p.Program("step")
	run := plan.Timeline(p, prog)
	var nanos uint64
	for pc := range run.Start {
		nanos += uint64(run.End[pc]-run.Start[pc]) / 1000
	}
	if want := uint64(plan.PeakOf(p, ir.Device).Bytes); sums[0] != want || sums[1] != nanos {
		t.Errorf("the profile has %d bytes and %d ns, want %d and %d", sums[0], sums[1], want, nanos)
	}
}
