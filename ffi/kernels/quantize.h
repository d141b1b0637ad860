// Affine quantization: q = clamp(round(x / scale) + zero, low, high) and x = (q - zero) * scale, and their derivatives.
//
// Elements come in blocks that share a scale and a zero point. A functor has three steps: `block<K>` reads the scales
// of K lanes (or one for all), `read<V>` reads V neighboring elements, and `write` does them with the scales. A driver
// may read much before it writes.
#pragma once

#include "code.h"

namespace baracuda {

template <class Wide>
struct QuantizedRange {
  Wide low, high;

  // NaN, which has no code, gets the zero point's.
  BARACUDA_HD Wide clamp(Wide q, Wide zero) const {
    q = q == q ? q : zero;
    Wide bounded = q < low ? low : q;
    return bounded > high ? high : bounded;
  }
  BARACUDA_HD bool holds(Wide q) const { return (q >= low) & (q <= high); }
};

// The code of x, as a float.
template <class Wide>
BARACUDA_HD Wide code(Wide x, Wide scale, Wide zero, const QuantizedRange<Wide>& range) {
  return range.clamp(std::rint(x / scale) + zero, zero);
}

#ifdef __CUDACC__
// On CUDA a division costs more than the memory's traffic. There the product with the reciprocal is mended by what it
// leaves over (Markstein, Computation of elementary functions on the IBM RISC System/6000 processor, 1990). Before its
// last rounding that is within 2^-47 of the quotient, so next to all are rounded as the quotient is. Where that may
// fail the result is NaN: if something overflows, is NaN itself, or the reciprocal is NaN, as for scales that are not
// normal.
template <class Wide>
__device__ __forceinline__ Wide mended(Wide x, Wide scale, Wide inverse) {
  Wide ratio = x * inverse;
  return fma(fma(-ratio, scale, x), inverse, ratio);
}

// NaN also where the zero point is so large that quantized values are no longer found by adding `integer_shift`.
template <class Wide>
__device__ __forceinline__ Wide reciprocal(Wide scale, Wide zero) {
  Wide size = fabs(scale), inverse;
  if constexpr (std::is_same_v<Wide, float>) {
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(inverse) : "f"(scale));
    inverse = fma(fma(-scale, inverse, 1.f), inverse, inverse);
  } else {
    inverse = 1 / scale;
  }
  return ((size > Wide(1e-12)) & (size < Wide(1e12)) & (fabs(zero) < Wide(1 << 20))) ? inverse : Wide(NAN);
}

// Added to a number below 2^22 it leaves no bits for a fraction: that rounds it, and puts the integer in the low bits.
// Instructions that do so run at an eighth of the rate of additions.
template <class Wide>
inline constexpr Wide integer_shift = sizeof(Wide) == 4 ? Wide(0x1.8p23) : Wide(0x1.8p52);

// Out of line, since they are long and seldom needed.
template <class Wide>
__noinline__ __device__ Wide slow_quotient(Wide x, Wide scale) {
  return x / scale;
}
template <class Wide>
__noinline__ __device__ Wide slow_code(Wide x, Wide scale, Wide zero, const QuantizedRange<Wide> range) {
  return code(x, scale, zero, range);
}
#endif

// What K lanes are scaled by.
template <class Wide, int K>
struct Scales {
  Wide scale[K], zero[K];
#ifdef __CUDACC__
  Wide inverse[K];  // of the scale, or nearly
#endif
};

template <class Wide>
struct ScaleArrays {
  const Wide* scale;
  const int32_t* zero;  // null where all are 0

  template <int K>
  BARACUDA_HD Scales<Wide, K> at(int64_t index) const {
    Scales<Wide, K> s;
    Vector<Wide, K> scales = load<K>(scale + index);
    Vector<int32_t, K> zeros{};
    if (zero) zeros = load<K>(zero + index);
    for (int k = 0; k < K; ++k) {
      s.scale[k] = scales.lane[k];
      s.zero[k] = Wide(zeros.lane[k]);
#ifdef __CUDACC__
      s.inverse[k] = reciprocal(s.scale[k], s.zero[k]);
#endif
    }
    return s;
  }
};

// V values over their scales.
template <class Wide, int V, int K, class T>
BARACUDA_HD Vector<Wide, V> divided(const Vector<T, V>& x, const Scales<Wide, K>& s) {
  Vector<Wide, V> out;
#ifdef __CUDA_ARCH__
  bool sure = true;
#pragma unroll
  for (int k = 0; k < V; ++k) {
    Wide value = Wide(x.lane[k]), inverse = s.inverse[k % K], ratio = mended(value, s.scale[k % K], inverse);
    sure &= (fabs(ratio) >= Wide(1e-12)) | (ratio == 0);  // below, what was left over may have been subnormal
    out.lane[k] = copysign(ratio, value * inverse);       // that of a zero is lost in the sum
  }
  if (sure) return out;
#pragma unroll
  for (int k = 0; k < V; ++k) out.lane[k] = slow_quotient(Wide(x.lane[k]), s.scale[k % K]);
#else
  for (int k = 0; k < V; ++k) out.lane[k] = Wide(x.lane[k]) / s.scale[k % K];
#endif
  return out;
}

// V values quantized, as floats.
template <class Wide, int V, int K, class T>
BARACUDA_HD Vector<Wide, V> quantized_of(const Vector<T, V>& x, const Scales<Wide, K>& s,
                                         const QuantizedRange<Wide>& range) {
  Vector<Wide, V> q;
#ifdef __CUDA_ARCH__
  bool sure = (range.low > Wide(-(1 << 20))) & (range.high < Wide(1 << 20));
#pragma unroll
  for (int k = 0; k < V; ++k) {
    Wide zero = s.zero[k % K], ratio = mended(Wide(x.lane[k]), s.scale[k % K], s.inverse[k % K]);
    sure &= ratio == ratio;
    // The bounds are integers: clamped before it is rounded, the ratio comes to the same.
    ratio = fmin(fmax(ratio, range.low - zero), range.high - zero);
    q.lane[k] = (ratio + integer_shift<Wide>)-(integer_shift<Wide> - zero);
  }
  if (sure) return q;
#pragma unroll
  for (int k = 0; k < V; ++k) q.lane[k] = slow_code(Wide(x.lane[k]), s.scale[k % K], s.zero[k % K], range);
#else
  for (int k = 0; k < V; ++k) q.lane[k] = code(Wide(x.lane[k]), s.scale[k % K], s.zero[k % K], range);
#endif
  return q;
}

// A code as an integer.
template <class Wide>
BARACUDA_HD int32_t as_integer(Wide q) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<Wide, float>)
    return bit_cast<int32_t>(q + integer_shift<float>) - bit_cast<int32_t>(integer_shift<float>);
#endif
  return int32_t(q);
}

// What the functors over elements of T share.
template <class T, int width = 1>
struct Scaled {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr int least_width = width;
  static constexpr bool works_on_parameters = true;  // they have reciprocals
  ScaleArrays<Wide> scales;

  template <int K>
  BARACUDA_HD Scales<Wide, K> block(int64_t index) const {
    return scales.template at<K>(index);
  }
};

template <class T, class Code>
struct Quantize : Scaled<T, CodeArray<Code>::least_width> {
  using Wide = Accumulator<T>;
  using Array = CodeArray<Code>;
  const T* x;
  typename Array::Memory* quantized;
  QuantizedRange<Wide> range;

  template <int V>
  BARACUDA_HD Vector<T, V> read(int64_t element) const {
    return load<V>(x + element);
  }
  template <int V, int K>
  BARACUDA_HD void write(int64_t element, const Vector<T, V>& values, const Scales<Wide, K>& s) const {
    Vector<typename Array::Lane, V> out;
    if constexpr (Array::is_float) {
      Vector<Wide, V> ratio = divided(values, s);
      for (int k = 0; k < V; ++k) out.lane[k] = Code(ratio.lane[k]);
    } else {
      Vector<Wide, V> q = quantized_of(values, s, range);
      for (int k = 0; k < V; ++k) out.lane[k] = typename Array::Lane(as_integer(q.lane[k]));
    }
    Array::template put<V>(quantized, element, out);
  }
};

template <class T, class Code>
struct Dequantize : Scaled<T, CodeArray<Code>::least_width> {
  using Wide = Accumulator<T>;
  using Array = CodeArray<Code>;
  static constexpr bool works_on_parameters = !is_half<T>;  // as measured; there is little work
  const typename Array::Memory* quantized;
  T* y;

  template <int V>
  BARACUDA_HD Vector<typename Array::Lane, V> read(int64_t element) const {
    return Array::template get<V>(quantized, element);
  }
  template <int V, int K>
  BARACUDA_HD void write(int64_t element, const Vector<typename Array::Lane, V>& in, const Scales<Wide, K>& s) const {
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) out.lane[k] = T((Wide(in.lane[k]) - s.zero[k % K]) * s.scale[k % K]);
    store<V>(y + element, out);
  }
};

// Quantized and dequantized at once.
template <class T>
struct FakeQuantize : Scaled<T> {
  using Wide = Accumulator<T>;
  const T* x;
  T* y;
  QuantizedRange<Wide> range;

  template <int V>
  BARACUDA_HD Vector<T, V> read(int64_t element) const {
    return load<V>(x + element);
  }
  template <int V, int K>
  BARACUDA_HD void write(int64_t element, const Vector<T, V>& values, const Scales<Wide, K>& s) const {
    Vector<Wide, V> q = quantized_of(values, s, range);
    Vector<T, V> out;
    for (int k = 0; k < V; ++k) {
      Wide zero = s.zero[k % K];
      out.lane[k] = T((q.lane[k] - zero) * s.scale[k % K]);
    }
    store<V>(y + element, out);
  }
};

// The straight-through gradient: dy, over the scale where `divides`, for elements whose code is inside the range.
template <class T, bool divides>
struct QuantizeBackward : Scaled<T> {
  using Wide = Accumulator<T>;
  const T* x;
  const T* dy;
  T* dx;
  QuantizedRange<Wide> range;

  template <int V>
  struct Elements {
    Vector<T, V> x, dy;
  };
  template <int V>
  BARACUDA_HD Elements<V> read(int64_t element) const {
    return {load<V>(x + element), load<V>(dy + element)};
  }
  template <int V, int K>
  BARACUDA_HD void write(int64_t element, const Elements<V>& in, const Scales<Wide, K>& s) const {
    Vector<Wide, V> ratio = divided(in.x, s), part;
    if constexpr (divides)
      part = divided(in.dy, s);
    else
      for (int k = 0; k < V; ++k) part.lane[k] = Wide(in.dy.lane[k]);
    Vector<T, V> out;
    for (int k = 0; k < V; ++k)
      out.lane[k] = T(value_if(range.holds(std::rint(ratio.lane[k]) + s.zero[k % K]), part.lane[k]));
    store<V>(dx + element, out);
  }
};

// A row's own scale: a reduction over the row, then its quantized values. Symmetric: scale = max |x| / high and no zero
// point. Asymmetric: [min, max], made to hold 0, becomes [low, high]. A row of zeros has scale 1.
template <class T, class Code>
struct DynamicQuantize {
  using Element = T;
  using Wide = Accumulator<T>;
  static constexpr int least_width = CodeArray<Code>::least_width;
#ifdef __CUDACC__
  using Key = Wide;
#else
  // Their bits: of numbers above 0 those are in order, and NaN is the largest. Loops over integers vectorize.
  using Key = std::conditional_t<sizeof(Wide) == 8, int64_t, int32_t>;
#endif
  struct State {
    Key low, high;
  };
  Quantize<T, Code> quantize;  // without scales
  Wide* scale;
  int32_t* zero;  // null where symmetric

  // NaN wins.
  template <class Number>
  static BARACUDA_HD Number larger(Number a, Number b) {
#ifdef __CUDA_ARCH__
    if constexpr (std::is_same_v<Wide, float>) {
      float most;
      asm("max.NaN.f32 %0, %1, %2;" : "=f"(most) : "f"(a), "f"(b));
      return most;
    }
#endif
    return ((b > a) | (b != b)) ? b : a;
  }

  static BARACUDA_HD Key key(Wide value) { return bit_cast<Key>(value); }

  BARACUDA_HD State start() const { return {}; }
  template <int V>
  BARACUDA_HD void push(State& s, const Vector<T, V>& values) const {
#ifdef __CUDA_ARCH__
    constexpr bool has_pairs = is_half<T> && V > 1;
#else
    constexpr bool has_pairs = false;
#endif
    if constexpr (has_pairs) {  // two to an instruction
#ifdef __CUDA_ARCH__
      using Pair = std::conditional_t<std::is_same_v<T, Half>, __half2, __nv_bfloat162>;
      const Pair* pairs = reinterpret_cast<const Pair*>(values.lane);
      Pair high = pairs[0], low = pairs[0];
#pragma unroll
      for (int k = 1; k < V / 2; ++k) high = __hmax2_nan(high, pairs[k]), low = __hmin2_nan(low, pairs[k]);
      s.high = larger(larger(s.high, Wide(high.x)), Wide(high.y));
      s.low = larger(larger(s.low, -Wide(low.x)), -Wide(low.y));
#endif
    } else {
      for (int k = 0; k < V; ++k) {
        Wide value = Wide(values.lane[k]);
        s.high = larger(s.high, key(value));
        s.low = larger(s.low, key(-value));  // of the smallest value, the opposite
      }
    }
  }
  BARACUDA_HD void merge(State& s, const State& other) const {
    s.high = larger(s.high, other.high), s.low = larger(s.low, other.low);
  }
  BARACUDA_HD Scales<Wide, 1> block(const State& s) const {
    const QuantizedRange<Wide>& range = quantize.range;
    Wide high = bit_cast<Wide>(s.high), low = bit_cast<Wide>(s.low);
    Scales<Wide, 1> out;
    Wide size;
    if (zero == nullptr)
      size = larger(high, low) / range.high;
    else  // 16-bit floats: the sum does not overflow
      size = (high / 2 + low / 2) / ((range.high - range.low) / 2);
    out.scale[0] = size == Wide(0) ? Wide(1) : size;
    out.zero[0] = Wide(0);
    if (zero != nullptr) {
      Wide nearest = std::rint(range.low + low / out.scale[0]);
      out.zero[0] = range.clamp(nearest, range.clamp(Wide(0), Wide(0)));
    }
#ifdef __CUDACC__
    out.inverse[0] = reciprocal(out.scale[0], out.zero[0]);
#endif
    return out;
  }
  BARACUDA_HD void finish(int64_t row, const Scales<Wide, 1>& s) const {
    scale[row] = s.scale[0];
    if (zero) zero[row] = int32_t(s.zero[0]);
  }
  template <int V>
  BARACUDA_HD Vector<T, V> read(int64_t element) const {
    return quantize.template read<V>(element);
  }
  template <int V>
  BARACUDA_HD void write(int64_t element, const Vector<T, V>& values, const Scales<Wide, 1>& s) const {
    quantize.write(element, values, s);
  }
};

}  // namespace baracuda
