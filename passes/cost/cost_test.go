package cost

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
)

func TestPicos(t *testing.T) {
	cases := []struct{ n, rate, want int64 }{
		{0, 1, 0}, {-5, 1, 0}, {1, 1e12, 1}, {1, 3e12, 1}, {10, 5, 2e12}, {1 << 40, 1, math.MaxInt64 / 4}, {8e9, 8e9, 1e12}, {math.MaxInt64, 1, math.MaxInt64 / 4},
	}
	for _, c := range cases {
		if got := picos(c.n, c.rate); got != c.want {
			t.Errorf("picos(%d, %d) = %d, want %d", c.n, c.rate, got, c.want)
		}
	}
}

func TestCardsAreFoundHoweverTheyAreWritten(t *testing.T) {
	for _, name := range []string{"rtx3090", "RTX 3090", "rtx_3090", "rtx-3090"} {
		p, err := GPU(name)
		if err != nil {
			t.Fatal(err)
		}
		if p.Name != "rtx-3090" {
			t.Errorf("%q is %s", name, p.Name)
		}
	}
}

func TestProfileFileRoundTrip(t *testing.T) {
	for _, name := range GPUNames() {
		p, err := GPU(strings.ToUpper(name))
		if err != nil {
			t.Fatal(err)
		}
		raw, _ := json.Marshal(p)
		q, err := Parse(raw)
		if err != nil {
			t.Fatal(err)
		}
		if q.Sum() != p.Sum() {
			t.Errorf("%s: the sum changed over a round trip", name)
		}
	}
	if _, err := GPU("abacus"); err == nil || !strings.Contains(err.Error(), "rtx-4090") {
		t.Errorf("unknown card: %v, wanted the list of known ones", err)
	}
}

func TestParseRefuses(t *testing.T) {
	good, _ := json.Marshal(CPUGeneric())
	change := func(old, new string) []byte {
		s := strings.Replace(string(good), old, new, 1)
		if s == string(good) {
			t.Fatalf("%q is not in the profile", old)
		}
		return []byte(s)
	}
	for _, raw := range [][]byte{
		nil, []byte("{}"), change(`"align_bytes":64`, `"align_bytes":48`), change(`"device":"cpu"`, `"device":"abacus"`),
		change(`"duplex_permille":700`, `"duplex_permille":1001`), change(`"launch_picos":1000000`, `"launch_picos":-1`), change(`"name"`, `"nome"`),
	} {
		if _, err := Parse(raw); err == nil {
			t.Errorf("accepted %.60s", raw)
		}
	}
}
