package main

import (
	"testing"

	"aitk/passes/cost"
)

func TestCatalogueName(t *testing.T) {
	for _, c := range []struct {
		name string
		gib  float64
		want string
	}{
		{"NVIDIA GeForce RTX 4090", 23.6, "rtx-4090"}, {"NVIDIA GeForce RTX 4090 Laptop GPU", 15.7, ""}, {"NVIDIA GeForce RTX 4090 D", 23.6, ""},
		{"NVIDIA GeForce RTX 3060", 11.8, "rtx-3060"}, {"NVIDIA GeForce RTX 3060 Ti", 8, ""}, {"NVIDIA GeForce RTX 4060 Ti", 15.7, "rtx-4060-ti-16gb"},
		{"NVIDIA GeForce RTX 4060 Ti", 7.7, ""}, {"NVIDIA A100-SXM4-40GB", 39.4, "a100-40gb"}, {"NVIDIA A100-SXM4-80GB", 79.2, "a100-80gb"},
		{"NVIDIA A100 80GB PCIe", 79.2, "a100-80gb"}, {"NVIDIA A10", 22.5, "a10"}, {"NVIDIA A10G", 22.5, ""}, {"NVIDIA L4", 22.5, "l4"}, {"NVIDIA L40S", 44.4, "l40s"},
		{"NVIDIA H100 80GB HBM3", 79.1, "h100-sxm"}, {"NVIDIA H100 PCIe", 79.1, ""}, {"NVIDIA H200", 139.8, "h200"}, {"Tesla T4", 14.6, "t4"}, {"GeForce GTX 1080", 8, ""}, {"", 0, ""},
	} {
		if got := catalogueName(c.name, int64(c.gib*(1<<30)), cost.GPUNames()); got != c.want {
			t.Errorf("%q with %v GiB is %q, want %q", c.name, c.gib, got, c.want)
		}
	}
}
