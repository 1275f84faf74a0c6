package main

import (
	"errors"
	"slices"
	"strconv"
	"strings"

	"aitk/ir"
	"aitk/passes/cost"
	"aitk/runtime/cuda"
)

// moduleReserve is device memory that --budget auto leaves free: the driver keeps the code of the kernels there.
const moduleReserve = 32 << 20

// thisCard describes the GPU that --device cuda means: the driver's first (CUDA_VISIBLE_DEVICES chooses). The error says why there is none.
func thisCard() (cuda.DeviceInfo, error) {
	d := cuda.Describe()
	if !d.Built {
		return cuda.DeviceInfo{}, &ir.Error{Kind: ir.Usage, Cause: errors.New(d.Reason), Remedy: "to plan for a card without running there give --gpu NAME alone"}
	}
	if d.Reason != "" {
		return cuda.DeviceInfo{}, &ir.Error{Kind: ir.Failed, Cause: errors.New(d.Reason), Remedy: "`aitk doctor` says what was found; --device cpu runs without a GPU, --gpu NAME alone plans for one"}
	}
	return d.Devices[0], nil
}

// freeOnDevice is what --budget auto allows on this machine's card.
func freeOnDevice() (int64, error) {
	card, err := thisCard()
	if err != nil {
		return 0, err
	}
	return max(0, card.FreeBytes-moduleReserve), nil
}

// cardProfile is the cost model of this machine's card: the catalogue's where it stands there, else that of the slowest card in it.
func (c *call) cardProfile() (*cost.Profile, error) {
	card, err := thisCard()
	if err != nil {
		return nil, err
	}
	if name := catalogueName(card.Name, card.TotalBytes, cost.GPUNames()); name != "" {
		return cost.GPU(name)
	}
	p, err := cost.GPU("t4")
	if err != nil {
		return nil, err
	}
	p.Name, p.MemoryBytes = "cuda-generic", card.TotalBytes
	c.note("%s is not in the catalogue and is planned for with the figures of a small card; measure it with `aitk calibrate --device cuda -o FILE` and give --profile FILE", card.Name)
	return p, nil
}

// catalogueName finds a driver's name for a card ("NVIDIA A100-SXM4-40GB") among names of the catalogue ("a100-40gb"): all words of the latter stand in the
// former, none stands there that makes it another product, and memory is right to a fifth. Empty: none fits.
func catalogueName(name string, memoryBytes int64, catalogue []string) string {
	have := words(name)
	best, most := "", 0
	for _, candidate := range catalogue {
		want := words(candidate)
		matched := 0
		for _, w := range want {
			gib, isSize := strings.CutSuffix(w, "gb")
			if n, err := strconv.ParseInt(gib, 10, 64); isSize && err == nil {
				if memoryBytes < n<<30/5*4 || memoryBytes > n<<30/5*6 {
					matched = -1
					break
				}
				continue
			}
			if w == "sxm" {
				if slices.Contains(have, "pcie") || slices.Contains(have, "nvl") {
					matched = -1
					break
				}
				continue
			}
			if !slices.Contains(have, w) {
				matched = -1
				break
			}
			matched++
		}
		for _, w := range []string{"ti", "super", "laptop", "max", "d", "mobile"} {
			if slices.Contains(have, w) && !slices.Contains(want, w) {
				matched = -1
			}
		}
		if matched > most {
			best, most = candidate, matched
		}
	}
	return best
}

// words are the stretches of letters and digits of a name, in lower case.
func words(name string) []string {
	return strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return (r < '0' || r > '9') && (r < 'a' || r > 'z') })
}
