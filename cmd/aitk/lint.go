package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"aitk/importer"
	"aitk/ir"
	"aitk/passes"
)

func lintCommand() command {
	return command{name: "lint", args: "MODEL", min: 1, max: 1, short: "what would make training wrong, impossible or other than expected, each with a remedy", run: lint,
		long: `Everything is told in one run, worst first. An error means that training cannot work (exit code 3); a warning that it works and
does not do what the model's author meant; the rest is taken care of and worth knowing. Dimensions that --dim does not bind get small
sizes. No weight is needed; with --weights it says which are missing and which left over, with --loss whether the output fits.`}
}

// The document of lint --json.
type lintReport struct {
	Schema   string             `json:"schema"`
	File     string             `json:"file"`
	Findings []importer.Finding `json:"findings"`
}

func lint(c *call) error {
	s, err := c.open(c.args[0])
	if err != nil {
		return err
	}
	if s.plan != nil {
		return usagef("lint looks at models, and %s is a plan", s.path)
	}
	inputs, err := c.readInputs()
	if err != nil {
		return err
	}
	opt := importer.LintOptions{Options: importer.Options{Dims: map[string]int64{}, Inputs: inputs, BatchNorm: c.batchNorm, Select: c.selection}, Output: c.passes.Output}
	for _, d := range c.dims {
		opt.Dims[d.name] = d.size
	}
	opt.Loss = c.passes.Loss.Name
	findings, m, err := importer.LintModel(s.path, opt)
	if err != nil {
		return err
	}
	if m != nil {
		more, err := c.lintMore(m)
		if err != nil {
			return err
		}
		findings = append(findings, more...)
		slices.SortStableFunc(findings, func(a, b importer.Finding) int { return severityRank(a) - severityRank(b) })
	}
	if c.wants("json") {
		report := lintReport{"aitk.lint/1", s.path, append([]importer.Finding{}, findings...)}
		err = c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error { return writeJSON(w, report) }})
	} else {
		err = flushed(c.stdout, func(w io.Writer) error { return writeFindings(w, s.path, findings) })
	}
	if err == nil && !importer.Trainable(findings) {
		return errQuiet{exitUnsupported}
	}
	return err
}

// lintMore tells what only shows beside other files and flags: weights that --weights lacks or has too many, a loss that does not fit the output.
func (c *call) lintMore(m *importer.Model) (out []importer.Finding, err error) {
	if c.weights != "" {
		filled, err := c.fillWeights(m.Graph)
		if err != nil {
			return nil, err
		}
		for _, name := range filled.Missing {
			out = append(out, importer.Finding{Code: importer.DroppedParameter, Severity: importer.LintError, Parameter: name,
				Message: "neither the model nor --weights has its content: it can be planned and not trained", Remedy: "name the files that have it: --weights FILE|FOLDER"})
		}
		for _, name := range filled.Left {
			out = append(out, importer.Finding{Code: importer.DroppedParameter, Severity: importer.LintWarning, Parameter: name,
				Message: "--weights has a tensor of this name and the model no parameter: training goes on without it", Remedy: "`aitk inspect` lists the names of the model"})
		}
	}
	if c.passes.Loss.Name == "" {
		return out, nil
	}
	ctx := &passes.Context{Options: passes.Options{Loss: c.passes.Loss, Output: c.passes.Output, StopAfter: "loss"}}
	if err := passes.Run(ctx, m.Graph, passes.Pipeline(), passes.Order()); err != nil {
		f := importer.Finding{Code: importer.InferenceOnly, Severity: importer.LintError, Message: err.Error()}
		if e, ok := errors.AsType[*ir.Error](err); ok {
			f.Node, f.Remedy = e.Origin.Node, e.Remedy
			if e.Cause != nil {
				f.Message = e.Cause.Error()
			}
		}
		out = append(out, f)
	}
	return out, nil
}

// severityRank orders findings, worst first.
func severityRank(f importer.Finding) int {
	return slices.Index([]importer.Severity{importer.LintError, importer.LintWarning, importer.LintInfo}, f.Severity)
}

// writeFindings prints findings of one kind under one head, with the nodes and parameters that they are about.
func writeFindings(w io.Writer, path string, findings []importer.Finding) error {
	if len(findings) == 0 {
		fmt.Fprintf(w, "%s: nothing to report\n", path)
		return nil
	}
	var groups []importer.Finding
	about := map[importer.Finding][]string{}
	for _, f := range findings {
		key := f
		key.Node, key.Parameter, key.Tensor = "", "", ""
		if len(about[key]) == 0 {
			groups = append(groups, key)
		}
		about[key] = append(about[key], whereabouts(f))
	}
	for _, g := range groups {
		list := slices.DeleteFunc(about[g], func(s string) bool { return s == "" })
		fmt.Fprintf(w, "%s %s: %s\n", g.Severity, g.Code, printable(g.Message))
		const most = 8
		for _, s := range list[:min(most, len(list))] {
			fmt.Fprintf(w, "    %s\n", s)
		}
		if n := len(list) - most; n > 0 {
			fmt.Fprintf(w, "    and %d more\n", n)
		}
		if g.Remedy != "" {
			fmt.Fprintf(w, "    remedy: %s\n", printable(g.Remedy))
		}
	}
	counts := map[string]int{}
	for _, f := range findings {
		counts[string(f.Severity)]++
	}
	var words []string
	for _, s := range slices.Sorted(maps.Keys(counts)) { // error, info, warning
		words = append(words, fmt.Sprintf("%d %s", counts[s], s))
	}
	fmt.Fprintf(w, "%d findings: %s\n", len(findings), strings.Join(words, ", "))
	return nil
}

// whereabouts says what a finding is about.
func whereabouts(f importer.Finding) string {
	var parts []string
	if f.Node != "" {
		parts = append(parts, fmt.Sprintf("node %q", f.Node))
	}
	if f.Parameter != "" {
		parts = append(parts, fmt.Sprintf("%q", f.Parameter))
	}
	if f.Tensor != "" {
		parts = append(parts, fmt.Sprintf("stored as %q", f.Tensor))
	}
	return strings.Join(parts, ", ")
}

// printable replaces control characters, which names in a file may hold, so that no text of a file acts on a terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' || r == 0x7f || r >= 0x80 && r < 0xa0 {
			return '�'
		}
		return r
	}, s)
}
