// Package config reads a configuration file: YAML, one mapping whose keys are flags' names and whose values are what would stand behind the
// flag, or a list of that.
//
//	loss: cross-entropy:label-smoothing=0.1
//	dim: [batch=64, seq=128]
//	budget: 60%
//	quiet: true
//
// It must not know which flags there are: it gives keys and values as text with the lines they stand on, so that the caller can say where a
// mistake is. Nothing is interpreted: 1e-3 stays as it is written. Anchors, tags and nested mappings are refused.
package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	"go.yaml.in/yaml/v4"
)

// Entry is one key with its values, in file order. Line counts from 1.
type Entry struct {
	Key    string
	Values []string
	Line   int
}

// maxBytes is the longest file that is read.
const maxBytes = 1 << 20

// Parse reads a file. All mistakes are told at once, each with its line.
func Parse(raw []byte) ([]Entry, error) {
	if len(raw) > maxBytes {
		return nil, fmt.Errorf("a configuration of %d bytes is longer than the %d that are read", len(raw), maxBytes)
	}
	dec := yaml.NewDecoder(bytes.NewReader(raw))
	var doc, more yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, err
	}
	if err := dec.Decode(&more); !errors.Is(err, io.EOF) {
		return nil, errors.New("wanted one document")
	}
	if doc.Kind != yaml.DocumentNode || len(doc.Content) != 1 {
		return nil, errors.New("wanted a mapping of flags' names to values")
	}
	root := doc.Content[0]
	if root.Kind == yaml.ScalarNode && root.Tag == "!!null" {
		return nil, nil
	}
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("line %d: wanted a mapping of flags' names to values", root.Line)
	}
	return entries(root)
}

func entries(root *yaml.Node) ([]Entry, error) {
	var list []Entry
	var errs []error
	seen := map[string]int{}
	for i := 0; i+1 < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		if key.Kind != yaml.ScalarNode {
			errs = append(errs, fmt.Errorf("line %d: a key is a flag's name", key.Line))
			continue
		}
		if first := seen[key.Value]; first > 0 {
			errs = append(errs, fmt.Errorf("line %d: %q stands on line %d already", key.Line, key.Value, first))
			continue
		}
		seen[key.Value] = key.Line
		values, err := scalars(value)
		if err != nil {
			errs = append(errs, fmt.Errorf("line %d: %q: %w", value.Line, key.Value, err))
			continue
		}
		list = append(list, Entry{key.Value, values, key.Line})
	}
	return list, errors.Join(errs...)
}

// scalars takes a value or a flat list of values as they are written.
func scalars(n *yaml.Node) ([]string, error) {
	one := func(n *yaml.Node) (string, error) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" || n.Anchor != "" {
			return "", errors.New("wanted a value or a list of values")
		}
		return n.Value, nil
	}
	if n.Kind != yaml.SequenceNode {
		v, err := one(n)
		return []string{v}, err
	}
	var list []string
	for _, x := range n.Content {
		v, err := one(x)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
	}
	return list, nil
}
