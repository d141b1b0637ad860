// The lattice of SoftDtw on CPU threads.
#pragma once

#include "../kernels/soft_dtw.h"
#include "lattice_grid_cpu.h"

namespace baracuda {
namespace internal {

// One direction of one sample. A state reads itself and the one before, of this row and of the row before it.
template <class T>
class SoftDtwSweep : public GridSweep<Accumulator<T>> {
 public:
  using Wide = Accumulator<T>;

  SoftDtwSweep(const SoftDtw<T>& soft_dtw, int64_t b, bool reverse)
      : GridSweep<Wide>(soft_dtw, b, reverse, 4),
        soft_dtw_(soft_dtw),
        cost_(soft_dtw.matrix(b)),
        gamma_(Wide(soft_dtw.shape.gamma)),
        weighted_(this->memory_.scaled_after_zero()),
        earlier_(this->memory_.scaled_after_zero()),
        weight_(this->memory_.scaled()),
        other_(this->memory_.scaled()) {}

  // The sums of the middle row, and those of the row before it with their weights: paths may skip the middle.
  static int64_t meeting_size(const SoftDtwLengths& lengths) { return 4 * int64_t(lengths.states()); }
  static Scaled<Wide> total(const SoftDtwLengths& lengths, int64_t b, const Wide* before, const Wide* after) {
    int64_t width = lengths.states(), columns = lengths.sample(b).states;
    auto at = [&](const Wide* row, int kind, int64_t c) -> Scaled<Wide> {
      return {row[2 * kind * width + c], row[(2 * kind + 1) * width + c]};
    };
    Scaled<Wide> total = scaled_zero<Wide>();
    for (int64_t c = 0; c < columns; ++c) {
      total = total + at(before, 0, c) * at(after, 0, c);
      if (c > 0) total = total + at(before, 1, c - 1) * at(after, 1, c);
    }
    return total;
  }

  template <class Saved>
  void load(int i, const Saved& saved) {
    if (i > 0) {
      this->step_ = i - 1;
      this->read(i - 1, saved(this->direction_.row(i - 1)), this->now_);
      emit(i - 1);
      std::swap(earlier_, weighted_);
    }
    this->step_ = i;
    this->read(i, saved(this->direction_.row(i)), this->now_);
  }
  void meet(Wide* row) {
    int i = this->direction_.last(false);
    if (!this->direction_.reverse) emit(i);  // the weights of the middle row, once
    this->store(row, this->direction_.reverse ? this->now_ : weighted_);
    Wide* before = row + 2 * int64_t(this->width_);
    this->clear(soft_dtw_, before);
    if (i == 0) return;
    --this->step_;
    this->store(before, earlier_);
    ++this->step_;
  }
  void step(int i) { emit(i), advance(); }

  // The sums of step i times their weights.
  void emit(int i) {
    const GridDirection& direction = this->direction_;
    ScaledArray<Wide> now = this->now_, weight = weight_, weighted = weighted_;
    int begin = this->begin(i), end = this->end(i);
    int64_t columns = soft_dtw_.shape.columns, origin = direction.origin(i, columns), step = direction.step(columns);
    for (int j = begin; j < end; ++j) weight.m[j] = Wide(cost_[origin + j * step]);
    BARACUDA_INDEPENDENT
    for (int j = begin; j < end; ++j)
      weighted.set(j, now[j] * scaled_exponential(soft_dtw_log_weight(weight.m[j], gamma_)));
  }
  void advance() {
    ScaledArray<Wide> now = this->now_, weighted = weighted_, earlier = earlier_;
    int end = this->end(this->step_ + 1);
    BARACUDA_INDEPENDENT
    for (int j = this->begin(this->step_ + 1); j < end; ++j)
      now.set(j, weighted[j] + soft_dtw_carry(weighted[j - 1], earlier[j - 1]));
    std::swap(weighted_, earlier_);
    this->advanced();
  }
  // The gradient of the elements of step i, whose sums have their weights: dy times the parts of all paths through
  // them.
  void write_gradient(int i, const Wide* saved, Share<Wide> share, Wide dy, T* dx) {
    const GridDirection& direction = this->direction_;
    int begin = this->begin(i), end = this->end(i);
    ScaledArray<Wide> weighted = weighted_, other = other_, part = weight_;
    this->read(i, saved, other);
    BARACUDA_INDEPENDENT
    for (int j = begin; j < end; ++j) {
      Wide own = share.of(weighted[j] * other[j]);
      part.m[j] = own == 0 ? Wide(0) : dy * own;
    }
    int64_t columns = soft_dtw_.shape.columns, origin = direction.origin(i, columns), step = direction.step(columns);
    for (int j = begin; j < end; ++j) dx[origin + j * step] = T(part.m[j]);
  }

 private:
  SoftDtw<T> soft_dtw_;
  const T* cost_;
  Wide gamma_;
  ScaledArray<Wide> weighted_, earlier_, weight_, other_;
};

// Simple steps of a direction through half of the rows.
inline int64_t soft_dtw_cost(const SoftDtwShape& shape) { return 10 * shape.rows * shape.columns / 2; }

}  // namespace internal

// The soft minimum [batches], and, where they are not null, what the gradient goes on from: half [batches, rows, 2,
// states], totals [batches, 2].
template <class T>
Status lattice(const Executor& executor, const SoftDtw<T>& soft_dtw, Accumulator<T>* y, Accumulator<T>* half,
               Accumulator<T>* totals) {
  using namespace internal;
  using Wide = Accumulator<T>;
  auto sums = lattice_totals<SoftDtwSweep<T>>(executor, soft_dtw, soft_dtw_cost(soft_dtw.shape), half);
  for (int64_t b = 0; b < soft_dtw.batches(); ++b) {
    Scaled<Wide> total = sums[size_t(b)];
    y[b] = soft_dtw.sample(b).rows == 0 ? soft_dtw.template minimum_of_nothing<Wide>(b) : soft_dtw.minimum(total);
    if (totals != nullptr) totals[2 * b] = total.m, totals[2 * b + 1] = total.e;
  }
  return {};
}

// dx of dy [batches].
template <class T>
Status lattice_backward(const Executor& executor, const SoftDtw<T>& soft_dtw, const Accumulator<T>* half,
                        const Accumulator<T>* totals, const Accumulator<T>* dy, T* dx) {
  using namespace internal;
  using Wide = Accumulator<T>;
  int64_t rows = soft_dtw.shape.rows, columns = soft_dtw.shape.columns;
  auto begin = [&](int64_t b) {  // what the sample does not have
    int64_t count = soft_dtw.sample(b).rows == 0 ? 0 : soft_dtw.columns_of(b);
    for (int64_t r = 0; r < rows; ++r) {
      T* row = dx + (b * rows + r) * columns;
      std::fill(row + (r < soft_dtw.rows_of(b) ? count : 0), row + columns, T(Wide(0)));
    }
  };
  auto step = [&](int64_t b) {
    return [&, b, share = Share<Wide>({totals[2 * b], totals[2 * b + 1]})](SoftDtwSweep<T>& sums, int i,
                                                                           const auto& saved) {
      sums.emit(i);
      if (sums.direction().stores(true, i))
        sums.write_gradient(i, saved(sums.direction().row(i)), share, dy[b], dx + b * rows * columns);
      if (i < sums.direction().last(true)) sums.advance();
    };
  };
  lattice_second_half<SoftDtwSweep<T>>(executor, soft_dtw, 3 * soft_dtw_cost(soft_dtw.shape), half, begin, step);
  return {};
}

}  // namespace baracuda
