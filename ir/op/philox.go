package op

// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3, SC 2011) turns a 128-bit counter and a 64-bit
// key into 128 random bits. There is no state: whoever knows the counter and the key has the bits, in any order, on any device, again
// in a recompute. Everything random in a training run draws from it:
//
//	key  = StepKey(seed, step, micro)         once a step
//	bits = StreamBits(key, stream, block)     four words for each block of four elements
//
// Streams are told apart by number: dropouts of a graph count from 1, ShuffleStream orders samples.

// ShuffleStream is the stream that orders samples; no op may use it.
const ShuffleStream uint64 = 1<<64 - 1

// The multipliers and key increments of Philox4x32.
const (
	philoxM0, philoxM1 = 0xD2511F53, 0xCD9E8D57
	philoxW0, philoxW1 = 0x9E3779B9, 0xBB67AE85
	philoxRounds       = 10
)

// Philox4x32 is the Philox4x32-10 bijection of a counter under a key, least significant words first.
func Philox4x32(ctr [4]uint32, key [2]uint32) [4]uint32 {
	for range philoxRounds {
		p0, p1 := uint64(ctr[0])*philoxM0, uint64(ctr[2])*philoxM1
		ctr = [4]uint32{
			uint32(p1>>32) ^ ctr[1] ^ key[0], uint32(p1),
			uint32(p0>>32) ^ ctr[3] ^ key[1], uint32(p0),
		}
		key[0] += philoxW0
		key[1] += philoxW1
	}
	return ctr
}

// StepKey is the key of everything random in microbatch micro of a step. seed is the run's; all three may be any number.
func StepKey(seed, step, micro int64) [2]uint32 {
	r := Philox4x32([4]uint32{uint32(step), uint32(step >> 32), uint32(micro), uint32(micro >> 32)}, [2]uint32{uint32(seed), uint32(seed >> 32)})
	return [2]uint32{r[0], r[1]}
}

// StreamBits are the four words of elements 4*block to 4*block+3 of a stream.
func StreamBits(key [2]uint32, stream, block uint64) [4]uint32 {
	return Philox4x32([4]uint32{uint32(block), uint32(block >> 32), uint32(stream), uint32(stream >> 32)}, key)
}

// DropoutThreshold is the word below which an element is dropped: ratio, in [0,1), as a fraction of 2^32, rounded to nearest.
func DropoutThreshold(ratio float64) uint64 { return uint64(ratio*(1<<32) + 0.5) }
