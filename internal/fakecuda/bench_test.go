package fakecuda

import (
	"fmt"
	"testing"
)

// BenchmarkKernels measures how fast kernels run, by level of checking. The rate is by processor time of both workers.
func BenchmarkKernels(b *testing.B) {
	n := 256
	flop := float64(2 * n * n * n)
	for _, c := range []struct {
		file, kernel string
		flop         float64
		run          func(d *device, x, y, z uint64)
	}{
		{"matmul", "matmul", flop, func(d *device, x, y, z uint64) {
			d.launch(0, "matmul", dims{n / 16, n / 16, 1}, dims{16, 16, 1}, 0, z, x, y, n, n, n)
		}},
		{"matmul", "matmul4", flop, func(d *device, x, y, z uint64) {
			d.launch(0, "matmul4", dims{n / 64, n / 64, 1}, dims{256, 1, 1}, 4096, z, x, y, n, n)
		}},
		{"mma80", "matmul_bf16", flop, func(d *device, x, y, z uint64) {
			d.launch(0, "matmul_bf16", dims{n / 32, n / 32, 1}, block128, 0, z, x, y, n, n, n)
		}},
		{"vector", "vecadd", 65536, func(d *device, x, y, z uint64) {
			d.launch(0, "vecadd", dims{256, 1, 1}, dims{256, 1, 1}, 0, z, x, y, 65536)
		}},
	} {
		for level := range int64(3) {
			b.Run(fmt.Sprintf("%s/checks=%d", c.kernel, level), func(b *testing.B) {
				d := open(b, map[string]int64{"checkLevel": level})
				d.load(ptxText(b, c.file+".sm80.ptx"))
				x, y, z := zeros(d, n*n), zeros(d, n*n), zeros(d, n*n)
				begin := d.raw("clock")
				for b.Loop() {
					c.run(d, x, y, z)
					d.call("cuCtxSynchronize")
				}
				b.ReportMetric(float64(b.N)*c.flop/float64(d.raw("clock")-begin)/1e3, "GFLOP/cpu-s")
				d.clean()
			})
		}
	}
}
