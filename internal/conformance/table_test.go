package conformance

import (
	"cmp"
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	full    = flag.Bool("conformance.full", false, "run every case, not a sample")
	only    = flag.String("conformance.only", "", "regular expression of archive/case names to run")
	listing = flag.String("conformance.list", "", "file for the cases that do not pass, with reasons")
)

// skipped says why a case is not run; "" if it is.
func skipped(c *testCase) string {
	switch {
	case strings.HasPrefix(c.note, "same model and inputs"):
		return "a later release corrected the expectation"
	case c.opset < 7 && c.opset > 0:
		return "opset below 7"
	case c.is("string") || c.is("ml"):
		return "strings and classical machine learning"
	case strings.Contains(c.ends, ":sequence"):
		return "sequences of tensors as inputs or outputs"
	case strings.Contains(c.ends, ":optional"):
		return "optionals as inputs or outputs"
	}
	return wrong(c)
}

// wrong tells cases that the corpus' own notes mark as mistaken.
func wrong(c *testCase) string {
	switch {
	case c.archive == "onnx-1.21.0.zip" && !strings.HasSuffix(c.name, "_expanded") && (strings.Contains(c.name, "qk_matmul_bias") || strings.Contains(c.name, "qk_matmul_softcap")):
		return "Attention: the order of softcap and mask, and the modes of the scores, were changed in 1.23.2"
	case (c.archive == "onnx-1.17.0.zip" || c.archive == "onnx-1.18.0.zip") && strings.Contains(c.name, "cast") && strings.HasSuffix(c.name, "INT4"):
		return "Cast to 4 bits saturated before 1.19 and wraps since"
	case (c.archive == "onnx-1.17.0.zip" || c.archive == "onnx-1.18.0.zip") && strings.HasSuffix(strings.TrimSuffix(c.name, "_expanded"), "_to_FLOAT4E2M1"):
		return "NaN became the largest number before 1.19 and becomes -0 since"
	case (c.archive == "onnx-1.13.1.zip" || c.archive == "onnx-1.14.1.zip") && strings.Contains(c.name, "castlike") && strings.Contains(c.name, "BFLOAT16"):
		return "the data has another shape than the graph says"
	}
	for _, m := range mistaken() {
		if c.String() == m[0] {
			return m[1]
		}
	}
	return ""
}

// mistaken lists single cases that no reading of the standard meets; ONNX Runtime gives other results too.
func mistaken() [][2]string {
	const sizes = "scales of the first Resize were not those of its text"
	return [][2]string{
		{"onnx-1.6.0/node/test_resize_upsample_sizes_nearest_ceil_half_pixel", sizes}, {"onnx-1.6.0/node/test_resize_upsample_sizes_nearest_floor_align_corners", sizes},
		{"onnx-1.6.0/node/test_resize_upsample_sizes_nearest_round_prefer_ceil_asymmetric", sizes},
		{"onnx-1.9.0/node/test_convtranspose_autopad_same", "SAME_UPPER of transposed convolutions was the other way round in 1.9.0"},
		{"onnx-1.21.0/node/test_adam_multiple", "the model lacks the epsilon that its outputs were computed with"},
		{"onnx-1.4.1/simple/test_shrink", "the data has another shape than the graph says"},
		{"onnx-1.16.2/node/test_averagepool_3d_dilations_large_count_include_pad_is_1_ceil_mode_is_True", "cells that ceil_mode adds were counted; corrected in 1.17.0"},
	}
}

// TestForward runs the corpus, or a sample of it.
func TestForward(t *testing.T) {
	cases := index(t)
	r := &runner{dir: t.TempDir()}
	defer r.close()
	pattern := regexp.MustCompile(*only)
	results := map[*testCase]verdict{}
	var run, left []*testCase
	for i, c := range cases {
		if !pattern.MatchString(c.String()) || !*full && *only == "" && (i%23 != 0 || strings.HasPrefix(c.name, "light/")) {
			continue
		}
		if skipped(c) != "" {
			left = append(left, c)
			continue
		}
		run = append(run, c)
		results[c] = r.forward(c)
	}
	out := report(run, left, results) + "\n" + bindings(run, results)
	if *listing != "" {
		if err := os.WriteFile(*listing, []byte(out), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Log("\n" + summary(run, results) + bindings(run, results))
	failed := 0
	for _, c := range run {
		if v := results[c]; v.stage != "" && c.tier <= 1 {
			if failed++; failed <= 40 {
				t.Errorf("%v (opset %d): %s: %.300s", c, c.opset, v.stage, v.reason)
			}
		}
	}
	if failed > 40 {
		t.Errorf("and %d more", failed-40)
	}
}

// summary is the table of passes by tier and opset.
func summary(run []*testCase, results map[*testCase]verdict) string {
	type cell struct{ pass, all int }
	counts := map[[2]int]*cell{}
	var opsets []int
	add := func(tier, opset int, ok bool) {
		k := [2]int{tier, opset}
		if counts[k] == nil {
			counts[k] = &cell{}
		}
		counts[k].all++
		if ok {
			counts[k].pass++
		}
	}
	for _, c := range run {
		ok := results[c].stage == ""
		add(c.tier, int(c.opset), ok)
		add(c.tier, -1, ok)
		if !slices.Contains(opsets, int(c.opset)) {
			opsets = append(opsets, int(c.opset))
		}
	}
	slices.Sort(opsets)
	var b strings.Builder
	fmt.Fprintf(&b, "%-8s", "opset")
	for tier := range 4 {
		fmt.Fprintf(&b, "%14s", fmt.Sprintf("tier %d", tier))
	}
	b.WriteString("\n")
	for _, o := range append(opsets, -1) {
		name := fmt.Sprint(o)
		if o < 0 {
			name = "all"
		}
		fmt.Fprintf(&b, "%-8s", name)
		for tier := range 4 {
			if k := counts[[2]int{tier, o}]; k != nil {
				fmt.Fprintf(&b, "%14s", fmt.Sprintf("%d / %d", k.pass, k.all))
			} else {
				fmt.Fprintf(&b, "%14s", "-")
			}
		}
		b.WriteString("\n")
	}
	return b.String()
}

// bindings says how many of the passed cases needed inputs bound to constants because shapes depend on them, and of how many nothing was left to run.
func bindings(run []*testCase, results map[*testCase]verdict) string {
	some, all := 0, 0
	for _, c := range run {
		if v := results[c]; v.stage == "" && len(v.bound) > 0 {
			some++
			if v.folded {
				all++
			}
		}
	}
	return fmt.Sprintf("%d passed with inputs bound to constants, %d of these with all of them bound\n", some, all)
}

// report lists what does not pass, by stage and reason, and what was not run.
func report(run, left []*testCase, results map[*testCase]verdict) string {
	var b strings.Builder
	b.WriteString(summary(run, results))
	slices.SortStableFunc(run, func(x, y *testCase) int { return cmp.Compare(x.tier, y.tier) })
	for _, c := range run {
		if v := results[c]; v.stage != "" {
			fmt.Fprintf(&b, "tier %d\t%v\topset %d\t%s\t%s\t%s\n", c.tier, c, c.opset, strings.Join(c.ops, ","), v.stage, strings.Join(strings.Fields(v.reason), " "))
		}
	}
	for _, c := range left {
		fmt.Fprintf(&b, "not run\t%v\topset %d\t%s\n", c, c.opset, skipped(c))
	}
	return b.String()
}
