// The elements of an image around a position, with their weights, and the derivatives of these in the position.
#pragma once

#include "rounded.h"
#include "unroll.h"

// Where a loop over positions is vectorized, those inside of it must be gone.
#ifdef __CUDACC__
#define BARACUDA_UNROLL_TAPS BARACUDA_UNROLL
#else
#define BARACUDA_UNROLL_TAPS _Pragma("GCC unroll 64")
#endif

namespace baracuda {

// An index of `no_element` gives the fill value, one of `unread` nothing.
constexpr int32_t no_element = -1, unread = -2;

// K elements along an axis: 1, the nearest; 2, of linear interpolation; 4, of cubics.
template <class Sum, int K>
struct AxisSample {
  int32_t index[K];
  Sum weight[K], slope[K];  // and its derivative in the position

  // The fill value alone.
  BARACUDA_HD void fill() {
    BARACUDA_UNROLL_TAPS
    for (int k = 0; k < K; ++k) index[k] = k == 0 ? no_element : unread, weight[k] = k == 0, slope[k] = 0;
  }
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

// An Axis has `n` elements, a type `Number`, as many `taps` around a position, and says which `at` one these are. The
// fill value is 0 unless it `has_fill`. Where `fills_outside`, a position that one axis says `is_outside` gives the
// fill value. Positions are [points, axes], the last axis first; or, where they are `by_axis`, [axes, points].
template <class Axis, int rank>
struct AxesSample {
  using Sum = typename Axis::Number;
  static constexpr int K = Axis::taps;
  using Result = Samples<Sum, K, rank>;
  static constexpr int axes = rank, taps = Result::taps;
  static constexpr bool has_slope = K > 1;  // the nearest element is the same around a position
  static constexpr bool has_fill = Axis::has_fill;
  Axis axis[rank];
  Sum fill_value;

  // A constant where it may be, with which it takes no registers.
  BARACUDA_HD Sum fill() const { return has_fill ? fill_value : Sum(0); }

  // The index of what axis a, counted from the last one, has of a point's position in an array of positions.
  static BARACUDA_HD int64_t index_of(int64_t batch, int64_t point, int64_t points, int a) {
    return Axis::by_axis ? (batch * rank + rank - 1 - a) * points + point : (batch * points + point) * rank + a;
  }
  // A point's position, the last axis first.
  struct Position {
    Sum of[rank];
  };
  static BARACUDA_HD Position read(const Sum* positions, int64_t batch, int64_t point, int64_t points) {
    Position position;
    BARACUDA_UNROLL_TAPS
    for (int a = 0; a < rank; ++a) position.of[a] = positions[index_of(batch, point, points, a)];
    return position;
  }
  static BARACUDA_HD void write(Sum* positions, int64_t batch, int64_t point, int64_t points,
                                const Position& position) {
    BARACUDA_UNROLL_TAPS
    for (int a = 0; a < rank; ++a) positions[index_of(batch, point, points, a)] = position.of[a];
  }

  // The last axis of a position comes first.
  BARACUDA_HD void axes_at(const Sum* position, AxisSample<Sum, K> (&found)[rank]) const {
    BARACUDA_UNROLL_TAPS
    for (int a = 0; a < rank; ++a) found[a] = axis[a].at(position[rank - 1 - a]);
    if constexpr (Axis::fills_outside) {
      bool is_outside = false;
      BARACUDA_UNROLL_TAPS
      for (int a = 0; a < rank; ++a) is_outside = is_outside || axis[a].is_outside(position[rank - 1 - a]);
      if (!is_outside) return;
      BARACUDA_UNROLL_TAPS
      for (int a = 0; a < rank; ++a) found[a].fill();
    }
  }

  BARACUDA_HD Result at(const Sum* position) const {
    AxisSample<Sum, K> found[rank];
    axes_at(position, found);
    Result result;
    if constexpr (taps == 1) {  // GCC vectorizes no loop around a loop of one step
      combine(found, 0, result);
    } else {
      BARACUDA_UNROLL_TAPS
      for (int t = 0; t < taps; ++t) combine(found, t, result);
    }
    return result;
  }

  // The derivative of each weight for a tangent of the position.
  BARACUDA_HD void tangent(const Sum* position, const Sum* moved, Sum (&slope)[taps]) const {
    AxisSample<Sum, K> found[rank];
    axes_at(position, found);
    BARACUDA_UNROLL
    for (int t = 0; t < taps; ++t) {
      slope[t] = 0;
      BARACUDA_UNROLL
      for (int a = 0; a < rank; ++a) slope[t] += along(found, t, a) * moved[rank - 1 - a];
    }
  }

  // The cotangent of the position, from that of each weight.
  BARACUDA_HD void backward(const Sum* position, const Sum (&weight)[taps], Sum* moved) const {
    AxisSample<Sum, K> found[rank];
    axes_at(position, found);
    BARACUDA_UNROLL
    for (int a = 0; a < rank; ++a) {
      Sum total = 0;
      BARACUDA_UNROLL
      for (int t = 0; t < taps; ++t) total += weight[t] * along(found, t, a);
      moved[rank - 1 - a] = total;
    }
  }

 private:
  // The element of combination t.
  BARACUDA_HD void combine(const AxisSample<Sum, K> (&found)[rank], int t, Result& result) const {
    int32_t index = 0, none = 0;
    Sum weight = 1;
    BARACUDA_UNROLL_TAPS
    for (int a = 0; a < rank; ++a) {
      int k = digit(t, a);
      none = found[a].index[k] < none ? found[a].index[k] : none;
      index = index * axis[a].n + found[a].index[k];
      weight = a == 0 ? found[a].weight[k] : weight * found[a].weight[k];
    }
    result.index[t] = none < 0 ? none : index, result.weight[t] = weight;
  }
  // Which element of axis a combination t has.
  BARACUDA_HD static int digit(int t, int a) {
    BARACUDA_UNROLL_TAPS
    for (int b = rank - 1; b > a; --b) t /= K;
    return t % K;
  }
  BARACUDA_HD static Sum along(const AxisSample<Sum, K> (&found)[rank], int t, int moving) {
    Sum product = 1;
    BARACUDA_UNROLL
    for (int a = 0; a < rank; ++a) {
      int k = digit(t, a);
      product *= a == moving ? found[a].slope[k] : found[a].weight[k];
    }
    return product;
  }
};

#ifndef __CUDACC__
// Calls body(functor) with one whose branches the compiler sees, where an Axis has more to say (see sample_grid.h).
template <class Functor, class Body>
void for_known(const Functor& functor, const Body& body) {
  body(functor);
}
#endif

}  // namespace baracuda
