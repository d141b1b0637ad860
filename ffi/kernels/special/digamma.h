// The derivative of log(Gamma(x)): infinite of the other sign at 0, NaN at the other poles.
#pragma once

#include "series.h"

namespace baracuda::special {

// Of 2 + t, |t| <= 1.
BARACUDA_HD double digamma_near_2(double t) {
  return ((t + (2 - series::digamma_root)) - series::digamma_root_rest) * series::digamma_near<double>(t);
}

// Of x > 0.
BARACUDA_HD double digamma_right(double x) {
  if (x < 1) return digamma_near_2(x - 1) - 1 / x;
  if (x < 8) {
    double sum = 0;  // digamma(x + 1) = digamma(x) + 1 / x, down to the interval of the series
    for (; x > 3; sum += 1 / x) x -= 1;
    return sum + digamma_near_2(x - 2);
  }
  double inverse = 1 / x, q = inverse * inverse;  // DLMF 5.11.2
  return std::log(x) - (0.5 * inverse + q * series::digamma_far<double>(q));
}

// Of x = d - n, |d| <= 1 / 2: what cancels near the roots is added in pairs of doubles.
BARACUDA_HD double digamma_left(double d, int n) {
  Pair sum = series::digamma_at_4(d);
  for (int i = -3; i <= n; ++i) {
    Pair term = reciprocal(exact_sum(i, -d)), next = exact_sum(sum.high, term.high);
    sum = {next.high, sum.low + (next.low + term.low)};
  }
  return sum.high + sum.low;
}

BARACUDA_HD double digamma_reflected(double x, double d) {
  constexpr double pi = 0x1.921fb54442d18p+1;
  return (digamma_right(-x) - 1 / x) - pi / std::tan(pi * d);
}

// Of float's result double has bits to spare for what cancels.
template <class T>
BARACUDA_HD T digamma(T of) {
  double x = of;
  if (x > 0) return T(digamma_right(x));
  if (x > -0.1) return T((digamma_near_2(x) - 1 / (1 + x)) - 1 / x);
  double n = std::rint(-x), d = x + n;
  if (d == 0 || !(x > -std::numeric_limits<double>::infinity())) return std::numeric_limits<T>::quiet_NaN();
  if (sizeof(T) == 8 && x > -64) return digamma_left(d, int(n));
  return T(digamma_reflected(x, d));
}

}  // namespace baracuda::special
