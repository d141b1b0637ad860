// Ops of three arrays.
#pragma once

#include "functor.h"

namespace baracuda::op {

// `low` and `high` where x is outside; high where they cross.
template <class T>
struct clamp_between : Ternary<T> {
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "min", "max"};
  BARACUDA_HD W operator()(W x, W low, W high) const {
    W raised = x < low || low != low ? low : x;
    return raised > high || high != high ? high : raised;
  }
  BARACUDA_HD W dx(W x, W low, W high, W d) const { return x >= low && x <= high ? d : W(0); }
  BARACUDA_HD W dy(W x, W low, W high, W d) const { return x < low && low < high ? d : W(0); }
  BARACUDA_HD W dz(W x, W low, W high, W d) const { return x > high || high < low ? d : W(0); }
};
BARACUDA_DERIVATIVES(clamp_between, Ternary)

template <class T>
struct fma : Ternary<T> {
  using W = Comparable<T>;
  BARACUDA_HD W operator()(W x, W y, W z) const { return std::fma(x, y, z); }
  BARACUDA_HD W dx(W, W y, W, W d) const { return y * d; }
  BARACUDA_HD W dy(W x, W, W, W d) const { return x * d; }
  BARACUDA_HD W dz(W, W, W, W d) const { return d; }
};
BARACUDA_DERIVATIVES(fma, Ternary)

// x + value y z, and x + value y / z.
template <class T>
struct Scaled : Ternary<T> {
  Comparable<T> value;
  explicit Scaled(const Parameter* p) : value(Comparable<T>(p[0].number())) {}
};
template <class T>
struct addcmul : Scaled<T> {
  using W = Comparable<T>;
  using Scaled<T>::Scaled, Scaled<T>::value;
  BARACUDA_HD W operator()(W x, W y, W z) const { return x + value * y * z; }
  BARACUDA_HD W dx(W, W, W, W d) const { return d; }
  BARACUDA_HD W dy(W, W, W z, W d) const { return value * z * d; }
  BARACUDA_HD W dz(W, W y, W, W d) const { return value * y * d; }
};
BARACUDA_DERIVATIVES(addcmul, Ternary)

template <class T>
struct addcdiv : Scaled<T> {
  using W = Comparable<T>;
  using Scaled<T>::Scaled, Scaled<T>::value;
  BARACUDA_HD W operator()(W x, W y, W z) const { return x + value * (y / z); }
  BARACUDA_HD W dx(W, W, W, W d) const { return d; }
  BARACUDA_HD W dy(W, W, W z, W d) const { return value * (d / z); }
  BARACUDA_HD W dz(W, W y, W z, W d) const { return -value * (y / z) * (d / z); }
};
BARACUDA_DERIVATIVES(addcdiv, Ternary)

}  // namespace baracuda::op
