// Reductions to norms.
#pragma once

#include "../power.h"
#include "lanes.h"

namespace baracuda {

// The root of the sum of squares, of which there are three sums, of great, middling and small magnitudes, each scaled
// so that nothing over- or underflows (Blue, A portable Fortran program to find the Euclidean norm, 1978).
template <class T>
struct ReduceNormTwo {
  using Element = T;
  using Wide = Comparable<T>;
  template <int V>
  struct State {
    Wide great[V], middle[V], small[V];
    BARACUDA_HD State<1> lane(int k) const { return {{great[k]}, {middle[k]}, {small[k]}}; }
    template <int n>
    BARACUDA_HD State<n> lanes(int first) const {
      State<n> s;
      for (int k = 0; k < n; ++k)
        s.great[k] = great[first + k], s.middle[k] = middle[first + k], s.small[k] = small[first + k];
      return s;
    }
  };
  static constexpr bool is_double = sizeof(Wide) == 8;
  static constexpr Wide most = is_double ? Wide(0x1p480) : Wide(0x1p47f),
                        least = is_double ? Wide(0x1p-511) : Wide(0x1p-63f),
                        shrink = is_double ? Wide(0x1p-600) : Wide(0x1p-96f),
                        grow = is_double ? Wide(0x1p600) : Wide(0x1p90f),
                        alone =
                            is_double ? Wide(0x1p-400) : Wide(0x1p-53f);  // compared with this small ones are nothing
  T* y;
  Wide* wide;  // y of 16-bit floats before it is rounded; null when nobody asks for it

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.great[k] = s.middle[k] = s.small[k] = 0;
  }
  template <int V, int n, class Elements>
  BARACUDA_HD void push(State<V>& s, const Elements& x) const {
#ifdef __CUDA_ARCH__
    // Most often the largest of the elements is so middling that compared with it small ones are nothing, and none is
    // great.
    constexpr Wide grown = is_double ? Wide(0x1p-440) : Wide(0x1p-43f);
    bool plain = true;
    for (int k = 0; k < V; ++k) {
      Wide hi =
          folded<0, n>([&](int i) { return std::fabs(Wide(x(i, k))); }, [](Wide a, Wide b) { return fmax(a, b); });
      plain &= (hi <= most) & (hi >= grown);
    }
    if (plain) {
      for (int k = 0; k < V; ++k) s.middle[k] += added<n>([&](int i) { return Wide(x(i, k)) * Wide(x(i, k)); });
      return;
    }
#endif
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) {
        Wide a = std::fabs(Wide(x(i, k)));
        Wide great = value_if(!(a <= most), a * shrink), small = value_if(a < least, a * grow);
        Wide middle = value_if((a <= most) & (a >= least), a);
        s.great[k] += great * great, s.middle[k] += middle * middle, s.small[k] += small * small;
      }
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k)
      s.great[k] += other.great[k], s.middle[k] += other.middle[k], s.small[k] += other.small[k];
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t element) const {
    Vector<T, V> out;
    Wide value[V];
    for (int k = 0; k < V; ++k) out.lane[k] = T(value[k] = root(s.great[k], s.middle[k], s.small[k]));
    store<V>(y + element, out);
    if constexpr (is_half<T>) store_unrounded(wide, element, value);
  }

 private:
  static BARACUDA_HD Wide root(Wide great, Wide middle, Wide small) {
    if (!(great == 0)) return std::sqrt(great + middle * shrink * shrink) / shrink;
    if (!(middle <= alone)) return std::sqrt(middle);
    return std::sqrt(small + middle * grow * grow) / grow;
  }
};

// a^p; on CUDA not in the place of each of many calls.
template <class Wide>
#ifdef __CUDACC__
__host__ __device__ __noinline__
#else
BARACUDA_HD
#endif
    Wide called_power(Wide a, double p) {
  return power_of(a, p);
}

// (sum of |x|^p)^(1/p): the largest magnitude, for p < 0 the smallest, and the sum of the powers of the ratios to it,
// which are at most 1. Where it is 0, infinite or NaN it is the result.
template <class T>
struct ReduceNorm {
  using Element = T;
  using Wide = Comparable<T>;
  using Limits = std::numeric_limits<Wide>;
  template <int V>
  using State = LanePair<Wide, Wide, V>;
  T* y;
  Wide* wide;  // y of 16-bit floats before it is rounded; null when nobody asks for it
  double p;

  template <int V>
  BARACUDA_HD void none(State<V>& s) const {
    for (int k = 0; k < V; ++k) s.first[k] = p > 0 ? Wide(0) : Limits::infinity(), s.second[k] = 0;
  }
  BARACUDA_HD Wide extreme(Wide a, Wide b) const { return ((p > 0 ? b > a : b < a) | (b != b)) ? b : a; }
  static BARACUDA_HD bool is_scale(Wide a) { return (a > 0) & (a <= Limits::max()); }
  template <int V, int n, class Elements>
  BARACUDA_HD void push(State<V>& s, const Elements& x) const {
    Wide scale[V];
    for (int k = 0; k < V; ++k) scale[k] = s.first[k];
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) scale[k] = extreme(scale[k], std::fabs(Wide(x(i, k))));
    for (int k = 0; k < V; ++k) {
      Wide before = s.first[k];
      s.first[k] = scale[k], scale[k] = is_scale(scale[k]) ? scale[k] : Wide(1);
      s.second[k] = raised(s.second[k], before / scale[k]);
    }
    BARACUDA_UNROLL
    for (int i = 0; i < n; ++i)
      for (int k = 0; k < V; ++k) s.second[k] += called_power(std::fabs(Wide(x(i, k))) / scale[k], p);
  }
  template <int V>
  BARACUDA_HD void merge(State<V>& s, const State<V>& other) const {
    for (int k = 0; k < V; ++k) {
      Wide most = extreme(s.first[k], other.first[k]), scale = is_scale(most) ? most : Wide(1);
      s.second[k] = raised(s.second[k], s.first[k] / scale) + raised(other.second[k], other.first[k] / scale);
      s.first[k] = most;
    }
  }
  template <int V>
  BARACUDA_HD void finish(const State<V>& s, int64_t element) const {
    Vector<T, V> out;
    Wide value[V];
    for (int k = 0; k < V; ++k) {
      Wide most = s.first[k];
      value[k] = is_scale(most) ? most * called_power(s.second[k], 1 / p) : most;
      out.lane[k] = T(value[k]);
    }
    store<V>(y + element, out);
    if constexpr (is_half<T>) store_unrounded(wide, element, value);
  }

 private:
  BARACUDA_HD Wide raised(Wide sum, Wide ratio) const { return sum == 0 ? Wide(0) : sum * called_power(ratio, p); }
};

}  // namespace baracuda
