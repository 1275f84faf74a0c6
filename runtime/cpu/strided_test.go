package cpu

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	"aitk/ir"
	"aitk/ir/op"
)

// TestSpaceWalk: merging axes and walking in pieces visits the elements that the unmerged strides name, in order.
func TestSpaceWalk(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 3000 {
		shape := make(ir.Shape, r.IntN(6))
		lists := [][]int{rowMajor(shape), make([]int, len(shape)), make([]int, len(shape))}
		for a := range shape {
			shape[a] = 1 + r.Int64N(4)
			if r.IntN(30) == 0 {
				shape[a] = 0
			}
		}
		lists[0] = rowMajor(shape)
		copy(lists[1], lists[0])
		for a := range shape {
			lists[2][a] = r.IntN(7) - 3
			if r.IntN(2) == 0 {
				lists[1][a] = 0
			}
		}
		s := newSpace(shape, lists...)
		n := int(shape.Elems())
		if s.n != n {
			t.Fatalf("%v has %d indices, want %d", shape, s.n, n)
		}
		var got [][maxLists]int
		for lo := 0; lo < n; {
			hi := min(n, lo+1+r.IntN(9))
			s.walk(lo, hi, func(k int, at [maxLists]int) {
				for range k {
					got = append(got, at)
					for l := range lists {
						at[l] += s.step[l]
					}
				}
			})
			lo = hi
		}
		if len(got) != n {
			t.Fatalf("%v is visited %d times", shape, len(got))
		}
		for i, at := range got {
			rest := i
			var want [maxLists]int
			for a := len(shape) - 1; a >= 0; a-- {
				c := rest % int(shape[a])
				rest /= int(shape[a])
				for l := range lists {
					want[l] += c * lists[l][a]
				}
			}
			if at != want {
				t.Fatalf("%v by %v: index %d lies at %v, want %v", shape, lists, i, at, want)
			}
		}
	}
}

// indexed is a tensor of indices that fit an axis of n entries, some of them negative.
func indexed(seed uint64, d ir.DType, n int64, shape ...int64) ir.Tensor {
	t := ir.NewTensor(ir.T(d, shape...))
	r := rand.New(rand.NewPCG(seed, 0))
	for i := range t.I {
		t.I[i] = r.Int64N(2*n) - n
	}
	return t
}

// widerThanTiles are operands beyond one tile or block, with extents that divide nothing.
func widerThanTiles() []ir.Sample {
	f := func(shape ...int64) ir.Tensor { return numbers(uint64(len(shape)), ir.F32, shape...) }
	of := func(d ir.DType, shape ...int64) ir.Tensor { return numbers(uint64(len(shape)), d, shape...) }
	list := []ir.Sample{
		{Op: op.Where{}, In: []ir.Tensor{of(ir.Bool, 3, 1, 7001), f(5, 1), f(7001)}},
		{Op: op.Where{}, In: []ir.Tensor{of(ir.Bool, 40, 1), f(40, 1003), f()}},
		{Op: op.Less{}, In: []ir.Tensor{f(40, 1003), f(40, 1)}},
		{Op: op.And{}, In: []ir.Tensor{of(ir.Bool, 40, 1003), of(ir.Bool, 1003)}},
		{Op: op.Cast{To: ir.BF16}, In: []ir.Tensor{f(40, 1003)}},
		{Op: op.Cast{To: ir.F32}, In: []ir.Tensor{of(ir.I32, 40, 1003)}},
		{Op: op.Pow{}, In: []ir.Tensor{f(40, 1003), f()}},
		{Op: op.GeluGrad{}, In: []ir.Tensor{f(40, 1003), f(40, 1003)}},
		{Op: op.Expand{Shape: ir.Shape{7, 50, 90}}, In: []ir.Tensor{f(50, 1)}},
		{Op: op.Slice{Starts: []int64{39, 2}, Ends: []int64{-1, 1001}, Steps: []int64{-1, 1}}, In: []ir.Tensor{f(40, 1003)}},
		{Op: op.Slice{Starts: []int64{1, 1002}, Ends: []int64{40, 0}, Steps: []int64{1, -3}}, In: []ir.Tensor{f(40, 1003)}},
		{Op: op.Unslice{Shape: ir.Shape{60, 1003}, Starts: []int64{59, 3}, Steps: []int64{-1, 1}}, In: []ir.Tensor{f(41, 999)}},
		{Op: op.Pad{Before: []int64{1, 0, 3}, After: []int64{0, 2, 4}, Value: 2}, In: []ir.Tensor{f(7, 60, 90)}},
		{Op: op.Iota{DType: ir.I64, Shape: ir.Shape{7, 5003}, Axis: 1, Step: 3}},
		{Op: op.Trilu{K: -3}, In: []ir.Tensor{f(5, 130, 150)}},
		{Op: op.CumSum{Axis: 0, Reverse: true}, In: []ir.Tensor{f(30, 1300)}},
		{Op: op.CumSum{Axis: 1, Exclusive: true}, In: []ir.Tensor{f(30, 1300)}},
		{Op: op.Gather{Axis: 1}, In: []ir.Tensor{f(5, 60, 301), indexed(1, ir.I32, 60, 77)}},
		{Op: op.Gather{Axis: 1}, In: []ir.Tensor{f(301, 60), indexed(1, ir.I64, 60, 177)}},
		{Op: op.ScatterAdd{Axis: 1, Size: 60}, In: []ir.Tensor{indexed(2, ir.I64, 60, 977), f(3, 977, 31)}},
		{Op: op.ScatterAdd{Size: 50}, In: []ir.Tensor{indexed(2, ir.I64, 50, 9, 13), f(9, 13, 1300)}},
		{Op: op.ScatterAdd{Size: 5}, In: []ir.Tensor{indexed(2, ir.I64, 5, 50000), f(50000)}},
		{Op: op.GatherElements{Axis: 1}, In: []ir.Tensor{f(301, 60), indexed(3, ir.I64, 60, 299, 123)}},
		{Op: op.GatherElements{}, In: []ir.Tensor{f(60, 301), indexed(3, ir.I64, 60, 123, 299)}},
		{Op: op.ScatterElements{Reduce: "max"}, In: []ir.Tensor{f(60, 301), indexed(3, ir.I64, 60, 123, 299), f(123, 299)}},
		{Op: op.GatherND{}, In: []ir.Tensor{f(60, 60, 11), indexed(4, ir.I64, 60, 3000, 2)}},
		{Op: op.ScatterND{Reduce: "add"}, In: []ir.Tensor{of(ir.I64, 60, 60, 11), indexed(4, ir.I64, 60, 3000, 2), of(ir.I64, 3000, 11)}},
		{Op: op.GatherNDGrad{Shape: ir.Shape{60, 60, 11}}, In: []ir.Tensor{indexed(4, ir.I64, 60, 3000, 2), f(3000, 11)}},
		{Op: op.GatherNDGrad{BatchDims: 1, Shape: ir.Shape{30, 60, 600}}, In: []ir.Tensor{indexed(4, ir.I64, 60, 30, 5, 1), f(30, 5, 600)}},
		{Op: op.ArgMax{Axis: 0}, In: []ir.Tensor{f(30, 1300)}},
		{Op: op.ArgMax{Axis: 1}, In: []ir.Tensor{of(ir.I64, 30, 1300)}},
		{Op: op.ReduceSum{Axes: []int64{0}}, In: []ir.Tensor{f(200001)}},
		{Op: op.ReduceSum{Axes: []int64{0, 1}}, In: []ir.Tensor{of(ir.I64, 300, 700)}},
		{Op: op.ReduceMean{Axes: []int64{0, 2, 3}}, In: []ir.Tensor{f(9, 16, 23, 29)}},
		{Op: op.ReduceSum{Axes: []int64{0}}, In: []ir.Tensor{f(700, 701)}},
		{Op: op.ReduceSum{Axes: []int64{1}}, In: []ir.Tensor{f(703, 701)}},
		{Op: op.ReduceSum{Axes: []int64{1}}, In: []ir.Tensor{f(31, 20, 700)}},
		{Op: op.ReduceSum{Axes: []int64{1, 3}}, In: []ir.Tensor{f(31, 20, 7, 40)}},
		{Op: op.ReduceMax{Axes: []int64{1}, KeepDims: true}, In: []ir.Tensor{f(703, 701)}},
		{Op: op.ReduceProd{Axes: []int64{0}}, In: []ir.Tensor{f(17, 701)}},
	}
	for _, o := range []ir.Op{op.Add{}, op.Sub{}, op.Mul{}, op.Div{}, op.Max{}, op.Min{}} {
		for _, s := range [][2]ir.Shape{{{50007}, {50007}}, {{40, 1003}, {1003}}, {{40, 1}, {40, 1003}}, {{3, 40, 1, 50}, {40, 6, 1}}, {{}, {40, 1003}}, {{700, 3}, {700, 1}}} {
			list = append(list, ir.Sample{Op: o, In: []ir.Tensor{f(s[0]...), f(s[1]...)}})
			list = append(list, ir.Sample{Op: o, In: []ir.Tensor{of(ir.BF16, s[0]...), of(ir.BF16, s[1]...)}})
		}
	}
	for _, d := range []ir.DType{ir.F32, ir.F64, ir.BF16, ir.U8} {
		for _, c := range []struct {
			shape ir.Shape
			perm  []int64
		}{
			{ir.Shape{300, 301}, []int64{1, 0}}, {ir.Shape{3, 70, 130}, []int64{0, 2, 1}}, {ir.Shape{4, 33, 3, 65}, []int64{0, 2, 1, 3}}, {ir.Shape{4, 33, 3, 65}, []int64{0, 2, 3, 1}},
			{ir.Shape{33, 35, 37}, []int64{2, 1, 0}}, {ir.Shape{3000, 2}, []int64{1, 0}}, {ir.Shape{2, 3000}, []int64{1, 0}}, {ir.Shape{5, 6, 7, 8, 9}, []int64{4, 2, 0, 3, 1}},
		} {
			list = append(list, ir.Sample{Op: op.Transpose{Perm: c.perm}, In: []ir.Tensor{of(d, c.shape...)}})
		}
		for axis := range int64(3) {
			a, b, c := ir.Shape{30, 31, 32}, ir.Shape{30, 31, 32}, ir.Shape{30, 31, 32}
			b[axis], c[axis] = 1, 77
			list = append(list, ir.Sample{Op: op.Concat{Axis: axis}, In: []ir.Tensor{of(d, a...), of(d, b...), of(d, c...)}})
		}
	}
	return list
}

// TestWiderThanTiles: kernels agree with Eval, and one worker or three, beside or over an operand, give the same bits.
func TestWiderThanTiles(t *testing.T) {
	one, three := openTest(t, Options{Threads: 1, HeapArenas: true}), openTest(t, Options{Threads: 3, HeapArenas: true})
	for i, c := range widerThanTiles() {
		t.Run(fmt.Sprintf("%s_%d", ir.OpName(c.Op), i), func(t *testing.T) {
			first := place(t, one, c, nil)
			if err := first.kernel.Run(); err != nil {
				t.Fatal(err)
			}
			want := ir.NewTensor(first.x.Out[0].Type)
			c.Op.(ir.Evaluator).Eval(c.In, []ir.Tensor{want})
			want.Round()
			compare(t, 0, first.result(t, 0), want)
			variants := []*ir.AliasPair{nil}
			for _, a := range ir.AliasesOf(c.Op) {
				if c.In[a.In].Type.Bytes() == want.Type.Bytes() {
					variants = append(variants, &a)
				}
			}
			for _, over := range variants {
				p := place(t, three, c, over)
				if err := p.kernel.Run(); err != nil {
					t.Fatal(err)
				}
				if !bytes.Equal(p.results(), first.results()) {
					t.Fatalf("output placed %v: other bits than alone on one worker", over)
				}
			}
		})
	}
}

// BenchmarkElements runs what a training step is full of besides matrix products; ns/elem is per element of the larger side.
func BenchmarkElements(b *testing.B) {
	const n = 1 << 20
	f := func(shape ...int64) ir.Tensor { return numbers(1, ir.F32, shape...) }
	for _, threads := range []int{1, 2} {
		dev := openTest(b, Options{Threads: threads})
		for _, c := range []struct {
			name string
			s    ir.Sample
		}{
			{"Add", ir.Sample{Op: op.Add{}, In: []ir.Tensor{f(n), f(n)}}},
			{"Add/row", ir.Sample{Op: op.Add{}, In: []ir.Tensor{f(n/256, 256), f(256)}}},
			{"Add/channel", ir.Sample{Op: op.Add{}, In: []ir.Tensor{f(16, 64, 1024), f(64, 1)}}},
			{"Mul/scalar", ir.Sample{Op: op.Mul{}, In: []ir.Tensor{f(n), f()}}},
			{"Max/bf16", ir.Sample{Op: op.Max{}, In: []ir.Tensor{numbers(1, ir.BF16, n), numbers(2, ir.BF16, n)}}},
			{"Neg", ir.Sample{Op: op.Neg{}, In: []ir.Tensor{f(n)}}},
			{"Sqrt", ir.Sample{Op: op.Sqrt{}, In: []ir.Tensor{f(n)}}},
			{"Exp", ir.Sample{Op: op.Exp{}, In: []ir.Tensor{f(n)}}},
			{"Tanh", ir.Sample{Op: op.Tanh{}, In: []ir.Tensor{f(n)}}},
			{"Erf", ir.Sample{Op: op.Erf{}, In: []ir.Tensor{f(n)}}},
			{"Gelu", ir.Sample{Op: op.Gelu{}, In: []ir.Tensor{f(n)}}},
			{"GeluGrad", ir.Sample{Op: op.GeluGrad{}, In: []ir.Tensor{f(n), f(n)}}},
			{"Relu", ir.Sample{Op: op.Relu{}, In: []ir.Tensor{f(n)}}},
			{"ReluGrad", ir.Sample{Op: op.ReluGrad{}, In: []ir.Tensor{f(n), f(n)}}},
			{"Pow/2", ir.Sample{Op: op.Pow{}, In: []ir.Tensor{f(n), {Type: ir.T(ir.F32), F: []float64{2}}}}},
			{"Less", ir.Sample{Op: op.Less{}, In: []ir.Tensor{f(n), f()}}},
			{"Where", ir.Sample{Op: op.Where{}, In: []ir.Tensor{numbers(1, ir.Bool, n), f(n), f()}}},
			{"Cast/bf16", ir.Sample{Op: op.Cast{To: ir.BF16}, In: []ir.Tensor{f(n)}}},
			{"Transpose/matrix", ir.Sample{Op: op.Transpose{Perm: []int64{1, 0}}, In: []ir.Tensor{f(1024, 1024)}}},
			{"Transpose/heads", ir.Sample{Op: op.Transpose{Perm: []int64{0, 2, 1, 3}}, In: []ir.Tensor{f(16, 128, 8, 64)}}},
			{"Transpose/keys", ir.Sample{Op: op.Transpose{Perm: []int64{0, 2, 3, 1}}, In: []ir.Tensor{f(16, 128, 8, 64)}}},
			{"Concat", ir.Sample{Op: op.Concat{Axis: 1}, In: []ir.Tensor{f(1024, 512), f(1024, 512)}}},
			{"Slice", ir.Sample{Op: op.Slice{Starts: []int64{0, 512}, Ends: []int64{1024, 1024}, Steps: []int64{1, 1}}, In: []ir.Tensor{f(1024, 1024)}}},
			{"Expand", ir.Sample{Op: op.Expand{Shape: ir.Shape{1024, 1024}}, In: []ir.Tensor{f(1024, 1)}}},
			{"Gather", ir.Sample{Op: op.Gather{}, In: []ir.Tensor{f(1000, 256), indexed(1, ir.I64, 1000, n/256)}}},
			{"ScatterAdd", ir.Sample{Op: op.ScatterAdd{Size: 1000}, In: []ir.Tensor{indexed(1, ir.I64, 1000, n/256), f(n/256, 256)}}},
			{"ReduceSum/last", ir.Sample{Op: op.ReduceSum{Axes: []int64{1}}, In: []ir.Tensor{f(n/256, 256)}}},
			{"ReduceSum/first", ir.Sample{Op: op.ReduceSum{Axes: []int64{0}}, In: []ir.Tensor{f(n/256, 256)}}},
			{"ReduceSum/channel", ir.Sample{Op: op.ReduceSum{Axes: []int64{0, 2}}, In: []ir.Tensor{f(16, 64, 1024)}}},
			{"ReduceSum/all", ir.Sample{Op: op.ReduceSum{Axes: []int64{0}}, In: []ir.Tensor{f(n)}}},
			{"ReduceMax/last", ir.Sample{Op: op.ReduceMax{Axes: []int64{1}}, In: []ir.Tensor{f(n/256, 256)}}},
			{"CumSum", ir.Sample{Op: op.CumSum{Axis: 1}, In: []ir.Tensor{f(n/256, 256)}}},
		} {
			b.Run(fmt.Sprintf("%s/threads=%d", c.name, threads), func(b *testing.B) {
				p := place(b, dev, c.s, nil)
				for b.Loop() {
					if err := p.kernel.Run(); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/elem")
			})
		}
	}
}
