// The projection pattern on CPU threads: each row becomes differences from its largest element, of which a threshold is
// found by a few sums, and then results. The functor is one of sparsemax.h or softmax.h.
#pragma once

#include <algorithm>
#include <limits>
#include <vector>

#include "../kernels/row_sums.h"
#include "executor.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

// Element k of each chunk of so many is pushed to lane k, the loop over which the compiler vectorizes.
template <int lanes, class Push>
inline __attribute__((always_inline)) void push_in_lanes(int64_t count, const Push& push) {
  int64_t whole = count - count % lanes;
  for (int64_t k = 0; k < whole; k += lanes)
    for (int lane = 0; lane < lanes; ++lane) push(k + lane, lane);
  for (int64_t k = whole; k < count; ++k) push(k, int(k - whole));
}

// `see(k, value)` gets each element. With `finds_nan` NaN where one is, which one sum does too.
template <int lanes, bool finds_nan, class Wide, class T, class See>
inline __attribute__((always_inline)) Wide largest_of(const T* x, int64_t count, const See& see) {
  Wide largest[lanes];
  for (Wide& value : largest) value = -std::numeric_limits<Wide>::infinity();
  auto larger = [](Wide a, Wide b) { return ((b > a) | (finds_nan & (b != b))) ? b : a; };
  push_in_lanes<lanes>(count, [&](int64_t k, int lane) {
    Wide value = Wide(x[k]);
    see(k, value), largest[lane] = larger(largest[lane], value);
  });
  for (int width = lanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; ++lane) largest[lane] = larger(largest[lane], largest[lane + width]);
  return largest[0];
}
template <int lanes, bool finds_nan, class Wide>
[[gnu::noinline]] Wide largest_of(const Wide* x, int64_t count) {
  return largest_of<lanes, finds_nan, Wide>(x, count, [](int64_t, Wide) {});
}
// The same of elements that are converted, once.
template <int lanes, bool finds_nan, class T, class Wide>
[[gnu::noinline]] Wide largest_of_converted(const T* x, int64_t count, Wide* to) {
  return largest_of<lanes, finds_nan, Wide>(x, count, [to](int64_t k, Wide value) { to[k] = value; });
}

// Sums of chunks are added, so that long sums lose no digits. `element(k)` gives each element, once.
template <int lanes, class Projection, class Element, class Wide = typename Projection::Wide>
inline __attribute__((always_inline)) PairSums<Wide, 1> sums_of(int64_t count, Wide tau, const Element& element) {
  constexpr int64_t chunk = 1 << 11;
  PairSums<Wide, lanes> total;
  total.clear();
  for (int64_t first = 0; first < count; first += chunk) {
    PairSums<Wide, lanes> sums;
    sums.clear();
    push_in_lanes<lanes>(std::min(chunk, count - first), [&](int64_t k, int lane) {
      Projection::push(element(first + k), tau, sums.first[lane], sums.second[lane]);
    });
    total.add(sums);
  }
  return total.merged();
}
template <int lanes, class Projection, class Wide = typename Projection::Wide>
[[gnu::noinline]] PairSums<Wide, 1> sums_above(const Wide* z, int64_t count, Wide tau) {
  return sums_of<lanes, Projection>(count, tau, [z](int64_t k) { return z[k]; });
}
// The same of the differences from the largest one, or of what is made of them, which z gets; `x` may be z.
template <int lanes, class Projection, class Wide = typename Projection::Wide>
[[gnu::noinline]] PairSums<Wide, 1> sums_of_parts(const Wide* x, Wide* z, int64_t count, Wide tau, Wide largest) {
  return sums_of<lanes, Projection>(
      count, tau, [=](int64_t k) { return z[k] = Projection::part((x[k] - largest) * Projection::scale); });
}

// `z` has memory for the row; it may be that of the results.
template <int lanes, class Projection, class T = typename Projection::Element, class Wide = typename Projection::Wide>
void project_row(const Projection& projection, int64_t row, int64_t count, Wide* z) {
  const T* x = projection.x + row * count;
  T* y = projection.y + row * count;
  constexpr bool finds_nan = Projection::steps > 1;
  const Wide* wide;
  Wide largest;
  if constexpr (is_half<T>)
    wide = z, largest = largest_of_converted<lanes, finds_nan>(x, count, z);
  else
    wide = x, largest = largest_of<lanes, finds_nan>(x, count);
  Wide tau = largest - largest - 1;  // NaN where the largest element is not finite, and then so is the row
  PairSums<Wide, 1> sums = sums_of_parts<lanes, Projection>(wide, z, count, tau, largest);
  for (int number = 1;; ++number) {
    Wide next = Projection::next(tau, sums.first[0], sums.second[0]);
    bool rises = next > tau;
    if (tau == tau) tau = next;  // also a last correction
    if (!rises || number == Projection::steps) break;
    sums = sums_above<lanes, Projection>(z, count, tau);
  }
  if constexpr (requires { projection.finish(row, largest, tau); }) projection.finish(row, largest, tau);
  BARACUDA_INDEPENDENT
  for (int64_t k = 0; k < count; ++k) y[k] = Projection::value(z[k], tau);
}

}  // namespace internal

template <class Projection>
Status project_rows(const Executor& executor, const Projection& projection, int64_t rows, int64_t columns) {
  using T = typename Projection::Element;
  using Wide = typename Projection::Wide;
  constexpr int64_t steps = 1 << 12;
  if (rows * columns == 0) return {};
  int64_t range = steps / columns + 1;
  parallel_for(executor, ceil_div(rows, range), 8 * range * columns, [&](int64_t task) {
    std::vector<Wide> memory(size_t(is_half<T> ? columns : 0));
    for (int64_t row = task * range; row < std::min((task + 1) * range, rows); ++row) {
      Wide* z;
      if constexpr (is_half<T>)
        z = memory.data();
      else
        z = projection.y + row * columns;
      if (columns < 8)
        internal::project_row<1>(projection, row, columns, z);
      else if (columns < 32)
        internal::project_row<8>(projection, row, columns, z);
      else
        internal::project_row<32>(projection, row, columns, z);
    }
  });
  return {};
}

}  // namespace baracuda
