// Clamps, which differ in the gradient at the bounds.
#pragma once

#include "functor.h"

namespace baracuda::op {

// The larger bound wins where the bounds cross.
BARACUDA_UNARY(clamp) {
  using W = Comparable<T>;
  W low, high;
  clamp(W low, W high) : low(low), high(high) {}
  explicit clamp(const Parameter* p) : low(p[0].value<W>()), high(p[1].value<W>()) {}
  BARACUDA_HD W operator()(W x) const {
    W raised = x < low ? low : x;
    return raised > high ? high : raised;
  }
};

template <class T>
struct hardtanh : clamp<T> {
  using W = Comparable<T>;
  explicit hardtanh(const Parameter* p) : clamp<T>(W(p[0].number()), W(p[1].number())) {}
};

// At a bound x is inside.
BARACUDA_UNARY_BACKWARD(clamp_backward) {
  using W = Comparable<T>;
  W low, high;
  explicit clamp_backward(const Parameter* p) : low(p[0].value<W>()), high(p[1].value<W>()) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x >= low && x <= high ? dy : W(0); }
};

// At a bound x is outside.
BARACUDA_UNARY_BACKWARD(hardtanh_backward) {
  using W = Comparable<T>;
  W low, high;
  explicit hardtanh_backward(const Parameter* p) : low(W(p[0].number())), high(W(p[1].number())) {}
  BARACUDA_HD W operator()(W x, W dy) const { return x <= low || x >= high ? W(0) : dy; }
};

}  // namespace baracuda::op
