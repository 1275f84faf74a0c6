package op

import "aitk/ir"

// moved is the work of reading every operand and writing every result once, without any arithmetic.
func moved(in, out []ir.Type) (w ir.Work) {
	for _, t := range in {
		w.ReadBytes += t.Bytes()
	}
	for _, t := range out {
		w.WrittenBytes += t.Bytes()
	}
	return w
}

// perElement is moved plus a number of operations for each element of the first operand.
func perElement(flops int64, in, out []ir.Type) ir.Work {
	w := moved(in, out)
	w.FLOPs = flops * in[0].Elems()
	return w
}
