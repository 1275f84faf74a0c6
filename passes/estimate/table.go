package estimate

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"

	"aitk/ir/plan"
	"aitk/passes/cost"
)

// Write prints the report as tables. Bytes are exact, with a rounded figure beside them.
func (r *Report) Write(w io.Writer) error {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', tabwriter.AlignRight)
	line := func(format string, args ...any) { fmt.Fprintf(t, format+"\t\n", args...) }
	line("weights as stored\ttensors\tbytes\t")
	for _, x := range r.Weights {
		line("%s\t%d\t%s\t%s", x.Name, x.Tensors, grouped(x.Bytes), plan.FormatBytes(x.Bytes))
	}
	line("all\t\t%s\t%s", grouped(r.WeightBytes), plan.FormatBytes(r.WeightBytes))
	line("\t\t\t")
	line("weights, if all that can were\tquantized\tbytes\t")
	for _, x := range r.Alternatives {
		line("%s\t%d\t%s\t%s", x.Name, x.Tensors, grouped(x.Bytes), plan.FormatBytes(x.Bytes))
	}
	line("\t\t\t")
	line("beside the weights\t\tbytes\t")
	for _, x := range []struct {
		name  string
		bytes int64
	}{{"adapters", r.AdapterBytes}, {"gradients, all at once", r.GradientBytes}, {"optimizer state", r.OptimizerBytes}, {"buffers, statistics, constants", r.OtherBytes}} {
		line("%s\t\t%s\t%s", x.name, grouped(x.bytes), plan.FormatBytes(x.bytes))
	}
	line("\t\t\t")
	line("a step without a budget\tbatch\tactivations\tpeak")
	for _, b := range r.Batches {
		line("\t%d\t%s\t%s", b.Size, plan.FormatBytes(b.ActivationBytes), plan.FormatBytes(b.PeakBytes))
	}
	line("\t\t\t")
	line("card\tmemory\tfits\t")
	for _, c := range r.Cards {
		line("%s\t%s\t%s\t%s", c.Name, plan.FormatBytes(c.MemoryBytes), c.Fits, c.How)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	means := "recomputing"
	if r.Swapped {
		means += " and swapping"
	}
	_, err := fmt.Fprintf(w, "arena without a budget %s, smallest by %s %s; an arena may take %d %% of a card\n", plan.FormatBytes(r.ArenaBytes), means, plan.FormatBytes(r.MinimumBytes), cost.UsablePercent)
	return err
}

// grouped writes digits in threes.
func grouped(n int64) string {
	s := strconv.FormatInt(n, 10)
	var parts []string
	for len(s) > 3 {
		parts = append([]string{s[len(s)-3:]}, parts...)
		s = s[:len(s)-3]
	}
	return strings.Join(append([]string{s}, parts...), ",")
}
