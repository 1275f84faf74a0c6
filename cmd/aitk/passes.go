package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"

	"aitk/passes"
)

func passesCommand() command {
	return command{name: "passes", short: "the pipeline with one line a pass, and why it stands in this order", run: listPasses}
}

// passRow is a pass as --json gives it.
type passRow struct {
	Name      string `json:"name"`
	Does      string `json:"does"`
	Preserves string `json:"preserves,omitempty"`
	Required  bool   `json:"required"`
}

type orderRow struct {
	First  string `json:"first"`
	Then   string `json:"then"`
	Reason string `json:"reason"`
}

func listPasses(c *call) error {
	var rows []passRow
	for _, p := range slices.Concat(passes.Pipeline(), passes.Back()) {
		rows = append(rows, passRow{p.Name, p.Synopsis(), p.Preserves.String(), p.Required})
	}
	var order []orderRow
	for _, o := range passes.Order() {
		order = append(order, orderRow{o.First, o.Then, o.Reason})
	}
	if c.wants("json") {
		return c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error {
			return writeJSON(w, struct {
				Passes []passRow  `json:"passes"`
				Order  []orderRow `json:"order"`
			}{rows, order})
		}})
	}
	t := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "pass\tkeeps\tdoes")
	for _, r := range rows {
		fmt.Fprintf(t, "%s\t%s\t%s\n", r.Name, r.Preserves, r.Does)
	}
	fmt.Fprintln(t, "\nfirst\tthen\tbecause")
	for _, o := range order {
		fmt.Fprintf(t, "%s\t%s\t%s\n", o.First, o.Then, o.Reason)
	}
	return t.Flush()
}
