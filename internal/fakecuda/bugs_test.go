package fakecuda

import (
	"strings"
	"testing"
)

// stream makes a non-blocking stream.
func (d *device) stream() uint64 { d.t.Helper(); return d.get("cuStreamCreate", 1) }

func (d *device) event() uint64 { d.t.Helper(); return d.get("cuEventCreate", 2) }

// order makes the second stream wait for what the first was given so far.
func (d *device) order(first, second uint64) {
	d.t.Helper()
	e := d.event()
	d.call("cuEventRecord", e, first)
	d.call("cuStreamWaitEvent", second, e, 0)
}

// expect annotates the next operation of a stream; ranges are pointer, bytes, access.
func (d *device) expect(stream uint64, position string, picos int, ranges ...[3]uint64) {
	d.t.Helper()
	at := uint64(0)
	if ranges != nil {
		var b []uint64
		for _, r := range ranges {
			b = append(b, r[0], r[1], r[2], 0)
		}
		at = d.malloc(8 * len(b))
		d.write(at, bytesOf(b))
	}
	n := len(ranges)
	if ranges == nil {
		n = -1
	}
	d.call("fakeExpect", stream, position, picos, n, at)
}

func (d *device) pinned(bytes int) uint64 { d.t.Helper(); return d.get("cuMemHostAlloc", bytes, 0) }

var one = dims{1, 1, 1}

// bug is a program with one fault: the counter that must rise, and words of the report.
type bug struct {
	name    string
	counter string
	words   []string
	code    int // what the next synchronisation answers; 0: the real device would not notice either
	set     map[string]int64
	run     func(d *device)
}

func zeros(d *device, n int) uint64 { return up(d, make([]float32, n)) }

// kernelBug launches a kernel of bugs.c with 64 threads on an output and an input of 64 floats.
func kernelBug(name, counter string, words []string, code int, extra ...any) bug {
	return bug{name, counter, append(words, name), code, nil, func(d *device) {
		args := append([]any{d.alloc(256), zeros(d, 64)}, extra...)
		d.expect(0, "step pc 12", -1)
		d.tryLaunch(0, name, one, dims{64, 1, 1}, 0, args...)
	}}
}

func bugs() []bug {
	return []bug{
		{"off by one", "outOfBounds", []string{"off_by_one", "writes 4 bytes", "0 bytes past the end of 400 device bytes", "step pc 3"}, 700, nil, func(d *device) {
			d.expect(0, "step pc 3", -1)
			d.tryLaunch(0, "off_by_one", one, dims{32, 1, 1}, 0, d.alloc(400), 100)
		}},
		{"before the beginning", "outOfBounds", []string{"before", "4 bytes before"}, 700, nil, func(d *device) {
			d.tryLaunch(0, "before", one, dims{32, 1, 1}, 0, d.alloc(128), zeros(d, 32))
		}},
		{"out of its buffer, inside the arena", "outOfRange", []string{"off_by_one", "outside its buffers", "step pc 7", "offset 400"}, 0, nil, func(d *device) {
			arena := d.alloc(4096)
			d.expect(0, "step pc 7", -1, [3]uint64{arena, 400, 2})
			d.launch(0, "off_by_one", one, dims{32, 1, 1}, 0, arena, 100)
		}},
		{"write to a read-only weight", "readOnlyWrites", []string{"fc1.weight", "off_by_one"}, 0, nil, func(d *device) {
			w := zeros(d, 64)
			d.call("fakeName", w, 256, "fc1.weight", 1)
			d.launch(0, "off_by_one", one, dims{32, 1, 1}, 0, w, 63)
		}},
		{"write to an operand that may only be read", "outOfRange", []string{"a store of", "step pc 9"}, 0, nil, func(d *device) {
			x, y := zeros(d, 64), zeros(d, 64)
			d.expect(0, "step pc 9", -1, [3]uint64{x, 256, 1}, [3]uint64{y, 256, 2})
			d.launch(0, "copy", one, dims{64, 1, 1}, 0, x, y, 64)
		}},
		kernelBug("no_barrier", "sharedRaces", []string{"missing barrier", "step pc 12", "PTX line", "shared byte"}, 0),
		kernelBug("no_second_barrier", "sharedRaces", []string{"missing barrier", "writes"}, 0, 1).with(func(d *device) {
			d.launch(0, "no_second_barrier", one, dims{64, 1, 1}, 0, d.alloc(256), zeros(d, 256), 4)
		}),
		kernelBug("no_warpsync", "sharedRaces", []string{"missing barrier"}, 0),
		kernelBug("divergent", "divergent", []string{"divergent barrier", "lanes 0x0000ffff of 0xffffffff", "elsewhere"}, 719),
		kernelBug("early", "divergent", []string{"divergent barrier", "lanes 0x000000ff of 0xffffffff"}, 719, 40),
		kernelBug("early ", "divergent", []string{"waits for threads that returned"}, 719, 32).with(func(d *device) {
			d.tryLaunch(0, "early", one, dims{64, 1, 1}, 0, d.alloc(256), zeros(d, 64), 32)
		}),
		kernelBug("shuffle_part", "divergent", []string{"names lanes 0xffff0000"}, 719),
		kernelBug("uninitialised_shared", "uninitialised", []string{"uninitialised read"}, 0),
		kernelBug("shared_overrun", "outOfBounds", []string{"shared memory"}, 700).with(func(d *device) {
			d.tryLaunch(0, "shared_overrun", one, dims{64, 1, 1}, 0, d.alloc(256), 1000)
		}),
		kernelBug("blocks_collide", "launchRaces", []string{"race between blocks"}, 0).with(func(d *device) {
			d.launch(0, "blocks_collide", dims{2, 1, 1}, dims{32, 1, 1}, 0, d.alloc(256), up(d, floats32(rng(), 64)))
		}),
		kernelBug("blocks_read", "launchRaces", []string{"race between blocks"}, 0).with(func(d *device) {
			d.launch(0, "blocks_read", dims{2, 1, 1}, dims{32, 1, 1}, 0, d.alloc(256), d.alloc(256))
		}),
		kernelBug("global_no_barrier", "launchRaces", []string{"missing barrier", "device bytes"}, 0),
		{"misaligned vector", "misaligned", []string{"accesses 16 bytes"}, 716, nil, func(d *device) { d.tryLaunch(0, "misaligned", one, dims{1, 1, 1}, 0, d.alloc(256), 1) }},
		{"endless kernel", "faults", []string{"endless", "does not end"}, 702, map[string]int64{"maxBranches": 100000}, func(d *device) { d.tryLaunch(0, "endless", one, one, 0, zeros(d, 1)) }},
		{"use of uninitialised memory", "uninitialised", []string{"copy", "which nothing has written"}, 0, nil, func(d *device) {
			d.launch(0, "copy", one, dims{64, 1, 1}, 0, d.alloc(256), d.alloc(256), 64)
		}},
		{"upload of host memory that nobody wrote", "uninitialised", []string{"copy"}, 0, nil, func(d *device) {
			x := d.alloc(256)
			d.call("cuMemcpyHtoDAsync_v2", x, d.pinned(256), 256, 0)
			d.launch(0, "copy", one, dims{64, 1, 1}, 0, d.alloc(256), x, 64)
		}},
		{"read after the end of a buffer's life", "uninitialised", []string{"copy"}, 0, nil, func(d *device) {
			x := zeros(d, 64)
			d.call("fakePoison", 0, x, 256)
			d.launch(0, "copy", one, dims{64, 1, 1}, 0, d.alloc(256), x, 64)
		}},
		{"missing event wait", "races", []string{"copy device to host", "reads", "nothing orders the two", "copy at step pc 4"}, 0, nil, func(d *device) {
			compute, d2h := d.stream(), d.stream()
			x, y, h := zeros(d, 64), d.alloc(256), d.pinned(256)
			d.expect(compute, "step pc 4", -1)
			d.launch(compute, "copy", one, dims{64, 1, 1}, 0, y, x, 64)
			d.call("cuMemcpyDtoHAsync_v2", h, y, 256, d2h)
		}},
		{"wait for the wrong event", "races", []string{"copy host to device", "writes"}, 0, nil, func(d *device) {
			compute, h2d := d.stream(), d.stream()
			x, y, h := zeros(d, 64), zeros(d, 64), d.pinned(256)
			d.write(h, make([]byte, 256))
			d.order(compute, h2d) // before the kernel that still reads x
			d.launch(compute, "copy", one, dims{64, 1, 1}, 0, y, x, 64)
			d.call("cuMemcpyHtoDAsync_v2", x, h, 256, h2d)
		}},
		{"early reuse of a buffer's bytes", "races", []string{"copy at step pc 8", "writes", "which copy device to host at step pc 5", "reads"}, 0, nil, func(d *device) {
			compute, d2h := d.stream(), d.stream()
			x, y, h := zeros(d, 64), zeros(d, 64), d.pinned(256)
			d.order(compute, d2h)
			d.expect(d2h, "step pc 5", -1)
			d.call("cuMemcpyDtoHAsync_v2", h, x, 256, d2h)
			d.expect(compute, "step pc 8", -1)
			d.launch(compute, "copy", one, dims{64, 1, 1}, 0, x, y, 64)
		}},
		{"host reads before the copy is over", "races", []string{"host access", "reads"}, 0, nil, func(d *device) {
			s, h := d.stream(), d.pinned(256)
			d.call("cuMemcpyDtoHAsync_v2", h, zeros(d, 64), 256, s)
			d.call("fakeHostAccess", h, 256, 0)
		}},
		{"host changes the source of a pending copy", "hostRaces", []string{"the host changed"}, 0, map[string]int64{"seed": 3}, func(d *device) {
			s, h, x := d.stream(), d.pinned(256), d.alloc(256)
			for range 20 { // how far the device lags is drawn from the seed
				d.write(h, make([]byte, 256))
				d.call("cuMemcpyHtoDAsync_v2", x, h, 256, s)
				d.write(h, []byte{1, 2, 3})
			}
		}},
		{"asynchronous copy of memory that is not pinned", "unpinnedCopies", []string{"not pinned", "step pc 2"}, 0, nil, func(d *device) {
			d.expect(0, "step pc 2", -1)
			d.call("cuMemcpyHtoDAsync_v2", d.alloc(256), d.malloc(256), 256, 0)
		}},
		{"more memory than there is", "outOfMemory", []string{"1000001 bytes asked for, 1000000 of 1000000 free"}, 0, map[string]int64{"vramBytes": 1000000}, func(d *device) {
			if code := d.try("cuMemAlloc_v2", d.room("x", 8), 1000001); code != 2 {
				d.t.Errorf("cuMemAlloc answers %d", code)
			}
			d.alloc(1000000)
		}},
		{"copy past the end", "outOfBounds", []string{"copy to the device of 512 bytes"}, 0, nil, func(d *device) {
			if code := d.try("cuMemcpyHtoD_v2", d.alloc(256), d.malloc(512), 512); code != 1 {
				d.t.Errorf("cuMemcpyHtoD answers %d", code)
			}
		}},
		{"too many threads", "refusedLaunches", []string{"copy", "2048"}, 0, nil, func(d *device) {
			if code := d.tryLaunch(0, "copy", one, dims{2048, 1, 1}, 0, d.alloc(256), d.alloc(256), 64); code != 1 {
				d.t.Errorf("cuLaunchKernel answers %d", code)
			}
		}},
		{"dynamic shared memory without asking", "refusedLaunches", []string{"100000 bytes of dynamic shared memory"}, 0, nil, func(d *device) {
			d.tryLaunch(0, "copy", one, dims{32, 1, 1}, 100000, d.alloc(256), zeros(d, 64), 32)
			d.call("cuFuncSetAttribute", d.fn("copy"), 8, 100000)
			d.launch(0, "copy", one, dims{32, 1, 1}, 100000, d.alloc(256), zeros(d, 64), 32)
		}},
	}
}

func (b bug) with(run func(d *device)) bug {
	b.run = run
	b.words[len(b.words)-1] = strings.TrimSpace(b.name)
	return b
}

func TestBugsAreReported(t *testing.T) {
	for _, b := range bugs() {
		t.Run(b.name, func(t *testing.T) {
			d := open(t, b.set)
			d.load(ptxText(t, "bugs.sm75.ptx"))
			report(t, d, b)
		})
	}
	for _, b := range []bug{
		kernelBug("no_wait", "uninitialised", []string{"uninitialised read"}, 0),
		kernelBug("wait_no_barrier", "sharedRaces", []string{"missing barrier"}, 0),
	} {
		t.Run(b.name, func(t *testing.T) {
			d := open(t, nil)
			d.load(ptxText(t, "bugs80.sm80.ptx"))
			report(t, d, b)
		})
	}
}

func report(t *testing.T, d *device, b bug) {
	t.Helper()
	b.run(d)
	if code := d.try("cuCtxSynchronize"); code != b.code {
		t.Errorf("synchronisation answers %d, expected %d", code, b.code)
	}
	if d.ctl.Get(b.counter) == 0 {
		t.Errorf("%s is 0", b.counter)
	}
	text := strings.Join(d.ctl.Reports(), "\n")
	for _, w := range b.words {
		if !strings.Contains(text, w) {
			t.Errorf("no report says %q:\n%s", w, text)
		}
	}
	for _, f := range Faults() {
		if f != b.counter && d.ctl.Get(f) != 0 && !(f == "uninitialised" && strings.HasSuffix(b.counter, "Races")) {
			t.Errorf("%s is %d as well\n%s", f, d.ctl.Get(f), text)
		}
	}
}

func TestNoFalseAlarm(t *testing.T) {
	for _, seed := range []int64{0, 1, 2} {
		d := open(t, map[string]int64{"seed": seed})
		d.load(ptxText(t, "bugs.sm80.ptx"))
		x := make([]int32, 64)
		x[40] = 1
		po := d.alloc(256)
		d.launch(0, "same_flag", one, dims{64, 1, 1}, 0, po, up(d, x))
		for i, v := range down[int32](d, po, 64) {
			if v != 1 {
				t.Fatalf("seed %d: thread %d sees %d", seed, i, v)
			}
		}
		d.clean()
	}
}
