// Ops with a weight, whose type P may be wider than T.
#pragma once

#include "functor.h"

namespace baracuda::op {

template <class T, class P>
struct lerp {
  using Operands = Types<T, T, P>;
  using Results = Types<T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"start", "end", "weight"};
  BARACUDA_HD W operator()(W start, W end, W weight) const {
    W way = end - start;
    // From the nearer end, so that weights of 0 and 1 give the ends.
    return std::abs(weight) < W(0.5) ? start + weight * way : end - way * (1 - weight);
  }
};

template <class T, class P>
struct lerp_tangent {
  using Operands = Types<T, T, P, T, T, P>;
  using Results = Types<T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"start",           "end",           "weight",
                                          "start's tangent", "end's tangent", "weight's tangent"};
  BARACUDA_HD W operator()(W start, W end, W weight, W of_start, W of_end, W of_weight) const {
    return (1 - weight) * of_start + weight * of_end + (end - start) * of_weight;
  }
};

template <class T, class P>
struct lerp_backward {
  using Operands = Types<T, P>;
  using Results = Types<T, T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"dy", "weight"};
  BARACUDA_HD Values<W, 2> operator()(W dy, W weight) const { return {{(1 - weight) * dy, weight * dy}}; }
};

template <class T, class P>
struct lerp_backward_weight {
  using Operands = Types<T, T, T>;
  using Results = Types<P>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"start", "end", "dy"};
  BARACUDA_HD W operator()(W start, W end, W dy) const { return (end - start) * dy; }
};

// x times a power of 2, whose exponent is a float.
template <class T, class P>
struct ldexp {
  using Operands = Types<T, P>;
  using Results = Types<T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "n"};
  BARACUDA_HD W operator()(W x, W n) const { return std::ldexp(x, int(n > 5000 ? W(5000) : n < -5000 ? W(-5000) : n)); }
};

template <class T, class P>
struct prelu {
  using Operands = Types<T, P>;
  using Results = Types<T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "weight"};
  BARACUDA_HD W operator()(W x, W weight) const { return x > 0 ? x : weight * x; }
};

template <class T, class P>
struct prelu_tangent {
  using Operands = Types<T, P, T, P>;
  using Results = Types<T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "weight", "x's tangent", "weight's tangent"};
  BARACUDA_HD W operator()(W x, W weight, W of_x, W of_weight) const {
    return x > 0 ? of_x : weight * of_x + x * of_weight;
  }
};

template <class T, class P>
struct prelu_backward {
  using Operands = Types<T, P, T>;
  using Results = Types<T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "weight", "dy"};
  BARACUDA_HD W operator()(W x, W weight, W dy) const { return x > 0 ? dy : weight * dy; }
};

template <class T, class P>
struct prelu_backward_weight {
  using Operands = Types<T, T>;
  using Results = Types<P>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"x", "dy"};
  BARACUDA_HD W operator()(W x, W dy) const { return x > 0 ? W(0) : x * dy; }
};

}  // namespace baracuda::op
