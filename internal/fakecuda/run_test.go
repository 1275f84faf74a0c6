package fakecuda

import "testing"

func TestVectorAdd(t *testing.T) {
	for _, name := range []string{"vector.sm75.ptx", "vector.sm80.ptx", "vector.clang22.ptx"} {
		d := open(t, nil)
		d.load(ptxText(t, name))
		n := 100003
		a, b := make([]float32, n), make([]float32, n)
		for i := range a {
			a[i], b[i] = float32(i), float32(i%7)*0.25
		}
		pa, pb, pc := up(d, a), up(d, b), d.alloc(4*n)
		d.launch(0, "vecadd", dims{(n + 255) / 256, 1, 1}, dims{256, 1, 1}, 0, pc, pa, pb, n)
		for i, c := range down[float32](d, pc, n) {
			if c != a[i]+b[i] {
				t.Fatalf("%s: element %d is %g", name, i, c)
			}
		}
		d.clean()
	}
}
