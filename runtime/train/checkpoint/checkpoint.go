// Package checkpoint keeps the state of a training run in a folder, so that a kill at any moment leaves the newest complete checkpoint
// loadable and none damaged. It knows tensors by name and a manifest; it must not know plans, devices, budgets or how training works: what a checkpoint holds
// is keyed by the graph and the training options, so a run resumes under another plan.
//
//	DIR/step-00000100/params.safetensors   parameters, moments, statistics, accumulators: logical tensors under their names
//	DIR/step-00000100/manifest.json        what run it belongs to, how far the run was, size and SHA-256 of each file
//
// A checkpoint is written into a hidden folder beside its place: each file is made durable, the manifest last, the folder is renamed, the
// parent is made durable. So a folder of the right name is complete unless someone else touched it, which Open finds out by sizes and digests.
//
// Invariants: a complete checkpoint is only ever renamed or removed as a whole, and only after a newer one is durable; names that begin with
// ".aitk-" are leftovers that the next run removes (or puts back, where a kill fell between two renames).
//
// Not promised: two runs that write into one folder at the same time.
package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"aitk/internal/regular"
	"aitk/internal/safetensors"
	"aitk/ir"
)

// Schema names the version of the manifest.
const Schema = "aitk.checkpoint/1"

const (
	manifestFile = "manifest.json"
	paramsFile   = "params.safetensors"
	stepPrefix   = "step-"
	tempPrefix   = ".aitk-new-"
	asidePrefix  = ".aitk-old-" // a complete checkpoint that is about to be replaced or removed
)

// maxManifestBytes bounds the manifest that is read.
const maxManifestBytes = 16 << 20

// Setting is a training option of the run.
type Setting struct {
	Key   string `json:"key"`
	Value string `json:"value"`
}

// File is a file of a checkpoint.
type File struct {
	Name   string `json:"name"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Content is a parameter that the run uses and does not change.
type Content struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
}

// Manifest says what run a checkpoint belongs to and how far that run was. Write fills Schema and Files.
type Manifest struct {
	Schema   string    `json:"schema"`
	Tool     string    `json:"tool"`
	Model    string    `json:"model"`
	GraphSum string    `json:"graph_sha256"`
	Step     int64     `json:"step"`     // optimizer steps done
	Epoch    int64     `json:"epoch"`    // of the next microbatch
	Position int64     `json:"position"` // of the next microbatch within the epoch
	Seed     int64     `json:"seed"`
	Settings []Setting `json:"settings"`              // sorted by key; those that change what is computed
	DataSum  string    `json:"data_sha256,omitempty"` // of the content of the data
	Frozen   []Content `json:"frozen,omitempty"`      // in the order of the plan
	Files    []File    `json:"files"`
}

// Name is the folder name of a checkpoint after so many steps.
func Name(step int64) string { return fmt.Sprintf("%s%08d", stepPrefix, step) }

// Checkpoint is an open checkpoint.
type Checkpoint struct {
	Path     string
	Manifest Manifest
	Params   *safetensors.File
}

// Close closes its files.
func (c *Checkpoint) Close() error { return c.Params.Close() }

// Open opens the checkpoint in a folder after reading all of it: sizes and digests must be those of the manifest.
func Open(path string) (*Checkpoint, error) {
	m, err := readManifest(path)
	if err != nil {
		return nil, err
	}
	for _, f := range m.Files {
		bytes, sum, err := digest(filepath.Join(path, f.Name))
		if err != nil {
			return nil, fmt.Errorf("checkpoint %s: %w", path, err)
		}
		if bytes != f.Bytes || sum != f.SHA256 {
			return nil, fmt.Errorf("checkpoint %s is damaged: %s has %d bytes with SHA-256 %.12s, its manifest says %d and %.12s", path, f.Name, bytes, sum, f.Bytes, f.SHA256)
		}
	}
	params, err := safetensors.Open(filepath.Join(path, paramsFile))
	if err != nil {
		return nil, err
	}
	return &Checkpoint{Path: path, Manifest: *m, Params: params}, nil
}

// IsCheckpoint tells whether a folder is a checkpoint itself, rather than one that holds checkpoints.
func IsCheckpoint(path string) bool {
	_, err := os.Stat(filepath.Join(path, manifestFile))
	return err == nil
}

// readManifest reads a manifest and checks what it says of itself.
func readManifest(path string) (*Manifest, error) {
	f, err := regular.Open(filepath.Join(path, manifestFile))
	if err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", path, err)
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxManifestBytes))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("checkpoint %s: %w", path, err)
	}
	m := &Manifest{}
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, fmt.Errorf("checkpoint %s: %s: %w", path, manifestFile, err)
	}
	if m.Schema != Schema {
		return nil, fmt.Errorf("checkpoint %s: schema %q, this tool reads %q", path, m.Schema, Schema)
	}
	hasParams := false
	for _, x := range m.Files {
		if x.Name != filepath.Base(x.Name) || !filepath.IsLocal(x.Name) {
			return nil, fmt.Errorf("checkpoint %s: file name %q leaves the folder", path, x.Name)
		}
		hasParams = hasParams || x.Name == paramsFile
	}
	if !hasParams || m.Step < 0 || m.Epoch < 0 || m.Position < 0 {
		return nil, fmt.Errorf("checkpoint %s: its manifest names no %s, or a negative step", path, paramsFile)
	}
	return m, nil
}

// complete tells cheaply whether a folder is a whole checkpoint of a step: by sizes, not digests.
func complete(path string, step int64) bool {
	m, err := readManifest(path)
	if err != nil || m.Step != step {
		return false
	}
	for _, f := range m.Files {
		if st, err := os.Stat(filepath.Join(path, f.Name)); err != nil || st.Size() != f.Bytes {
			return false
		}
	}
	return true
}

// stepOf reads a checkpoint folder's name; what Name would not have written is none.
func stepOf(name, prefix string) (step int64, ok bool) {
	digits, ok := strings.CutPrefix(name, prefix)
	if !ok || len(digits) > 18 {
		return 0, false
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, false
		}
		step = step*10 + int64(c-'0')
	}
	return step, prefix+strings.TrimPrefix(Name(step), stepPrefix) == name
}

// List gives the steps of the complete checkpoints in a folder, in ascending order. Incomplete ones are passed over; a folder that does not
// exist has none.
func List(dir string) ([]int64, error) {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var steps []int64
	for _, e := range entries {
		if step, ok := stepOf(e.Name(), stepPrefix); ok && complete(filepath.Join(dir, e.Name()), step) {
			steps = append(steps, step)
		}
	}
	slices.Sort(steps)
	return steps, nil
}

// Latest opens the newest checkpoint of a folder whose content is what its manifest says; nil if there is none. skipped names damaged ones that were
// newer. What a kill left behind is put right first, see Clean.
func Latest(dir string) (c *Checkpoint, skipped []error, err error) {
	if err := Clean(dir); err != nil {
		return nil, nil, err
	}
	steps, err := List(dir)
	if err != nil {
		return nil, nil, err
	}
	for _, step := range slices.Backward(steps) {
		c, err := Open(filepath.Join(dir, Name(step)))
		if err == nil {
			return c, skipped, nil
		}
		skipped = append(skipped, err)
	}
	return nil, skipped, nil
}

// Compare lists all that keeps a run from going on from a checkpoint, in one *ir.Error of kind Usage: another graph, seed or setting; where
// these agree, other data or other frozen weights.
func (m *Manifest) Compare(now *Manifest) error {
	var problems []string
	differ := func(what, then, is string) {
		if then != is {
			problems = append(problems, fmt.Sprintf("%s was %s and is %s", what, orNone(then), orNone(is)))
		}
	}
	if m.GraphSum != now.GraphSum {
		problems = append(problems, fmt.Sprintf("the training graph is another one (SHA-256 %.12s then, %.12s now): model, shapes, loss or optimizer have changed", m.GraphSum, now.GraphSum))
	}
	differ("seed", fmt.Sprint(m.Seed), fmt.Sprint(now.Seed))
	keys := map[string]bool{}
	var order []string
	for _, s := range slices.Concat(m.Settings, now.Settings) {
		if !keys[s.Key] {
			keys[s.Key] = true
			order = append(order, s.Key)
		}
	}
	slices.Sort(order)
	for _, k := range order {
		differ(k, values(m.Settings, k), values(now.Settings, k))
	}
	if len(problems) > 0 {
		return &ir.Error{Kind: ir.Usage, Cause: fmt.Errorf("cannot resume from step %d: %s", m.Step, strings.Join(problems, "; ")),
			Remedy: "give the settings of that run, or start anew without --resume"}
	}
	return m.compareContent(now)
}

func orNone(s string) string {
	if s == "" {
		return "not given"
	}
	return s
}

// values are those of a key, which may be repeated.
func values(settings []Setting, key string) string {
	var v []string
	for _, s := range settings {
		if s.Key == key {
			v = append(v, s.Value)
		}
	}
	return strings.Join(v, ", ")
}

// digest reads a file.
func digest(path string) (bytes int64, sum string, err error) {
	f, err := regular.Open(path)
	if err != nil {
		return 0, "", err
	}
	h := sha256.New()
	bytes, err = io.CopyBuffer(h, f, make([]byte, 1<<16))
	return bytes, hex.EncodeToString(h.Sum(nil)), errors.Join(err, f.Close())
}
