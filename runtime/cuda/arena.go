//go:build cuda && linux

package cuda

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unsafe"

	"gorgonia.org/cu"

	"aitk/ir"
	"aitk/runtime"
	"aitk/runtime/cuda/drv"
)

// arena is one allocation, of device memory (host is nil) or of pinned memory.
type arena struct {
	dev    *Device
	bytes  int64
	device uintptr        // where kernels see it
	host   []byte         // pinned: the same bytes for the host
	pinned unsafe.Pointer // pinned: what is freed
}

// Alloc implements runtime.Device.
func (d *Device) Alloc(space ir.Space, bytes int64) (runtime.Arena, error) {
	var a *arena
	err := d.with(func() (err error) {
		switch space {
		case ir.Device:
			a, err = d.allocDevice(bytes)
			d.device = a
		case ir.Pinned:
			a, err = d.allocPinned(bytes)
			d.pinned = a
		default:
			err = fmt.Errorf("the cuda device has no %v memory", space)
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return a, nil
}

func (d *Device) allocDevice(bytes int64) (*arena, error) {
	a := &arena{dev: d, bytes: bytes}
	if bytes == 0 {
		return a, nil
	}
	free, total, err := cu.MemInfo()
	if err != nil {
		return nil, fmt.Errorf("asking for free memory: %w", err)
	}
	p, err := cu.MemAlloc(bytes)
	if err != nil && !errors.Is(err, cu.OutOfMemory) {
		return nil, fmt.Errorf("allocating %d bytes of device memory: %w", bytes, err)
	}
	if err != nil {
		return nil, &ir.Error{Kind: ir.DoesNotFit, Cause: fmt.Errorf("the plan needs %d bytes of device memory, of which %d of %d are free: %w", bytes, free, total, err),
			Remedy: "plan with a --budget below what is free, or free the device"}
	}
	a.device = p.Uintptr()
	return a, nil
}

// allocPinned pins once: the plan's bytes, then the faults' page.
func (d *Device) allocPinned(bytes int64) (*arena, error) {
	whole := (bytes+255)/256*256 + faultBytes
	if limit := d.opt.pinnedLimit(); limit > 0 && whole > limit {
		return nil, &ir.Error{Kind: ir.DoesNotFit, Cause: fmt.Errorf("the plan needs %d bytes of pinned memory and may pin %d, half of what is free", whole, limit),
			Remedy: "plan with a smaller --host-budget"}
	}
	p, err := drv.HostAlloc(whole)
	if err != nil && !errors.Is(err, drv.OutOfMemory) {
		return nil, fmt.Errorf("pinning %d bytes of host memory: %w", whole, err)
	}
	if err != nil {
		return nil, &ir.Error{Kind: ir.DoesNotFit, Cause: fmt.Errorf("pinning %d bytes of host memory: %w", whole, err), Remedy: "plan with a smaller --host-budget"}
	}
	a := &arena{dev: d, bytes: bytes, pinned: p, host: unsafe.Slice((*byte)(p), whole)}
	if a.device, err = drv.DevicePointer(p); err != nil {
		return nil, errors.Join(err, drv.FreeHost(p))
	}
	page := a.host[whole-faultBytes:]
	clear(page)
	d.faults = faults{page: page, device: a.device + uintptr(whole-faultBytes)}
	a.host = a.host[:bytes:bytes]
	return a, nil
}

// faultPage makes sure that there is a page for faults: a plan without pinned arena gets one by itself.
func (d *Device) faultPage() error {
	if d.faults.page != nil {
		return nil
	}
	return d.with(func() (err error) {
		d.tail, err = d.allocPinned(0)
		return err
	})
}

func (a *arena) free() error {
	switch {
	case a.pinned != nil:
		p := a.pinned
		a.pinned, a.host, a.device = nil, nil, 0
		return drv.FreeHost(p)
	case a.device != 0:
		p := cu.DevicePtr(a.device)
		a.device = 0
		return cu.MemFree(p)
	}
	return nil
}

// Bytes implements runtime.Arena.
func (a *arena) Bytes() int64 { return a.bytes }

// Host implements runtime.Arena.
func (a *arena) Host() []byte { return a.host }

// Upload implements runtime.Arena.
func (a *arena) Upload(offset int64, src []byte) error { return a.move(offset, src, true) }

// Download implements runtime.Arena.
func (a *arena) Download(dst []byte, offset int64) error { return a.move(offset, dst, false) }

func (a *arena) move(offset int64, raw []byte, up bool) error {
	n := int64(len(raw))
	switch {
	case offset < 0 || offset+n > a.bytes:
		return ir.Bugf("bytes %d to %d of an arena of %d", offset, offset+n, a.bytes)
	case n == 0:
		return nil
	}
	return a.dev.transfer(a, offset, raw, up)
}

// pinnedLimit is how much may be pinned; 0 where nothing is known of the machine.
func (o Options) pinnedLimit() int64 {
	if o.PinnedLimitBytes > 0 {
		return o.PinnedLimitBytes
	}
	limit := availableBytes()
	for _, path := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		raw, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		if n, err := strconv.ParseInt(strings.TrimSpace(string(raw)), 10, 64); err == nil && (limit == 0 || n < limit) {
			limit = n
		}
	}
	return limit / 2
}

// availableBytes is MemAvailable of /proc/meminfo.
func availableBytes() int64 {
	raw, err := os.ReadFile("/proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(raw)) {
		if rest, ok := strings.CutPrefix(line, "MemAvailable:"); ok {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
			if err != nil {
				return 0
			}
			return n << 10
		}
	}
	return 0
}
