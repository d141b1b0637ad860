// Exponentials, logarithms, roots and circular functions of complex numbers, made of real functions: the same on the
// host and the device. Branch cuts and the signs of zeros are those of C99's Annex G, and so are infinities where it is
// said. Inverse functions and tangents are Kahan's ("Branch cuts for complex elementary functions", 1987), in which
// nothing cancels: what libcu++ has takes the logarithm of x + sqrt(x^2 + 1), which does.
#pragma once

#include "complex.h"

namespace baracuda::holomorphic {

template <class T>
inline constexpr T infinity = std::numeric_limits<T>::infinity();
inline constexpr double pi = 0x1.921fb54442d18p1;

template <class T>
BARACUDA_HD bool is_infinite(Complex<T> z) {
  return std::abs(z.real) == infinity<T> || std::abs(z.imag) == infinity<T>;
}
template <class T>
BARACUDA_HD bool is_nan(Complex<T> z) {
  return z.real != z.real || z.imag != z.imag;
}

// factor `base(x)` in the direction of the angle, where `base` is a real exponential, and may overflow where its
// product with a cosine does not.
template <class T, class Base>
BARACUDA_HD Complex<T> ray(T factor, T x, T angle, const Base& base) {
  T size = base(x);
  if (angle == 0) return Complex<T>(factor * size, angle);
  if (std::abs(x) == infinity<T> && !(std::abs(angle) < infinity<T>))
    return x < 0 ? Complex<T>() : Complex<T>(x, angle - angle);
  T root = size == infinity<T> ? base(x / 2) : size, rest = size == infinity<T> ? factor * root : factor;
  return Complex<T>(root * std::cos(angle) * rest, root * std::sin(angle) * rest);
}

template <class T>
BARACUDA_HD Complex<T> exp(Complex<T> z) {
  return ray(T(1), z.real, z.imag, [](T x) { return std::exp(x); });
}
template <class T>
BARACUDA_HD Complex<T> exp2(Complex<T> z) {
  return ray(T(1), z.real, T(z.imag * 0x1.62e42fefa39efp-1), [](T x) { return std::exp2(x); });
}
// Where e^x cos y is near 1, y is what is left.
template <class T>
BARACUDA_HD Complex<T> expm1(Complex<T> z) {
  if (!(z.real < 1) || z.real == -infinity<T>) {
    Complex<T> e = exp(z);
    return Complex<T>(e.real - 1, e.imag);
  }
  T half = std::sin(z.imag / 2);
  return Complex<T>(std::expm1(z.real) * std::cos(z.imag) - 2 * half * half, std::exp(z.real) * std::sin(z.imag));
}

// log |z|, exact where that is near 0.
template <class T>
BARACUDA_HD T log_size(Complex<T> z) {
  T x = std::abs(z.real), y = std::abs(z.imag), larger = x > y ? x : y, smaller = x > y ? y : x;
  if (is_infinite(z)) return infinity<T>;
  if (larger == 0) return -infinity<T>;
  if (larger > T(0.5) && larger < 1) return std::log1p((larger - 1) * (larger + 1) + smaller * smaller) / 2;
  T ratio = smaller / larger;
  return std::log(larger) + std::log1p(ratio * ratio) / 2;
}
template <class T>
BARACUDA_HD Complex<T> log(Complex<T> z) {
  return Complex<T>(log_size(z), std::atan2(z.imag, z.real));
}
template <class T>
BARACUDA_HD Complex<T> log1p(Complex<T> z) {
  Complex<T> moved(1 + z.real, z.imag);
  if (!(std::abs(z.real) < T(0.5)) || !(std::abs(z.imag) < T(0.5))) return log(moved);
  T square = z.real * (2 + z.real) + z.imag * z.imag;
  return Complex<T>(std::log1p(square) / 2, std::atan2(moved.imag, moved.real));
}

// By a quarter where the sum would overflow.
template <class T>
BARACUDA_HD Complex<T> sqrt(Complex<T> z) {
  constexpr T large = std::numeric_limits<T>::max() / 4;
  if (std::abs(z.imag) == infinity<T>) return Complex<T>(infinity<T>, z.imag);
  if (z.real == 0 && z.imag == 0) return Complex<T>(0, z.imag);
  bool is_large = std::abs(z.real) > large || std::abs(z.imag) > large;
  T x = is_large ? z.real / 4 : z.real, y = is_large ? z.imag / 4 : z.imag, scale = is_large ? 2 : 1;
  T root = std::sqrt((std::hypot(x, y) + std::abs(x)) / 2), other = y / (2 * root);
  if (z.real < 0) return Complex<T>(scale * std::abs(other), std::copysign(scale * root, y));
  return Complex<T>(scale * root, scale * other);
}

inline constexpr int steep = 20;  // e^-40 is nothing compared with 1 in double

// Beyond `steep` both are half of an exponential, which may not overflow.
template <class T>
BARACUDA_HD Complex<T> half_exp(T x, T angle) {
  return ray(T(0.5), x, angle, [](T x) { return std::exp(x); });
}
template <class T>
BARACUDA_HD Complex<T> sinh(Complex<T> z) {
  T x = z.real, y = z.imag;
  if (std::abs(x) > steep) return x > 0 ? half_exp(x, y) : -half_exp(-x, -y);
  return Complex<T>(std::sinh(x) * std::cos(y), std::cosh(x) * std::sin(y));
}
template <class T>
BARACUDA_HD Complex<T> cosh(Complex<T> z) {
  T x = z.real, y = z.imag;
  if (std::abs(x) > steep) return x > 0 ? half_exp(x, y) : half_exp(-x, -y);
  return Complex<T>(std::cosh(x) * std::cos(y), std::sinh(x) * std::sin(y));
}
template <class T>
BARACUDA_HD Complex<T> tanh(Complex<T> z) {
  T x = z.real, y = z.imag;
  if (std::abs(x) > steep) {
    T turn = std::sin(y) * std::cos(y);
    T imag = std::abs(x) == infinity<T> ? std::copysign(T(0), turn) : 4 * std::exp(-2 * std::abs(x)) * turn;
    return Complex<T>(std::copysign(T(1), x), imag);
  }
  T t = std::tan(y), s = std::sinh(x), one = 1 + t * t, size = 1 + one * s * s;
  return Complex<T>(one * std::sqrt(1 + s * s) * s / size, t / size);
}
// 1 / cosh(z)^2, which is nearly 4 e^-2z where the cosine is steep.
template <class T>
BARACUDA_HD Complex<T> sech_squared(Complex<T> z) {
  if (std::abs(z.real) > steep) return T(4) * exp(T(z.real < 0 ? 2 : -2) * z);
  Complex<T> one(1), size = cosh(z);
  return one / size / size;
}

template <class T>
BARACUDA_HD Complex<T> sin(Complex<T> z) {
  return turned_right(sinh(turned_left(z)));
}
template <class T>
BARACUDA_HD Complex<T> cos(Complex<T> z) {
  return cosh(turned_left(z));
}
template <class T>
BARACUDA_HD Complex<T> tan(Complex<T> z) {
  return turned_right(tanh(turned_left(z)));
}

// sqrt(1 - z) and sqrt(1 + z), with the sign of z's zero.
template <class T>
struct Roots {
  Complex<T> minus, plus;
  BARACUDA_HD explicit Roots(Complex<T> z)
      : minus(sqrt(Complex<T>(1 - z.real, -z.imag))), plus(sqrt(Complex<T>(1 + z.real, z.imag))) {}
};
// The angle of an infinity, which is a multiple of pi / 4.
template <class T>
BARACUDA_HD T angle_of_infinity(Complex<T> z) {
  T x = std::abs(z.real) == infinity<T> ? T(1) : T(0), y = std::abs(z.imag) == infinity<T> ? T(1) : T(0);
  return std::atan2(std::copysign(y, z.imag), std::copysign(x, z.real));
}
template <class T>
BARACUDA_HD Complex<T> asin(Complex<T> z) {
  if (is_infinite(z) && !is_nan(z)) {
    T angle = angle_of_infinity(Complex<T>(std::abs(z.imag), z.real));
    return Complex<T>(angle, std::copysign(infinity<T>, z.imag));
  }
  Roots<T> root(z);
  T cosine = root.minus.real * root.plus.real - root.minus.imag * root.plus.imag;
  T imag = root.minus.real * root.plus.imag - root.minus.imag * root.plus.real;
  return Complex<T>(std::atan2(z.real, cosine), std::asinh(imag));
}
template <class T>
BARACUDA_HD Complex<T> acos(Complex<T> z) {
  if (is_infinite(z) && !is_nan(z))
    return Complex<T>(std::abs(angle_of_infinity(z)), -std::copysign(infinity<T>, z.imag));
  Roots<T> root(z);
  T imag = root.plus.real * root.minus.imag - root.plus.imag * root.minus.real;
  return Complex<T>(2 * std::atan2(root.minus.real, root.plus.real), std::asinh(imag));
}
template <class T>
BARACUDA_HD Complex<T> acosh(Complex<T> z) {
  if (is_infinite(z) && !is_nan(z)) return Complex<T>(infinity<T>, angle_of_infinity(z));
  Complex<T> minus = sqrt(Complex<T>(z.real - 1, z.imag)), plus = sqrt(Complex<T>(z.real + 1, z.imag));
  T real = minus.real * plus.real + minus.imag * plus.imag;
  return Complex<T>(std::asinh(real), 2 * std::atan2(minus.imag, plus.real));
}
template <class T>
BARACUDA_HD Complex<T> asinh(Complex<T> z) {
  return turned_right(asin(turned_left(z)));
}
template <class T>
BARACUDA_HD Complex<T> atanh(Complex<T> z) {
  T x = std::abs(z.real), y = z.imag, size = std::hypot(1 - x, y);
  if (is_infinite(z) && !is_nan(z)) return Complex<T>(std::copysign(T(0), z.real), std::copysign(T(pi / 2), z.imag));
  T real = std::log1p(4 * (x / size) / size) / 4;
  return Complex<T>(std::copysign(real, z.real), std::atan2(y, ((1 - x) * (1 + x) - y * y) / 2) / 2);
}
template <class T>
BARACUDA_HD Complex<T> atan(Complex<T> z) {
  return turned_right(atanh(turned_left(z)));
}

// 1 / (1 + e^-z), in which nothing overflows; and its derivative.
template <class T>
BARACUDA_HD Complex<T> sigmoid(Complex<T> z) {
  Complex<T> e = exp(z.real < 0 ? z : -z), one(1 + e.real, e.imag);
  return (z.real < 0 ? e : Complex<T>(1)) / one;
}
template <class T>
BARACUDA_HD Complex<T> sigmoid_slope(Complex<T> z) {
  return T(0.25) * sech_squared(T(0.5) * z);
}

// x^y, where x is 0 a number only for a real y that is not negative, as in NumPy and XLA; of floats in double, in which
// the rounding of y log x does not show.
template <class T>
BARACUDA_HD Complex<T> pow(Complex<T> x, Complex<T> y) {
  if (y == Complex<T>(0)) return Complex<T>(1);
  if (x == Complex<T>(0)) {
    T nothing = y.imag == 0 && y.real > 0 ? T(0) : std::numeric_limits<T>::quiet_NaN();
    return Complex<T>(nothing, nothing);
  }
  Complex<double> wide = exp(Complex<double>(y.real, y.imag) * log(Complex<double>(x.real, x.imag)));
  return Complex<T>(T(wide.real), T(wide.imag));
}

}  // namespace baracuda::holomorphic
