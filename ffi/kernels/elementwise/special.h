// Error and gamma functions.
#pragma once

#include "functor.h"
#include "math.h"

namespace baracuda::op {

inline constexpr double root_of_pi = 0x1.c5bf891b4ef6bp0;

BARACUDA_UNARY_OP(erf, math::erf<T>(x), W(2 / root_of_pi) * math::exp<T>(-x * x) * d)
BARACUDA_UNARY_OP(erfc, math::erfc<T>(x), W(-2 / root_of_pi) * math::exp<T>(-x * x) * d)
BARACUDA_UNARY_OP(erfinv, math::erfinv<T>(x),
                  W(root_of_pi / 2) * math::exp<T>(math::erfinv<T>(x) * math::erfinv<T>(x)) * d)
BARACUDA_UNARY_OP(lgamma, math::lgamma<T>(x), math::digamma<T>(x) * d)
BARACUDA_UNARY_OP(digamma, math::digamma<T>(x), math::trigamma<T>(x) * d)

// log(x / (1 - x)) of x not nearer to 0 and 1 than eps; a negative eps is none.
BARACUDA_UNARY(logit) {
  using W = Comparable<T>;
  W eps;
  explicit logit(const Parameter* p) : eps(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x) const {
    W inside = eps < 0 ? x : x < eps ? eps : x > 1 - eps ? 1 - eps : x;
    return math::logit<T>(inside);
  }
};
BARACUDA_UNARY_BACKWARD(logit_backward) {
  using W = Comparable<T>;
  W eps;
  explicit logit_backward(const Parameter* p) : eps(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x, W d) const { return eps >= 0 && (x < eps || x > 1 - eps) ? W(0) : d / x / (1 - x); }
};

}  // namespace baracuda::op
