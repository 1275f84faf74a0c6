package passes

import (
	"math"
	"slices"
	"strings"

	"aitk/ir"
)

// LoRASpec is one --lora: which weights get adapters, and what adapters.
type LoRASpec struct {
	Glob    string  // over parameters' names and their modules'
	Rank    int64   // 0: weights that Glob hits get none; RankOfFile: as Init has it
	Alpha   float64 // 0: as Init has it
	RSLoRA  bool    // scale alpha/sqrt(rank) instead of alpha/rank
	Dropout float64 // of what goes into A
	Init    string  // safetensors file with first contents; "": A is drawn, B is zero
}

// RankOfFile is the rank of an adapter whose file tells it.
const RankOfFile = -1

// AdapterTensor is a tensor of an adapter file: what it is and where it lies.
type AdapterTensor struct {
	Type ir.Type
	Init ir.Init
}

// AdapterTensors is a module's adapter in a file.
type AdapterTensors struct {
	A, B  AdapterTensor // [rank, in...] and [out, rank, 1...]
	Alpha float64
}

// Scale is the factor of the product of B and A.
func (l *LoRASpec) Scale() float64 {
	if l.RSLoRA {
		return l.Alpha / math.Sqrt(float64(l.Rank))
	}
	return l.Alpha / float64(l.Rank)
}

// ParseLoRA reads GLOB[:rank=16,alpha=16,dropout=0,rslora=false,init=FILE]. With init, rank and alpha are the file's unless they are given.
func ParseLoRA(text string) (LoRASpec, error) {
	l := LoRASpec{Rank: 16, Alpha: 16}
	glob, rest := cutGlob(text, "rank", "alpha", "dropout", "rslora", "init")
	s := &spec{flag: "lora", name: glob, text: rest}
	l.Glob = glob
	s.settings()
	if slices.Contains(s.keys, "init") {
		l.Rank, l.Alpha = RankOfFile, 0
	}
	s.int("rank", &l.Rank, "a whole number of 0 or more", func(x int64) bool { return x >= 0 && x <= 1<<20 })
	s.float("alpha", &l.Alpha, "a number other than 0", func(x float64) bool { return x != 0 })
	s.float("dropout", &l.Dropout, "a number of at least 0 and below 1", func(x float64) bool { return x >= 0 && x < 1 })
	s.bool("rslora", &l.RSLoRA)
	if file, ok := s.take("init"); ok {
		if l.Init = file; file == "" {
			s.problems = append(s.problems, "init= names no file")
		}
	}
	if glob == "" {
		s.problems = append(s.problems, "the glob is missing")
	}
	return l, s.done()
}

// String is the inverse of ParseLoRA.
func (l LoRASpec) String() string {
	var kv []string
	if l.Rank != RankOfFile {
		kv = append(kv, "rank", formatFloat(float64(l.Rank)))
	}
	if l.Alpha != 0 {
		kv = append(kv, "alpha", formatFloat(l.Alpha))
	}
	if l.Dropout > 0 {
		kv = append(kv, "dropout", formatFloat(l.Dropout))
	}
	if l.RSLoRA {
		kv = append(kv, "rslora", "true")
	}
	return formatSpec(l.Glob, append(kv, "init", l.Init)...)
}

// cutGlob splits a glob, which may hold colons, from settings: at the last colon that a known key and = follow.
func cutGlob(text string, keys ...string) (glob, rest string) {
	for i := len(text) - 1; i >= 0; i-- {
		if text[i] != ':' {
			continue
		}
		if key, _, ok := strings.Cut(text[i+1:], "="); ok && slices.Contains(keys, strings.TrimSpace(key)) {
			return text[:i], text[i+1:]
		}
	}
	return text, ""
}

// MatchLoRA is the spec that a weight's adapter follows: the last that hits it. ok is false where none does or that one has rank 0.
func MatchLoRA(specs []LoRASpec, weight string) (l LoRASpec, ok bool) {
	for _, s := range specs {
		if s.hits(weight) {
			l, ok = s, s.Rank != 0
		}
	}
	return l, ok
}

func (l *LoRASpec) hits(weight string) bool {
	return ir.MatchGlob(l.Glob, weight) || ir.MatchGlob(l.Glob, ModuleOf(weight))
}

// ModuleOf is the module whose weight a parameter is: its name without ".weight".
func ModuleOf(weight string) string { return strings.TrimSuffix(weight, ".weight") }
