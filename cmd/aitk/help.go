package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// writeVerbs lists the verbs.
func writeVerbs(w io.Writer) {
	fmt.Fprintln(w, "usage: aitk VERB [flags] [arguments]")
	fmt.Fprintln(w)
	for _, c := range commands() {
		fmt.Fprintf(w, "  %-9s %s\n", c.name, c.short)
	}
	fmt.Fprintln(w)
	fmt.Fprintln(w, "`aitk help VERB` says more. Exit codes: 0 done; 1 failed; 2 wrong usage; 3 unsupported op, type or model; 4 does not fit;")
	fmt.Fprintln(w, "5 numeric failure (NaN or Inf); 130 interrupted, after a clean checkpoint.")
}

// help shows all verbs, or one with its flags.
func help(w io.Writer, args []string) error {
	if len(args) == 0 {
		writeVerbs(w)
		return nil
	}
	c, err := findCommand(args[0])
	if err != nil {
		return err
	}
	fmt.Fprintf(w, "usage: aitk %s\n\n%s.\n", strings.TrimSpace(c.name+" "+c.args), c.short)
	if c.long != "" {
		fmt.Fprintf(w, "\n%s\n", strings.TrimSpace(c.long))
	}
	first := true
	for _, o := range options() {
		if !slices.Contains(strings.Fields(o.verbs), c.name) {
			continue
		}
		if first {
			fmt.Fprintln(w, "\nflags, before or after arguments, with one dash or two:")
			first = false
		}
		name := "--" + o.name
		if len(o.name) <= 2 {
			name = "-" + o.name
		}
		switch {
		case strings.HasPrefix(o.value, "="):
			name += "[" + o.value + "]"
		case o.value != "":
			name += " " + o.value
		}
		again := ""
		if o.repeat {
			again = " (repeatable)"
		}
		fmt.Fprintf(w, "  %s\n      %s%s\n", name, o.help, again)
	}
	return nil
}
