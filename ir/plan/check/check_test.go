package check_test

import (
	"testing"

	"aitk/ir/plan/check"
)

func TestGoodPlan(t *testing.T) {
	if err := check.Check(good()); err != nil {
		t.Fatal(err)
	}
}
