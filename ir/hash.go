package ir

import (
	"bufio"
	"crypto/sha256"
	"encoding/hex"
)

// Hash is the hex SHA-256 of what the graph means: its text form with values numbered in order and without names of files and reasons, so
// that neither the passes' history, nor where a model lies, nor how a parameter was classified shows. Names of nodes, values and parameters
// count. Weights in files count by their digest where it is known, else by their place in the file.
func Hash(g *Graph) string {
	h := sha256.New()
	w := bufio.NewWriter(h)
	p := printer{w: w, bare: true, number: numbering(g)}
	if err := p.graph(g); err != nil {
		panic(Bugf("hashing a graph: %v", err)) // a digest does not fail
	}
	if err := w.Flush(); err != nil {
		panic(Bugf("hashing a graph: %v", err))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// numbering counts values in the order of Renumber.
func numbering(g *Graph) func(*Value) ID {
	ids := make(map[*Value]ID, g.numValues)
	g.eachValue(func(v *Value) { ids[v] = ID(len(ids)) })
	return func(v *Value) ID {
		id, ok := ids[v]
		if !ok {
			return -1
		}
		return id
	}
}
