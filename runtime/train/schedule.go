package train

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"aitk/ir"
)

// Schedule is how the learning rate goes with the steps. With t the step from 0, w Warmup, T Steps:
//
//	t < w     lr*(t+1)/w
//	constant  lr
//	linear    min + (lr-min)*(T-t)/(T-w)
//	cosine    min + (lr-min)*(1+cos(pi*(t-w)/(T-w)))/2
//
// and min from T on. The zero value is constant without warmup.
type Schedule struct {
	Name   string // constant, linear, cosine; "": constant
	Warmup int64
	Steps  int64 // T; 0: the steps of the run, see For
	Min    float64
}

func scheduleNames() []string { return []string{"constant", "linear", "cosine"} }

// ParseSchedule reads NAME[:warmup=,steps=,min=]. The error is of kind Usage and lists every mistake.
func ParseSchedule(text string) (Schedule, error) {
	name, rest, _ := strings.Cut(text, ":")
	s := Schedule{Name: name}
	known := []string{"warmup", "steps", "min"}
	var problems []string
	switch {
	case !slices.Contains(scheduleNames(), name):
		return s, ir.Errorf(ir.Usage, ir.Origin{}, "--schedule %q is unknown: want one of %s", name, strings.Join(scheduleNames(), ", "))
	case name == "constant":
		known = known[:1]
	}
	var seen []string
	for _, kv := range strings.FieldsFunc(rest, func(r rune) bool { return r == ',' }) {
		k, v, ok := strings.Cut(kv, "=")
		switch {
		case !ok || !slices.Contains(known, k):
			problems = append(problems, fmt.Sprintf("%q: %s knows %s", kv, name, strings.Join(known, "=, ")+"="))
			continue
		case slices.Contains(seen, k):
			problems = append(problems, k+" is given twice")
			continue
		}
		seen = append(seen, k)
		var err error
		switch k {
		case "warmup":
			s.Warmup, err = strconv.ParseInt(v, 10, 64)
		case "steps":
			if s.Steps, err = strconv.ParseInt(v, 10, 64); err == nil && s.Steps < 1 {
				err = strconv.ErrRange
			}
		case "min":
			if s.Min, err = strconv.ParseFloat(v, 64); err == nil && !(s.Min >= 0 && s.Min <= math.MaxFloat32) {
				err = strconv.ErrRange
			}
		}
		if err != nil || s.Warmup < 0 {
			least := 0
			if k == "steps" {
				least = 1
			}
			problems = append(problems, fmt.Sprintf("%s: want a number of %d or more", kv, least))
		}
	}
	if len(problems) > 0 {
		return s, ir.Errorf(ir.Usage, ir.Origin{}, "--schedule %s: %s", name, strings.Join(problems, "; "))
	}
	return s, nil
}

// For fills in the steps of a run where none were given.
func (s Schedule) For(steps int64) Schedule {
	if s.Name == "" {
		s.Name = "constant"
	}
	if s.Steps == 0 && s.Name != "constant" {
		s.Steps = steps
	}
	return s
}

// At is the learning rate of step t, from 0. needs: For.
func (s Schedule) At(lr float64, t int64) float64 {
	if t < s.Warmup {
		return lr * float64(t+1) / float64(s.Warmup)
	}
	if s.Name == "constant" || s.Name == "" {
		return lr
	}
	if t >= s.Steps {
		return s.Min
	}
	span := float64(s.Steps - s.Warmup) // above 0: t lies between
	if s.Name == "linear" {
		return s.Min + (lr-s.Min)*float64(s.Steps-t)/span
	}
	return s.Min + (lr-s.Min)*(1+math.Cos(math.Pi*float64(t-s.Warmup)/span))/2
}

// String is the form that ParseSchedule reads.
func (s Schedule) String() string {
	var kv []string
	if s.Warmup > 0 {
		kv = append(kv, fmt.Sprintf("warmup=%d", s.Warmup))
	}
	if s.Steps > 0 {
		kv = append(kv, fmt.Sprintf("steps=%d", s.Steps))
	}
	if s.Min > 0 {
		kv = append(kv, "min="+strconv.FormatFloat(s.Min, 'g', -1, 64))
	}
	name := s.Name
	if name == "" {
		name = "constant"
	}
	if len(kv) == 0 {
		return name
	}
	return name + ":" + strings.Join(kv, ",")
}
