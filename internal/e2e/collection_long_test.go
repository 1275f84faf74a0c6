//go:build long

package e2e

import "testing"

// thorough tells that time is no object: the tag long.
const thorough = true

// planned is the whole collection.
func planned(t testing.TB) []run { return append(outside(t), batchNormTraining(t)) }
