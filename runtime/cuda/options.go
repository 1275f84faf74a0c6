package cuda

// Options of Open. The zero value is the default.
type Options struct {
	Ordinal          int   // which of the driver's devices
	Flat             bool  // never launch a run as a CUDA graph
	PinnedLimitBytes int64 // most that is pinned; 0: half of what the machine has free
}

// Description is what is known of this machine's devices, for `aitk doctor`.
type Description struct {
	Built   bool         // the binary has the cuda tag
	Library string       // driver library that was looked for
	Driver  string       // version, "12.4"
	Reason  string       // why there is no usable device, "" if there is one
	Devices []DeviceInfo // in the driver's order
	Pinned  int64        // most that Open would pin, in bytes
}

// DeviceInfo describes one device.
type DeviceInfo struct {
	Name                  string
	Major, Minor          int // compute capability
	Processors            int // streaming multiprocessors
	TotalBytes, FreeBytes int64
	CopyEngines           int
}

// Bandwidth is measured, in bytes a second, with pinned memory.
type Bandwidth struct {
	H2D, D2H         float64 // alone
	BothH2D, BothD2H float64 // while the other one runs
}
