//go:build cuda && linux

package cuda

import (
	"fmt"
	gort "runtime"
	"time"
	"unsafe"

	"gorgonia.org/cu"

	"aitk/ir"
	"aitk/runtime/cuda/drv"
)

// Describe looks at the driver and its devices. It starts a context on each device for a moment: free memory is known only inside one.
func Describe() Description {
	d := Description{Built: true, Library: drv.Library(), Pinned: Options{}.pinnedLimit()}
	if err := drv.Status(); err != nil {
		d.Reason = err.Error()
		return d
	}
	v := cu.Version()
	d.Driver = fmt.Sprintf("%d.%d", v/1000, v%1000/10)
	n, err := cu.NumDevices()
	switch {
	case err != nil:
		d.Reason = fmt.Sprintf("the driver cannot count its devices: %v", err)
	case n == 0:
		d.Reason = "the driver has no device"
	}
	for i := range n {
		info, err := describe(i)
		if err != nil {
			d.Reason = fmt.Sprintf("device %d: %v", i, err)
		}
		d.Devices = append(d.Devices, info)
	}
	return d
}

func describe(ordinal int) (info DeviceInfo, err error) {
	dev, err := cu.GetDevice(ordinal)
	if err != nil {
		return info, err
	}
	if info.Name, err = dev.Name(); err != nil {
		return info, err
	}
	for _, a := range []struct {
		to *int
		of cu.DeviceAttribute
	}{
		{&info.Major, cu.ComputeCapabilityMajor}, {&info.Minor, cu.ComputeCapabilityMinor}, {&info.Processors, cu.MultiprocessorCount},
		{&info.CopyEngines, cu.AsyncEngineCount},
	} {
		if *a.to, err = dev.Attribute(a.of); err != nil {
			return info, err
		}
	}
	if info.TotalBytes, err = dev.TotalMem(); err != nil {
		return info, err
	}
	gort.LockOSThread()
	defer gort.UnlockOSThread()
	ctx, err := dev.MakeContext(cu.SchedAuto)
	if err != nil {
		return info, fmt.Errorf("making a context: %w", err)
	}
	info.FreeBytes, _, err = cu.MemInfo()
	if e := ctx.Destroy(); err == nil {
		err = e
	}
	return info, err
}

// measureBytes is moved each way, measureRounds times.
const (
	measureBytes  = 32 << 20
	measureRounds = 4
)

// Measure copies pinned memory to the device and back, each alone and then both at once.
func Measure(opt Options) (Bandwidth, error) {
	var w Bandwidth
	d, err := open(opt)
	if err != nil {
		return w, err
	}
	defer d.Close()
	device, err := d.Alloc(ir.Device, 2*measureBytes)
	if err != nil {
		return w, err
	}
	pinned, err := d.Alloc(ir.Pinned, 2*measureBytes)
	if err != nil {
		return w, err
	}
	at, host := device.(*arena).device, pinned.Host()
	up := func(s cu.Stream) error {
		return cu.MemcpyHtoDAsync(cu.DevicePtr(at), unsafe.Pointer(&host[0]), measureBytes, s)
	}
	down := func(s cu.Stream) error {
		return cu.MemcpyDtoHAsync(unsafe.Pointer(&host[measureBytes]), cu.DevicePtr(at+measureBytes), measureBytes, s)
	}
	err = d.with(func() error {
		for _, m := range []struct {
			lanes []func(cu.Stream) error
			rates []*float64
		}{
			{[]func(cu.Stream) error{up}, []*float64{&w.H2D}}, {[]func(cu.Stream) error{down}, []*float64{&w.D2H}},
			{[]func(cu.Stream) error{up, down}, []*float64{&w.BothH2D, &w.BothD2H}},
		} {
			if err := d.timed(m.lanes, m.rates); err != nil {
				return err
			}
		}
		return nil
	})
	return w, err
}

// timed runs copies on streams of their own, once to warm up and then for the clock.
func (d *Device) timed(lanes []func(cu.Stream) error, rates []*float64) error {
	for _, rounds := range []int{1, measureRounds} {
		begin := time.Now()
		for range rounds {
			for i, copy := range lanes {
				if err := copy(d.streams[1+i]); err != nil {
					return err
				}
			}
		}
		for i := range lanes {
			if err := d.streams[1+i].Synchronize(); err != nil {
				return err
			}
			*rates[i] = float64(rounds*measureBytes) / time.Since(begin).Seconds()
		}
	}
	return nil
}
