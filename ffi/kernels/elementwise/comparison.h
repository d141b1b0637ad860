// Comparisons, and what they choose.
#pragma once

#include "functor.h"

namespace baracuda::op {

BARACUDA_BINARY_VALUE(eq, bool, x == y)
BARACUDA_BINARY_VALUE(ne, bool, x != y)
BARACUDA_BINARY_VALUE(gt, bool, x > y)
BARACUDA_BINARY_VALUE(ge, bool, x >= y)
BARACUDA_BINARY_VALUE(lt, bool, x < y)
BARACUDA_BINARY_VALUE(le, bool, x <= y)

// The part of a cotangent of the greater of two, half of it where they are equal.
template <class W>
BARACUDA_HD W share(bool greater, bool equal, W d) {
  return greater ? d : equal ? d / 2 : W(0);
}
BARACUDA_BINARY_OP(maximum, x > y || x != x ? x : y, share(x > y, x == y, d), share(y > x, x == y, d))
BARACUDA_BINARY_OP(minimum, x < y || x != x ? x : y, share(x < y, x == y, d), share(y < x, x == y, d))
BARACUDA_BINARY_OP(fmax, x > y || y != y ? x : y, x > y || y != y ? d : W(0), x > y || y != y ? W(0) : d)
BARACUDA_BINARY_OP(fmin, x < y || y != y ? x : y, x < y || y != y ? d : W(0), x < y || y != y ? W(0) : d)
// 0 below 0, y at 0, 1 above.
BARACUDA_BINARY_OP(heaviside, x > 0 ? W(1) : x < 0 ? W(0) : x == 0 ? y : x, W(0), x == 0 ? d : W(0))

// Elements are moved, as unsigned integers of their width.
template <class T>
struct where {
  using Operands = Types<bool, T, T>;
  using Results = Types<T>;
  static constexpr const char* names[] = {"condition", "x", "y"};
  BARACUDA_HD T operator()(bool condition, T x, T y) const { return condition ? x : y; }
};
template <class T>
struct where_backward {
  using Operands = Types<bool, T>;
  using Results = Types<T, T>;
  using W = Comparable<T>;
  static constexpr const char* names[] = {"condition", "dz"};
  BARACUDA_HD Values<W, 2> operator()(bool condition, W d) const {
    return {{condition ? d : W(0), condition ? W(0) : d}};
  }
};

}  // namespace baracuda::op
