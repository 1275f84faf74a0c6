package cost

import (
	"fmt"
	"strings"
)

// gpu is a row of the catalogue: what the maker's data sheet states. Kernels reach a share of it; copies over the bus likewise.
type gpu struct {
	name       string
	memoryGiB  int64
	f32, half  int64 // TFLOP/s, dense, f32 accumulation
	memoryGBps int64
	busGBps    int64 // one direction, sheet figure of the slot
}

func gpus() []gpu {
	return []gpu{
		{"rtx-3060", 12, 13, 51, 360, 32},
		{"rtx-3090", 24, 36, 71, 936, 32},
		{"rtx-4060-ti-16gb", 16, 22, 44, 288, 16},
		{"rtx-4090", 24, 83, 165, 1008, 32},
		{"rtx-5090", 32, 105, 210, 1792, 64},
		{"a10", 24, 31, 125, 600, 32},
		{"l4", 24, 30, 121, 300, 32},
		{"l40s", 48, 92, 362, 864, 32},
		{"a100-40gb", 40, 19, 312, 1555, 32},
		{"a100-80gb", 80, 19, 312, 2039, 32},
		{"h100-sxm", 80, 67, 989, 3350, 64},
		{"h200", 141, 67, 989, 4800, 64},
		{"t4", 16, 8, 65, 320, 16},
	}
}

// GPUNames lists the catalogue.
func GPUNames() []string {
	var out []string
	for _, g := range gpus() {
		out = append(out, g.name)
	}
	return out
}

// GPU is the profile of a card in the catalogue: 60 % of the sheet's arithmetic, 80 % of its memory rate, 75 % of its bus. The name may be
// written in capitals and without the hyphens: RTX3090, "RTX 3090".
func GPU(name string) (*Profile, error) {
	for _, g := range gpus() {
		if bare(g.name) == bare(name) {
			return &Profile{
				Device: "cuda", Name: g.name, MemoryBytes: g.memoryGiB << 30, AlignBytes: 256,
				F64FLOPs: g.f32 * 1e12 / 32, F32FLOPs: g.f32 * 6e11, HalfFLOPs: g.half * 6e11, MemoryRate: g.memoryGBps * 8e8,
				LaunchPicos: 4e6, D2HRate: g.busGBps * 75e7, H2DRate: g.busGBps * 75e7, CopyPicos: 10e6, DuplexPermille: 800, StorageRate: 2e9,
			}, nil
		}
	}
	return nil, fmt.Errorf("no card %q in the catalogue; known are %s", name, strings.Join(GPUNames(), ", "))
}

// bare is a card's name without what people write differently.
func bare(name string) string {
	return strings.NewReplacer("-", "", "_", "", " ", "").Replace(strings.ToLower(name))
}

// UsablePercent is the share of a card's memory that an arena can have: driver, context and display take the rest.
const UsablePercent = 94

// UsableBytes is the most that an arena can have of the card's memory; 0: not known.
func (p *Profile) UsableBytes() int64 { return p.MemoryBytes / 100 * UsablePercent }
