// The variance of a segment's rows, or its root, and what a cotangent of it gives them.
#pragma once

#include "inverse_of_count.h"
#include "segment.h"

namespace baracuda {

// 1 / count, of a power of two, without a division.
template <class Wide>
BARACUDA_HD Wide inverse_of_power(uint32_t count) {
  if constexpr (sizeof(Wide) == 8)
    return bit_cast<Wide>(0x7fe0000000000000u - bit_cast<uint64_t>(Wide(count)));
  else
    return bit_cast<Wide>(0x7f000000u - bit_cast<uint32_t>(Wide(count)));
}

// The root and its inverse. CUDA's own has a call for x that is subnormal or large: wherever a segment may end, it
// would take registers from rows on their way. One step of Newton's rule rounds what the instruction gives.
template <class Wide>
BARACUDA_HD Wide root_and_inverse(Wide x, Wide& inverse) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Wide) == 4) {
    inverse = rsqrtf(x);
    Wide root = x * inverse, missing = fmaf(-root, root, x);
    return x == 0 || x > std::numeric_limits<Wide>::max() ? x : fmaf(missing, 0.5f * inverse, root);
  }
#endif
  Wide root = std::sqrt(x);
  inverse = 1 / root;
  return root;
}

// Sums of differences from a base, which is near the rows: their digits are what squares need. The base is the first
// row; before the 5th row, the 17th, the 65th and so on it becomes the mean of the rows so far. At any time it is then
// the mean of at least a quarter of them, so that squares from it are at most four times those from the mean, and their
// difference loses two bits, however far from 0 the rows are, and however far from the others the first one is. A row
// takes a difference, a sum and a product. States are merged by their means (Chan, Golub and LeVeque, Updating formulae
// and a pairwise algorithm for computing sample variances, 1979). Equal rows give exactly 0.
template <class T>
struct SegmentVariance {
  using Element = T;
  using Wide = Accumulator<T>;
  template <int V>
  struct State {
    Wide base[V], sum[V], squares[V];  // a sum that is not finite is of rows that are not: then the result is NaN
    uint32_t count;
  };
  T* y;
  Wide* mean;   // null when nobody asks for them
  Wide* scale;  // what dy (x - mean) is multiplied by in the gradient
  Wide ddof;
  bool root;
  T empty_value;

  // squares - less, of which rounding leaves no less than 0. Squares that overflowed stay infinite.
  static BARACUDA_HD Wide above(Wide squares, Wide less) {
    Wide left = squares - less;
    return left > 0 ? left : squares > std::numeric_limits<Wide>::max() ? squares : Wide(0);
  }
  template <int V>
  BARACUDA_HD void start(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.base[k] = 0, s.sum[k] = 0, s.squares[k] = 0;
    s.count = 0;
  }
  // The mean of so many rows, a power of four, as the base; of none, the row that comes.
  template <int V>
  static BARACUDA_HD void set_base(State<V>& s, const T* x) {
    if (s.count == 0) {
      for (int k = 0; k < V; ++k) s.base[k] = Wide(x[k]);
      return;
    }
    Wide count = Wide(s.count), inverse = inverse_of_power<Wide>(s.count);
    for (int k = 0; k < V; ++k) {
      Wide base = s.base[k] + s.sum[k] * inverse, step = base - s.base[k], left = s.sum[k] - count * step;
      s.squares[k] = above(s.squares[k], step * (s.sum[k] + left));
      s.sum[k] = left, s.base[k] = base;
    }
  }
  template <int V>
  BARACUDA_HD void push(State<V>& s, const T* x, uint32_t) const {
    constexpr uint32_t odd_powers_and_one = 0xaaaaaaabu;
    if ((s.count & (s.count - 1)) == 0 && (s.count & odd_powers_and_one) == 0) set_base<V>(s, x);
    for (int k = 0; k < V; ++k) {
      Wide difference = Wide(x[k]) - s.base[k];
      s.sum[k] += difference, s.squares[k] += difference * difference;
    }
    ++s.count;
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& later) const {
    if (later.count == 0) return;
    if (s.count == 0) {
      s = later;
      return;
    }
    Wide here = Wide(s.count), there = Wide(later.count), total = here + there;
    Wide of_here = inverse_of_count(here), of_there = inverse_of_count(there);
    Wide share = there * inverse_of_count(total), weight = here * share;
    for (int k = 0; k < V; ++k) {
      // Means, from the base of each.
      Wide a = s.sum[k] * of_here, b = later.sum[k] * of_there;
      Wide apart = (later.base[k] - s.base[k]) + (b - a), offset = a + apart * share;
      Wide squares =
          (above(s.squares[k], s.sum[k] * a) + above(later.squares[k], later.sum[k] * b)) + apart * (apart * weight);
      Wide base = s.base[k] + offset, left = offset - (base - s.base[k]);
      s.base[k] = base, s.sum[k] = total * left, s.squares[k] = squares + s.sum[k] * left;
    }
    s.count += later.count;
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, const SegmentRows&, int64_t, int64_t element) const {
    Wide count = Wide(s.count), rest = count - ddof, of_count = inverse_of_count(count),
         of_rest = rest > 0 ? inverse_of_count(rest) : Wide(0);
    Vector<T, V> out;
    Vector<Wide, V> center, slope;
    for (int k = 0; k < V; ++k) {
      Wide offset = s.sum[k] * of_count, value = above(s.squares[k], s.sum[k] * offset) * of_rest;
      bool is_nan = !(offset - offset == 0) || !(rest > 0);
      center.lane[k] = s.base[k] + offset, slope.lane[k] = 2 * of_rest;
      if (root) {
        Wide inverse;
        value = root_and_inverse(value, inverse);
        slope.lane[k] = value == 0 ? Wide(0) : inverse * of_rest;
      }
      out.lane[k] = T(is_nan ? std::numeric_limits<Wide>::quiet_NaN() : value);
    }
    store<V>(y + element, out);
    if (mean == nullptr) return;
    store<V>(mean + element, center), store<V>(scale + element, slope);
  }
  template <int V>
  BARACUDA_HD void empty(int64_t, int64_t element) const {
    fill<V>(y + element, empty_value);
    if (mean != nullptr) fill<V>(mean + element, Wide(0)), fill<V>(scale + element, Wide(0));
  }
};

// dy scale (x - mean); 0 where the scale is, whatever dy is.
template <class T>
struct SegmentVarianceBackward : SegmentSumBackward<T> {
  using Wide = Accumulator<T>;
  template <int V>
  struct Part {
    Vector<Wide, V> mean, slope;
  };
  const T* x;
  const Wide *mean, *scale;

  template <int V>
  BARACUDA_HD Part<V> part(int64_t, int64_t element) const {
    Part<V> part{load<V>(mean + element), load<V>(scale + element)};
    Vector<T, V> dy = load<V>(this->dy + element);
    for (int k = 0; k < V; ++k)
      part.slope.lane[k] = part.slope.lane[k] == 0 ? Wide(0) : Wide(dy.lane[k]) * part.slope.lane[k];
    return part;
  }
  template <int V>
  BARACUDA_HD Vector<T, V> row(const Part<V>& part, uint32_t, int64_t x_element) const {
    Vector<T, V> dx = load<V>(x + x_element);
    for (int k = 0; k < V; ++k) dx.lane[k] = T((Wide(dx.lane[k]) - part.mean.lane[k]) * part.slope.lane[k]);
    return dx;
  }
};

}  // namespace baracuda
