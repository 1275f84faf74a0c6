package main

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"aitk/ir"
	"aitk/ir/plan"
)

func compileCommand() command {
	return command{name: "compile", args: "MODEL -o OUT.plan", min: 1, max: 1, short: "plan ahead of time into one file, which runs without the model's tools", run: compile,
		long: `Weights stay where they are: the plan knows their place relative to its own folder and their SHA-256, and does not run if they have
changed. With --embed-weights they lie in the plan. The same model and flags give the same bytes.`}
}

func compile(c *call) error {
	if c.out == "" {
		return usagef("compile needs -o OUT.plan")
	}
	if err := c.notAnInput(c.out); err != nil {
		return err
	}
	s, err := c.open(c.args[0])
	if err != nil {
		return err
	}
	if s.plan != nil {
		return usagef("%s is a plan already", s.path)
	}
	if c.args[0] == "-" && !c.embedWeights {
		return usagef("a model from standard input has no place where its weights could stay: give --embed-weights")
	}
	b, p, err := c.planModel(s.path)
	if err != nil {
		return err
	}
	c.tellChoices(c.stderr, b.choices)
	folder := "."
	if c.out != "-" {
		folder = filepath.Dir(c.out)
	}
	if err := pinWeights(p, folder, c.embedWeights); err != nil {
		return err
	}
	c.noteAbsent(p)
	raw, err := plan.Marshal(p)
	if err != nil {
		return err
	}
	return c.writeFile(c.out, func(w io.Writer) error {
		_, err := w.Write(raw)
		return err
	})
}

// noteAbsent tells of parameters whose content no file has: planning works without, running does not.
func (c *call) noteAbsent(p *plan.Plan) {
	var names, missing []string
	for _, x := range p.Params {
		if x.Init.Kind == ir.InitAbsent {
			names = append(names, x.Name)
			if at := x.Init.File.Path; at != "" && !slices.Contains(missing, at) {
				missing = append(missing, at)
			}
		}
	}
	where := ""
	if len(missing) > 0 {
		where = fmt.Sprintf(" (the model keeps it in %s, which does not exist)", listed(missing))
	}
	if len(names) > 0 {
		c.note("%d parameters have no content%s, so the plan cannot run: %s; give them with --weights", len(names), where, listed(names))
	}
}
