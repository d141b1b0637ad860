// The index_map pattern: each element of y [batches, m] comes from the element of x [batches, n] that a map names, or
// is a fill value.
//
// A map sees y as an array of axes. Each axis moves the position in x by its stride, which may be 0 or below. What
// strides can't say are terms: a position on an axis of x that several axes of y step along, and that is folded where
// it leaves the axis. A term of stride 0 moves nothing, but still says where the fill value is.
//
//     position = base + sum_k i_k stride_k + sum_t stride_t folded(offset_t + sum_k i_k step_tk)
#pragma once

#include <utility>

#include "divisor.h"
#include "executor.h"

namespace baracuda {

inline constexpr int map_axes = 10, map_terms = 6;

// What is outside of an axis: the fill value, the element at its end, or the axis again: mirrored at its last element,
// as it is, or mirrored after its last element.
enum class Fold : int32_t { constant, clamp, reflect, wrap, symmetric };
inline constexpr int64_t folds = 5;

// The position in [0, n) that q stands for; -1 where that is the fill value.
template <class Index>
BARACUDA_HD Index folded(Fold fold, Index q, Index n) {
  if (q >= 0 && q < n) return q;
  if (fold == Fold::constant) return -1;
  if (fold == Fold::clamp) return q < 0 ? 0 : n - 1;
  if (fold == Fold::wrap || fold == Fold::symmetric) {
    Index period = fold == Fold::wrap ? n : 2 * n, rest = q % period;
    if (rest < 0) rest += period;
    return rest < n ? rest : period - 1 - rest;
  }
  if (n == 1) return 0;
  Index period = 2 * (n - 1), rest = (q < 0 ? -q : q) % period;
  return rest < n ? rest : period - rest;
}

struct IndexTerm {
  Fold fold;
  int64_t size, offset, stride;
};

struct IndexMap {
  int axes = 0, terms = 0;
  int64_t size[map_axes], stride[map_axes], step[map_terms][map_axes];
  IndexTerm term[map_terms];
  int64_t base = 0;

  int last() const { return axes - 1; }
  int64_t elements() const {
    int64_t count = 1;
    for (int k = 0; k < axes; ++k) count *= size[k];
    return count;
  }
  bool is_direct(int k) const {
    for (int t = 0; t < terms; ++t)
      if (step[t][k] != 0) return false;
    return true;
  }
  void remove(int k) {
    for (--axes; k < axes; ++k) {
      size[k] = size[k + 1], stride[k] = stride[k + 1];
      for (int t = 0; t < terms; ++t) step[t][k] = step[t][k + 1];
    }
  }
  // One more axis, before the others: copies of the map on neighboring ranges of `elements` elements of x.
  void add_batches(int64_t batches, int64_t elements) {
    if (axes > 0 && is_direct(0) && stride[0] * size[0] == elements) {
      size[0] *= batches;
      return;
    }
    for (int k = axes++; k > 0; --k) {
      size[k] = size[k - 1], stride[k] = stride[k - 1];
      for (int t = 0; t < terms; ++t) step[t][k] = step[t][k - 1];
    }
    size[0] = batches, stride[0] = elements;
    for (int t = 0; t < terms; ++t) step[t][0] = 0;
  }
  // The first and the last position of x that elements of a map without empty axes come from.
  std::pair<int64_t, int64_t> reach() const {
    int64_t first = base, last = base;
    auto add = [&](int64_t count, int64_t stride) { (stride < 0 ? first : last) += (count - 1) * stride; };
    for (int k = 0; k < axes; ++k) add(size[k], stride[k]);
    for (int t = 0; t < terms; ++t)
      if (term[t].size > 0) add(term[t].size, term[t].stride);
    return {first, last};
  }
  // The largest number that an element's term is made of.
  int64_t farthest() const {
    int64_t most = 0;
    for (int t = 0; t < terms; ++t) {
      int64_t far = (term[t].offset < 0 ? -term[t].offset : term[t].offset) + 2 * term[t].size;
      for (int k = 0; k < axes; ++k) far += (step[t][k] < 0 ? -step[t][k] : step[t][k]) * size[k];
      if (far > most) most = far;
    }
    return most;
  }
  // Whether runs of `width` elements are moved as one, which the map then speaks of.
  bool widen(int width) {
    if (axes == 0 || stride[last()] != 1 || !is_direct(last())) return false;
    bool fits = size[last()] % width == 0 && base % width == 0;
    for (int k = 0; k < last(); ++k) fits = fits && stride[k] % width == 0;
    for (int t = 0; t < terms; ++t) fits = fits && term[t].stride % width == 0;
    if (!fits) return false;
    size[last()] /= width, base /= width;
    for (int k = 0; k < last(); ++k) stride[k] /= width;
    for (int t = 0; t < terms; ++t) term[t].stride /= width;
    return true;
  }
};

}  // namespace baracuda
