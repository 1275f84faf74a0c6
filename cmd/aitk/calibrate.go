package main

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"time"

	"aitk/ir/plan"
	"aitk/passes/cost"
	"aitk/runtime"
	"aitk/runtime/calibrate"
	"aitk/runtime/cpu"
	"aitk/runtime/cuda"
)

func calibrateCommand() command {
	return command{name: "calibrate", args: "-o FILE", short: "measure op and copy rates into a profile file for --profile", run: calibrateDevice,
		long: `Measures this machine for some seconds: arithmetic by element type, memory, launches, copies both ways, alone and together, and files. Run it
while nothing else runs. Plans made with the file record its SHA-256, so that the same file and model give the same plan anywhere.`}
}

func calibrateDevice(c *call) error {
	if c.out == "" {
		return usagef("calibrate needs -o FILE")
	}
	if c.device == "null" {
		return usagef("device null does nothing that could be measured")
	}
	p, dev, room, err := c.calibrated()
	if err != nil {
		return err
	}
	defer dev.Close()
	begin := time.Now()
	r, err := calibrate.Measure(dev, calibrate.Options{ArenaBytes: room, Least: 10 * time.Millisecond})
	if err != nil {
		return err
	}
	dir := "."
	if c.out != "-" {
		dir = filepath.Dir(c.out)
	}
	storage, err := storageRate(dir)
	if err != nil {
		return err
	}
	fillProfile(p, r, storage)
	if err := c.writeFile(c.out, func(w io.Writer) error { return writeJSON(w, p) }); err != nil {
		return err
	}
	if c.out == "-" {
		return nil
	}
	rate := func(n int64) string { return fmt.Sprintf("%.3g", float64(n)/1e9) }
	fmt.Fprintf(c.stdout, "%s, measured in %.1f s with %s\n", p.Name, time.Since(begin).Seconds(), plan.FormatBytes(r.ArenaBytes))
	fmt.Fprintf(c.stdout, "arithmetic  %s GFLOP/s f32 (products of side %d), %s f64, %s bf16 and f16\n", rate(p.F32FLOPs), r.ProductSide, rate(p.F64FLOPs), rate(p.HalfFLOPs))
	fmt.Fprintf(c.stdout, "memory      %s GB/s, %.3g us a launch\n", rate(p.MemoryRate), float64(p.LaunchPicos)/1e6)
	fmt.Fprintf(c.stdout, "copies      %s GB/s out, %s in, each at %d permille while both run, %.3g us a copy\n", rate(p.D2HRate), rate(p.H2DRate), p.DuplexPermille, float64(p.CopyPicos)/1e6)
	fmt.Fprintf(c.stdout, "files       %s GB/s\n", rate(p.StorageRate))
	return nil
}

// calibrated opens the device and begins its profile; room is how much memory the measurement may take of each kind.
func (c *call) calibrated() (p *cost.Profile, dev runtime.Device, room int64, err error) {
	if c.device != "cuda" {
		p = cost.CPUGeneric()
		p.Name = "cpu-calibrated"
		room = 256 << 20
		if _, free := procMemory(); free > 0 {
			room = min(room, free/4)
		}
		return p, cpu.Open(cpu.Options{Threads: int(c.threads)}), room, nil
	}
	card, err := thisCard()
	if err != nil {
		return nil, nil, 0, err
	}
	p = &cost.Profile{Device: "cuda", Name: strings.Join(words(card.Name), "-") + "-calibrated", MemoryBytes: card.TotalBytes, AlignBytes: 256}
	dev, err = cuda.Open(cuda.Options{})
	return p, dev, min(1<<30, card.FreeBytes/2, cuda.Describe().Pinned/2), err
}

// fillProfile turns what was measured into whole numbers of three digits: more the clock does not give.
func fillProfile(p *cost.Profile, r *calibrate.Rates, storage float64) {
	p.F64FLOPs, p.F32FLOPs, p.HalfFLOPs = digits(r.F64), digits(r.F32), digits(cmp.Or(r.Half, r.F32))
	p.MemoryRate, p.LaunchPicos = digits(r.Memory), digits(r.LaunchSeconds*1e12)
	p.D2HRate, p.H2DRate, p.CopyPicos = digits(r.D2H), digits(r.H2D), digits(r.CopySeconds*1e12)
	p.DuplexPermille = min(1000, max(1, int64(1000*min(r.BothD2H/r.D2H, r.BothH2D/r.H2D))))
	p.StorageRate = digits(storage)
}

// digits rounds a positive number to three digits, at least 1.
func digits(x float64) int64 {
	if !(x >= 1) {
		return 1
	}
	unit := math.Pow(10, math.Max(0, math.Floor(math.Log10(x))-2))
	return int64(math.Round(x/unit) * unit)
}

// storageRate writes a file where the profile goes, to the medium, and reads it back; the slower of both counts, in bytes a second.
func storageRate(dir string) (float64, error) {
	f, err := os.CreateTemp(dir, ".aitk-calibrate-")
	if err != nil {
		return 0, fmt.Errorf("a file to measure with: %w", err)
	}
	defer os.Remove(f.Name())
	defer f.Close()
	block := make([]byte, 1<<20)
	for i := range block {
		block[i] = byte(i * i >> 3)
	}
	const blocks = 32
	slowest := 0.0
	for _, pass := range []func() error{
		func() error {
			for range blocks {
				if _, err := f.Write(block); err != nil {
					return err
				}
			}
			return f.Sync()
		},
		func() error {
			for i := range int64(blocks) {
				if _, err := f.ReadAt(block, i<<20); err != nil {
					return err
				}
			}
			return nil
		},
	} {
		begin := time.Now()
		if err := pass(); err != nil {
			return 0, fmt.Errorf("measuring files: %w", err)
		}
		slowest = max(slowest, time.Since(begin).Seconds())
	}
	return blocks << 20 / max(slowest, 1e-9), nil
}
