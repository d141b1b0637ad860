// Activations.
#pragma once

#include "functor.h"
#include "math.h"

namespace baracuda::op {

// Linear parts of clamped x, which NaN passes.
template <class W>
BARACUDA_HD W clamped(W x, W low, W high) {
  W raised = x < low ? low : x;
  return raised > high ? high : raised;
}
inline constexpr double selu_alpha = 1.6732632423543772, selu_scale = 1.0507009873554805;
template <class T>
BARACUDA_HD Comparable<T> silu_slope(Comparable<T> x) {
  Comparable<T> s = math::sigmoid<T>(x);
  return x < -500 ? s : s * (1 + x * (1 - s));  // infinity times 0 would be NaN
}
template <class T>
BARACUDA_HD Comparable<T> sigmoid_slope(Comparable<T> x) {
  Comparable<T> e = math::exp<T>(-std::abs(x)), one = 1 + e;
  return e / (one * one);
}

BARACUDA_UNARY_OP(relu, x <= 0 ? W(0) : x, x > 0 ? d : W(0))
BARACUDA_UNARY_OP(relu6, clamped(x, W(0), W(6)), x > 0 && x < 6 ? d : W(0))
BARACUDA_UNARY_OP(gelu, math::gelu<T>(x), math::gelu_slope<T>(x) * d)
BARACUDA_UNARY_OP(gelu_tanh, math::gelu_tanh<T>(x), math::gelu_tanh_slope<T>(x) * d)
BARACUDA_UNARY_OP(sigmoid, math::sigmoid<T>(x), sigmoid_slope<T>(x) * d)
BARACUDA_UNARY_OP(silu, x < -500 ? W(-0.0) : x * math::sigmoid<T>(x), silu_slope<T>(x) * d)
BARACUDA_UNARY_OP(mish, math::mish<T>(x), math::mish_slope<T>(x) * d)
BARACUDA_UNARY_OP(selu, W(selu_scale) * (x > 0 ? x : W(selu_alpha) * math::expm1<T>(x)),
                  W(selu_scale) * (x > 0 ? d : W(selu_alpha) * math::exp<T>(x) * d))
BARACUDA_UNARY_OP(hardsigmoid, clamped(x + 3, W(0), W(6)) / 6, x > -3 && x < 3 ? d / 6 : W(0))
BARACUDA_UNARY_OP(hardswish, x <= -3 ? W(-0.0) : x * (clamped(x + 3, W(0), W(6)) / 6),
                  x <= -3  ? W(0)
                  : x >= 3 ? d
                           : (2 * x + 3) / 6 * d)
BARACUDA_UNARY_OP(softsign, x / (1 + std::abs(x)), d / (1 + std::abs(x)) / (1 + std::abs(x)))
BARACUDA_UNARY_OP(tanhshrink, x - math::tanh<T>(x), math::tanh<T>(x) * math::tanh<T>(x) * d)

BARACUDA_UNARY(softplus) {
  using W = Comparable<T>;
  W beta;
  explicit softplus(const Parameter* p) : beta(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x) const { return math::softplus<T>(beta * x) / beta; }
};
BARACUDA_UNARY_BACKWARD(softplus_backward) {
  using W = Comparable<T>;
  W beta;
  explicit softplus_backward(const Parameter* p) : beta(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x, W d) const { return math::sigmoid<T>(beta * x) * d; }
};

BARACUDA_UNARY(leaky_relu) {
  using W = Comparable<T>;
  W slope;
  explicit leaky_relu(const Parameter* p) : slope(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x) const { return x > 0 ? x : slope * x; }
};

BARACUDA_UNARY_BACKWARD(leaky_relu_backward) {
  using W = Comparable<T>;
  W slope;
  explicit leaky_relu_backward(const Parameter* p) : slope(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x > 0 ? dy : slope * dy; }
};

BARACUDA_UNARY(elu) {
  using W = Comparable<T>;
  W alpha;
  explicit elu(const Parameter* p) : alpha(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x) const { return x > 0 ? x : alpha * math::expm1<T>(x); }
};

BARACUDA_UNARY_BACKWARD(elu_backward) {
  using W = Comparable<T>;
  W alpha;
  explicit elu_backward(const Parameter* p) : alpha(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x > 0 ? dy : alpha * math::exp<T>(x) * dy; }
};

BARACUDA_UNARY(threshold) {
  using W = Comparable<T>;
  W bound, value;
  explicit threshold(const Parameter* p) : bound(W(p[0].number())), value(W(p[1].number())) {}
  BARACUDA_HD W operator()(W x) const { return x <= bound ? value : x; }
};

BARACUDA_UNARY_BACKWARD(threshold_backward) {
  using W = Comparable<T>;
  W bound;
  explicit threshold_backward(const Parameter* p) : bound(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x <= bound ? W(0) : dy; }
};

BARACUDA_UNARY(softshrink) {
  using W = Comparable<T>;
  W lambd;
  explicit softshrink(const Parameter* p) : lambd(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x) const {
    if (x >= -lambd && x <= lambd) return W(0);
    return x > lambd ? x - lambd : x + lambd;
  }
};

BARACUDA_UNARY(hardshrink) {
  using W = Comparable<T>;
  W lambd;
  explicit hardshrink(const Parameter* p) : lambd(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x) const { return x >= -lambd && x <= lambd ? W(0) : x; }
};

// Of both shrinks.
BARACUDA_UNARY_BACKWARD(shrink_backward) {
  using W = Comparable<T>;
  W lambd;
  explicit shrink_backward(const Parameter* p) : lambd(W(p[0].number())) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x >= -lambd && x <= lambd ? W(0) : dy; }
};

}  // namespace baracuda::op
