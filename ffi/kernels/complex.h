// Complex numbers: one type on the host and the device.
#pragma once

#include "number.h"

namespace baracuda {

// Products are those of the definition.
template <class T>
struct Complex {
  T real, imag;

  Complex() = default;
  BARACUDA_HD explicit Complex(T real, T imag = T(0)) : real(real), imag(imag) {}
  BARACUDA_HD friend Complex operator+(const Complex& a, const Complex& b) {
    return Complex(a.real + b.real, a.imag + b.imag);
  }
  BARACUDA_HD friend Complex operator-(const Complex& a, const Complex& b) {
    return Complex(a.real - b.real, a.imag - b.imag);
  }
  BARACUDA_HD Complex operator-() const { return Complex(-real, -imag); }
  BARACUDA_HD friend Complex operator*(T a, const Complex& b) { return Complex(a * b.real, a * b.imag); }
  BARACUDA_HD friend Complex operator*(const Complex& a, const Complex& b) {
    return Complex(a.real * b.real - a.imag * b.imag, a.real * b.imag + a.imag * b.real);
  }
  BARACUDA_HD friend Complex operator/(const Complex& a, T b) { return Complex(a.real / b, a.imag / b); }
  // By the larger part of b, so that no square overflows (Smith, Algorithm 116, 1962).
  BARACUDA_HD friend Complex operator/(const Complex& a, const Complex& b) {
    bool wide = std::fabs(b.real) >= std::fabs(b.imag);
    T large = wide ? b.real : b.imag, ratio = (wide ? b.imag : b.real) / large;
    T size = large + (wide ? b.imag : b.real) * ratio;
    T x = wide ? a.real : a.imag, y = wide ? a.imag : a.real;
    T imag = (y - x * ratio) / size;
    return Complex((x + y * ratio) / size, wide ? imag : -imag);
  }
  BARACUDA_HD friend bool operator==(const Complex& a, const Complex& b) {
    return a.real == b.real && a.imag == b.imag;
  }
};

// i z.
template <class T>
BARACUDA_HD Complex<T> turned_left(Complex<T> z) {
  return Complex<T>(-z.imag, z.real);
}
// -i z.
template <class T>
BARACUDA_HD Complex<T> turned_right(Complex<T> z) {
  return Complex<T>(z.imag, -z.real);
}

template <class T>
inline constexpr bool is_complex = false;
template <class T>
inline constexpr bool is_complex<Complex<T>> = true;

}  // namespace baracuda
