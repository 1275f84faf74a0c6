//go:build long

package networks

// thorough tells that time is no object: the tag long.
const thorough = true
