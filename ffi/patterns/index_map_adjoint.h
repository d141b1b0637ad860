// The adjoint of the index_map pattern: each element of x [batches, n] adds the elements of y [batches, m] that came
// from it, in a fixed order.
//
// The map sees x as an array of axes. Along an axis without a term, the position in y moves by a stride. A term says
// for each position on its axis which positions along y came from it: all that are folded there, or those of windows,
// in each of which it was at most once. Terms are in the order of their axes.
#pragma once

#include "index_map.h"

namespace baracuda {

inline constexpr int add_axes = 10, add_terms = 5;

struct AddTerm {
  Fold fold;
  // i < count along y was folded from i + offset. Of windows, of which there are so many, window i has element k of
  // `kernel` at i * step + k * dilation + offset.
  int64_t count, offset, stride;
  int64_t kernel = 1, kernel_stride = 0, dilation = 1, step = 1;
};

struct AddMap {
  int axes = 0, terms = 0;
  int64_t size[add_axes], stride[add_axes];
  int term_of[add_axes];  // -1 for none
  AddTerm term[add_terms];

  int last() const { return axes - 1; }
  int64_t elements() const {
    int64_t count = 1;
    for (int k = 0; k < axes; ++k) count *= size[k];
    return count;
  }
  void add_batches(int64_t batches, int64_t elements) {
    if (axes > 0 && term_of[0] < 0 && stride[0] * size[0] == elements) {
      size[0] *= batches;
      return;
    }
    for (int k = axes++; k > 0; --k) size[k] = size[k - 1], stride[k] = stride[k - 1], term_of[k] = term_of[k - 1];
    size[0] = batches, stride[0] = elements, term_of[0] = -1;
  }
  // The last position of y that is read; the first is 0.
  int64_t reach() const {
    int64_t last = 0;
    for (int k = 0; k < axes; ++k)
      if (term_of[k] < 0) last += (size[k] - 1) * stride[k];
    for (int t = 0; t < terms; ++t)
      last += (term[t].count - 1) * term[t].stride + (term[t].kernel - 1) * term[t].kernel_stride;
    return last;
  }
  int64_t farthest() const {
    int64_t most = 0;
    for (int k = 0; k < axes; ++k) {
      if (term_of[k] < 0) continue;
      const AddTerm& of = term[term_of[k]];
      int64_t far =
          (of.offset < 0 ? -of.offset : of.offset) + 4 * size[k] + of.count * of.step + of.kernel * of.dilation;
      if (far > most) most = far;
    }
    return most;
  }
};

// A term, as its elements see it.
template <class Index>
struct Origins {
  Fold fold;
  Index size, count, offset, stride, kernel, kernel_stride, dilation;
  Divisor<Index> step;

  Origins() = default;
  Origins(const AddTerm& term, int64_t size)
      : fold(term.fold),
        size(Index(size)),
        count(Index(term.count)),
        offset(Index(term.offset)),
        stride(Index(term.stride)),
        kernel(Index(term.kernel)),
        kernel_stride(Index(term.kernel_stride)),
        dilation(Index(term.dilation)),
        step(term.step) {}

  // Candidates for what came from one position: of two sequences, each up to `count`, or one for each element of a
  // window.
  struct Walk {
    Index first, second, period, split, candidates;
  };
  BARACUDA_HD Walk walk(Index j) const {
    if (fold == Fold::constant) return {j - offset, 0, 0, 0, kernel};
    if (fold == Fold::clamp) {
      Index begin = j == 0 ? 0 : j - offset, end = j == size - 1 ? count : j - offset + 1;
      if (begin < 0) begin = 0;
      if (end > count) end = count;
      Index some = end > begin ? end - begin : 0;
      return {begin, 0, 1, some, some};
    }
    bool is_symmetric = fold == Fold::symmetric, is_mirrored = is_symmetric || (fold == Fold::reflect && size > 1);
    Index period = is_symmetric ? 2 * size : is_mirrored ? 2 * (size - 1) : size;
    Walk walk{from(j - offset, period), 0, period, 0, 0};
    walk.split = walk.candidates = until(walk.first, period);
    if (is_symmetric || (is_mirrored && j > 0 && j < size - 1)) {
      walk.second = from(-j - is_symmetric - offset, period);
      walk.candidates += until(walk.second, period);
    }
    return walk;
  }
  // The position along y of a candidate, or -1.
  BARACUDA_HD Index position(const Walk& walk, Index k) const {
    if (fold == Fold::constant) {
      Index ahead = walk.first - k * dilation;
      if (ahead < 0) return -1;
      Index i = step.quotient(ahead);
      return i < count && i * step.value == ahead ? i * stride + k * kernel_stride : -1;
    }
    return (k < walk.split ? walk.first + k * walk.period : walk.second + (k - walk.split) * walk.period) * stride;
  }

 private:
  static BARACUDA_HD Index from(Index q, Index period) {
    Index rest = q % period;
    return rest < 0 ? rest + period : rest;
  }
  BARACUDA_HD Index until(Index first, Index period) const {
    return first < count ? (count - 1 - first) / period + 1 : 0;
  }
};

// body(position) for what came from positions j of terms t, t + 1, ... `terms` - 1, in order; these are `most` at most.
template <int most, int t = 0, class Index, class Body>
BARACUDA_HD void for_origins(const Origins<Index>* term, int terms, const Index* j, Index position, const Body& body) {
  if constexpr (t < most) {
    if (t < terms) {
      auto walk = term[t].walk(j[t]);
      for (Index k = 0; k < walk.candidates; ++k) {
        Index more = term[t].position(walk, k);
        if (more >= 0) for_origins<most, t + 1>(term, terms, j, position + more, body);
      }
      return;
    }
  }
  body(position);
}

}  // namespace baracuda
