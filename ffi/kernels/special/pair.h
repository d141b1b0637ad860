// Sums of two doubles, the second below half a unit of the first: some 104 bits, for what cancels.
#pragma once

#include "../number.h"

namespace baracuda::special {

struct Pair {
  double high, low;
};

// Exact (Knuth, TAOCP 4.2.2; Dekker 1971 where |a| >= |b|).
BARACUDA_HD Pair exact_sum(double a, double b) {
  double sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}
BARACUDA_HD Pair exact_sum_ordered(double a, double b) {
  double sum = a + b;
  return {sum, b - (sum - a)};
}
BARACUDA_HD Pair exact_product(double a, double b) {
#ifdef __CUDA_ARCH__
  double product = __dmul_rn(a, b);  // which is not fused with a sum after it
#else
  double product = a * b;
#endif
  return {product, std::fma(a, b, -product)};
}

BARACUDA_HD Pair operator-(Pair a) { return {-a.high, -a.low}; }
BARACUDA_HD Pair operator+(Pair a, Pair b) {
  Pair sum = exact_sum(a.high, b.high), low = exact_sum(a.low, b.low);
  sum = exact_sum_ordered(sum.high, sum.low + low.high);
  return exact_sum_ordered(sum.high, sum.low + low.low);
}
BARACUDA_HD Pair operator*(Pair a, double b) {
  Pair product = exact_product(a.high, b);
  return exact_sum_ordered(product.high, product.low + a.low * b);
}
BARACUDA_HD Pair operator*(Pair a, Pair b) {
  Pair product = exact_product(a.high, b.high);
  return exact_sum_ordered(product.high, product.low + (a.high * b.low + a.low * b.high));
}
BARACUDA_HD Pair reciprocal(Pair a) {
  double first = 1 / a.high, rest = std::fma(-first, a.high, 1.0) - first * a.low;
  return exact_sum_ordered(first, first * rest);
}

}  // namespace baracuda::special
