package passes

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"aitk/ir"
)

// A spec is the text NAME[:k=v,...] of --loss and --optimizer. Its readers take the settings that they know out of it one by one and
// end with done, which reports every mistake at once.
type spec struct {
	flag, name string
	text       string // after the colon
	keys, vals []string
	known      []string // keys asked for, in the order asked
	problems   []string
}

// cutSpec splits NAME from the settings without looking at them: what follows the colon may be a name.
func cutSpec(flag, text string) *spec {
	name, rest, _ := strings.Cut(text, ":")
	return &spec{flag: flag, name: strings.TrimSpace(name), text: rest}
}

// settings splits k=v,k=v.
func (s *spec) settings() {
	if s.text == "" {
		return
	}
	for _, kv := range strings.Split(s.text, ",") {
		k, v, ok := strings.Cut(kv, "=")
		k = strings.TrimSpace(k)
		switch {
		case !ok || k == "":
			s.problems = append(s.problems, fmt.Sprintf("%q is not of the form key=value", kv))
		case slices.Contains(s.keys, k):
			s.problems = append(s.problems, fmt.Sprintf("%s is given twice", k))
		default:
			s.keys, s.vals = append(s.keys, k), append(s.vals, strings.TrimSpace(v))
		}
	}
}

func (s *spec) take(key string) (string, bool) {
	s.known = append(s.known, key)
	if i := slices.Index(s.keys, key); i >= 0 {
		return s.vals[i], true
	}
	return "", false
}

// float reads a finite number for which ok holds; want says in words what ok demands.
func (s *spec) float(key string, dst *float64, want string, ok func(float64) bool) {
	text, given := s.take(key)
	if !given {
		return
	}
	x, err := strconv.ParseFloat(text, 64)
	if err != nil || x-x != 0 || !ok(x) {
		s.problems = append(s.problems, fmt.Sprintf("%s=%s: want %s", key, text, want))
		return
	}
	*dst = x
}

// int reads a whole number and tells whether it was given.
func (s *spec) int(key string, dst *int64, want string, ok func(int64) bool) bool {
	text, given := s.take(key)
	if !given {
		return false
	}
	x, err := strconv.ParseInt(text, 10, 64)
	if err != nil || !ok(x) {
		s.problems = append(s.problems, fmt.Sprintf("%s=%s: want %s", key, text, want))
		return false
	}
	*dst = x
	return true
}

func (s *spec) bool(key string, dst *bool) {
	text, given := s.take(key)
	if !given {
		return
	}
	x, err := strconv.ParseBool(text)
	if err != nil {
		s.problems = append(s.problems, fmt.Sprintf("%s=%s: want true or false", key, text))
		return
	}
	*dst = x
}

func (s *spec) oneOf(key string, dst *string, choices ...string) {
	text, given := s.take(key)
	if !given {
		return
	}
	if !slices.Contains(choices, text) {
		s.problems = append(s.problems, fmt.Sprintf("%s=%s: want %s", key, text, strings.Join(choices, " or ")))
		return
	}
	*dst = text
}

// done reports unknown keys and all problems found.
func (s *spec) done() error {
	for _, k := range s.keys {
		if slices.Contains(s.known, k) {
			continue
		}
		if len(s.known) == 0 {
			s.problems = append(s.problems, fmt.Sprintf("unknown setting %s: %s has none", k, s.name))
		} else {
			s.problems = append(s.problems, fmt.Sprintf("unknown setting %s: %s knows %s", k, s.name, strings.Join(s.known, ", ")))
		}
	}
	if len(s.problems) == 0 {
		return nil
	}
	return ir.Errorf(ir.Usage, ir.Origin{}, "--%s %s: %s", s.flag, s.name, strings.Join(s.problems, "; "))
}

func (s *spec) unknownName(known []string) error {
	return ir.Errorf(ir.Usage, ir.Origin{}, "--%s %q is unknown: want one of %s", s.flag, s.name, strings.Join(known, ", "))
}

// formatSpec writes NAME:k=v,... from name and alternating keys and values; settings with an empty value are left out.
func formatSpec(name string, kv ...string) string {
	var parts []string
	for i := 0; i+1 < len(kv); i += 2 {
		if kv[i+1] != "" {
			parts = append(parts, kv[i]+"="+kv[i+1])
		}
	}
	if len(parts) == 0 {
		return name
	}
	return name + ":" + strings.Join(parts, ",")
}

func formatFloat(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }
