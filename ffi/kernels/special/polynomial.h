// Polynomials by Horner's rule, in double or float, and in sums of two doubles.
#pragma once

#include "pair.h"

namespace baracuda::special {

// c + c1 t + c2 t^2 + ... Coefficients are arguments, since device code reads no array of the host's.
template <class W>
BARACUDA_HD W polynomial(W, W c) {
  return c;
}
template <class W, class... Rest>
BARACUDA_HD W polynomial(W t, W c, Rest... rest) {
  return c + t * polynomial(t, rest...);
}

// The same with the highest coefficients first, of which `high` is what polynomial() gave of all before. The errors go
// by a polynomial of their own in addition (Graillat, Langlois and Louvet, 2005), which takes half as long as to add
// pairs.
BARACUDA_HD Pair pair_polynomial(double, Pair sum) { return exact_sum_ordered(sum.high, sum.low); }
template <class... Rest>
BARACUDA_HD Pair pair_polynomial(double t, Pair above, Pair c, Rest... rest) {
  Pair product = exact_product(above.high, t), sum = exact_sum(product.high, c.high);
  return pair_polynomial(t, Pair{sum.high, above.low * t + ((product.low + sum.low) + c.low)}, rest...);
}
template <class... Rest>
BARACUDA_HD Pair pair_polynomial(double t, double high, Pair c, Rest... rest) {
  return pair_polynomial(t, Pair{high, 0}, c, rest...);
}

}  // namespace baracuda::special
