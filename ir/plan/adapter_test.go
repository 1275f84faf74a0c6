package plan_test

import (
	"reflect"
	"testing"

	"aitk/ir/plan"
)

// Adapters come back from a plan's options as they were recorded, whatever the names.
func TestAdapters(t *testing.T) {
	list := []plan.Adapter{
		{Weight: "a b\"c.weight", A: "a b\"c.lora_A.weight", B: "x.lora_B.weight_", Scale: 1.0 / 3, InOut: true},
		{Weight: "z.weight", A: "z.lora_A.weight", B: "z.lora_B.weight", Scale: 2, Shared: true},
	}
	p := chainPlan(1, "")
	p.Options = []plan.Option{{Key: "zz", Value: "1"}, {Key: "adapter/old", Value: "x"}}
	p.SetAdapters(list)
	if got, err := plan.Adapters(p.Options); err != nil || !reflect.DeepEqual(got, list) || len(p.Options) != 3 {
		t.Errorf("%+v, %v", got, err)
	}
	if list[0].Module() != "a b\"c" {
		t.Error(list[0].Module())
	}
	p.Options[0].Value = "scale=x"
	if _, err := plan.Adapters(p.Options); err == nil {
		t.Error("a damaged option is read")
	}
}
