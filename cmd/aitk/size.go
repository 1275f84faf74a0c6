package main

import (
	"math"
	"strconv"
	"strings"
)

// size is a number of bytes as a user writes it: 900MB (10^6), 8GiB (2^30), plain bytes, 60%, none, auto.
type size struct {
	kind    sizeKind
	bytes   int64
	percent float64
}

type sizeKind uint8

const (
	sizeNotGiven sizeKind = iota
	sizeBytes
	sizePercent
	sizeNone
	sizeAuto
)

// unit is a suffix of a size.
type unit struct {
	suffix string
	bytes  float64
}

// units lists longer suffixes before those that they end in.
func units() []unit {
	return []unit{
		{"kib", 1 << 10}, {"mib", 1 << 20}, {"gib", 1 << 30}, {"tib", 1 << 40},
		{"kb", 1e3}, {"mb", 1e6}, {"gb", 1e9}, {"tb", 1e12}, {"b", 1},
	}
}

// parseSize reads a size. Fractions are rounded down to whole bytes.
func parseSize(flag, text string) (size, error) {
	t := strings.ToLower(strings.TrimSpace(text))
	kinds := "65536 (bytes), 60% of the memory without a budget, or none"
	if flag != "budget" {
		kinds = "65536 (bytes) or none"
	}
	wrong := usagef("--%s %s: want a size such as 900MB (10^6), 8GiB (2^30), %s", flag, text, kinds)
	switch t {
	case "none":
		return size{kind: sizeNone}, nil
	case "auto":
		return size{kind: sizeAuto}, nil
	}
	if p, ok := strings.CutSuffix(t, "%"); ok {
		x, err := strconv.ParseFloat(strings.TrimSpace(p), 64)
		if err != nil || !(x > 0) || x > 1e6 {
			return size{}, wrong
		}
		return size{kind: sizePercent, percent: x}, nil
	}
	scale := 1.0
	for _, u := range units() {
		if head, ok := strings.CutSuffix(t, u.suffix); ok {
			t, scale = strings.TrimSpace(head), u.bytes
			break
		}
	}
	if n, err := strconv.ParseInt(t, 10, 64); err == nil && scale == 1 {
		if n < 0 {
			return size{}, wrong
		}
		return size{kind: sizeBytes, bytes: n}, nil
	}
	x, err := strconv.ParseFloat(t, 64)
	if err != nil || strings.ContainsAny(t, "xpni_") || !(x >= 0) || x*scale >= math.MaxInt64 {
		return size{}, wrong
	}
	return size{kind: sizeBytes, bytes: int64(x * scale)}, nil
}
