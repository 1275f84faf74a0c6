package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"aitk/importer"
	"aitk/passes"
)

// collection lists every golden training beside the repository, of every file of its model, in the order of the folder. Nothing is named here: a model
// or a variant that is put there is trained from then on.
func collection(t testing.TB) []run {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(small(t, ""), "*", "golden*.json"))
	check(t, err)
	slices.Sort(found)
	var out []run
	for _, path := range found {
		dir, name := filepath.Split(path)
		dir = filepath.Clean(dir)
		g := readGolden(t, path)
		files := []string{"model.onnx"}
		if g.Variant == "" {
			files, err = filepath.Glob(filepath.Join(dir, "model*.onnx"))
			check(t, err)
		} else if len(g.Bases) > 0 {
			files = g.Bases
		}
		for _, file := range files {
			r := run{dir: dir, file: filepath.Base(file), golden: name}
			if g.BatchNorm != nil {
				r.batchNorm = importer.BatchNormTrain
				if g.Mode == "eval" {
					r.batchNorm = importer.BatchNormFrozen
				}
			}
			out = append(out, r)
		}
	}
	if len(out) == 0 {
		t.Fatal("the collection holds no golden")
	}
	return out
}

func readGolden(t testing.TB, path string) *golden {
	t.Helper()
	raw, err := os.ReadFile(path)
	check(t, err)
	g := &golden{}
	if err := json.Unmarshal(raw, g); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return g
}

// unbuilt says why a golden cannot be trained; "" if it can.
func (g *golden) unbuilt() string {
	if g.Autocast != nil {
		return fmt.Sprintf("computes in %s, which --dtype would ask for", *g.Autocast)
	}
	if g.EMA != nil {
		return fmt.Sprintf("averages weights (decay %v), which --ema would ask for", *g.EMA)
	}
	text, why := g.optimizer()
	if why == "" {
		if _, err := passes.ParseOptimizer(text); err != nil {
			why = fmt.Sprintf("optimizer %s: %v", g.Optimizer.Type, err)
		}
	}
	return why
}

// optimizer is the golden's as --optimizer has it, or the reason why the command line has no such thing.
func (g *golden) optimizer() (text, why string) {
	switch p := g.Optimizer; p.Type {
	case "sgd":
		return fmt.Sprintf("sgd:lr=%v,momentum=%v,dampening=%v,nesterov=%v,weight-decay=%v", p.LR, p.Momentum, p.Dampening, p.Nesterov, p.WeightDecay), ""
	case "adam", "adamw":
		if p.AMSGrad {
			return "", "AMSGrad is no optimizer of the command line"
		}
		return fmt.Sprintf("%s:lr=%v,beta1=%v,beta2=%v,eps=%v,weight-decay=%v", p.Type, p.LR, p.Betas[0], p.Betas[1], p.Eps, p.WeightDecay), ""
	default:
		return "", fmt.Sprintf("optimizer %s is not built", p.Type)
	}
}

// adapters are the settings of a golden that trains adapters: each module that it adapts, by name, from the file that it starts with.
func (g *golden) adapters(dir string) (out []passes.Setting) {
	if g.LoRA == nil {
		return nil
	}
	var modules []string
	for _, weight := range g.LoRA.Adapts {
		modules = append(modules, strings.TrimSuffix(weight, ".weight"))
	}
	slices.Sort(modules)
	for _, m := range slices.Compact(modules) {
		out = append(out, passes.Setting{Key: "lora", Value: fmt.Sprintf("%s:rank=%d,alpha=%v,init=%s", m, g.LoRA.Rank, g.LoRA.Alpha, filepath.Join(dir, g.LoRA.InitFile))})
	}
	return out
}

// adapterNames gives tensors of adapters the golden's names, which carry the prefix of the pipeline that the model was part of.
func (g *golden) adapterNames(m map[string][]byte) map[string][]byte {
	if g.LoRA == nil {
		return m
	}
	out := map[string][]byte{}
	for name, weight := range g.LoRA.Adapts {
		module, part, _ := strings.Cut(name, ".lora_")
		ours := strings.TrimSuffix(weight, ".weight") + ".lora_" + part
		if raw, ok := m[ours]; ok && strings.HasSuffix(module, strings.TrimSuffix(weight, ".weight")) {
			out[name] = raw
		}
	}
	return out
}

// tables tells whether a file of the model holds float tensors that the one without the exporter's optimizer does not: what the exporter computed, in
// float32, where PyTorch's float64 run computes in float64.
func (g *golden) tables(file string) bool {
	plain := map[string]bool{}
	for _, f := range g.ONNX {
		for name := range f.Others {
			plain[name] = plain[name] || f.File == "model.onnx"
		}
	}
	for _, f := range g.ONNX {
		for name := range f.Others {
			if f.File == file && !plain[name] {
				return true
			}
		}
	}
	return false
}

// gone lists the golden's parameters that a file of the model does not hold in any form.
func (g *golden) gone(file string) (names []string) {
	for _, f := range g.ONNX {
		for name, e := range f.Elsewhere {
			if f.File == file && e.Missing {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}
