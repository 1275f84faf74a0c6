package main

import (
	"math"
	"strconv"
	"strings"
	"time"
)

// solveSettings are the flags of solve. Zero values were not given.
type solveSettings struct {
	order    string
	seconds  float64
	sweep    int64
	h2d, d2h float64 // bytes per second
	latency  time.Duration
	duplex   float64 // of both lanes together, as a multiple of one
	host     size
	timeUnit string
	capacity size
}

// solveOptions steer the planner and the allocator on files that hold nothing but costs.
func solveOptions() []option {
	return []option{
		{"order", "fixed|free", "solve memory: the file's order of nodes, or one that the planner chooses (default fixed)", "solve", false, false,
			oneOf("order", func(s *settings) *string { return &s.solve.order }, "fixed", "free")},
		{"seconds", "S", "search for so long instead of for --effort moves, and so not the same on every machine", "solve", false, false,
			positive("seconds", func(s *settings) *float64 { return &s.solve.seconds })},
		{"sweep", "N", "one run for N budgets (at least 2) from the smallest that works to that without recompute and swap; more never takes longer", "plan solve", false, true,
			setSweep},
		{"h2d", "GB/S", "solve memory: swapping is allowed, and this is the rate to the device in 10^9 bytes a second", "solve", false, false,
			rate("h2d", func(s *settings) *float64 { return &s.solve.h2d })},
		{"d2h", "GB/S", "the rate from the device (default that to it)", "solve", false, false, rate("d2h", func(s *settings) *float64 { return &s.solve.d2h })},
		{"latency", "DURATION", "fixed part of each copy: 10us (default 0)", "solve", false, false, setLatency},
		{"duplex", "F", "rate of both directions together over that of one, 1 to 2 (default 2: they do not disturb each other)", "solve", false, false, setDuplex},
		{"host", "SIZE|none", "host memory for swapping (default none: no limit)", "solve", false, false, sized("host", func(s *settings) *size { return &s.solve.host })},
		{"time-unit", "ps|ns|us|ms|s", "of the file's durations, which matters where copies take time beside them (default us)", "solve", false, false,
			oneOf("time-unit", func(s *settings) *string { return &s.solve.timeUnit }, "ps", "ns", "us", "ms", "s")},
		{"capacity", "SIZE", "solve pack: stop at the first placement that fits; without it the arena is minimised", "solve", false, false,
			sized("capacity", func(s *settings) *size { return &s.solve.capacity })},
	}
}

func positive(name string, dst func(*settings) *float64) func(*settings, string) error {
	return func(s *settings, v string) error {
		x, err := strconv.ParseFloat(v, 64)
		if err != nil || !(x > 0) || math.IsInf(x, 0) {
			return usagef("--%s %s: want a number above 0", name, v)
		}
		*dst(s) = x
		return nil
	}
}

// rate reads GB/s and keeps bytes per second.
func rate(name string, dst func(*settings) *float64) func(*settings, string) error {
	read := positive(name, dst)
	return func(s *settings, v string) error {
		if err := read(s, v); err != nil {
			return err
		}
		if x := *dst(s) * 1e9; x < 1 || x > 1e15 {
			return usagef("--%s %s: want a rate in GB/s between 1e-9 and 1e6", name, v)
		}
		*dst(s) *= 1e9
		return nil
	}
}

// maxSweep bounds the points of a sweep.
const maxSweep = 1000

func setSweep(s *settings, v string) error {
	n, err := strconv.ParseInt(v, 10, 64)
	if err != nil || n < 2 || n > maxSweep {
		return usagef("--sweep %s: want a whole number between 2 and %d", v, maxSweep)
	}
	s.solve.sweep = n
	return nil
}

// setLatency reads a duration as Go writes it; a number alone is in microseconds.
func setLatency(s *settings, v string) error {
	text := v
	if strings.Trim(v, "0123456789.") == "" {
		text += "us"
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > time.Minute {
		return usagef("--latency %s: want a time of at most a minute, such as 10us", v)
	}
	s.solve.latency = d
	return nil
}

func setDuplex(s *settings, v string) error {
	x, err := strconv.ParseFloat(v, 64)
	if err != nil || !(x >= 1 && x <= 2) {
		return usagef("--duplex %s: want a number between 1 and 2", v)
	}
	s.solve.duplex = x
	return nil
}
