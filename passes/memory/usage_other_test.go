//go:build !unix

package memory_test

// cpuSeconds and residentMiB are not known here.
func cpuSeconds() float64  { return 0 }
func residentMiB() float64 { return 0 }
