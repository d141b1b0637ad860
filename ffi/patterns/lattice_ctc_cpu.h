// The lattice of Ctc on CPU threads: the blanks and the labels of a frame are arrays.
#pragma once

#include "../kernels/ctc.h"
#include "lattice_cpu.h"
#include "lattice_logits_cpu.h"

namespace baracuda {
namespace internal {

// One direction of one sample. A row of memory has of all blanks m, then e, and of all labels m, then e.
template <class T>
class CtcSweep {
 public:
  using Wide = Accumulator<T>;

  CtcSweep(const Ctc<T>& ctc, int64_t b, bool reverse)
      : ctc_(ctc),
        b_(b),
        direction_{ctc.sample(b), reverse},
        labels_(direction_.sample.states - 1),
        class_(labels_),
        read_(labels_),
        memory_(5, ctc.states() + 1),
        blank_(memory_.scaled()),
        before_(memory_.scaled()),
        next_(memory_.scaled()),
        emission_(memory_.scaled()),
        skip_(memory_.array()),
        added_(memory_.array()) {
    // Label 0 of before_ and next_ is the one before the first, which there is not.
    for (int j = 0; j <= labels_; ++j) {
      CtcPair<Wide> start = ctc_start<Wide>(j, labels_);
      blank_.set(j, start.blank), label().set(j, start.label);
    }
    for (int j = 0; j < labels_; ++j) {
      int c = class_[size_t(j)] = ctc.label(b, direction_.between(j));
      read_[size_t(j)] = std::max(c, 0), added_[j] = c < 0 ? minus_infinity<Wide> : Wide(0);
      skip_[j] = j > 0 && class_[size_t(j)] != class_[size_t(j) - 1] ? Wide(0) : minus_infinity<Wide>;
    }
  }

  static int64_t row_size(const CtcTargets& ctc) { return 4 * int64_t(ctc.states()); }
  static int64_t meeting_size(const CtcTargets& ctc) { return row_size(ctc); }
  static ScaledArray<Wide> blanks_of(const CtcTargets& ctc, Wide* row) { return {row, row + ctc.states()}; }
  static ScaledArray<Wide> labels_of(const CtcTargets& ctc, Wide* row) {
    return blanks_of(ctc, row + 2 * int64_t(ctc.states()));
  }
  static void clear(const CtcTargets& ctc, Wide* row) {
    blanks_of(ctc, row).fill_zero(0, ctc.states()), labels_of(ctc, row).fill_zero(0, ctc.states());
  }
  static Scaled<Wide> total(const CtcTargets& ctc, int64_t b, const Wide* before, const Wide* after) {
    int pairs = ctc.states(), labels = ctc.lengths(b).labels;
    auto at = [&](const Wide* row, int kind, int i) -> Scaled<Wide> {
      return {row[2 * kind * pairs + i], row[(2 * kind + 1) * pairs + i]};
    };
    Scaled<Wide> total = scaled_zero<Wide>();
    for (int i = 0; i <= labels; ++i) {
      total = total + at(before, 0, i) * at(after, 0, i);
      if (i < labels) total = total + at(before, 1, i) * at(after, 1, i);
    }
    return total;
  }

  const LatticeDirection& direction() const { return direction_; }
  const LogitBase<Wide>& base() const { return base_; }
  int class_of(int j) const { return class_[size_t(j)]; }

  template <class Saved>
  void load(int i, const Saved& saved) const {
    Wide* row = const_cast<Wide*>(saved(direction_.row(i)));
    blank_.load(blanks_of(ctc_, row), labels_ + 1, direction_.reverse);
    label().load(labels_of(ctc_, row), labels_, direction_.reverse);
  }
  // Also zeros of states that the sample does not have. Vectors at a time: who reads them next does so, too.
  void store(Wide* row) const {
    blank_.store(blanks_of(ctc_, row), labels_ + 1, ctc_.states(), direction_.reverse);
    label().store(labels_of(ctc_, row), labels_, ctc_.states(), direction_.reverse);
  }
  void meet(Wide* row) {
    if (!direction_.reverse) emit(direction_.last(false));  // the probability of the middle frame, once
    store(row);
  }
  void step(int i) { emit(i), advance(); }
  // All sums of step i times the probabilities of its frame.
  void emit(int i) {
    const T* x = ctc_.frame(b_, direction_.row(i));
    LogitBase<Wide> base = base_ = lattice_base(x, ctc_.shape.classes, ctc_.shape.is_log);
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
    if (++steps_ % lattice_growing == 0) blank_.normalize(0, labels_ + 1), label().normalize(0, labels_);
  }

 private:
  ScaledArray<Wide> label() const { return {before_.m + 1, before_.e + 1}; }

  Ctc<T> ctc_;
  int64_t b_;
  LatticeDirection direction_;
  int labels_;
  std::vector<int> class_,
      read_;  // of each label, and which element of a frame is read: one also where there is no class
  LatticeArrays<Wide> memory_;
  ScaledArray<Wide> blank_, before_, next_, emission_;
  Wide *skip_, *added_;
  LogitBase<Wide> base_{0, 0};
  int steps_ = 0;
};

// The gradient of a frame from the sums of both directions there, those of `sums` times the probabilities.
template <class T>
class CtcGradient {
 public:
  using Wide = Accumulator<T>;

  explicit CtcGradient(const Ctc<T>& ctc)
      : ctc_(ctc),
        row_(size_t(ctc.shape.classes)),
        sums_(size_t(CtcSweep<T>::row_size(ctc))),
        posterior_(size_t(2 * ctc.states())) {}

  void write(const CtcSweep<T>& sums, const T* x, const Wide* saved, Wide dy, T* dx) {
    int pairs = ctc_.states();
    int64_t labels = sums.direction().sample.states - 1, classes = ctc_.shape.classes;
    sums.store(sums_.data());
    Wide *other = const_cast<Wide*>(saved), *m = sums_.data(), *e = m + pairs, *blank = posterior_.data(),
         *label = blank + pairs;
    Wide most = minus_infinity<Wide>;
    for (int kind = 0; kind < 2; ++kind) {
      int64_t first = 2 * pairs * kind;
      ScaledArray<Wide>{m + first, e + first}.multiply({other + first, other + pairs + first}, labels + 1);
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
    Wide* row = row_.data();
    lattice_probabilities(x, classes, ctc_.shape.is_log, sums.base(), row);
    row[ctc_.shape.blank] -= of_blanks / total;
    BARACUDA_INDEPENDENT
    for (int64_t n = 0; n < labels; ++n) label[n] /= total;
    for (int n = 0; n < labels; ++n) {
      int c = sums.class_of(sums.direction().between(n));  // in the order of the target, whatever the direction
      if (c >= 0) row[c] -= label[n];
    }
    BARACUDA_INDEPENDENT
    for (int64_t c = 0; c < classes; ++c) dx[c] = T(dy * row[c]);
  }

 private:
  Ctc<T> ctc_;
  std::vector<Wide> row_, sums_, posterior_;
};

// Simple steps of a direction through half of the frames.
inline int64_t ctc_cost(const CtcTargets& ctc) {
  return ctc.shape.frames / 2 * (8 * int64_t(ctc.states()) + 2 * ctc.shape.classes);
}

}  // namespace internal

// loss [batches], and, where it is not null, half [batches, frames, 4, states]: what the gradient goes on from.
template <class T>
Status lattice(const Executor& executor, const Ctc<T>& ctc, Accumulator<T>* loss, Accumulator<T>* half) {
  using namespace internal;
  using Wide = Accumulator<T>;
  auto totals = lattice_totals<CtcSweep<T>>(executor, ctc, ctc_cost(ctc), half);
  for (int64_t b = 0; b < ctc.batches(); ++b)
    loss[b] = ctc.sample(b).rows == 0 ? ctc.template loss_of_nothing<Wide>(b) : ctc.loss(totals[size_t(b)]);
  return {};
}

// dx of dy [batches].
template <class T>
Status lattice_backward(const Executor& executor, const Ctc<T>& ctc, const Accumulator<T>* half,
                        const Accumulator<T>* dy, T* dx) {
  using namespace internal;
  int64_t frames = ctc.shape.frames, classes = ctc.shape.classes;
  auto begin = [&](int64_t b) {
    std::fill(dx + (b * frames + ctc.sample(b).rows) * classes, dx + (b + 1) * frames * classes, T(Accumulator<T>(0)));
  };
  auto step = [&](int64_t b) {
    return [&, b, gradient = CtcGradient<T>(ctc)](CtcSweep<T>& sums, int i, const auto& saved) mutable {
      int t = sums.direction().row(i);
      sums.emit(i);
      if (sums.direction().stores(true, i))
        gradient.write(sums, ctc.frame(b, t), saved(t), dy[b], dx + (b * frames + t) * classes);
      sums.advance();
    };
  };
  lattice_second_half<CtcSweep<T>>(executor, ctc, 3 * ctc_cost(ctc), half, begin, step);
  return {};
}

}  // namespace baracuda
