package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aitk/internal/regular"
	"aitk/internal/safetensors"
	"aitk/internal/weights"
	"aitk/ir"
	"aitk/ir/plan"
)

// replaceWeights gives parameters the content that --weights has under their names. Parameters that it has not keep their own.
func (c *call) replaceWeights(g *ir.Graph) error {
	r, err := c.fillWeights(g)
	if err != nil {
		return err
	}
	if r.Prefix != "" {
		c.note("--weights %s: names differ by %q in front", c.weights, strings.TrimPrefix(r.Prefix, "-"))
	}
	if len(r.Transposed) > 0 {
		c.note("--weights %s: the file holds the transpose of %s", c.weights, listed(r.Transposed))
	}
	if len(r.Left) > 0 {
		c.note("--weights %s: no parameter is called %s", c.weights, listed(r.Left))
	}
	if len(r.Missing) > 0 {
		c.note("--weights %s: still without content: %s", c.weights, listed(r.Missing))
	}
	return nil
}

// fillWeights looks parameters up in --weights.
func (c *call) fillWeights(g *ir.Graph) (*weights.Filled, error) {
	files, err := weightFiles(c.weights)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	var have []weights.Tensor
	for _, path := range files {
		infos, err := tensorsOf(path)
		if err != nil {
			return nil, err
		}
		for _, x := range infos {
			if old, twice := found[x.Name]; twice {
				return nil, usagef("--weights %s: tensor %q is in %s and in %s", c.weights, x.Name, old, path)
			}
			found[x.Name] = path
			have = append(have, weights.Tensor{Name: x.Name, Type: x.Type, At: ir.Location{Path: path, Offset: x.Offset, Bytes: x.Bytes}})
		}
	}
	r, err := weights.FillGraph(g, have)
	if err != nil {
		return nil, usagef("--weights %s: %w", c.weights, err)
	}
	if r.Used == 0 {
		return nil, usagef("--weights %s: none of its %d tensors has the name of a parameter; `aitk inspect` lists those", c.weights, len(have))
	}
	return r, nil
}

// listed is a list of names, cut where it grows long.
func listed(names []string) string {
	const most = 8
	var quoted []string
	for _, n := range names[:min(len(names), most)] {
		quoted = append(quoted, fmt.Sprintf("%q", n))
	}
	s := strings.Join(quoted, ", ")
	if n := len(names) - most; n > 0 {
		s += fmt.Sprintf(" and %d more", n)
	}
	return s
}

func tensorsOf(path string) ([]safetensors.Info, error) {
	f, err := safetensors.Open(path)
	if err != nil {
		return nil, cannotOpen("--weights", path, err)
	}
	return f.Infos(), f.Close()
}

const indexSuffix = ".safetensors.index.json"

// weightFiles lists the files behind --weights: one, those of an index, or those of a folder, by its index where it has one.
func weightFiles(path string) ([]string, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, cannotOpen("--weights", path, err)
	}
	switch {
	case st.IsDir():
		var index, files []string
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			switch name := e.Name(); {
			case strings.HasSuffix(name, indexSuffix):
				index = append(index, filepath.Join(path, name))
			case strings.HasSuffix(name, ".safetensors"):
				files = append(files, filepath.Join(path, name))
			}
		}
		switch {
		case len(index) == 1:
			return indexedFiles(index[0])
		case len(index) > 1:
			return nil, usagef("--weights %s: the folder has several indexes, name one: %s", path, strings.Join(index, ", "))
		case len(files) == 0:
			return nil, usagef("--weights %s: the folder has no .safetensors file", path)
		}
		return files, nil
	case strings.HasSuffix(path, ".json"):
		return indexedFiles(path)
	}
	return []string{path}, nil
}

// indexedFiles reads an index: {"weight_map": {tensor: file}}. Files stay within its folder.
func indexedFiles(path string) ([]string, error) {
	raw, err := regular.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var index struct {
		Map map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(raw, &index); err != nil {
		return nil, usagef("--weights %s: %w", path, err)
	}
	var files []string
	for _, name := range index.Map {
		if !filepath.IsLocal(name) {
			return nil, usagef("--weights %s: file name %q leaves the folder", path, name)
		}
		files = append(files, filepath.Join(filepath.Dir(path), name))
	}
	if len(files) == 0 {
		return nil, usagef("--weights %s: no \"weight_map\" with files", path)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// pinWeights makes a plan independent of where it was made: weights in files are found from the plan's folder and known by their digests, or
// with embed lie in the plan itself.
func pinWeights(p *plan.Plan, folder string, embed bool) (err error) {
	from, err := filepath.Abs(folder)
	if err != nil {
		return err
	}
	r := weights.NewReader()
	defer func() { err = errors.Join(err, r.Close()) }()
	for i := range p.Params {
		x := &p.Params[i]
		if x.Init.Kind != ir.InitFile {
			continue
		}
		if embed {
			raw, err := r.Bytes(x.Name, x.Type, &x.Init)
			if err != nil {
				return err
			}
			x.Init = ir.Init{Kind: ir.InitLiteral, Literal: raw}
			continue
		}
		if x.Init.File.SHA256, err = r.SHA256(x.Name, x.Type, &x.Init); err != nil {
			return err
		}
		at, err := filepath.Abs(x.Init.File.Path)
		if err != nil {
			return err
		}
		if rel, err := filepath.Rel(from, at); err == nil { // else another volume
			at = rel
		}
		x.Init.File.Path = filepath.ToSlash(at)
	}
	return nil
}
