// Package op is the vocabulary: every operation that a graph may hold, with all facts about it except machine code. One file per
// family; All lists them; there is no registry.
package op

import "aitk/ir"

// Vocabulary is what readers of text and plan files accept.
func Vocabulary() ir.Vocabulary { return ir.NewVocabulary(All()) }
