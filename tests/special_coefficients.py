"""Prints ffi/kernels/special/series.h, except for clang-format's line breaks. Needs mpmath.

Each polynomial interpolates at Chebyshev nodes and has the smallest degree whose relative error is below what is asked.
"""

from mpmath import cos, digamma, erf, erfc, erfinv, exp, findroot, log, loggamma, mp, mpf, pi, rgamma, sqrt, tanh

mp.dps = 60
FLOAT, DOUBLE, PAIR = mpf(2) ** -31, mpf(2) ** -57, mpf(2) ** -108
HALF, SINGLE = mpf(2) ** -19, mpf(2) ** -26  # of what is computed in float alone


def interpolated(f, low, high, count):
    """Coefficients of powers of x, the lowest first, of the polynomial that is f at Chebyshev nodes."""
    nodes = [(low + high) / 2 + (high - low) / 2 * cos(pi * (2 * k + 1) / (2 * count)) for k in range(count)]
    table = [f(x) for x in nodes]
    for step in range(1, count):  # divided differences
        for k in range(count - 1, step - 1, -1):
            table[k] = (table[k] - table[k - 1]) / (nodes[k] - nodes[k - step])
    powers = [mpf(0)] * count
    for k in range(count - 1, -1, -1):
        powers = [table[k] - nodes[k] * powers[0]] + [powers[j - 1] - nodes[k] * powers[j] for j in range(1, count)]
    return powers


def fitted(f, low, high, error):
    low, high = mpf(low), mpf(high)
    points = [low + (high - low) * k / mpf(199) for k in range(200)]
    values = [f(x) for x in points]
    for count in range(3, 60):
        powers = interpolated(f, low, high, count)
        if all(abs(mp.polyval(powers[::-1], x) / y - 1) < error for x, y in zip(points, values, strict=True)):
            return powers
    raise ValueError(f"no polynomial has an error below {error}")


def number(c):
    return mp.nstr(c, 9) if c == int(c) and abs(c) < 1000 else repr(float(c))


def body(powers, suffix=""):
    return "polynomial(t, " + ", ".join(number(c) + suffix for c in powers) + ")"


def series(name, what, f, low, high, *, single=None, double=True):
    """`single` is float's interval, where it has a fit of its own; without `double` it is the only one."""
    print(f"\n// {what}\ntemplate <class T>\nBARACUDA_HD double {name}(double t) {{")
    if single:
        print(f"if constexpr (sizeof(T) == 4) return {body(fitted(f, *single, FLOAT))};")
    print(f"return {body(fitted(f, low, high, DOUBLE if double else FLOAT))};\n}}")


def single(name, what, f, low, high, *, floats=True):
    """In float alone: of half precision, and of floats if asked."""
    fit = lambda error: body(fitted(f, low, high, error), "f")
    print(f"\n// {what}\ntemplate <class T>\nBARACUDA_HD float {name}_single(float t) {{")
    print(f"if constexpr (is_half<T>) return {fit(HALF)};\nreturn {fit(SINGLE)};" if floats else f"return {fit(HALF)};")
    print("}")


def pairs(name, what, f, low, high):
    """As sums of two doubles, except for powers so high that one will do."""
    powers = fitted(f, low, high, PAIR)
    two = sum(abs(c) * mpf(high) ** k > abs(powers[0]) * mpf(2) ** -52 for k, c in enumerate(powers))
    print(f"\n// {what}\nBARACUDA_HD Pair {name}(double t) {{\nreturn pair_polynomial(t, {body(powers[two:])}", end="")
    for c in powers[:two][::-1]:
        print(f", Pair{{{float(c)!r}, {float(c - mpf(float(c)))!r}}}", end="")
    print(");\n}")


def constant(name, value):
    print(f"inline constexpr double {name} = {float(value)!r}, {name}_rest = {float(value - mpf(float(value)))!r};")


def normal_density(x):
    return exp(-x * x / 2) / sqrt(2 * pi)


def gelu_slope(x):
    return erfc(-x / sqrt(2)) / 2 + x * normal_density(x)


def gelu_tanh_slope(x):
    c, k = sqrt(2 / pi), mpf("0.044715")
    y = tanh(c * (x + k * x**3))
    return (1 + y) / 2 + x / 2 * (1 - y * y) * c * (1 + 3 * k * x * x)


def mish_slope(x):
    n = exp(x) * (exp(x) + 2)
    return n / (n + 2) + 4 * x * exp(x) * (exp(x) + 1) / (n + 2) ** 2


def near_root(f, root):
    slope = mp.diff(f, root)
    return lambda t: f(root + t) / t if abs(t) > mpf(10) ** -25 else slope


def artanh(q):
    s = sqrt(q)
    return (log((1 + s) / (1 - s)) / (2 * s) - 1) / q if q > mpf(10) ** -15 else mpf(1) / 3 + q / 5


def of_inverse_square(f, first):
    return lambda q: f(1 / sqrt(q)) if q > mpf(10) ** -10 else first


def of_quotient(f, k):
    """f(x), of t = (x - k) / (x + k)."""
    return lambda t: f(k * (1 + t) / (1 - t))


def lgamma_rest(x):
    return (loggamma(x) - (x - mpf(1) / 2) * log(x) + x - log(2 * pi) / 2) * x


def erf_inverse(x):
    y = erfinv(x)
    return y - (erf(y) - x) * sqrt(pi) / 2 * exp(y * y) if x < mpf(1) / 2 else y


def erf_inverse_of_rest(y):
    """erf^-1(1 - y), by Newton."""
    x = sqrt(-log(y))
    for _ in range(60):
        x, last = x + log(erfc(x) / y) * erfc(x) * sqrt(pi) / 2 * exp(x * x), x
        if abs(x - last) < mpf(10) ** -55:
            return x
    raise ValueError(y)


def erf_inverse_center(w):
    """erf^-1(x) / x, of w = -log(1 - x^2)."""
    x = sqrt(-mp.expm1(-w))
    if w < mpf(10) ** -25:
        return sqrt(pi) / 2
    return erf_inverse_of_rest(1 - x) / x if x > 0.5 else erf_inverse(x) / x


def erf_inverse_tail(r):
    """erf^-1(x), of r = sqrt(w)."""
    u = exp(-r * r)
    return erf_inverse_of_rest(u / (1 + sqrt(1 - u)))


print("// Polynomials and roots for special functions: written by tests/special_coefficients.py.\n#pragma once\n")
print('#include "polynomial.h"\n\nnamespace baracuda::special::series {\n')

roots = {
    "digamma_root": findroot(digamma, 1.46),
    "gelu_slope_root": findroot(gelu_slope, -0.75),
    "gelu_tanh_slope_root": findroot(gelu_tanh_slope, -0.75),
    "mish_slope_root": findroot(mish_slope, -1.19),
}
for name, root in roots.items():
    constant(name, root)

fit = lambda r: mp.expm1(r) / r if abs(r) > mpf(10) ** -25 else mpf(1)
series("expm1", "(e^t - 1) / t, |t| <= log(2) / 2.", fit, -0.3466, 0.3466, double=False)
series("artanh", "artanh(s) = s + s^3 p(t), t = s^2 <= 0.0295.", artanh, 0, 0.0295, double=False)
fit = lambda q: erf(sqrt(q)) / sqrt(q) if q > mpf(10) ** -50 else 2 / sqrt(pi)
series("erf", "erf(x) / x, t = x^2 <= 1.", fit, 0, 1, double=False)
series(
    "scaled_erfc",
    "(1 + 2 x) e^(x^2) erfc(x), t = (x - 3) / (x + 3), 0 <= x < 27.3, in float x < 10.6.",
    of_quotient(lambda x: (1 + 2 * x) * exp(x * x) * erfc(x), 3), -1, 0.802, single=(-1, 0.559),
)  # fmt: skip
series(
    "scaled_normal_cdf",
    "(1 + 1.5 x) e^(x^2 / 2) Phi(-x), t = (x - 4) / (x + 4), 0 <= x <= 39, in float x < 15.",
    of_quotient(lambda x: (1 + 3 * x / 2) * exp(x * x / 2) * erfc(x / sqrt(2)) / 2, 4), -1, 0.814, single=(-1, 0.58),
)  # fmt: skip
SCALE = mpf(3) / 10
single(
    "scaled_normal_cdf",
    "(1 + 0.3 x) e^(x^2 / 2) Phi(-x), t = 1 - 1 / (1 + 0.3 x), 0 <= x <= 15.",
    lambda t: (lambda x: (1 + SCALE * x) * exp(x * x / 2) * erfc(x / sqrt(2)) / 2)(t / (1 - t) / SCALE), 0, mpf(9) / 11,
)  # fmt: skip
series(
    "erfinv_center",
    "erf^-1(x) / x, t = -log(1 - x^2) - 3, t + 3 <= 6.25, in float <= 5.",
    lambda t: erf_inverse_center(t + 3), -3, 3.25, single=(-3, 2),
)  # fmt: skip
series(
    "erfinv_tail",
    "erf^-1(x), t = sqrt(-log(1 - x^2)) - 3, 2.5 <= t + 3 <= 4, in float from sqrt(5) to 4.1.",
    lambda t: erf_inverse_tail(t + 3), -0.5, 1, single=(-0.765, 1.1),
)  # fmt: skip
fit = lambda t: erf_inverse_tail(t + 5)
series("erfinv_far", "The same, t = sqrt(...) - 5, up to 6.1.", fit, -1, 1.1)
fit = lambda t: loggamma(1 + t) / t if abs(t) > mpf(10) ** -25 else -mp.euler
series("lgamma_at_1", "log(Gamma(1 + t)) / t, |t| <= 1 / 2.", fit, -0.5, 0.5)
fit = lambda t: loggamma(2 + t) / t if abs(t) > mpf(10) ** -25 else 1 - mp.euler
series("lgamma_at_2", "log(Gamma(2 + t)) / t, -1 / 2 <= t <= 1.", fit, -0.5, 1)
series(
    "lgamma_far",
    "x (log(Gamma(x)) - Stirling's formula), t = 1 / x^2, x >= 8.",
    of_inverse_square(lgamma_rest, mpf(1) / 12), 0, 1 / 64,
)  # fmt: skip
root = roots["digamma_root"]
fit = lambda t: near_root(digamma, root)(t + 2 - root)
series("digamma_near", "digamma(x) / (x - its root), t = x - 2, 1 <= x <= 3.", fit, -1, 1)
series(
    "digamma_far",
    "x^2 (log(x) - 1 / (2 x) - digamma(x)), t = 1 / x^2, x >= 8.",
    of_inverse_square(lambda x: x * x * (log(x) - 1 / (2 * x) - digamma(x)), mpf(1) / 12), 0, 1 / 64,
)  # fmt: skip
for name, what, f, span in (
    ("gelu_slope", "Slope of x Phi(x)", gelu_slope, 1),
    ("gelu_tanh_slope", "Slope of gelu's tanh flavor", gelu_tanh_slope, 0.5),
    ("mish_slope", "Slope of mish", mish_slope, 1),
):
    f = near_root(f, roots[name + "_root"])
    series(name, f"{what} / t, t = x - its root, |t| <= {span}.", f, -span, span, single=(-span, span))
    single(name, f"The same, |t| <= {span / 2}.", f, -span / 2, span / 2, floats=name != "mish_slope")
pairs("inverse_gamma", "1 / Gamma(1 + t), |t| <= 1 / 2.", lambda t: rgamma(1 + t), -0.5, 0.5)
pairs("digamma_at_4", "digamma(4 + t), |t| <= 1 / 2.", lambda t: digamma(4 + t), -0.5, 0.5)

print("\n}  // namespace baracuda::special::series")
