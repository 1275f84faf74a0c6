package checkpoint

import (
	"fmt"
	"strings"

	"aitk/ir"
)

// compareContent finds the same settings over other content. Where one side says nothing of its content there is nothing to compare.
func (m *Manifest) compareContent(now *Manifest) error {
	var problems []string
	if m.DataSum != now.DataSum && m.DataSum != "" && now.DataSum != "" {
		problems = append(problems, fmt.Sprintf("the data holds other content than that run's (SHA-256 %.12s then, %.12s now)", m.DataSum, now.DataSum))
	}
	if names := changed(m.Frozen, now.Frozen); len(names) > 0 {
		problems = append(problems, "the model's frozen weights hold other content than that run's: "+some(names))
	}
	if len(problems) == 0 {
		return nil
	}
	return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("cannot resume from step %d: %s", m.Step, strings.Join(problems, "; ")),
		Remedy: "give the data and the model of that run, or start anew from its weights: aitk export CHECKPOINT -o FILE, then --weights FILE without --resume"}
}

// changed lists the parameters whose content is another one, in the order of now and then those that only then has.
func changed(then, now []Content) []string {
	if len(then) == 0 || len(now) == 0 {
		return nil
	}
	old := map[string]string{}
	for _, x := range then {
		old[x.Name] = x.SHA256
	}
	var names []string
	for _, x := range now {
		if old[x.Name] != x.SHA256 {
			names = append(names, x.Name)
		}
		delete(old, x.Name)
	}
	for _, x := range then {
		if _, left := old[x.Name]; left {
			names = append(names, x.Name)
		}
	}
	return names
}

// some lists up to five names.
func some(names []string) string {
	const most = 5
	var list []string
	for _, n := range names[:min(len(names), most)] {
		list = append(list, fmt.Sprintf("%q", n))
	}
	s := strings.Join(list, ", ")
	if n := len(names) - most; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}
