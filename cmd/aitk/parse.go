package main

import (
	"fmt"
	"slices"
	"strings"

	"aitk/cmd/aitk/config"
	"aitk/internal/regular"
)

// parse reads the words behind the verb. Flags begin with one or two dashes and may stand before or after arguments; a value
// follows as the next word or behind =; - alone is an argument, and behind -- everything is.
func (c *call) parse(words []string) (wantsHelp bool, err error) {
	type assignment struct {
		opt   *option
		value string
	}
	var list []assignment
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "--" {
			c.args = append(c.args, words[i+1:]...)
			break
		}
		if len(w) < 2 || w[0] != '-' {
			c.args = append(c.args, w)
			continue
		}
		name, value, hasValue := strings.Cut(strings.TrimPrefix(w[1:], "-"), "=")
		if name == "h" || name == "help" {
			return true, nil
		}
		opt, err := findOption(c.cmd.name, name)
		if err != nil {
			return false, err
		}
		switch {
		case opt.value == "" && hasValue:
			return false, usagef("--%s takes no value, got %q", name, value)
		case opt.value == "=FILE" && hasValue && value == "":
			return false, usagef("--%s= names no file", name)
		case opt.value != "" && opt.value != "=FILE" && !hasValue:
			if i++; i == len(words) {
				return false, usagef("--%s needs a value: %s", name, opt.value)
			}
			value = words[i]
		}
		if c.has(name) && !opt.repeat {
			return false, usagef("--%s is given twice", name)
		}
		c.given = append(c.given, name)
		if name == "config" { // the file's settings come first, so that flags win
			if err := opt.set(&c.settings, value); err != nil {
				return false, err
			}
			continue
		}
		list = append(list, assignment{opt, value})
	}
	if err := c.readConfig(); err != nil {
		return false, err
	}
	for _, a := range list {
		if err := a.opt.set(&c.settings, a.value); err != nil {
			return false, err
		}
	}
	return false, nil
}

// findOption finds a flag that a verb has. An error offers the nearest one that applies.
func findOption(verb, name string) (*option, error) {
	var known []string
	elsewhere := ""
	for _, o := range options() {
		switch {
		case !slices.Contains(strings.Fields(o.verbs), verb):
			if o.name == name && o.shapes && verb == "run" {
				return nil, usagef("--%s is fixed in the plan that run executes: compile the model again with it", name)
			}
			if o.name == name {
				elsewhere = o.verbs
			}
		case o.name == name:
			return &o, nil
		default:
			known = append(known, o.name)
		}
	}
	if elsewhere != "" {
		return nil, usagef("--%s does not apply to %s (it is a flag of %s)%s", name, verb, strings.Join(strings.Fields(elsewhere), ", "), didYouMean(name, known))
	}
	return nil, usagef("%s has no flag --%s%s; `aitk help %s` lists them", verb, name, didYouMean(name, known), verb)
}

// readConfig applies the file of --config. A key is the name of any flag that some verb with --config has, so that one file serves plan
// and train alike: what the verb at hand does not know is passed over. A flag on the command line replaces the file's setting, and for
// those that may be repeated comes after it.
func (c *call) readConfig() error {
	if c.config == "" {
		return nil
	}
	raw, err := regular.ReadFile(c.config)
	if err != nil {
		return cannotOpen("--config", c.config, err)
	}
	entries, err := config.Parse(raw)
	if err != nil {
		return usagef("%s: %w", c.config, err)
	}
	var problems []string
	complain := func(line int, format string, args ...any) {
		problems = append(problems, fmt.Sprintf("%s:%d: %s", c.config, line, fmt.Sprintf(format, args...)))
	}
	known := map[string]*option{}
	var names []string
	for _, o := range options() {
		if o.name != "config" && slices.ContainsFunc(strings.Fields(fromData), func(v string) bool { return slices.Contains(strings.Fields(o.verbs), v) }) {
			known[o.name] = &o
			names = append(names, o.name)
		}
	}
	for _, e := range entries {
		opt := known[e.Key]
		switch {
		case opt == nil:
			complain(e.Line, "unknown key %q%s", e.Key, didYouMean(e.Key, names))
			continue
		case len(e.Values) > 1 && !opt.repeat:
			complain(e.Line, "%s takes one value, got %d", e.Key, len(e.Values))
			continue
		case !slices.Contains(strings.Fields(opt.verbs), c.cmd.name), c.has(e.Key) && !opt.repeat:
			continue
		}
		for _, v := range e.Values {
			if opt.value == "" || opt.value == "=FILE" {
				if v == "false" {
					continue
				}
				if v == "true" {
					v = ""
				}
			}
			if opt.value == "" && v != "" {
				complain(e.Line, "%s is true or false, not %q", e.Key, v)
				continue
			}
			if err := opt.set(&c.settings, v); err != nil {
				complain(e.Line, "%v", err)
				continue
			}
			c.given = append(c.given, e.Key)
		}
	}
	if len(problems) > 0 {
		return usagef("%s", strings.Join(problems, "\n"))
	}
	return nil
}
