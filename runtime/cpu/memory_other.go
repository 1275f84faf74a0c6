//go:build !linux

package cpu

func memoryBytes() int64 { return 0 }

func adviseHuge([]byte) {}
