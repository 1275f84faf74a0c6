package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"aitk/internal/regular"
	"aitk/ir"
	"aitk/ir/op"
	"aitk/passes"
)

func optCommand() command {
	return command{name: "opt", args: "FILE.ir|CRASH.txtar", min: 1, max: 1, short: "run passes on textual IR", run: optimize,
		long: `Reads a graph in text form, runs the passes of --passes in that order and prints the programs that come out, so that a report about a pass
is a text file. Several programs are printed as an archive with a section for each, which is read back as well. A reproducer
(crash-*.txtar) brings its own passes and options; flags add to them.`}
}

func vocabulary() ir.Vocabulary { return op.Vocabulary() }

func optimize(c *call) error {
	name := c.args[0]
	raw, err := readArgument(c, name)
	if err != nil {
		return err
	}
	ctx := &passes.Context{Options: c.passes}
	ctx.Options.VerifyEach = c.verify == "each"
	ctx.Options.Print = c.stderr
	names := c.passNames
	graphs, err := c.readPrograms(name, string(raw), ctx, &names)
	if err != nil {
		return err
	}
	list, err := pickPasses(names)
	if err != nil {
		return err
	}
	if err := checkLoss(name, graphs[0], list); err != nil {
		return err
	}
	ctx.Programs = graphs
	// A text may stand at any point of the pipeline; what a pass really needs it says itself.
	ctx.Assume(passes.Canonical | passes.HasLoss | passes.Split | passes.Differentiated | passes.Updating)
	runErr := passes.Run(ctx, graphs[0], list, passes.Order())
	c.printStats(ctx)
	for _, n := range ctx.Notes {
		c.note("%s", n)
	}
	if runErr != nil {
		return fmt.Errorf("%s: %w", name, runErr)
	}
	out := c.out
	if out == "" {
		out = "-"
	}
	return c.writeFile(out, func(w io.Writer) error { return writePrograms(w, ctx.Programs) })
}

func readArgument(c *call, name string) ([]byte, error) {
	if name == "-" {
		return io.ReadAll(c.stdin)
	}
	raw, err := regular.ReadFile(name)
	if err != nil {
		return nil, cannotOpen("opt", name, err)
	}
	return raw, nil
}

// readPrograms reads a graph, an archive of programs, or a reproducer with its passes and options.
func (c *call) readPrograms(name, raw string, ctx *passes.Context, names *[]string) ([]*ir.Graph, error) {
	sections := programSections(raw)
	if len(sections) == 0 {
		sections = []section{{"", raw}}
	}
	if r, err := passes.DecodeReproducer([]byte(raw)); err == nil {
		if len(*names) == 0 {
			*names = r.Passes
		}
		for _, s := range r.Options {
			if c.has(s.Key) {
				continue
			}
			if err := ctx.Options.Set(s.Key, s.Value); err != nil {
				return nil, fmt.Errorf("%s: %w", name, err)
			}
		}
		sections = []section{{"in.ir", r.Graph}}
	}
	var graphs []*ir.Graph
	var errs []error
	for _, s := range sections {
		g, err := ir.Parse(s.text, vocabulary())
		if err != nil {
			where := name
			if s.name != "" {
				where += ", section " + s.name
			}
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
			continue
		}
		graphs = append(graphs, g)
	}
	return graphs, errors.Join(errs...)
}

// section is a part of an archive.
type section struct{ name, text string }

// programSections cuts at lines "-- NAME.ir --"; other sections are left out.
func programSections(raw string) []section {
	var list []section
	keep := false
	for line := range strings.Lines(raw) {
		head, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "-- ")
		if name, closed := strings.CutSuffix(head, " --"); ok && closed {
			if keep = strings.HasSuffix(name, ".ir"); keep {
				list = append(list, section{name: name})
			}
			continue
		}
		if keep {
			list[len(list)-1].text += line
		}
	}
	return list
}

func writePrograms(w io.Writer, graphs []*ir.Graph) error {
	for _, g := range graphs {
		if len(graphs) > 1 {
			if _, err := fmt.Fprintf(w, "-- %s.ir --\n", g.Name); err != nil {
				return err
			}
		}
		if _, err := io.WriteString(w, g.String()); err != nil {
			return err
		}
	}
	return nil
}

// pickPasses finds passes by name, in the order asked.
func pickPasses(names []string) ([]passes.Pass, error) {
	all := passes.Pipeline()
	known := passNames(all)
	var list []passes.Pass
	for _, name := range names {
		at := -1
		for i := range all {
			if all[i].Name == name {
				at = i
			}
		}
		if at < 0 && slices.Contains(passNames(passes.Back()), name) {
			return nil, usagef("pass %s needs a device and a budget, which a text has not: it belongs to plan (aitk plan MODEL --budget SIZE --print-after %s)", name, name)
		}
		if at < 0 {
			return nil, usagef("no pass is named %q%s; `aitk passes` lists them", name, didYouMean(name, known))
		}
		list = append(list, all[at])
	}
	return list, nil
}

// checkLoss refuses passes that begin at the loss where neither the text nor an earlier pass has one.
func checkLoss(name string, g *ir.Graph, list []passes.Pass) error {
	have := g.Result("loss") != nil
	for i := range list {
		p := &list[i]
		if p.Needs&passes.HasLoss != 0 && !have {
			return usagef("%s: pass %s begins at the loss, and the graph has no result \"loss\": name the result so, or run pass loss before it (--passes loss,%s)", name, p.Name, p.Name)
		}
		have = have || p.Gives&passes.HasLoss != 0
	}
	return nil
}

// printStats says what each pass did, where that was asked for.
func (c *call) printStats(ctx *passes.Context) {
	if !c.stats && !c.passes.TimePasses && c.verbosity < 2 {
		return
	}
	for _, s := range ctx.Stats {
		line := fmt.Sprintf("%s %s:", s.Pass, s.Program)
		if c.passes.TimePasses {
			line += fmt.Sprintf(" %.3f ms", s.Seconds*1e3)
		}
		if c.stats || c.verbosity > 1 {
			line += fmt.Sprintf(" %d -> %d nodes, %d -> %d bytes", s.NodesBefore, s.NodesAfter, s.BytesBefore, s.BytesAfter)
			for _, n := range s.Counts {
				line += fmt.Sprintf(", %s %d", n.What, n.N)
			}
		}
		fmt.Fprintln(c.stderr, line)
	}
}
