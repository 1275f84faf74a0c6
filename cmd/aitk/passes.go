package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"aitk/passes"
)

func passesCommand() command {
	return command{name: "passes", short: "the pipeline with one line a pass, and why it stands in this order", run: listPasses}
}

// backHalf is what passes.Compile does with the scheduled programs, in the words of the pipeline.
func backHalf() []passes.Pass {
	return []passes.Pass{
		{Name: "memory", Doc: "keep, recompute or swap each idle value, so that the peak is within the budget at the least cost"},
		{Name: "place", Doc: "give every buffer its offset; back to memory with less where the arena comes out too large"},
		{Name: "lower", Doc: "make the plan of programs init, step, update, eval and save, and prove it"},
	}
}

func backOrder() []passes.OrderPair {
	return []passes.OrderPair{
		{First: "schedule", Then: "memory", Reason: "peaks are those of an order, and nothing may merge the copies that memory makes"},
		{First: "memory", Then: "place", Reason: "offsets need the final lives"},
		{First: "place", Then: "lower", Reason: "a plan's buffers have addresses"},
	}
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
	for _, p := range passes.Pipeline() {
		rows = append(rows, passRow{p.Name, p.Synopsis(), p.Preserves.String(), p.Required})
	}
	for _, p := range backHalf() {
		rows = append(rows, passRow{p.Name, p.Synopsis(), passes.Bits.String(), true})
	}
	var order []orderRow
	for _, o := range append(passes.Order(), backOrder()...) {
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
