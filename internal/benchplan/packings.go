package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"aitk/passes/pack"
	"aitk/passes/pack/packcsv"
)

// packed is what the allocator makes of an instance.
type packed struct {
	pack.Result
	buffers int
	seconds float64
}

func place(path string, capacity int64) (packed, error) {
	f, err := os.Open(path)
	if err != nil {
		return packed{}, err
	}
	defer f.Close()
	t, err := packcsv.Read(f)
	if err != nil {
		return packed{}, fmt.Errorf("%s: %w", path, err)
	}
	begin := cpuSeconds()
	r, err := pack.Solve(context.Background(), pack.Problem{Buffers: t.Buffers, CapacityBytes: capacity}, pack.Options{Workers: 1})
	x := packed{r, len(t.Buffers), cpuSeconds() - begin}
	if err == nil {
		err = pack.Validate(t.Buffers, r.Offsets)
	}
	return x, err
}

func capacities(r *report) error {
	folder := filepath.Join(bench, "minimalloc", "challenging")
	if missing(folder) {
		return nil
	}
	const capacity = 1 << 20
	r.title(fmt.Sprintf("minimalloc's challenging suite in %d bytes: CPU seconds (aitk), wall seconds (others)", capacity), "instance", "buffers", "MiniMalloc", "its paper", "reference", "aitk", "solved", "arena", "bound", "nodes")
	var sum [4]float64
	for _, row := range capacityRows() {
		x, err := place(filepath.Join(folder, fmt.Sprintf("%s.%d.csv", row.name, capacity)), capacity)
		if err != nil {
			return err
		}
		r.row(row.name, fmt.Sprint(x.buffers), secs(row.minimalloc), secs(row.paper), fmt.Sprintf("%.3f", row.reference), fmt.Sprintf("%.3f", x.seconds), fmt.Sprint(x.ArenaBytes <= capacity),
			fmt.Sprint(x.ArenaBytes), fmt.Sprintf("%d (%s)", x.BoundBytes, x.BoundName), fmt.Sprint(x.Nodes))
		for k, s := range []float64{row.minimalloc, row.paper, row.reference, x.seconds} {
			sum[k] += s
		}
	}
	r.row("together", "", secs(sum[0]), secs(sum[1]), fmt.Sprintf("%.3f", sum[2]), fmt.Sprintf("%.3f", sum[3]), "", "", "", "")
	return r.end()
}

func traces(r *report) error {
	folder := filepath.Join(bench, "idealloc")
	if missing(folder) {
		return nil
	}
	r.title("idealloc's traces: arena over the bound", "trace", "buffers", "idealloc", "its seconds", "reference", "aitk", "CPU seconds", "passes")
	for _, row := range traceRows() {
		x, err := place(filepath.Join(folder, row.file+".csv"), 0)
		if err != nil {
			return err
		}
		r.row(row.file, fmt.Sprint(x.buffers), fmt.Sprintf("%.4f", row.idealloc), secs(row.seconds), fmt.Sprintf("%.5f", row.reference), fmt.Sprintf("%.5f", float64(x.ArenaBytes)/float64(x.BoundBytes)),
			secs(x.seconds), fmt.Sprint(x.Passes))
	}
	return r.end()
}
