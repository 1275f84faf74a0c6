package main

import (
	"aitk/importer"
	"aitk/internal/adapter"
	"aitk/passes"
)

// settings are what the flags of one call say. Fields are grouped like the tables of flags.go; a zero field was not given.
type settings struct {
	given []string // names of flags on the command line, in order

	// The graph and its training.
	dims      []dimension
	weights   string
	inputs    []namedFile
	passes    passes.Options // loss, output, optimizer, clip-norm, accumulate, no-decay, and what prints and stops passes
	schedule  string
	seed      int64
	selection []importer.Selection
	batchNorm string
	batch     int64
	config    string

	// The plan.
	budget, hostBudget size
	recompute, swap    string
	device             string
	gpu, profile       string
	effort             int64
	solve              solveSettings
	embedWeights       bool
	onnx               bool // the operators of ONNX
	training           bool // of an exported model: keep its form for training
	views              []view
	adapter            string
	merge              bool
	adapters           map[string]*adapter.File // opened for --lora; nil: it could not be
	adapterErr         error
	out                string

	// The run.
	data, evalData string
	steps, epochs  int64
	threads        int64
	metrics, save  string
	evalSplit      float64
	evalSplitGiven bool
	evalEvery      int64
	metric         string
	checkpoint     string
	every, keep    int64
	resume         string
	quiet          bool
	verbosity      int

	// Passes on text.
	passNames []string
	verify    string
	stats     bool
}

// dimension is --dim NAME=SIZE.
type dimension struct {
	name string
	size int64
}

// namedFile is --input NAME=FILE.
type namedFile struct{ name, file string }

// view is one of --dot --json --csv --explain: what to show and where; an empty file is standard output.
type view struct{ name, file string }

// wants tells whether a view was asked for.
func (s *settings) wants(name string) bool {
	for _, v := range s.views {
		if v.name == name {
			return true
		}
	}
	return false
}

// has tells whether a flag was given on the command line or in the configuration file.
func (s *settings) has(flag string) bool {
	for _, f := range s.given {
		if f == flag {
			return true
		}
	}
	return false
}

// split is the share of the samples that is held out where there is no --eval-data.
func (s *settings) split() float64 {
	if s.evalSplitGiven {
		return s.evalSplit
	}
	return 0.2
}
