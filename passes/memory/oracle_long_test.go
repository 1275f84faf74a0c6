//go:build long

package memory

import "testing"

// TestSolveAgainstOracleLong is 10,000 cases of TestSolveAgainstOracle.
func TestSolveAgainstOracleLong(t *testing.T) { againstOracle(t, 1000, 10000, 10000) }
