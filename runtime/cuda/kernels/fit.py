"""Prints the coefficients of erf in math.h: Chebyshev fits in double, written as powers. Needs numpy."""
import math
import numpy as np


def fit(f, lo, hi, degree):
    n = 200
    x = 0.5 * (hi + lo) + 0.5 * (hi - lo) * np.cos(np.pi * (np.arange(n) + 0.5) / n)
    c = np.polynomial.chebyshev.Chebyshev.fit(x, [f(v) for v in x], degree, domain=[lo, hi])
    p = c.convert(kind=np.polynomial.Polynomial)
    check = np.linspace(lo, hi, 4001)
    worst = max(abs(p(v) / f(v) - 1) for v in check)
    return p.coef, worst


def scaled_erfc(a):  # exp(a*a) * erfc(a), by its continued fraction for large a
    if a < 5:
        return math.exp(a * a) * math.erfc(a)
    g = 0.0
    for n in range(200, 0, -1):
        g = 0.5 * n / (a + g)
    return 1 / math.sqrt(math.pi) / (a + g)


for name, f, lo, hi, degree in [
    ("erf(x)/x in z = x*x on [0, 1]", lambda z: math.erf(math.sqrt(z)) / math.sqrt(z) if z else 2 / math.sqrt(math.pi), 0, 1, 7),
    ("exp(a*a)*erfc(a)*(1+2a) in t = (a-2)/(a+2) for a in [0.9, 12]",
     lambda t: scaled_erfc(2 * (1 + t) / (1 - t)) * (1 + 4 * (1 + t) / (1 - t)), -0.38, 0.72, 9),
]:
    coef, worst = fit(f, lo, hi, degree)
    print(f"{name}: error {worst:.1e}")
    for c in reversed(coef):
        print(f"\t{np.float32(c):.9g}f")
