//go:build unix

package cpu

import (
	"fmt"
	"syscall"
)

// mapArena maps anonymous memory: pages cost nothing until they are touched, and go back to the system when the arena is freed.
func mapArena(bytes int64) (*arena, error) {
	if bytes != int64(int(bytes)) {
		return nil, tooLarge(bytes)
	}
	raw, err := syscall.Mmap(-1, 0, int(bytes), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("mapping %d bytes: %w", bytes, err)
	}
	adviseHuge(raw)
	return &arena{bytes: raw, release: func() error { return syscall.Munmap(raw) }}, nil
}
