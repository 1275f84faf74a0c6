// Command benchplan measures the planner and the allocator on public instances and prints their values beside those that others published, and beside the
// reference of the fact sheets: a prototype of one thread on a machine of two cores. It is `make bench-plan`.
//
//	go run ./internal/benchplan [fixed] [free] [networks] [joint] [pack] [traces]
//
// without a name: all of them. Instances lie beside the repository (../shared/bench); where they are missing a line says so and the tables that need no
// files are printed alone. Every plan and placement is checked by what shares nothing with the search: the schedule replayed by the benchmark's rules, the
// simulator, the packing validator. Seconds are CPU seconds of this process, so that other load on the machine does not count; options are the defaults. What
// the tables show is measured and nothing of it is kept in the program but the others' values.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"text/tabwriter"
)

// bench is where the public instances lie.
var bench = filepath.Join("..", "shared", "bench")

// section is a group of tables.
type section struct {
	name  string
	print func(*report) error
}

func main() {
	sections := []section{{"fixed", fixedOrder}, {"free", freeOrder}, {"networks", trainingSteps}, {"joint", joint}, {"pack", capacities}, {"traces", traces}}
	names := os.Args[1:]
	for _, n := range names {
		if !slices.ContainsFunc(sections, func(s section) bool { return s.name == n }) {
			fmt.Fprintf(os.Stderr, "benchplan: no section %q\n", n)
			os.Exit(2)
		}
	}
	for _, s := range sections {
		if len(names) > 0 && !slices.Contains(names, s.name) {
			continue
		}
		r := &report{table: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)}
		if err := s.print(r); err != nil {
			fmt.Fprintf(os.Stderr, "benchplan: %s: %v\n", s.name, err)
			os.Exit(1)
		}
	}
}

// report prints tables.
type report struct{ table *tabwriter.Writer }

// title begins a table.
func (r *report) title(text string, columns ...string) {
	fmt.Printf("\n%s\n", text)
	r.row(columns...)
}

func (r *report) row(cells ...string) {
	for _, c := range cells {
		fmt.Fprint(r.table, c, "\t")
	}
	fmt.Fprintln(r.table)
}

func (r *report) end() error { return r.table.Flush() }

// missing says that instances are not at hand.
func missing(path string) bool {
	if _, err := os.Stat(path); err != nil {
		fmt.Printf("\nNOTICE: %s is not there, so the tables that need it are left out\n", path)
		return true
	}
	return false
}

func percent(x float64) string { return fmt.Sprintf("%.3f", 100*x) }

// known is a value of others in percent; below 0: there is none.
func known(x float64) string {
	if x < 0 {
		return "-"
	}
	return fmt.Sprintf("%.3g", x)
}

func secs(x float64) string { return fmt.Sprintf("%.2f", x) }
