// log|Gamma(x)|.
#pragma once

#include "series.h"

namespace baracuda::special {

// Of x >= 1 / 2.
BARACUDA_HD double lgamma_right(double x) {
  if (x < 1.5) return (1 - x) * -series::lgamma_at_1<double>(x - 1);  // +0 at 1
  if (x < 8) {
    double product = 1;  // Gamma(x + 1) = x Gamma(x), down to the interval of the series
    for (; x >= 3; product *= x) x -= 1;
    double log = (x - 2) * series::lgamma_at_2<double>(x - 2);
    return product > 1 ? std::log(product) + log : log;
  }
  // Stirling's formula, DLMF 5.11.1: 0.4189... = (log(2 pi) - 1) / 2.
  double inverse = 1 / x, rest = series::lgamma_far<double>(inverse * inverse) * inverse;
  return (x - 0.5) * (std::log(x) - 1) + (0x1.acfe390c97d69p-2 + rest);
}

// Of x = d - n, |d| <= 1 / 2: Gamma(1 + d) is Gamma(x) times x (x + 1) ... d. The logarithm of what is near 1 near the
// roots takes 100 bits of it.
BARACUDA_HD double lgamma_left(double d, int n) {
  Pair product = series::inverse_gamma(d) * std::abs(d);
  for (int i = 1; i <= n; ++i) {
    Pair factor = exact_sum(i, -d), next = exact_product(product.high, factor.high);
    product = {next.high, product.low * factor.high + (product.high * factor.low + next.low)};
  }
  product = exact_sum_ordered(product.high, product.low);
  return -(std::log(product.high) + product.low / product.high);
}

// By Gamma(x) Gamma(-x) = -pi / (x sin(pi x)).
BARACUDA_HD double lgamma_reflected(double x, double d) {
  constexpr double pi = 0x1.921fb54442d18p+1;
  return -std::log(-x * (std::sin(pi * std::abs(d)) / pi)) - lgamma_right(-x);
}

// Of float's result double has bits to spare for what cancels.
template <class T>
BARACUDA_HD T lgamma(T of) {
  double x = of;
  if (x >= 0.5) return T(lgamma_right(x));
  constexpr double infinity = std::numeric_limits<double>::infinity();
  if (x > -0.5) return x == 0 ? infinity : x * series::lgamma_at_1<double>(x) - std::log(std::abs(x));
  if (x == -infinity) return infinity;
  double n = std::rint(-x), d = x + n;
  if (d == 0) return infinity;
  if (sizeof(T) == 8 && x > -36) return lgamma_left(d, int(n));  // farther out lgamma(-x) outweighs the logarithm
  return T(lgamma_reflected(x, d));
}

}  // namespace baracuda::special
