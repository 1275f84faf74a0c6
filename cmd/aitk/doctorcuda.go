package main

import (
	"fmt"

	"aitk/ir/plan"
	"aitk/passes/cost"
	"aitk/runtime/cuda"
)

// leastCapability is that of the oldest devices for which there are kernels, times ten.
const leastCapability = 75

// cudaFindings are what is known of this machine's GPUs, or one line that says why there are none. That there is none keeps no plan from running.
func cudaFindings() []finding {
	d := cuda.Describe()
	if !d.Built {
		return []finding{{"cuda", "note", d.Reason, "plan for a card with --gpu NAME; run with --device cpu"}}
	}
	if d.Driver == "" {
		return []finding{{"cuda", "note", d.Reason, "install NVIDIA's driver (" + d.Library + " comes with it), or run with --device cpu; --gpu NAME plans for a card"}}
	}
	driver := finding{"cuda driver", "ok", fmt.Sprintf("%s, CUDA %s", d.Library, d.Driver), ""}
	if d.Reason != "" {
		driver.Level, driver.State = "note", driver.State+": "+d.Reason
		driver.Remedy = "a container needs the device passed in, CUDA_VISIBLE_DEVICES must not hide it; --device cpu runs without"
	}
	out := []finding{driver}
	for i, g := range d.Devices {
		out = append(out, deviceFinding(i, g))
	}
	if d.Reason != "" || len(d.Devices) == 0 {
		return out
	}
	pinned := finding{"cuda pinned memory", "ok", plan.FormatBytes(d.Pinned) + " at most, half of what is free", ""}
	if d.Pinned < 1<<30 {
		pinned.Level, pinned.Remedy = "note", "swapping needs host memory: free some, or raise the container's limit"
	}
	return append(out, pinned, bandwidthFinding())
}

func deviceFinding(ordinal int, g cuda.DeviceInfo) finding {
	f := finding{fmt.Sprintf("cuda device %d", ordinal), "ok", fmt.Sprintf("%s, compute capability %d.%d, %d multiprocessors, %s free of %s, %d copy engines", g.Name, g.Major, g.Minor,
		g.Processors, plan.FormatBytes(g.FreeBytes), plan.FormatBytes(g.TotalBytes), g.CopyEngines), ""}
	switch {
	case g.Name == "":
		f.Level, f.State, f.Remedy = "note", "the driver says nothing of it", "see `nvidia-smi`"
	case 10*g.Major+g.Minor < leastCapability:
		f.Level, f.Remedy = "note", "the kernels need compute capability 7.5 (Turing) or later"
	case g.FreeBytes < g.TotalBytes/2:
		f.Level, f.Remedy = "note", "another program holds memory of it: see `nvidia-smi`, or give a --budget below what is free (--budget auto does)"
	case catalogueName(g.Name, g.TotalBytes, cost.GPUNames()) == "":
		f.Remedy = "not in the catalogue of cost models: `aitk calibrate --device cuda -o FILE` measures it for --profile FILE"
	}
	return f
}

// bandwidthFinding measures the link.
func bandwidthFinding() finding {
	const name = "cuda link"
	w, err := cuda.Measure(cuda.Options{})
	if err != nil {
		return finding{name, "note", fmt.Sprintf("not measured: %v", err), "free 64 MiB of device memory and as much that may be pinned"}
	}
	f := finding{name, "ok", fmt.Sprintf("%.1f GB/s to the device, %.1f GB/s back; both at once %.1f and %.1f GB/s", w.H2D/1e9, w.D2H/1e9, w.BothH2D/1e9, w.BothD2H/1e9), ""}
	if min(w.H2D, w.D2H) < 3e9 {
		f.Level, f.Remedy = "note", "slow for a slot of 16 lanes: swapping will cost time; see the slot and its power state (`nvidia-smi -q`)"
	}
	return f
}
