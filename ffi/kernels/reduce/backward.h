// Gradients of reductions: what each element of x has of its slice's cotangent.
//
// A broadcaster makes a Part of what the slice has, once, and an element of dx of that and the element of x, which it
// may not read.
#pragma once

#include "../complex.h"
#include "../exponential.h"
#include "../power.h"
#include "factor.h"

namespace baracuda {

template <class Wide>
BARACUDA_HD Wide sign_of(Wide x) {
  return Wide((x > 0) - (x < 0));
}

template <class T>
struct BroadcastSum {
  using Element = T;
  using Part = T;
  static constexpr bool reads = false;
  const T* dy;
  double divisor;

  BARACUDA_HD Part part(int64_t element) const {
    if constexpr (is_complex<T>) {
      using Real = decltype(T::real);
      return dy[element] / Real(divisor);
    } else {
      using Wide = Comparable<T>;
      return T(Wide(dy[element]) / Wide(divisor));
    }
  }
  BARACUDA_HD T at(const Part& part, T) const { return part; }
};

// The elements that have the extreme value share the cotangent. A NaN has it where one is.
template <class T>
struct BroadcastExtremum {
  using Element = T;
  using Wide = Comparable<T>;
  static constexpr bool reads = true;
  struct Part {
    Wide y;
    T share, below;  // of x, and of x < 0
  };
  const T* y;
  const float* ties;
  const T* dy;
  bool magnitude;

  BARACUDA_HD Part part(int64_t element) const {
    float count = ties[element];
    Wide most = Wide(y[element]), share = Wide(dy[element]) / Wide(count > 1 ? count : 1);
    // A magnitude has no slope at 0 and at NaN.
    if (magnitude && !(most > 0)) share *= 0;
    return {most, T(share), T(magnitude ? -share : share)};
  }
  BARACUDA_HD T at(const Part& part, T element) const {
    Wide x = Wide(element), value = magnitude ? std::fabs(x) : x;
    bool same = (value == part.y) | (value != value);  // of a slice with a NaN the extreme value is NaN
    return value_if(same, x < 0 ? part.below : part.share);
  }
};

// dy times the product of the slice's other factors.
template <class T>
struct BroadcastProd {
  using Element = T;
  using Wide = std::conditional_t<is_complex<T>, T, Accumulator<T>>;
  static constexpr bool reads = true;
  struct Part {
    Wide dy, product;
    uint32_t zeros;
  };
  const Wide* product;
  const uint8_t* zeros;
  const T* dy;

  static BARACUDA_HD Wide wide(T x) { return Wide(x); }
  BARACUDA_HD Part part(int64_t element) const { return {wide(dy[element]), product[element], zeros[element]}; }
  BARACUDA_HD T at(const Part& part, T element) const {
    Wide x = wide(element), others = part.product / factor_of(x);
    bool vanishes = part.zeros > uint32_t(x == Wide(0));
    return T(part.dy * (vanishes ? others * Wide(0) : others));
  }
};

// dy e^(x - y - rest), rest being what rounding took from y; -inf adds nothing and has none.
template <class T>
struct BroadcastLogSumExp {
  using Element = T;
  using Wide = Comparable<T>;
  static constexpr bool reads = true;
  struct Part {
    Wide y, rest, dy;
  };
  const T* y;
  const Wide* rest;
  const T* dy;

  BARACUDA_HD Part part(int64_t element) const { return {Wide(y[element]), rest[element], Wide(dy[element])}; }
  BARACUDA_HD T at(const Part& part, T element) const {
    return T(part.dy * exponential_below<T>(Wide(element), part.y, part.rest));
  }
};

// dy sign(x) (|x| / y)^(p - 1), 0 where x or y is 0.
template <class T>
struct BroadcastNorm {
  using Element = T;
  using Wide = Comparable<T>;
  static constexpr bool reads = true;
  struct Part {
    Wide y, dy, inverse;  // 1 / y, or 0 where that has not all its digits
  };
  const Wide* y;
  const T* dy;
  double p;
  bool is_one, is_two;

  BroadcastNorm(const Wide* y, const T* dy, double p) : y(y), dy(dy), p(p), is_one(p == 1), is_two(p == 2) {}
  BARACUDA_HD Part part(int64_t element) const {
    Wide size = y[element];
    return {size, Wide(dy[element]), ((size > Wide(0x1p-120f)) & (size < Wide(0x1p120f))) ? 1 / size : Wide(0)};
  }
  BARACUDA_HD T at(const Part& part, T element) const {
    Wide x = Wide(element);
    if (is_one) return T(x != x ? x : part.dy * sign_of(x));
    Wide ratio = part.inverse != 0 ? x * part.inverse : x / part.y, slope = ratio;
    if (!is_two) slope = power_of(std::fabs(ratio), p - 1) * (x < 0 ? -1 : 1);
    return T(((x == 0) | (part.y == 0)) ? Wide(0) : part.dy * slope);
  }
};

// dy scale (x - mean), over y for the root, 0 where that is 0.
template <class T>
struct BroadcastVariance {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr bool reads = true;
  struct Part {
    Wide mean, scale;
  };
  const Wide* mean;
  const Wide* y;  // the root, read where that is asked for
  const T* dy;
  Wide divisor;
  bool root;

  BARACUDA_HD Part part(int64_t element) const {
    Wide value = root ? y[element] : Wide(0.5);
    Wide scale = divisor > 0 ? Wide(dy[element]) / divisor / value : std::numeric_limits<Wide>::quiet_NaN();
    return {mean[element], value == 0 ? Wide(0) : scale};
  }
  BARACUDA_HD T at(const Part& part, T x) const { return T((Wide(x) - part.mean) * part.scale); }
};

// The gradient of a trace: dx [batches, rows, middle, columns, inner], where column - row = offset dy's, elsewhere 0.
template <class T>
struct BroadcastTrace {
  using Element = T;
  const T* dy;  // [batches, middle, inner]
  int64_t rows, middle, columns, inner, offset;

  // V neighbors from `position` on in [middle, columns, inner].
  template <int V>
  BARACUDA_HD Vector<T, V> at(int64_t batch, int64_t row, int64_t position) const {
    Vector<T, V> out{};
    for (int k = 0; k < V; ++k) {
      int64_t column = position + k, i = 0;
      if (middle * inner > 1) {
        i = column % inner, column /= inner;
        i += column / columns * inner, column %= columns;
      }
      if (column == row + offset) out.lane[k] = dy[batch * middle * inner + i];
    }
    return out;
  }
};

}  // namespace baracuda
