package cpu

// Device is a processor.
type Device struct {
	pool *pool
}
