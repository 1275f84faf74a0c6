//go:build cuda && linux

package cuda

import (
	"strings"
	"testing"
)

// TestNoMemoryBesideThePlan: modules have tables and nothing that a kernel could write, so the plan's arena is all the device memory there is.
func TestNoMemoryBesideThePlan(t *testing.T) {
	for _, target := range []string{"sm_75", "sm_80"} {
		entries, err := texts.ReadDir("kernels/" + target)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			raw, err := texts.ReadFile("kernels/" + target + "/" + e.Name())
			if err != nil {
				t.Fatal(err)
			}
			for line := range strings.Lines(string(raw)) {
				words := strings.Fields(line)
				if len(words) > 1 && (words[0] == ".global" || words[1] == ".global") && !strings.Contains(line, "=") {
					t.Errorf("%s/%s has memory of its own: %s", target, e.Name(), strings.TrimSpace(line))
				}
			}
		}
	}
}
