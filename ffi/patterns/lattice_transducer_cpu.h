// The lattice of Transducer on CPU threads: the scores of each node are read once, then the sums are made of their
// logarithms. For the gradient the parts that each node's edges have of all paths come first, then its scores again.
#pragma once

#include "../kernels/transducer.h"
#include "lattice_grid_cpu.h"
#include "lattice_logits_cpu.h"

namespace baracuda {
namespace internal {

template <class Wide>
struct TransducerLattice : TransducerTargets {
  TransducerLogs<const Wide> logs;
};

// One direction of one sample. A state reads itself and the one before, over edges whose weights are those of the nodes
// that they leave, in the sample's order: of this row, or, in reverse, of the next.
template <class Wide>
class TransducerSweep : public GridSweep<Wide> {
 public:
  TransducerSweep(const TransducerLattice<Wide>& lattice, int64_t b, bool reverse)
      : GridSweep<Wide>(lattice, b, reverse, 4),
        logs_{lattice.logs.of(b * lattice.shape.frames, 0), lattice.states()},
        next_(this->memory_.scaled_after_zero()),
        stay_(this->memory_.scaled()),
        enter_(this->memory_.scaled()),
        other_(this->memory_.scaled()) {}

  static int64_t meeting_size(const TransducerTargets& targets) { return 2 * int64_t(targets.states()); }
  static Scaled<Wide> total(const TransducerTargets& targets, int64_t b, const Wide* before, const Wide* after) {
    int64_t width = targets.states(), states = targets.sample(b).states;
    Scaled<Wide> total = scaled_zero<Wide>();
    for (int64_t n = 0; n < states; ++n)
      total = total + Scaled<Wide>{before[n], before[width + n]} * Scaled<Wide>{after[n], after[width + n]};
    return total;
  }

  template <class Saved>
  void load(int i, const Saved& saved) {
    this->step_ = i;
    this->read(i, saved(this->direction_.row(i)), this->now_);
  }
  void meet(Wide* row) const { this->store(row); }
  void step(int i) { fetch(i), advance(); }

  // Weights of the edges to the next row.
  void fetch(int i) {
    const GridDirection& direction = this->direction_;
    bool reverse = direction.reverse;
    int begin = this->begin(i + 1), end = this->end(i + 1), from = reverse ? i + 1 : i, before = reverse ? 0 : 1;
    int64_t frame = 4 * int64_t(logs_.states);
    ScaledArray<Wide> stay = stay_, enter = enter_;
    for (int j = begin; j < end; ++j)
      stay.m[j] = j == i + 1 ? minus_infinity<Wide>  // from no node, or from beyond the last frame
                             : logs_.first[direction.grid_row(from, j) * frame + direction.state(j)];
    for (int j = begin; j < end; ++j)
      enter.m[j] =
          j == (reverse ? i + 1 : begin)
              ? minus_infinity<Wide>
              : logs_.first[direction.grid_row(from, j - before) * frame + logs_.states + direction.state(j - before)];
    for (ScaledArray<Wide> all : {stay, enter}) {
      BARACUDA_INDEPENDENT
      for (int j = begin; j < end; ++j) all.set(j, scaled_exponential(all.m[j]));
    }
  }
  void advance() {
    ScaledArray<Wide> now = this->now_, next = next_, stay = stay_, enter = enter_;
    int end = this->end(this->step_ + 1);
    BARACUDA_INDEPENDENT
    for (int j = this->begin(this->step_ + 1); j < end; ++j)
      next.set(j, transducer_next(now[j], stay[j], now[j - 1], enter[j]));
    std::swap(this->now_, next_);
    this->advanced();
  }
  // The parts that the edges to the next row have of all paths: of the blank of a node of a frame, and of its label.
  template <class Write>
  void write_parts(int i, const Wide* saved, Share<Wide> share, const Write& write) {
    const GridDirection& direction = this->direction_;
    int begin = this->begin(i + 1), end = this->end(i + 1), from = direction.reverse ? i + 1 : i;
    ScaledArray<Wide> now = this->now_, stay = stay_, enter = enter_, other = other_;
    this->read(i + 1, saved, other);
    Wide* parts[2] = {other.m, other.e};
    BARACUDA_INDEPENDENT
    for (int j = begin; j < end; ++j) {
      Wide stays = share.of(now[j] * stay[j] * other[j]), enters = share.of(now[j - 1] * enter[j] * other[j]);
      parts[0][j] = stays, parts[1][j] = enters;
    }
    for (int j = begin; j < end; ++j) {
      if (j != i + 1) write(direction.grid_row(from, j), direction.state(j), 0, parts[0][j]);
      if (direction.reverse ? j != i + 1 && j > 0 : j != begin) {
        int node = direction.reverse ? j : j - 1;
        write(direction.grid_row(from, node), direction.state(node), 1, parts[1][j]);
      }
    }
  }

 private:
  TransducerLogs<const Wide> logs_;
  ScaledArray<Wide> next_, stay_, enter_, other_;
};

template <class T>
void write_transducer_logs(const Executor& executor, const Transducer<T>& transducer,
                           TransducerLogs<Accumulator<T>> logs) {
  using Wide = Accumulator<T>;
  const LabelShape& shape = transducer.shape;
  int states = transducer.states();
  int64_t cost = 3 * states * (shape.classes + 10);
  parallel_for(executor, shape.batches * shape.frames, cost, [&](int64_t frame) {
    int64_t b = frame / shape.frames, t = frame - b * shape.frames;
    LabelLengths sample = transducer.lengths(b);
    int nodes = t < sample.frames ? sample.labels + 1 : 0;
    for (int n = 0; n < states; ++n) {
      LogitBase<Wide> base{0, 0};
      Wide blank = minus_infinity<Wide>, label = blank;
      if (n < nodes) {
        const T* x = transducer.scores(b, t, n);
        base = lattice_base(x, shape.classes, shape.is_log);
        blank = base.log_probability(Wide(x[shape.blank]));
        int c = n < sample.labels ? transducer.label(b, n) : -1;
        if (c >= 0) label = base.log_probability(Wide(x[c]));
      }
      logs.of(frame, 0)[n] = blank, logs.of(frame, 1)[n] = label;
      logs.of(frame, 2)[n] = base.most, logs.of(frame, 3)[n] = base.log_sum;
    }
  });
}

// Simple steps of a direction through half of the rows.
inline int64_t transducer_cost(const TransducerTargets& targets) { return 12 * targets.rows() * targets.states() / 2; }

}  // namespace internal

// loss [batches], and, where they are not null, what the gradient goes on from: logs [batches, frames, 4, states], half
// [batches, rows, 2, states], totals [batches, 2].
template <class T>
Status lattice(const Executor& executor, const Transducer<T>& transducer, Accumulator<T>* loss, Accumulator<T>* logs,
               Accumulator<T>* half, Accumulator<T>* totals) {
  using namespace internal;
  using Wide = Accumulator<T>;
  int states = transducer.states();
  std::vector<Wide> memory(logs == nullptr ? size_t(transducer.shape.batches * transducer.shape.frames * 4 * states)
                                           : 0);
  if (logs == nullptr) logs = memory.data();
  write_transducer_logs(executor, transducer, {logs, states});
  TransducerLattice<Wide> lattice{transducer, {logs, states}};
  auto sums = lattice_totals<TransducerSweep<Wide>>(executor, lattice, transducer_cost(transducer), half);
  for (int64_t b = 0; b < transducer.batches(); ++b) {
    Scaled<Wide> total = sums[size_t(b)];
    loss[b] = transducer.sample(b).rows == 0 ? transducer.template loss_of_nothing<Wide>(b) : transducer.loss(total);
    if (totals != nullptr) totals[2 * b] = total.m, totals[2 * b + 1] = total.e;
  }
  return {};
}

// dx of dy [batches].
template <class T>
Status lattice_backward(const Executor& executor, const Transducer<T>& transducer, const Accumulator<T>* logs,
                        const Accumulator<T>* half, const Accumulator<T>* totals, const Accumulator<T>* dy, T* dx) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const LabelShape& shape = transducer.shape;
  int states = transducer.states();
  int64_t row = 2 * int64_t(states);
  TransducerLattice<Wide> lattice{transducer, {logs, states}};
  std::vector<Wide> parts(size_t(shape.batches * shape.frames * row));  // [batches, frames, 2, states]
  auto step = [&](int64_t b) {
    return [&, b, share = Share<Wide>({totals[2 * b], totals[2 * b + 1]})](TransducerSweep<Wide>& sums, int i,
                                                                           const auto& saved) {
      const GridDirection& direction = sums.direction();
      if (i == direction.last(true)) return;
      sums.fetch(i);
      // An edge is a later direction's if it leaves one of the rows that it makes.
      if (direction.stores(true, direction.reverse ? i + 1 : i))
        sums.write_parts(i, saved(direction.row(i + 1)), share, [&](int64_t t, int n, int kind, Wide part) {
          parts[size_t((b * shape.frames + t) * row + kind * states + n)] = part;
        });
      sums.advance();
    };
  };
  lattice_second_half<TransducerSweep<Wide>>(
      executor, lattice, 3 * transducer_cost(transducer), half, [](int64_t) {}, step);
  int64_t cost = 3 * states * (shape.classes + 10);
  parallel_for(executor, shape.batches * shape.frames, cost, [&](int64_t frame) {
    int64_t b = frame / shape.frames, t = frame - b * shape.frames;
    LabelLengths sample = transducer.lengths(b);
    TransducerLogs<const Wide> bases{logs, states};
    std::vector<Wide> gradient(size_t(shape.classes));
    for (int n = 0; n < states; ++n) {
      T* to = dx + (frame * states + n) * shape.classes;
      Wide blank = parts[size_t(frame * row + n)], label = parts[size_t(frame * row + states + n)], all = blank + label;
      if (t >= sample.frames || n > sample.labels || all == 0) {  // nothing that the sample has, or no path
        std::fill_n(to, shape.classes, T(Wide(0)));
        continue;
      }
      const T* x = transducer.scores(b, t, n);
      Wide *probability = gradient.data(), of_node = dy[b];
      lattice_probabilities(x, shape.classes, shape.is_log, {bases.of(frame, 2)[n], bases.of(frame, 3)[n]},
                            probability);
      BARACUDA_INDEPENDENT
      for (int64_t c = 0; c < shape.classes; ++c) probability[c] *= all;
      probability[shape.blank] -= blank;
      int c = n < sample.labels ? transducer.label(b, n) : -1;
      if (c >= 0) probability[c] -= label;
      BARACUDA_INDEPENDENT
      for (int64_t c = 0; c < shape.classes; ++c) to[c] = T(of_node * probability[c]);
    }
  });
  return {};
}

}  // namespace baracuda
