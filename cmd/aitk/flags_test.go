package main

import (
	"slices"
	"strings"
	"testing"
)

// Every flag is defined once, for verbs that exist, with a help text; what is no switch and shapes nothing fixed tells its default or is a file.
func TestFlagTable(t *testing.T) {
	var verbs []string
	for _, c := range commands() {
		verbs = append(verbs, c.name)
		if c.short == "" || c.run == nil || c.max < c.min {
			t.Errorf("verb %s is not complete", c.name)
		}
	}
	seen := map[string]bool{}
	for _, o := range options() {
		if seen[o.name] {
			t.Errorf("--%s stands twice", o.name)
		}
		seen[o.name] = true
		if o.help == "" || o.set == nil || o.verbs == "" {
			t.Errorf("--%s is not complete", o.name)
		}
		for _, v := range strings.Fields(o.verbs) {
			if !slices.Contains(verbs, v) {
				t.Errorf("--%s names a verb %q", o.name, v)
			}
		}
	}
	// The names that scripts rely on.
	for _, name := range strings.Fields(`dim weights loss output optimizer schedule clip-norm accumulate seed train freeze no-decay budget host-budget recompute swap device
		gpu batch-norm profile effort input config data steps epochs threads metrics save batch eval-data eval-split eval-every metric checkpoint every keep
		resume quiet v vv print-after disable stop-after time-passes verify o embed-weights json dot csv explain passes`) {
		if !seen[name] {
			t.Errorf("--%s is missing", name)
		}
	}
}

func TestParseSize(t *testing.T) {
	for _, c := range []struct {
		text string
		want size
	}{
		{"65536", size{kind: sizeBytes, bytes: 65536}},
		{"0", size{kind: sizeBytes}},
		{"9007199254740993", size{kind: sizeBytes, bytes: 9007199254740993}}, // more digits than a float has
		{"900MB", size{kind: sizeBytes, bytes: 900e6}},
		{"8GiB", size{kind: sizeBytes, bytes: 8 << 30}},
		{"1.5 kib", size{kind: sizeBytes, bytes: 1536}},
		{"2TB", size{kind: sizeBytes, bytes: 2e12}},
		{"12b", size{kind: sizeBytes, bytes: 12}},
		{"60%", size{kind: sizePercent, percent: 60}},
		{"33.3 %", size{kind: sizePercent, percent: 33.3}},
		{"none", size{kind: sizeNone}},
		{"Auto", size{kind: sizeAuto}},
	} {
		got, err := parseSize("budget", c.text)
		if err != nil || got != c.want {
			t.Errorf("%q: %+v, %v; want %+v", c.text, got, err, c.want)
		}
	}
	for _, text := range []string{"", "-1", "0%", "-3%", "nan", "inf", "0x10", "1_000", "8Gi", "8 GiB 2", "1e30", "99999999TiB", "9223372036854775808", "%", "MB"} {
		if got, err := parseSize("budget", text); err == nil || !strings.Contains(err.Error(), "--budget "+text) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
	}
}

func TestDidYouMean(t *testing.T) {
	known := []string{"budget", "batch", "dim", "data"}
	for _, c := range []struct{ word, want string }{
		{"bugdet", "budget"}, {"budgt", "budget"}, {"dmi", "dim"}, {"DIM", ""}, {"completely-else", ""}, {"", ""},
	} {
		got := didYouMean(c.word, known)
		if c.want == "" && got != "" || c.want != "" && !strings.Contains(got, `"`+c.want+`"`) {
			t.Errorf("%q: %q, want %q", c.word, got, c.want)
		}
	}
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"abc", "", 3}, {"abc", "acb", 1}, {"kitten", "sitting", 3}, {"ca", "abc", 3}} {
		if got := distance(c.a, c.b); got != c.want {
			t.Errorf("distance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
