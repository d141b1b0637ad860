// The elements of an image around a position, with their weights, and the derivatives of these in the position.
#pragma once

#include "rounded.h"

// Before a loop of few steps, whose arrays then are registers.
#ifdef __CUDACC__
#define BARACUDA_UNROLLED _Pragma("unroll")
#else
#define BARACUDA_UNROLLED
#endif

namespace baracuda {

enum class SamplePadding : int { zeros, border, reflection };

// K elements along an axis: 1, the nearest; 2, of linear interpolation; 4, of cubics. An index of -1 is no element.
template <class Sum, int K>
struct AxisSample {
  int32_t index[K];
  Sum weight[K], slope[K];  // and its derivative in the grid
};

// An axis of n elements. The grid's -1 and 1 are the centers of the outermost elements, or else the image's edges.
template <class Sum, int K>
struct SampledAxis {
  int32_t n;
  SamplePadding padding;
  bool align_corners;

  BARACUDA_HD AxisSample<Sum, K> at(Sum grid) const {
    AxisSample<Sum, K> found;
    Sum scale = align_corners ? Sum(n - 1) / 2 : Sum(n) / 2;
    Sum position = align_corners ? rounded_product(grid + 1, scale) : (rounded_product(grid + 1, Sum(n)) - 1) / 2;
    if constexpr (K == 1) {
      Sum slope = 1;
      found.index[0] = index_of(std::rint(padded(position, slope)));
      found.weight[0] = 1, found.slope[0] = 0;
    } else if constexpr (K == 2) {
      position = padded(position, scale);
      Sum first = std::floor(position), after = position - first;
      found.index[0] = index_of(first), found.index[1] = index_of(first + 1);
      found.weight[0] = 1 - after, found.weight[1] = after;
      found.slope[0] = -scale, found.slope[1] = scale;
    } else {
      // Each element is brought into the image by itself, its weight being that of where it was.
      Sum first = std::floor(position), after = position - first, before = 1 - after;
      BARACUDA_UNROLLED
      for (int k = 0; k < K; ++k) {
        Sum slope = 1;
        found.index[k] = index_of(padded(first + Sum(k - 1), slope));
      }
      found.weight[0] = far(after + 1), found.weight[1] = near(after);
      found.weight[2] = near(before), found.weight[3] = far(before + 1);
      found.slope[0] = far_slope(after + 1) * scale, found.slope[1] = near_slope(after) * scale;
      found.slope[2] = -near_slope(before) * scale, found.slope[3] = -far_slope(before + 1) * scale;
    }
    return found;
  }

 private:
  // NaN is none.
  BARACUDA_HD int32_t index_of(Sum position) const {
    return position >= 0 && position <= Sum(n - 1) ? int32_t(position) : -1;
  }

  // The position in the image; its slope is multiplied by that of what moves it, which is 0 at a border.
  BARACUDA_HD Sum padded(Sum position, Sum& slope) const {
    if (padding == SamplePadding::zeros) return position;
    if (padding == SamplePadding::reflection) position = reflected(position, slope);
    bool is_inside = position > 0 && position < Sum(n - 1);
    slope = is_inside ? slope : Sum(0);
    return is_inside ? position : position > 0 ? Sum(n - 1) : Sum(0);
  }

  // About the centers of the outermost elements, or about the image's edges.
  BARACUDA_HD Sum reflected(Sum position, Sum& slope) const {
    Sum low = align_corners ? Sum(0) : Sum(-0.5), span = align_corners ? Sum(n - 1) : Sum(n);
    if (span == 0) {
      slope = 0;
      return 0;
    }
    if (position < low) slope = -slope;
    Sum distance = position < low ? low - position : position - low;
    Sum turns = std::floor(distance / span), rest = std::fmod(distance, span);
    if (std::fmod(turns, Sum(2)) == 0) return rest + low;
    slope = -slope;
    return span - rest + low;
  }

  // Keys' kernel of distances up to 1 and from there to 2, and its derivatives.
  static constexpr Sum a = Sum(-0.75);
  BARACUDA_HD static Sum near(Sum d) { return ((a + 2) * d - (a + 3)) * d * d + 1; }
  BARACUDA_HD static Sum far(Sum d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; }
  BARACUDA_HD static Sum near_slope(Sum d) { return (3 * (a + 2) * d - 2 * (a + 3)) * d; }
  BARACUDA_HD static Sum far_slope(Sum d) { return (3 * a * d - 10 * a) * d + 8 * a; }
};

constexpr int sample_taps(int k, int rank) { return rank == 0 ? 1 : k * sample_taps(k, rank - 1); }

// The elements around a position of an image of `rank` axes, as indices in it; all combinations of those of each axis,
// the last one first.
template <class Sum, int K, int rank>
struct Samples {
  static constexpr int taps = sample_taps(K, rank);
  int32_t index[taps];
  Sum weight[taps];
};

template <class Sum, int K, int rank>
struct GridSample {
  using Result = Samples<Sum, K, rank>;
  static constexpr int axes = rank, taps = Result::taps;
  static constexpr bool has_slope = K > 1;  // the nearest element is the same around a position
  SampledAxis<Sum, K> axis[rank];

  // The last axis of a position comes first.
  BARACUDA_HD void axes_at(const Sum* position, AxisSample<Sum, K> (&found)[rank]) const {
    BARACUDA_UNROLLED
    for (int a = 0; a < rank; ++a) found[a] = axis[a].at(position[rank - 1 - a]);
  }

  BARACUDA_HD Result at(const Sum* position) const {
    AxisSample<Sum, K> found[rank];
    axes_at(position, found);
    Result result;
    BARACUDA_UNROLLED
    for (int t = 0; t < taps; ++t) {
      int32_t index = 0;
      Sum weight = 1;
      bool is_inside = true;
      BARACUDA_UNROLLED
      for (int a = 0; a < rank; ++a) {
        int k = digit(t, a);
        is_inside = is_inside && found[a].index[k] >= 0;
        index = index * axis[a].n + found[a].index[k];
        weight = a == 0 ? found[a].weight[k] : weight * found[a].weight[k];
      }
      result.index[t] = is_inside ? index : -1, result.weight[t] = weight;
    }
    return result;
  }

  // The derivative of each weight for a tangent of the position.
  BARACUDA_HD void tangent(const Sum* position, const Sum* moved, Sum (&slope)[taps]) const {
    AxisSample<Sum, K> found[rank];
    axes_at(position, found);
    BARACUDA_UNROLLED
    for (int t = 0; t < taps; ++t) {
      slope[t] = 0;
      BARACUDA_UNROLLED
      for (int a = 0; a < rank; ++a) slope[t] += along(found, t, a) * moved[rank - 1 - a];
    }
  }

  // The cotangent of the position, from that of each weight.
  BARACUDA_HD void backward(const Sum* position, const Sum (&weight)[taps], Sum* moved) const {
    AxisSample<Sum, K> found[rank];
    axes_at(position, found);
    BARACUDA_UNROLLED
    for (int a = 0; a < rank; ++a) {
      Sum total = 0;
      BARACUDA_UNROLLED
      for (int t = 0; t < taps; ++t) total += weight[t] * along(found, t, a);
      moved[rank - 1 - a] = total;
    }
  }

 private:
  // Which element of axis a combination t has.
  BARACUDA_HD static int digit(int t, int a) {
    BARACUDA_UNROLLED
    for (int b = rank - 1; b > a; --b) t /= K;
    return t % K;
  }
  BARACUDA_HD static Sum along(const AxisSample<Sum, K> (&found)[rank], int t, int moving) {
    Sum product = 1;
    BARACUDA_UNROLLED
    for (int a = 0; a < rank; ++a) {
      int k = digit(t, a);
      product *= a == moving ? found[a].slope[k] : found[a].weight[k];
    }
    return product;
  }
};

}  // namespace baracuda
