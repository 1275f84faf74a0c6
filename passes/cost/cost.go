// Package cost says how long an op or a copy takes on a device. A Profile is a roofline: an op costs a fixed launch time plus the longer
// of its arithmetic and its memory traffic. All arithmetic is on integers (picoseconds, bytes, rates per second), so that the same
// profile gives the same plan on every machine. The package knows the graph's types, no pass, no plan and no running device: the
// built-in profiles are data sheets and measurements that were written down, and whoever measured a machine of his own gives the figures as a
// file (Parse).
package cost

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math"
	"math/bits"

	"aitk/ir"
)

// Profile describes one device. Rates are per second and positive.
type Profile struct {
	Device          string `json:"device"`           // cpu, cuda, null
	Name            string `json:"name"`             // cpu-generic, rtx-4090
	MemoryBytes     int64  `json:"memory_bytes"`     // of the card; 0: not known
	AlignBytes      int64  `json:"align_bytes"`      // of every buffer
	HostAddressable bool   `json:"host_addressable"` // the device arena is host memory: nothing needs staging
	F64FLOPs        int64  `json:"f64_flops"`        // multiply-adds count twice
	F32FLOPs        int64  `json:"f32_flops"`
	HalfFLOPs       int64  `json:"half_flops"`  // f16 and bf16
	MemoryRate      int64  `json:"memory_rate"` // bytes read plus written
	LaunchPicos     int64  `json:"launch_picos"`
	D2HRate         int64  `json:"d2h_rate"`
	H2DRate         int64  `json:"h2d_rate"`
	CopyPicos       int64  `json:"copy_picos"`      // fixed part of one copy
	DuplexPermille  int64  `json:"duplex_permille"` // rate of each copy lane while both are busy
	StorageRate     int64  `json:"storage_rate"`    // reading and writing files
}

// CPUGeneric is the portable kernel level on a small machine.
func CPUGeneric() *Profile {
	return &Profile{
		Device: "cpu", Name: "cpu-generic", AlignBytes: 64, HostAddressable: true,
		F64FLOPs: 5e9, F32FLOPs: 6e9, HalfFLOPs: 3e9, MemoryRate: 10e9, LaunchPicos: 1e6,
		D2HRate: 8e9, H2DRate: 8e9, CopyPicos: 2e6, DuplexPermille: 700, StorageRate: 1e9,
	}
}

// Null is for a device that computes nothing: the CPU's rates under its own name.
func Null() *Profile {
	p := CPUGeneric()
	p.Device, p.Name = "null", "null"
	return p
}

// ExecPicos is the predicted time of one run of an op. Views cost nothing.
func (p *Profile) ExecPicos(op ir.Op, in, out []ir.Type) int64 {
	w := ir.WorkOf(op, in, out)
	rate := p.F32FLOPs
	if len(out) > 0 {
		switch out[0].DType {
		case ir.F64:
			rate = p.F64FLOPs
		case ir.F16, ir.BF16:
			rate = p.HalfFLOPs
		}
	}
	return p.LaunchPicos + max(picos(w.FLOPs, rate), picos(w.ReadBytes+w.WrittenBytes, p.MemoryRate))
}

// ScratchBytes is what the device's kernel wants beside the operands while the op runs.
func (p *Profile) ScratchBytes(op ir.Op, in, out []ir.Type) int64 {
	w := ir.WorkOf(op, in, out)
	if p.Device == "cuda" {
		return w.ScratchBytes + w.PartialBytes
	}
	return w.ScratchBytes
}

// D2HPicos, H2DPicos and StoragePicos are the predicted times of one copy while the other lanes are idle.
func (p *Profile) D2HPicos(n int64) int64 { return p.CopyPicos + picos(n, p.D2HRate) }

// H2DPicos is the time of a copy of n bytes to the device.
func (p *Profile) H2DPicos(n int64) int64 { return p.CopyPicos + picos(n, p.H2DRate) }

// StoragePicos is the time of reading or writing n bytes of a file.
func (p *Profile) StoragePicos(n int64) int64 { return p.CopyPicos + picos(n, p.StorageRate) }

// picos is n/rate seconds in picoseconds, rounded up, saturating.
func picos(n, rate int64) int64 {
	if n <= 0 {
		return 0
	}
	hi, lo := bits.Mul64(uint64(n), 1e12)
	if hi >= uint64(rate) {
		return math.MaxInt64 / 4
	}
	q, r := bits.Div64(hi, lo, uint64(rate))
	if r > 0 {
		q++
	}
	return int64(min(q, math.MaxInt64/4))
}

// Sum is the hex SHA-256 of the profile's canonical JSON; plans record it.
func (p *Profile) Sum() string {
	raw, err := json.Marshal(p)
	if err != nil {
		panic(ir.Bugf("profile: %v", err))
	}
	h := sha256.Sum256(raw)
	return hex.EncodeToString(h[:])
}

// Parse reads a profile file (JSON with the fields of Profile, all rates given) and refuses unknown fields and rates that are not positive.
func Parse(raw []byte) (*Profile, error) {
	p := &Profile{}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.DisallowUnknownFields()
	if err := dec.Decode(p); err != nil {
		return nil, fmt.Errorf("profile: %w", err)
	}
	for _, f := range []struct {
		name string
		v    int64
	}{
		{"align_bytes", p.AlignBytes}, {"f64_flops", p.F64FLOPs}, {"f32_flops", p.F32FLOPs}, {"half_flops", p.HalfFLOPs}, {"memory_rate", p.MemoryRate},
		{"d2h_rate", p.D2HRate}, {"h2d_rate", p.H2DRate}, {"duplex_permille", p.DuplexPermille}, {"storage_rate", p.StorageRate},
	} {
		if f.v <= 0 {
			return nil, fmt.Errorf("profile %q: %s is %d, wanted a positive number", p.Name, f.name, f.v)
		}
	}
	switch {
	case p.AlignBytes&(p.AlignBytes-1) != 0:
		return nil, fmt.Errorf("profile %q: align_bytes is %d, wanted a power of two", p.Name, p.AlignBytes)
	case p.DuplexPermille > 1000:
		return nil, fmt.Errorf("profile %q: duplex_permille is %d, wanted at most 1000", p.Name, p.DuplexPermille)
	case p.LaunchPicos < 0 || p.CopyPicos < 0 || p.MemoryBytes < 0:
		return nil, fmt.Errorf("profile %q: negative launch_picos, copy_picos or memory_bytes", p.Name)
	case p.Device != "cpu" && p.Device != "cuda" && p.Device != "null":
		return nil, fmt.Errorf("profile %q: device %q, wanted cpu, cuda or null", p.Name, p.Device)
	}
	return p, nil
}
