// The lattice pattern on CPU threads: a task for each sample and direction. Its states are arrays of m and of e, over
// which each step is a few loops that vectorize. The gradient of a frame is written as soon as a direction gets there:
// what the other one had there was saved.
#pragma once

#include <algorithm>
#include <vector>

#include "lattice.h"
#include "vectorize_cpu.h"

namespace baracuda {

// The sums of a frame, in memory: of all blanks m, then e, and of all labels m, then e.
template <class Wide>
struct LatticeRow {
  Wide* first;
  int pairs;

  BARACUDA_HD Scaled<Wide> blank(int i) const { return {first[i], first[pairs + i]}; }
  BARACUDA_HD Scaled<Wide> label(int i) const { return {first[2 * pairs + i], first[3 * pairs + i]}; }
  BARACUDA_HD void set_blank(int i, Scaled<Wide> a) const { first[i] = a.m, first[pairs + i] = a.e; }
  BARACUDA_HD void set_label(int i, Scaled<Wide> a) const { first[2 * pairs + i] = a.m, first[3 * pairs + i] = a.e; }
};

namespace internal {

inline constexpr int lattice_lanes = 16;

// The sum of f(i), and the largest, of i < count, in lanes.
template <class T, class Of>
T lattice_sum(int64_t count, const Of& of) {
  T sums[lattice_lanes] = {}, total = 0;
  int64_t i = 0;
  for (; i + lattice_lanes <= count; i += lattice_lanes)
    for (int k = 0; k < lattice_lanes; ++k) sums[k] += of(i + k);
  for (; i < count; ++i) total += of(i);
  for (int k = 0; k < lattice_lanes; ++k) total += sums[k];
  return total;
}
template <class T, class Of>
T lattice_largest(int64_t count, const Of& of) {
  T most[lattice_lanes], total = minus_infinity<T>;
  for (int k = 0; k < lattice_lanes; ++k) most[k] = total;
  int64_t i = 0;
  for (; i + lattice_lanes <= count; i += lattice_lanes)
    for (int k = 0; k < lattice_lanes; ++k) most[k] = larger(most[k], T(of(i + k)));
  for (; i < count; ++i) total = larger(total, T(of(i)));
  for (int k = 0; k < lattice_lanes; ++k) total = larger(total, most[k]);
  return total;
}

template <class T>
CtcBase<Accumulator<T>> lattice_base(const Ctc<T>& ctc, const T* x) {
  using Wide = Accumulator<T>;
  if (ctc.shape.is_log) return {0, 0};
  int64_t classes = ctc.shape.classes;
  Wide most = lattice_largest<Wide>(classes, [&](int64_t c) { return Wide(x[c]); });
  Wide total = lattice_sum<Wide>(classes, [&](int64_t c) { return exponential<T>(Wide(x[c]) - most); });
  return {most, std::log(total)};
}

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
  void normalize(int64_t count) const {
    BARACUDA_INDEPENDENT
    for (int64_t i = 0; i < count; ++i) set(i, normalized((*this)[i]));
  }
};

// One direction of one sample.
template <class T>
class LatticeSweep {
 public:
  using Wide = Accumulator<T>;

  LatticeSweep(const Ctc<T>& ctc, int64_t b, bool reverse)
      : ctc_(ctc),
        b_(b),
        direction_{ctc.sample(b), reverse},
        labels_(direction_.sample.labels),
        class_(labels_),
        read_(labels_) {
    int64_t room = ctc.shape.pairs() + 1;
    memory_.resize(size_t(10 * room));
    Wide* next = memory_.data();
    auto array = [&] { return next += room, next - room; };
    for (ScaledArray<Wide>* a : {&blank_, &before_, &next_, &emission_}) *a = {array(), array()};
    skip_ = array(), added_ = array();
    // Label 0 of these is the one before the first, which there is not.
    for (ScaledArray<Wide>* a : {&before_, &next_}) a->fill_zero(0, room);
    for (int j = 0; j <= labels_; ++j) {
      CtcPair<Wide> start = ctc_start<Wide>(j, direction_.sample);
      blank_.set(j, start.blank), label().set(j, start.label);
    }
    for (int j = 0; j < labels_; ++j) {
      int c = class_[size_t(j)] = ctc.label(b, direction_.label(j));
      read_[size_t(j)] = std::max(c, 0), added_[j] = c < 0 ? minus_infinity<Wide> : Wide(0);
      skip_[j] = j > 0 && class_[size_t(j)] != class_[size_t(j) - 1] ? Wide(0) : minus_infinity<Wide>;
    }
  }

  const LatticeDirection& direction() const { return direction_; }
  ScaledArray<Wide> blank() const { return blank_; }
  ScaledArray<Wide> label() const { return {before_.m + 1, before_.e + 1}; }
  const CtcBase<Wide>& base() const { return base_; }
  int class_of(int j) const { return class_[size_t(j)]; }

  void load(LatticeRow<Wide> row) const {
    for (int j = 0; j <= labels_; ++j) blank_.set(j, row.blank(direction_.blank(j)));
    for (int j = 0; j < labels_; ++j) label().set(j, row.label(direction_.label(j)));
  }
  // Also zeros of states that the sample does not have. Vectors at a time: who reads them next does so, too.
  void store(LatticeRow<Wide> row) const {
    int pairs = row.pairs;
    ScaledArray<Wide> blanks{row.first, row.first + pairs}, labels{row.first + 2 * pairs, row.first + 3 * pairs};
    bool reverse = direction_.reverse;
    copy_states(blank_.m, blanks.m, labels_ + 1, reverse), copy_states(blank_.e, blanks.e, labels_ + 1, reverse);
    copy_states(label().m, labels.m, labels_, reverse), copy_states(label().e, labels.e, labels_, reverse);
    blanks.fill_zero(labels_ + 1, pairs), labels.fill_zero(labels_, pairs);
  }
  // All sums of step i times the probabilities of its frame.
  void emit(int i) {
    const T* x = ctc_.frame(b_, direction_.frame(i));
    CtcBase<Wide> base = base_ = lattice_base(ctc_, x);
    const int* read = read_.data();
    const Wide* added = added_;
    ScaledArray<Wide> emission = emission_;
    for (int64_t j = 0; j < labels_; ++j) emission.m[j] = Wide(x[read[j]]);
    BARACUDA_INDEPENDENT
    for (int64_t j = 0; j < labels_; ++j)
      emission.set(j, scaled_exponential(base.log_probability(emission.m[j]) + added[j]));
    label().multiply(emission_, labels_);
    Scaled<Wide> of_blank = scaled_exponential(base.log_probability(Wide(x[ctc_.shape.blank])));
    ScaledArray<Wide> blank = blank_;
    BARACUDA_INDEPENDENT
    for (int64_t j = 0; j <= labels_; ++j) blank.set(j, blank[j] * of_blank);
  }
  // From these to the sums of the next step.
  void advance() {
    ScaledArray<Wide> blank = blank_, before = before_, own = label(), next{next_.m + 1, next_.e + 1};
    const Wide* skip = skip_;
    BARACUDA_INDEPENDENT
    for (int64_t j = 0; j < labels_; ++j) {
      CtcPair<Wide> pair = ctc_next<Wide>({blank[j], own[j]}, before[j], skip[j]);
      blank.set(j, pair.blank), next.set(j, pair.label);
    }
    blank.set(labels_, blank[labels_] + before[labels_]);
    std::swap(before_, next_);
    constexpr int growing = 8;  // steps in which sums become no larger than 6^8 times what they were
    if (++steps_ % growing == 0) blank_.normalize(labels_ + 1), label().normalize(labels_);
  }

 private:
  Ctc<T> ctc_;
  int64_t b_;
  LatticeDirection direction_;
  int labels_;
  std::vector<int> class_,
      read_;  // of each label, and which element of a frame is read: one also where there is no class
  std::vector<Wide> memory_;
  ScaledArray<Wide> blank_, before_, next_, emission_;
  Wide *skip_, *added_;
  CtcBase<Wide> base_{0, 0};
  int steps_ = 0;
};

// The gradient of a frame from the sums of both directions there, those of `sums` times the probabilities.
template <class T>
class LatticeGradient {
 public:
  using Wide = Accumulator<T>;

  explicit LatticeGradient(const CtcShape& shape)
      : shape_(shape), row_(size_t(shape.classes)), sums_(size_t(shape.row())), posterior_(size_t(2 * shape.pairs())) {}

  void write(const LatticeSweep<T>& sums, const T* x, LatticeRow<Wide> other, Wide dy, T* dx) {
    int pairs = shape_.pairs();
    int64_t labels = sums.direction().sample.labels, classes = shape_.classes;
    sums.store({sums_.data(), pairs});
    Wide *m = sums_.data(), *e = m + pairs, *blank = posterior_.data(), *label = blank + pairs;
    Wide most = minus_infinity<Wide>;
    for (int kind = 0; kind < 2; ++kind) {
      int64_t first = 2 * pairs * kind;
      ScaledArray<Wide>{m + first, e + first}.multiply({other.first + first, other.first + pairs + first}, labels + 1);
      most = larger(most, lattice_largest<Wide>(labels + 1, [&](int64_t i) { return e[first + i]; }));
    }
    for (int kind = 0; kind < 2; ++kind) {
      Wide* to = kind == 0 ? blank : label;
      const Wide *from = m + 2 * pairs * kind, *power = e + 2 * pairs * kind;
      BARACUDA_INDEPENDENT
      for (int64_t i = 0; i <= labels; ++i) to[i] = from[i] * power_of_2(power[i] - most);
    }
    Wide of_blanks = lattice_sum<Wide>(labels + 1, [&](int64_t i) { return blank[i]; });
    Wide total = of_blanks + lattice_sum<Wide>(labels, [&](int64_t i) { return label[i]; });
    if (total == 0) return void(std::fill_n(dx, classes, T(Wide(0))));  // there is no alignment
    CtcBase<Wide> base = sums.base();
    Wide* row = row_.data();
    if (shape_.is_log) {
      std::fill_n(row, classes, Wide(0));
    } else {
      BARACUDA_INDEPENDENT
      for (int64_t c = 0; c < classes; ++c) row[c] = exponential<T>(base.log_probability(Wide(x[c])));
    }
    row[shape_.blank] -= of_blanks / total;
    BARACUDA_INDEPENDENT
    for (int64_t n = 0; n < labels; ++n) label[n] /= total;
    for (int n = 0; n < labels; ++n) {
      int c = sums.class_of(sums.direction().label(n));  // in the order of the target, whatever the direction
      if (c >= 0) row[c] -= label[n];
    }
    BARACUDA_INDEPENDENT
    for (int64_t c = 0; c < classes; ++c) dx[c] = T(dy * row[c]);
  }

 private:
  CtcShape shape_;
  std::vector<Wide> row_, sums_, posterior_;
};

// Simple steps of a direction through half of the frames.
inline int64_t lattice_cost(const CtcShape& shape) {
  return shape.frames / 2 * (8 * int64_t(shape.pairs()) + 2 * shape.classes);
}

}  // namespace internal

// loss [batches], and, where it is not null, half [batches, frames, row]: what the gradient goes on from.
template <class T>
Status lattice(const Executor& executor, const Ctc<T>& ctc, Accumulator<T>* loss, Accumulator<T>* half) {
  using Wide = Accumulator<T>;
  const CtcShape& shape = ctc.shape;
  int pairs = shape.pairs();
  std::vector<Wide> meeting(size_t(shape.batches * 2 * shape.row()));
  parallel_for(executor, 2 * shape.batches, internal::lattice_cost(shape), [&](int64_t task) {
    int64_t b = task / 2;
    bool reverse = task % 2 == 1;
    auto row_of = [&](Wide* rows, int64_t row) { return LatticeRow<Wide>{rows + row * shape.row(), pairs}; };
    CtcSample sample = ctc.sample(b);
    if (half != nullptr && reverse) {  // frames that the sample does not have
      for (int64_t t = sample.frames; t < shape.frames; ++t) {
        LatticeRow<Wide> row = row_of(half, b * shape.frames + t);
        for (int j = 0; j < pairs; ++j) row.set_blank(j, scaled_zero<Wide>()), row.set_label(j, scaled_zero<Wide>());
      }
    }
    if (sample.frames == 0) return;
    internal::LatticeSweep<T> sums(ctc, b, reverse);
    const LatticeDirection& direction = sums.direction();
    for (int i = 0;; ++i) {
      if (half != nullptr && direction.stores(false, i))
        sums.store(row_of(half, b * shape.frames + direction.frame(i)));
      if (i == direction.last(false)) break;
      sums.emit(i), sums.advance();
    }
    if (!reverse) sums.emit(direction.last(false));  // the probability of the middle frame, once
    sums.store(row_of(meeting.data(), task));
  });
  for (int64_t b = 0; b < shape.batches; ++b) {
    CtcSample sample = ctc.sample(b);
    if (sample.frames == 0) {
      loss[b] = ctc.loss_of_nothing(sample);
      continue;
    }
    LatticeRow<Wide> before{meeting.data() + 2 * b * shape.row(), pairs}, after{before.first + shape.row(), pairs};
    Scaled<Wide> total = scaled_zero<Wide>();
    for (int i = 0; i <= sample.labels; ++i) {
      total = total + before.blank(i) * after.blank(i);
      if (i < sample.labels) total = total + before.label(i) * after.label(i);
    }
    loss[b] = ctc.loss(total);
  }
  return {};
}

// dx of dy [batches].
template <class T>
Status lattice_backward(const Executor& executor, const Ctc<T>& ctc, const Accumulator<T>* half,
                        const Accumulator<T>* dy, T* dx) {
  using Wide = Accumulator<T>;
  const CtcShape& shape = ctc.shape;
  parallel_for(executor, 2 * shape.batches, 3 * internal::lattice_cost(shape), [&](int64_t task) {
    int64_t b = task / 2, first = b * shape.frames;
    bool reverse = task % 2 == 1;
    auto saved_row = [&](int t) {
      return LatticeRow<Wide>{const_cast<Wide*>(half) + (first + t) * shape.row(), shape.pairs()};
    };
    CtcSample sample = ctc.sample(b);
    if (reverse)
      std::fill(dx + (first + sample.frames) * shape.classes, dx + (first + shape.frames) * shape.classes, T(Wide(0)));
    if (sample.frames == 0) return;
    internal::LatticeSweep<T> sums(ctc, b, reverse);
    internal::LatticeGradient<T> gradient(shape);
    const LatticeDirection& direction = sums.direction();
    int i = direction.first(true);
    if (direction.saved() > 0) sums.load(saved_row(direction.frame(i)));
    for (; i <= direction.last(true); ++i) {
      int t = direction.frame(i);
      sums.emit(i);
      if (direction.stores(true, i))
        gradient.write(sums, ctc.frame(b, t), saved_row(t), dy[b], dx + (first + t) * shape.classes);
      sums.advance();
    }
  });
  return {};
}

}  // namespace baracuda
