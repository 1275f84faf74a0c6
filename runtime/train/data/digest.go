package data

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"aitk/ir"
)

// digestBlockBytes is read at a time.
const digestBlockBytes = 1 << 20

// SHA256 is the hex digest of what the source holds: names, types and content of its tensors, whatever file they lie in and in which order. It
// reads everything once, unless ctx is cancelled.
func (s *Source) SHA256(ctx context.Context) (string, error) {
	h := sha256.New()
	block := make([]byte, digestBlockBytes)
	for k := range max(s.batches, 1) {
		for _, x := range s.tensors {
			name := x.Name
			if s.layout == Batches {
				name = stored(k, name)
			}
			fmt.Fprintf(h, "%q %v\n", name, x.Type)
			size := x.Type.Bytes()
			for at := int64(0); at < size; at += digestBlockBytes {
				if err := ctx.Err(); err != nil {
					return "", err
				}
				part := block[:min(size-at, digestBlockBytes)]
				if err := s.read(name, part, at); err != nil {
					return "", &ir.Error{Cause: fmt.Errorf("data: %w", err)}
				}
				h.Write(part)
			}
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Bytes is how much content the source holds.
func (s *Source) Bytes() int64 {
	n := int64(0)
	for _, x := range s.tensors {
		n += x.Type.Bytes()
	}
	return n * max(s.batches, 1)
}
