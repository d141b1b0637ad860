// What the stencil pattern with windows adds up on a CPU: taps of widened rows, which a ring keeps as far as a window
// reaches, with the zeros around them.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "../kernels/depthwise.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

// A vector of 32 bytes.
template <class Wide>
struct Pack {
  static constexpr int lanes = 32 / sizeof(Wide);
  typedef Wide Type __attribute__((vector_size(32)));
  typedef std::conditional_t<sizeof(Wide) == 8, int64_t, int32_t> Bits __attribute__((vector_size(32)));
  Type value{};

  static Pack load(const Wide* from) {
    Pack pack;
    std::memcpy(&pack.value, from, sizeof(Type));
    return pack;
  }
  // The first lanes, and 0 in the others, whatever is there.
  static Pack load(const Wide* from, int64_t count) {
    Pack pack = load(from);
    Bits keep{};
    for (int k = 0; k < lanes; ++k) keep[k] = k < count ? -1 : 0;
    pack.value = (Type)((Bits)pack.value & keep);
    return pack;
  }
  void store(Wide* to) const { std::memcpy(to, &value, sizeof(Type)); }
  void add(const Pack& a, const Pack& b) { value += a.value * b.value; }
};

inline constexpr int most_rows_taps = 9, channel_lanes = 32;

// Calls body(integral_constant<int, count>, first) for chunks of at most nine taps.
template <class Body, int... counts>
void by_count(int64_t count, const Body& body, std::integer_sequence<int, counts...>) {
  ((count == counts + 1 ? body(std::integral_constant<int, counts + 1>{}) : void()), ...);
}
template <class Body>
void for_taps(int64_t taps, const Body& body) {
  for (int64_t first = 0; first < taps; first += most_rows_taps)
    by_count(
        std::min<int64_t>(most_rows_taps, taps - first), [&](auto count) { body(count, first); },
        std::make_integer_sequence<int, most_rows_taps>{});
}

// to[i] += sum over taps of factors[t] from[t][i], or = where it is the first such sum.
template <bool first, class Wide, int... t>
void add_some(Wide* to, const Wide* const* from, const Wide* factors, int64_t count, std::integer_sequence<int, t...>) {
  const Wide* of[] = {from[t]...};
  Wide by[] = {factors[t]...};
  BARACUDA_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) {
    Wide sum = first ? Wide(0) : to[i];
    ((sum += by[t] * of[t][i]), ...);
    to[i] = sum;
  }
}
// sums[t] += a[i] from[t][i], in lanes
template <class Wide, int... t>
void dot_some(Pack<Wide>* sums, const Wide* a, const Wide* const* from, int64_t count,
              std::integer_sequence<int, t...>) {
  constexpr int lanes = Pack<Wide>::lanes;
  Pack<Wide> some[] = {sums[t]...};
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    auto factor = Pack<Wide>::load(a + i);
    ((some[t].add(factor, Pack<Wide>::load(from[t] + i))), ...);
  }
  if (i < count) {
    auto factor = Pack<Wide>::load(a + i, count - i);
    ((some[t].add(factor, Pack<Wide>::load(from[t] + i, count - i))), ...);
  }
  ((sums[t] = some[t]), ...);
}

// Taps of a row: the addresses that they read, and their factors.
template <class Wide>
struct RowTaps {
  std::vector<const Wide*> from;
  std::vector<Wide> factors;

  void clear() { from.clear(), factors.clear(); }
  void push(const Wide* address, Wide factor) { from.push_back(address), factors.push_back(factor); }
  void add_to(Wide* to, int64_t count) const { add<false>(to, count); }
  void write_to(Wide* to, int64_t count) const { add<true>(to, count); }

 private:
  template <bool is_new>
  void add(Wide* to, int64_t count) const {
    for_taps(int64_t(from.size()), [&](auto taps, int64_t first) {
      auto each = std::make_integer_sequence<int, decltype(taps)::value>{};
      if (is_new && first == 0)
        add_some<true>(to, &from[first], &factors[first], count, each);
      else
        add_some<false>(to, &from[first], &factors[first], count, each);
    });
  }
};

// The rows of a plane that windows reach, widened when they are first asked for. Rows outside are zeros.
template <class Wide>
class RowRing {
 public:
  // `depth` planes and `height` rows are reached by one window.
  RowRing(int64_t depth, int64_t height, int64_t size)
      : depth_(depth), height_(height), size_(size), rows_((depth * height + 1) * size), held_(depth * height, -1) {}

  const Wide* zeros() const { return rows_.data() + depth_ * height_ * size_; }
  // widen(to) writes row (d, h), of an index of its own, where the memory has zeros or a row before.
  template <class Widen>
  const Wide* row(int64_t d, int64_t h, int64_t index, const Widen& widen) {
    int64_t slot = d % depth_ * height_ + h % height_;
    Wide* to = rows_.data() + slot * size_;
    if (held_[slot] != index) widen(to), held_[slot] = index;
    return to;
  }
  // Of another plane.
  void forget() { std::fill(held_.begin(), held_.end(), -1); }

 private:
  int64_t depth_, height_, size_;
  std::vector<Wide> rows_;
  std::vector<int64_t> held_;
};

// The taps of each element of an axis of x, and their windows.
struct AxisHits {
  struct Hit {
    int64_t tap, window;
  };
  std::vector<int64_t> begins;
  std::vector<Hit> hits;

  AxisHits(const DepthwiseShape& shape, int axis) {
    for (int64_t j = 0; j < shape.in[axis]; ++j) {
      begins.push_back(int64_t(hits.size()));
      for (int64_t k = 0; k < shape.window[axis]; ++k)
        if (int64_t i = shape.window_at(axis, j, k); i >= 0) hits.push_back({k, i});
    }
    begins.push_back(int64_t(hits.size()));
  }
  template <class Body>
  void each(int64_t j, const Body& body) const {
    for (int64_t i = begins[j]; i < begins[j + 1]; ++i) body(hits[i].tap, hits[i].window);
  }
};

// How many rows a ring must have that steps along an axis of x, or of dy.
inline int64_t reach_of_x(const DepthwiseShape& shape, int axis) {
  return std::max<int64_t>(1, std::min(shape.in[axis], (shape.window[axis] - 1) * shape.dilation[axis] + 1));
}
inline int64_t reach_of_y(const DepthwiseShape& shape, int axis) {
  int64_t reach = (shape.window[axis] - 1) * shape.dilation[axis] / shape.stride[axis] + 1;
  return std::max<int64_t>(1, std::min(shape.out[axis], reach));
}

}  // namespace internal
}  // namespace baracuda
