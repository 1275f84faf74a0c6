package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"aitk/internal/durable"
	"aitk/internal/regular"
	"aitk/ir"
	"aitk/ir/plan"
)

// writeFile fills the file at path, or standard output for "-". A run that fails leaves what was there before, except in a pipe or a device.
func (c *call) writeFile(path string, fill func(io.Writer) error) error {
	if path == "-" {
		return flushed(c.stdout, fill)
	}
	if st, err := os.Stat(path); err == nil && !st.Mode().IsRegular() {
		if st.IsDir() {
			return usagef("%s is a folder", path)
		}
		f, err := os.OpenFile(path, os.O_WRONLY, 0) // a pipe or a device has no content to spare
		if err != nil {
			return err
		}
		return errors.Join(flushed(f, fill), f.Close())
	}
	if err := durable.WriteFile(path, fill); err != nil {
		return fmt.Errorf("cannot write %s: %w", path, err)
	}
	return nil
}

// notAnInput refuses to write over a file that the command reads: the model, the data or the weights would be lost.
func (c *call) notAnInput(path string) error {
	st, err := os.Stat(path)
	if err != nil || !st.Mode().IsRegular() {
		return nil
	}
	for _, in := range append([]string{c.data, c.evalData, c.weights}, c.args...) {
		if read, err := os.Stat(in); err == nil && os.SameFile(st, read) {
			return usagef("%s would overwrite what the command reads (%s): name another file", path, in)
		}
	}
	return nil
}

func flushed(w io.Writer, fill func(io.Writer) error) error {
	b := bufio.NewWriter(w)
	if err := fill(b); err != nil {
		return err
	}
	return b.Flush()
}

// checkViews refuses two views on standard output.
func (c *call) checkViews() error {
	onOutput := ""
	for _, v := range c.views {
		switch {
		case v.file != "":
			if err := c.notAnInput(v.file); err != nil {
				return err
			}
		case onOutput != "":
			return usagef("--%s and --%s both go to standard output: give one of them a file, --%s=FILE", onOutput, v.name, v.name)
		default:
			onOutput = v.name
		}
	}
	return nil
}

// show writes each view that was asked for.
func (c *call) show(write map[string]func(io.Writer) error) error {
	for _, v := range c.views {
		path := v.file
		if path == "" {
			path = "-"
		}
		if err := c.writeFile(path, write[v.name]); err != nil {
			return err
		}
	}
	return nil
}

// note is talk: choices, warnings, hints.
func (c *call) note(format string, args ...any) {
	if !c.quiet {
		fmt.Fprintf(c.stderr, format+"\n", args...)
	}
}

// detail is talk for -v.
func (c *call) detail(format string, args ...any) {
	if c.verbosity > 0 {
		fmt.Fprintf(c.stderr, format+"\n", args...)
	}
}

// planMagic begins every plan file.
const planMagic = "aitkplan"

// subject is what a verb works on: a plan or the path of a model.
type subject struct {
	path string
	plan *plan.Plan // nil for a model
}

// open finds out whether the argument is a plan or a model and reads the plan. "-" is standard input; a model from there is kept in a
// temporary file until the program ends.
func (c *call) open(arg string) (*subject, error) {
	if arg == "-" {
		raw, err := io.ReadAll(c.stdin)
		if err != nil {
			return nil, fmt.Errorf("reading standard input: %w", err)
		}
		if bytes.HasPrefix(raw, []byte(planMagic)) {
			return c.decode("standard input", ".", raw)
		}
		dir, err := os.MkdirTemp("", "aitk-")
		if err != nil {
			return nil, err
		}
		c.cleanup = append(c.cleanup, func() { _ = os.RemoveAll(dir) }) // what stays behind lies where temporary files are swept away
		path := filepath.Join(dir, "stdin.onnx")
		return &subject{path: path}, os.WriteFile(path, raw, 0o600)
	}
	if st, err := os.Stat(arg); err == nil && st.IsDir() {
		return nil, usagef("%s is a folder, wanted a model or a plan", arg)
	}
	f, err := regular.Open(arg)
	if err != nil {
		return nil, cannotOpen(c.cmd.name, arg, err)
	}
	defer f.Close()
	head := make([]byte, len(planMagic))
	if _, err := io.ReadFull(f, head); err != nil || string(head) != planMagic {
		return &subject{path: arg}, nil
	}
	raw, err := regular.ReadFile(arg)
	if err != nil {
		return nil, err
	}
	return c.decode(arg, filepath.Dir(arg), raw)
}

// decode reads a plan. Weights lie relative to its folder.
func (c *call) decode(name, dir string, raw []byte) (*subject, error) {
	if err := c.refuseShaping(name); err != nil {
		return nil, err
	}
	p, err := plan.Unmarshal(raw, vocabulary())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	for i := range p.Params {
		if in := &p.Params[i].Init; in.Kind == ir.InitFile && !filepath.IsAbs(in.File.Path) {
			in.File.Path = filepath.Join(dir, filepath.FromSlash(in.File.Path))
		}
	}
	return &subject{path: name, plan: p}, nil
}

// refuseShaping refuses flags that come too late: a plan is what they made.
func (c *call) refuseShaping(name string) error {
	for _, o := range options() {
		if o.shapes && c.has(o.name) {
			return usagef("--%s says how a model is planned, and %s is a plan already: compile the model again with it", o.name, name)
		}
	}
	return nil
}
