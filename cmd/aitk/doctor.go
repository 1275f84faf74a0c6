package main

import (
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"

	"aitk/ir"
	"aitk/ir/plan"
	"aitk/passes/cost"
	"aitk/runtime/cpu"
)

func doctorCommand() command {
	return command{name: "doctor", short: "devices, CPU, memory, and what to do about each finding", run: doctor,
		long: `Looks at this machine only and changes nothing. Exit 1 where something keeps every plan from running.`}
}

// finding is a line of doctor.
type finding struct {
	Name   string `json:"name"`
	Level  string `json:"level"` // ok, note, bad
	State  string `json:"state"`
	Remedy string `json:"remedy,omitempty"`
}

func doctor(c *call) error {
	list := []finding{toolFinding(), goFinding(), coresFinding(), memoryFinding(), arenaFinding(), tempFinding()}
	list = append(append(list, cudaFindings()...), cardsFinding())
	if c.wants("json") {
		if err := c.show(map[string]func(io.Writer) error{"json": func(w io.Writer) error { return writeJSON(w, list) }}); err != nil {
			return err
		}
	} else {
		t := tabwriter.NewWriter(c.stdout, 0, 0, 2, ' ', 0)
		for _, f := range list {
			fmt.Fprintf(t, "%s\t%s\t%s\n", f.Level, f.Name, f.State)
			if f.Remedy != "" {
				fmt.Fprintf(t, "\t\t-> %s\n", f.Remedy)
			}
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, f := range list {
		if f.Level == "bad" {
			return fmt.Errorf("%s: %s", f.Name, f.State)
		}
	}
	return nil
}

func toolFinding() finding {
	b := thisBuild()
	return finding{"aitk", "ok", fmt.Sprintf("%s, commit %s", b.Version, b.Commit), ""}
}

func goFinding() finding {
	return finding{"go", "ok", fmt.Sprintf("%s for %s/%s, %s kernels", runtime.Version(), runtime.GOOS, runtime.GOARCH, thisBuild().CPU), ""}
}

// coresFinding compares what the machine has with what the process may use.
func coresFinding() finding {
	f := finding{"cores", "ok", fmt.Sprintf("%d usable", runtime.GOMAXPROCS(0)), ""}
	if n := runtime.NumCPU(); n > runtime.GOMAXPROCS(0) {
		f.Level, f.State = "note", fmt.Sprintf("%d usable of %d", runtime.GOMAXPROCS(0), n)
		f.Remedy = "GOMAXPROCS or the container's CPU limit holds the rest back; --threads sets the number for a run"
	}
	if name := cpuName(); name != "" {
		f.State += ", " + name
	}
	return f
}

// cpuName is what Linux calls the processor.
func cpuName() string {
	raw, err := os.ReadFile("/proc/cpuinfo")
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(raw)) {
		if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// memoryFinding says what is free for arenas, the limit of a container included.
func memoryFinding() finding {
	total, free := procMemory()
	if total == 0 {
		return finding{"memory", "note", "this system does not tell", "keep --budget below what is free, or the machine swaps pages"}
	}
	f := finding{"memory", "ok", fmt.Sprintf("%s free of %s", plan.FormatBytes(free), plan.FormatBytes(total)), ""}
	if limit := containerLimit(); limit > 0 && limit < total {
		f.State += fmt.Sprintf(", limited to %s by the container", plan.FormatBytes(limit))
		free = min(free, limit)
	}
	if free < 1<<30 {
		f.Level, f.Remedy = "note", "give a --budget below what is free; both arenas of a cpu run lie in this memory"
	}
	return f
}

// procMemory reads /proc/meminfo; zeros where there is none.
func procMemory() (total, free int64) {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0, 0
	}
	for line := range strings.Lines(string(raw)) {
		name, value, _ := strings.Cut(line, ":")
		n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
		if err != nil {
			continue
		}
		switch name {
		case "MemTotal":
			total = n << 10
		case "MemAvailable":
			free = n << 10
		}
	}
	return total, free
}

// containerLimit is the memory limit of a control group, 0 if there is none.
func containerLimit() int64 {
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil {
			return n
		}
	}
	return 0
}

// arenaFinding maps both arenas of a small plan, as a run would.
func arenaFinding() finding {
	const bytes = 16 << 20
	dev := cpu.Open(cpu.Options{Threads: 1})
	defer dev.Close()
	for _, space := range []ir.Space{ir.Device, ir.Pinned} {
		if _, err := dev.Alloc(space, bytes); err != nil {
			return finding{"arenas", "bad", fmt.Sprintf("a %v arena of %s cannot be mapped: %v", space, plan.FormatBytes(bytes), err), "raise the limit of the address space (ulimit -v) or of the container"}
		}
	}
	return finding{"arenas", "ok", fmt.Sprintf("device and host arena of %s each can be mapped, so swapping works (--host-budget)", plan.FormatBytes(bytes)), ""}
}

// tempFinding looks where reproducers and models from standard input go.
func tempFinding() finding {
	dir, err := os.MkdirTemp("", "aitk-")
	if err == nil {
		err = os.Remove(dir)
	}
	if err != nil {
		return finding{"temporary files", "note", err.Error(), "set TMPDIR to a folder that can be written; only reproducers and models from standard input need it"}
	}
	return finding{"temporary files", "ok", "go to " + os.TempDir(), ""}
}

func cardsFinding() finding {
	return finding{"cost models", "ok", "cpu-generic, null, and for --gpu: " + strings.Join(cost.GPUNames(), ", "), ""}
}
