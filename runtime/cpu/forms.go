package cpu

// Loops of two operands. They are written out one by one because a function called for each element would cost more than the operation. A
// destination may be one of the operands.

type float interface{ float32 | float64 }

func addForms[T float]() forms[T] {
	vs := func(dst, x []T, y T) {
		x = x[:len(dst)]
		for i := range dst {
			dst[i] = x[i] + y
		}
	}
	return forms[T]{
		vv: func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = x[i] + y[i]
			}
		},
		vs: vs,
		sv: func(dst []T, x T, y []T) { vs(dst, y, x) },
	}
}

func mulForms[T float]() forms[T] {
	vs := func(dst, x []T, y T) {
		x = x[:len(dst)]
		for i := range dst {
			dst[i] = x[i] * y
		}
	}
	return forms[T]{
		vv: func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = x[i] * y[i]
			}
		},
		vs: vs,
		sv: func(dst []T, x T, y []T) { vs(dst, y, x) },
	}
}

func subForms[T float]() forms[T] {
	return forms[T]{
		vv: func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = x[i] - y[i]
			}
		},
		vs: func(dst, x []T, y T) {
			x = x[:len(dst)]
			for i := range dst {
				dst[i] = x[i] - y
			}
		},
		sv: func(dst []T, x T, y []T) {
			y = y[:len(dst)]
			for i := range dst {
				dst[i] = x - y[i]
			}
		},
	}
}

func divForms[T float]() forms[T] {
	return forms[T]{
		vv: func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = x[i] / y[i]
			}
		},
		vs: func(dst, x []T, y T) {
			x = x[:len(dst)]
			for i := range dst {
				dst[i] = x[i] / y
			}
		},
		sv: func(dst []T, x T, y []T) {
			y = y[:len(dst)]
			for i := range dst {
				dst[i] = x / y[i]
			}
		},
	}
}

func maxForms[T float]() forms[T] {
	vs := func(dst, x []T, y T) {
		x = x[:len(dst)]
		for i := range dst {
			dst[i] = max(x[i], y)
		}
	}
	return forms[T]{
		vv: func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = max(x[i], y[i])
			}
		},
		vs: vs,
		sv: func(dst []T, x T, y []T) { vs(dst, y, x) },
	}
}

func minForms[T float]() forms[T] {
	vs := func(dst, x []T, y T) {
		x = x[:len(dst)]
		for i := range dst {
			dst[i] = min(x[i], y)
		}
	}
	return forms[T]{
		vv: func(dst, x, y []T) {
			x, y = x[:len(dst)], y[:len(dst)]
			for i := range dst {
				dst[i] = min(x[i], y[i])
			}
		},
		vs: vs,
		sv: func(dst []T, x T, y []T) { vs(dst, y, x) },
	}
}
