//go:build !unix

package cpu

// mapArena takes heap memory where there is no portable call for anonymous mappings.
func mapArena(bytes int64) (*arena, error) {
	if bytes != int64(int(bytes)) {
		return nil, tooLarge(bytes)
	}
	return &arena{bytes: heapBytes(bytes)}, nil
}
