package main

import (
	"bytes"
	"strings"
	"testing"
)

func TestInspectShowsNamesHarmlessly(t *testing.T) {
	evil := "w\x1b[31m\n\tx"
	d := inspection{Kind: "model", File: "m.onnx", Producer: evil, Inputs: []inspectedValue{{Name: evil, Shape: []string{evil}}}}
	var out bytes.Buffer
	if err := d.write(&out); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(out.String(), "\x1b") || strings.Count(out.String(), `w\x1b[31m\n\tx`) != 3 {
		t.Errorf("printed %q", out.String())
	}
	if got := visible("Größe \"a\" <b>"); got != "Größe \"a\" <b>" {
		t.Errorf("printable name became %q", got)
	}
}
