package fakecuda

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"testing"
)

// pipeline is a small training step in the way of a swapping runtime: three lanes tied by events, one arena, one pinned arena. Layer n's weights come from
// the host into one of two slots while layer n-1 computes; results go back. drop leaves one kind of wait out.
func pipeline(d *device, layers int, drop string) []float32 {
	d.t.Helper()
	const n, bytes_ = 4096, 4 * 4096
	compute, h2d, d2h := d.stream(), d.stream(), d.stream()
	arena, host := d.alloc(4*bytes_), d.pinned(2*layers*bytes_)
	acc, slot := arena, []uint64{arena + bytes_, arena + 2*bytes_}
	x := make([]float32, n*layers)
	for i := range x {
		x[i] = float32(i % 97)
	}
	d.write(host, bytesOf(x))
	loaded, free := make([]uint64, layers), make([]uint64, layers)
	for i := range layers {
		loaded[i], free[i] = d.event(), d.event()
	}
	d.call("cuMemsetD32Async", acc, 0, n, compute)
	for i := range layers {
		if i >= 2 && drop != "free" {
			d.call("cuStreamWaitEvent", h2d, free[i-2], 0)
		}
		d.expect(h2d, fmt.Sprintf("step pc %d", 3*i), -1, [3]uint64{slot[i%2], bytes_, 2}, [3]uint64{host + uint64(i*bytes_), bytes_, 1})
		d.call("cuMemcpyHtoDAsync_v2", slot[i%2], host+uint64(i*bytes_), bytes_, h2d)
		d.call("cuEventRecord", loaded[i], h2d)
		if drop != "loaded" {
			d.call("cuStreamWaitEvent", compute, loaded[i], 0)
		}
		d.expect(compute, fmt.Sprintf("step pc %d", 3*i+1), 2000000, [3]uint64{slot[i%2], bytes_, 1}, [3]uint64{acc, bytes_, 3})
		d.launch(compute, "axpy", dims{8, 1, 1}, block128, 0, acc, slot[i%2], float32(i+1), n)
		d.call("cuEventRecord", free[i], compute)
		done := d.event()
		d.call("cuEventRecord", done, compute)
		d.call("cuStreamWaitEvent", d2h, done, 0)
		d.call("cuMemcpyDtoHAsync_v2", host+uint64((layers+i)*bytes_), acc, bytes_, d2h)
		out := d.event()
		d.call("cuEventRecord", out, d2h)
		if drop != "out" {
			d.call("cuStreamWaitEvent", compute, out, 0)
		}
	}
	d.call("cuCtxSynchronize")
	out := make([]float32, n*layers)
	copy(bytesOf(out), d.read(host+uint64(layers*bytes_), 4*n*layers))
	return out
}

func TestPipeline(t *testing.T) {
	const layers = 6
	want := make([]float32, 4096*layers)
	var acc [4096]float32
	for l := range layers {
		for i := range acc {
			acc[i] += float32(l+1) * float32((l*4096+i)%97)
			want[l*4096+i] = acc[i]
		}
	}
	text := ptxText(t, "vector.sm80.ptx")
	for seed := range int64(6) {
		d := open(t, map[string]int64{"seed": seed, "vramBytes": 4 * 4 * 4096})
		d.load(text)
		same(t, fmt.Sprintf("seed %d", seed), pipeline(d, layers, ""), want)
		d.clean()
		for name, v := range map[string]int64{"deviceAllocations": 1, "pinnedAllocations": 1, "deviceHighWater": 65536, "launches": layers, "copies": 2 * layers,
			"bytesH2D": layers * 16384, "bytesD2H": layers * 16384} {
			if got := d.ctl.Get(name); got != v {
				t.Errorf("%s is %d, expected %d", name, got, v)
			}
		}
		// a wait left out is found whatever the seed, also when the result is right
		for _, drop := range []string{"free", "loaded", "out"} {
			d := open(t, map[string]int64{"seed": seed})
			d.load(text)
			pipeline(d, layers, drop)
			if d.ctl.Get("races") == 0 {
				t.Errorf("seed %d: no race without the wait %q", seed, drop)
			}
			if r := strings.Join(d.ctl.Reports(), "\n"); !strings.Contains(r, "step pc") {
				t.Errorf("no position in\n%s", r)
			}
		}
	}
}

// The simulated clock does not depend on the seed, and gives what can be worked out by hand: with a slow link the copies in follow each other and the
// last kernel and copy out come after the last.
func TestSimulatedClock(t *testing.T) {
	const layers = 6
	for _, c := range []struct {
		rate int64
		want int64
	}{
		{16384e3, 1e9 + layers*(2e6+1e9)},        // 1 ms a copy: every kernel waits for the copy out before it, which began later than the next copy in
		{16384e6, 1e6 + layers*2e6 + layers*1e6}, // 1 us a copy: kernels of 2 us, each followed by a copy out that the next waits for
	} {
		for seed := range int64(4) {
			d := open(t, map[string]int64{"seed": seed, "h2dBytesPerSecond": c.rate, "d2hBytesPerSecond": c.rate, "deviceBytesPerSecond": 0})
			d.load(ptxText(t, "vector.sm80.ptx"))
			pipeline(d, layers, "")
			if got := int64(d.raw("fakeSimPicos")); got != c.want {
				t.Errorf("rate %d, seed %d: %d ps, expected %d", c.rate, seed, got, c.want)
			}
		}
	}
}

func TestElapsed(t *testing.T) {
	d := open(t, map[string]int64{"flopsPerSecond": 1e9, "deviceBytesPerSecond": 1e12, "kernelLatencyPicos": 5e6, "seed": 1})
	d.load(ptxText(t, "vector.sm80.ptx"))
	s, a, b := d.stream(), d.get("cuEventCreate", 0), d.get("cuEventCreate", 0)
	x, y, z := zeros(d, 1024), zeros(d, 1024), zeros(d, 1024)
	d.call("cuEventRecord", a, s)
	d.launch(s, "vecadd", dims{8, 1, 1}, block128, 0, z, x, y, 1024)
	d.call("cuEventRecord", b, s)
	d.call("cuEventSynchronize", b)
	at := d.malloc(4)
	d.call("cuEventElapsedTime", at, a, b)
	ms := math.Float32frombits(binary.LittleEndian.Uint32(d.read(at, 4)))
	if want := float32(0.005 + 1024e-6); math.Abs(float64(ms-want)) > 1e-7 { // 5 us and 1024 additions at 1e9 a second
		t.Errorf("elapsed %g ms, expected %g", ms, want)
	}
}

func TestGraphs(t *testing.T) {
	for seed := range int64(4) {
		d := open(t, map[string]int64{"seed": seed})
		d.load(ptxText(t, "vector.sm80.ptx"))
		const n = 512
		main, side := d.stream(), d.stream()
		x, acc, h := zeros(d, n), zeros(d, n), d.pinned(4*n)
		in := make([]float32, n)
		for i := range in {
			in[i] = float32(i)
		}
		d.write(h, bytesOf(in))
		d.call("cuStreamBeginCapture_v2", main, 0)
		d.order(main, side)
		d.call("cuMemcpyHtoDAsync_v2", x, h, 4*n, side)
		d.order(side, main)
		d.expect(main, "captured pc 1", 1000000, [3]uint64{x, 4 * n, 1}, [3]uint64{acc, 4 * n, 3})
		d.launch(main, "axpy", dims{4, 1, 1}, block128, 0, acc, x, float32(2), n)
		if code := d.try("cuMemAlloc_v2", d.room("x", 8), 16); code != 900 {
			t.Errorf("cuMemAlloc during capture answers %d", code)
		}
		at := d.malloc(8)
		d.call("cuStreamEndCapture", main, at)
		g := binary.LittleEndian.Uint64(d.read(at, 8))
		x0 := d.get("cuGraphInstantiateWithFlags", g, 0)
		d.call("cuGraphDestroy", g)
		if v := down[float32](d, acc, 3)[2]; v != 0 {
			t.Errorf("capturing ran the kernel: %g", v)
		}
		for range 3 {
			d.call("cuGraphLaunch", x0, main)
		}
		d.call("cuStreamSynchronize", main)
		for i, v := range down[float32](d, acc, n) {
			if v != float32(6*i) {
				t.Fatalf("seed %d: element %d is %g after three launches", seed, i, v)
			}
		}
		if got := d.ctl.Get("graphLaunches"); got != 3 {
			t.Errorf("graphLaunches is %d", got)
		}
		if got := int64(d.raw("fakeSimPicos")); got < 3*1000000 {
			t.Errorf("simulated clock at %d", got)
		}
		// work of another stream beside the graph is a race, after it is none
		other := d.stream()
		d.call("cuGraphLaunch", x0, main)
		d.order(main, other)
		d.call("cuMemcpyDtoHAsync_v2", h, acc, 4*n, other)
		d.call("cuStreamSynchronize", other)
		d.clean()
	}
}

func TestCaptureErrors(t *testing.T) {
	d := open(t, nil)
	d.load(ptxText(t, "vector.sm80.ptx"))
	x, h := zeros(d, 64), d.pinned(256)
	d.write(h, make([]byte, 256))
	at := d.malloc(8)
	begin := func() (main, side uint64) {
		main, side = d.stream(), d.stream()
		d.call("cuStreamBeginCapture_v2", main, 0)
		return main, side
	}
	code := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, expected %d", what, got, want)
		}
	}
	main, side := begin()
	d.order(main, side)
	d.call("cuMemcpyHtoDAsync_v2", x, h, 256, side)
	code("a side stream that never joins", d.try("cuStreamEndCapture", main, at), 904)

	main, _ = begin()
	code("waiting in the middle", d.try("cuStreamSynchronize", main), 900)
	code("and its end", d.try("cuStreamEndCapture", main, at), 901)

	main, side = begin()
	e := d.event()
	d.call("cuEventRecord", e, side)
	code("an event from outside", d.try("cuStreamWaitEvent", main, e, 0), 905)
	d.try("cuStreamEndCapture", main, at)

	main, side = begin()
	d.order(main, side)
	code("ending at another stream", d.try("cuStreamEndCapture", side, at), 903)
	d.try("cuStreamEndCapture", main, at)
	code("the default stream", d.try("cuStreamBeginCapture_v2", 0, 0), 900)
}

func TestStart(t *testing.T) {
	code := func(what string, got, want int) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %d, expected %d", what, got, want)
		}
	}
	p := start(t, map[string]int64{"devices": 0})
	code("no device", p.try("cuInit", 0), 100)
	p = start(t, nil)
	code("before cuInit", p.try("cuDeviceGetCount", p.malloc(8)), 3)
	p.call("cuInit", 0)
	code("without a context", p.try("cuMemAlloc_v2", p.malloc(8), 16), 201)

	d := open(t, map[string]int64{"sm": 75, "driverVersion": 10000})
	at := d.malloc(8)
	code("newer target", d.try("cuModuleLoadData", at, ptxText(t, "vector.sm80.ptx")), 222)
	d.ctl.Set("driverVersion", 12000)
	code("newer target", d.try("cuModuleLoadData", at, ptxText(t, "vector.sm80.ptx")), 218)
	d.load(ptxText(t, "vector.sm75.ptx"))
	code("no such kernel", d.try("cuModuleGetFunction", at, d.mod, "nothing"), 500)

	log, opts, vals := d.malloc(4096), d.malloc(8), d.malloc(16)
	d.write(opts, []byte{5, 0, 0, 0, 6, 0, 0, 0})
	d.write(vals, binary.LittleEndian.AppendUint64(binary.LittleEndian.AppendUint64(nil, log), 4096))
	bad := ".version 6.3\n.target sm_75\n.address_size 64\n.visible .entry k()\n{\n.reg .f32 %f<3>;\nfma.rn.bf16 %f1, %f1, %f1, %f1;\nret;\n}\n"
	code("bfloat16 on sm_75", d.try("cuModuleLoadDataEx", at, bad, 2, opts, vals), 218)
	if l := d.read(log, 4096); !bytes.Contains(l, []byte("line 7, kernel k: fma.rn.bf16 needs target sm_80")) {
		t.Errorf("log: %s", bytes.TrimRight(l, "\x00"))
	}
}

func TestLostDevice(t *testing.T) {
	d := open(t, map[string]int64{"failAtLaunch": 3, "failCode": 719})
	d.load(ptxText(t, "vector.sm80.ptx"))
	x, y := zeros(d, 64), d.alloc(256)
	codes := []int{}
	for range 4 {
		codes = append(codes, d.tryLaunch(0, "vecadd", one, dims{64, 1, 1}, 0, y, x, x, 64))
	}
	if fmt.Sprint(codes) != "[0 0 719 719]" || d.try("cuMemFree_v2", x) != 719 {
		t.Errorf("launches answer %v", codes)
	}
	name := d.malloc(8)
	d.call("cuGetErrorName", 719, name)
	if s := d.read(binary.LittleEndian.Uint64(d.read(name, 8)), 24); string(s) != "CUDA_ERROR_LAUNCH_FAILED" {
		t.Errorf("error name %s", s)
	}
}
