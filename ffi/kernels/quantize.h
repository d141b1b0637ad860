// Affine quantisation: q = clamp(round(x / scale) + zero, low, high) and x = (q - zero) * scale, and their derivatives.
//
// Cells come in blocks that share a scale and a zero point. A functor has two steps: `block<K>` reads the scales of K
// lanes (or one for all), and `cells<V>` does V neighbouring cells with them.
#pragma once

#include "code.h"

namespace baracuda {

// What K lanes are scaled by.
template <class Wide, int K>
struct Scales {
  Wide scale[K], zero[K];
#ifdef __CUDACC__
  Wide inverse[K];  // NaN where it is not a normal number
#endif
};

template <class Wide>
struct ScaleArrays {
  const Wide* scale;
  const int32_t* zero;  // null where all are 0

  template <int K>
  BARACUDA_HD Scales<Wide, K> at(int64_t index) const {
    Scales<Wide, K> s;
    for (int k = 0; k < K; ++k) {
      s.scale[k] = scale[index + k];
      s.zero[k] = zero ? Wide(zero[index + k]) : Wide(0);
#ifdef __CUDACC__
      s.inverse[k] = reciprocal(s.scale[k]);
#endif
    }
    return s;
  }
#ifdef __CUDACC__
  static BARACUDA_HD Wide reciprocal(Wide scale) {
    Wide size = std::fabs(scale);
    return size > Wide(1e-30) && size < Wide(1e30) ? Wide(1) / scale : std::numeric_limits<Wide>::quiet_NaN();
  }
#endif
};

// x / scale to the nearest integer, ties to even. On CUDA a product with the reciprocal decides where it is not close
// to a tie: a division would cost more than the memory's traffic.
template <class Wide, int K>
BARACUDA_HD Wide rounded_ratio(Wide x, const Scales<Wide, K>& s, int k) {
#ifdef __CUDA_ARCH__
  Wide ratio = x * s.inverse[k % K], nearest = rint(ratio);
  // Beyond 2^12 every code saturates, and below it the product is right to 2^-11.
  if (!(fabs(ratio - nearest) < Wide(0.499)) || !(fabs(ratio) < Wide(4096))) nearest = rint(x / s.scale[k % K]);
  return nearest;
#else
  return std::rint(x / s.scale[k % K]);
#endif
}

template <class Wide>
struct CodeRange {
  Wide low, high;

  // NaN, which has no code, gets the zero point's.
  BARACUDA_HD Wide clamp(Wide q, Wide zero) const {
    q = q == q ? q : zero;
    return q < low ? low : q > high ? high : q;
  }
  BARACUDA_HD bool holds(Wide q) const { return (q >= low) & (q <= high); }
};

template <class T, class Code>
struct Quantize {
  using Element = T;
  using Wide = Accumulator<T>;
  using Array = CodeArray<Code>;
  static constexpr int least_width = Array::least_width;
  const T* x;
  typename Array::Memory* codes;
  ScaleArrays<Wide> scales;
  CodeRange<Wide> range;

  template <int K>
  BARACUDA_HD Scales<Wide, K> block(int64_t index) const {
    return scales.template at<K>(index);
  }
  template <int V, int K>
  BARACUDA_HD void cells(int64_t cell, const Scales<Wide, K>& s) const {
    put(cell, load<V>(x + cell), s);
  }
  template <int V, int K>
  BARACUDA_HD void put(int64_t cell, const Vector<T, V>& values, const Scales<Wide, K>& s) const {
    Vector<typename Array::Lane, V> out;
    for (int k = 0; k < V; ++k) {
      Wide value = Wide(values.lane[k]);
      if constexpr (Array::is_float)
        out.lane[k] = Code(value / s.scale[k % K]);
      else
        out.lane[k] =
            typename Array::Lane(int32_t(range.clamp(rounded_ratio(value, s, k) + s.zero[k % K], s.zero[k % K])));
    }
    Array::template put<V>(codes, cell, out);
  }
};

template <class T, class Code>
struct Dequantize {
  using Element = T;
  using Wide = Accumulator<T>;
  using Array = CodeArray<Code>;
  static constexpr int least_width = Array::least_width;
  const typename Array::Memory* codes;
  T* y;
  ScaleArrays<Wide> scales;

  template <int K>
  BARACUDA_HD Scales<Wide, K> block(int64_t index) const {
    return scales.template at<K>(index);
  }
  template <int V, int K>
  BARACUDA_HD void cells(int64_t cell, const Scales<Wide, K>& s) const {
    auto in = Array::template get<V>(codes, cell);
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T((Wide(in.lane[k]) - s.zero[k % K]) * s.scale[k % K]);
    store<V>(y + cell, out);
  }
};

// Quantised and dequantised at once.
template <class T>
struct FakeQuantize {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr int least_width = 1;
  const T* x;
  T* y;
  ScaleArrays<Wide> scales;
  CodeRange<Wide> range;

  template <int K>
  BARACUDA_HD Scales<Wide, K> block(int64_t index) const {
    return scales.template at<K>(index);
  }
  template <int V, int K>
  BARACUDA_HD void cells(int64_t cell, const Scales<Wide, K>& s) const {
    Vector<T, V> values = load<V>(x + cell);
    for (int k = 0; k < V; ++k) {
      Wide zero = s.zero[k % K];
      Wide q = range.clamp(rounded_ratio(Wide(values.lane[k]), s, k) + zero, zero);
      values.lane[k] = T((q - zero) * s.scale[k % K]);
    }
    store<V>(y + cell, values);
  }
};

// The straight-through gradient: dy, over the scale where `divides`, for cells whose code is inside the range.
template <class T>
struct QuantizeBackward {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr int least_width = 1;
  const T* x;
  const T* dy;
  T* dx;
  ScaleArrays<Wide> scales;
  CodeRange<Wide> range;
  bool divides;

  template <int K>
  BARACUDA_HD Scales<Wide, K> block(int64_t index) const {
    return scales.template at<K>(index);
  }
  template <int V, int K>
  BARACUDA_HD void cells(int64_t cell, const Scales<Wide, K>& s) const {
    Vector<T, V> values = load<V>(x + cell), change = load<V>(dy + cell);
    for (int k = 0; k < V; ++k) {
      bool inside = range.holds(rounded_ratio(Wide(values.lane[k]), s, k) + s.zero[k % K]);
      Wide part = Wide(change.lane[k]);
      if (divides) part /= s.scale[k % K];
      change.lane[k] = inside ? T(part) : T{};
    }
    store<V>(dx + cell, change);
  }
};

// A row's own scale: a reduction over the row, then its codes. Symmetric: scale = max |x| / high and no zero point.
// Asymmetric: [min, max], made to hold 0, becomes [low, high]. A row of zeros has scale 1.
template <class T, class Code>
struct DynamicQuantize {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr int least_width = CodeArray<Code>::least_width;
  struct State {
    Wide low, high;
  };
  Quantize<T, Code> quantize;  // without scales
  Wide* scale;
  int32_t* zero;  // null where symmetric

  static BARACUDA_HD Wide larger(Wide a, Wide b) { return (b > a) | (b != b) ? b : a; }

  BARACUDA_HD State start() const { return {Wide(0), Wide(0)}; }
  template <int V>
  BARACUDA_HD void push(State& s, const Vector<T, V>& values) const {
    for (int k = 0; k < V; ++k) {
      Wide value = Wide(values.lane[k]);
      s.high = larger(s.high, value);
      s.low = larger(s.low, -value);  // of the least value, the opposite
    }
  }
  BARACUDA_HD void merge(State& s, const State& other) const {
    s.high = larger(s.high, other.high);
    s.low = larger(s.low, other.low);
  }
  BARACUDA_HD Scales<Wide, 1> block(const State& s) const {
    const CodeRange<Wide>& range = quantize.range;
    Scales<Wide, 1> out;
    Wide size;
    if (zero == nullptr)
      size = larger(s.high, s.low) / range.high;
    else  // halves: the sum does not overflow
      size = (s.high / 2 + s.low / 2) / ((range.high - range.low) / 2);
    out.scale[0] = size == Wide(0) ? Wide(1) : size;
    out.zero[0] = Wide(0);
    if (zero != nullptr) {
      Wide nearest = std::rint(range.low + s.low / out.scale[0]);
      out.zero[0] = range.clamp(nearest, range.clamp(Wide(0), Wide(0)));
    }
#ifdef __CUDACC__
    out.inverse[0] = ScaleArrays<Wide>::reciprocal(out.scale[0]);
#endif
    return out;
  }
  BARACUDA_HD void finish(int64_t row, const Scales<Wide, 1>& s) const {
    scale[row] = s.scale[0];
    if (zero) zero[row] = int32_t(s.zero[0]);
  }
  template <int V>
  BARACUDA_HD void write(int64_t cell, const Vector<T, V>& values, const Scales<Wide, 1>& s) const {
    quantize.template put<V>(cell, values, s);
  }
};

}  // namespace baracuda
