// The derivative of digamma: from its recurrence, its asymptotic series, and for x < 1/2 its reflection.
#pragma once

#include <cmath>

#include "../number.h"

namespace baracuda::special {

BARACUDA_HD double trigamma_above(double x) {
  double sum = 0;
  for (int step = 0; step < 10; ++step) {
    bool low = x < 10;
    sum += low ? 1 / (x * x) : 0;
    x += low;
  }
  // The Bernoulli numbers; the next term is below 2^-55 of the whole.
  double r = 1 / x, q = r * r;
  double tail = q * (1 / 42. - q * (1 / 30. - q * (5 / 66. - q * (691 / 2730. - q * (7 / 6. - q * (3617 / 510.))))));
  return sum + (r + q / 2 + r * (q * (1 / 6. - q * (1 / 30. - tail))));
}

template <class T>
BARACUDA_HD T trigamma(T x) {
  constexpr double pi = 0x1.921fb54442d18p1;
  double z = x;
  if (!(z < 0.5)) return T(trigamma_above(z));
  double sine = std::sin(pi * (z - std::round(z)));  // infinite at the poles
  return T(pi * pi / (sine * sine) - trigamma_above(1 - z));
}

}  // namespace baracuda::special
