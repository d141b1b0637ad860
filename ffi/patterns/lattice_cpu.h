// The lattice pattern on CPU threads: a task for each sample and direction. Its states are arrays of m and of e, over
// which each step is a few loops that vectorize. The gradient of a row is written as soon as a direction gets there:
// what the other one had there was saved.
//
// A Sweep is one direction of one sample, at the start after it is made:
//   store(to), load(i, saved)  its sums as a row of memory, and from that to where the second half goes on
//   step(i)                    from the sums of step i to the next
//   meet(to)                   what total(functor, b, before, after), of both directions, makes the sum over all paths
//   of
#pragma once

#include <algorithm>
#include <vector>

#include "lattice.h"
#include "vectorize_cpu.h"

namespace baracuda {
namespace internal {

// count numbers, also in reverse order.
template <class Wide>
void copy_states(const Wide* from, Wide* to, int64_t count, bool reverse) {
  if (!reverse) return void(std::copy_n(from, count, to));
  BARACUDA_INDEPENDENT
  for (int64_t i = 0; i < count; ++i) to[i] = from[count - 1 - i];
}

// Numbers of consecutive states.
template <class Wide>
struct ScaledArray {
  Wide *m, *e;

  Scaled<Wide> operator[](int64_t i) const { return {m[i], e[i]}; }
  void set(int64_t i, Scaled<Wide> a) const { m[i] = a.m, e[i] = a.e; }
  void fill_zero(int64_t begin, int64_t end) const {
    std::fill(m + begin, m + end, Wide(0));
    std::fill(e + begin, e + end, minus_infinity<Wide>);
  }
  void multiply(ScaledArray by, int64_t count) const {
    BARACUDA_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) set(i, (*this)[i] * by[i]);
  }
  void normalize(int64_t begin, int64_t end) const {
    BARACUDA_INDEPENDENT
    for (int64_t i = begin; i < end; ++i) set(i, normalized((*this)[i]));
  }
  // Those of a direction as the sample's [0, count) states, in memory of which the rest becomes zeros; and back.
  void store(ScaledArray to, int64_t count, int64_t width, bool reverse) const {
    copy_states(m, to.m, count, reverse), copy_states(e, to.e, count, reverse);
    to.fill_zero(count, width);
  }
  void load(ScaledArray from, int64_t count, bool reverse) const {
    copy_states<Wide>(from.m, m, count, reverse), copy_states<Wide>(from.e, e, count, reverse);
  }
};

// Steps after which sums are normalized: until then they become no larger than 6^8 times what they were.
inline constexpr int lattice_growing = 8;

// Memory for so many arrays.
template <class Wide>
class LatticeArrays {
 public:
  LatticeArrays(int arrays, int64_t room) : memory_(size_t(2 * arrays * room)), next_(memory_.data()), room_(room) {}
  Wide* array() { return next_ += room_, next_ - room_; }
  ScaledArray<Wide> scaled() {
    ScaledArray<Wide> all{array(), array()};
    all.fill_zero(0, room_);
    return all;
  }
  // With one zero before the first.
  ScaledArray<Wide> scaled_after_zero() {
    ScaledArray<Wide> all = scaled();
    return {all.m + 1, all.e + 1};
  }

 private:
  std::vector<Wide> memory_;
  Wide* next_;
  int64_t room_;
};

// The sum over all paths of each sample; of no rows it is 0. Where half is not null it gets what the gradient goes on
// from, [batches, rows, Sweep::row_size].
template <class Sweep, class F, class Wide>
std::vector<Scaled<Wide>> lattice_totals(const Executor& executor, const F& f, int64_t cost, Wide* half) {
  int64_t size = Sweep::row_size(f), met = Sweep::meeting_size(f);
  std::vector<Wide> meeting(size_t(f.batches() * 2 * met));
  parallel_for(executor, 2 * f.batches(), cost, [&](int64_t task) {
    int64_t b = task / 2;
    bool reverse = task % 2 == 1;
    auto row = [&](int64_t r) { return half + (b * f.rows() + r) * size; };
    LatticeSample sample = f.sample(b);
    if (half != nullptr && reverse)  // rows that the sample does not have
      for (int64_t r = sample.rows; r < f.rows(); ++r) Sweep::clear(f, row(r));
    if (sample.rows == 0) return;
    Sweep sums(f, b, reverse);
    const LatticeDirection& direction = sums.direction();
    for (int i = 0;; ++i) {
      if (half != nullptr && direction.stores(false, i)) sums.store(row(direction.row(i)));
      if (i == direction.last(false)) break;
      sums.step(i);
    }
    sums.meet(meeting.data() + task * met);
  });
  std::vector<Scaled<Wide>> totals(size_t(f.batches()), scaled_zero<Wide>());
  for (int64_t b = 0; b < f.batches(); ++b) {
    const Wide* before = meeting.data() + 2 * b * met;
    if (f.sample(b).rows > 0) totals[size_t(b)] = Sweep::total(f, b, before, before + met);
  }
  return totals;
}

// Runs begin(b), once for each sample, and then, for each direction, step(sums, i, saved) for the steps of the second
// half. It goes to the next one; what the directions have saved of a row is saved(row).
template <class Sweep, class F, class Wide, class Begin, class Step>
void lattice_second_half(const Executor& executor, const F& f, int64_t cost, const Wide* half, const Begin& begin,
                         const Step& step) {
  int64_t size = Sweep::row_size(f);
  parallel_for(executor, 2 * f.batches(), cost, [&](int64_t task) {
    int64_t b = task / 2;
    bool reverse = task % 2 == 1;
    auto saved = [&](int64_t r) { return half + (b * f.rows() + r) * size; };
    if (reverse) begin(b);
    if (f.sample(b).rows == 0) return;
    Sweep sums(f, b, reverse);
    const LatticeDirection& direction = sums.direction();
    int i = direction.first(true);
    if (direction.saved() > 0) sums.load(i, saved);
    for (auto visit = step(b); i <= direction.last(true); ++i) visit(sums, i, saved);
  });
}

}  // namespace internal
}  // namespace baracuda
