// The lattice of Transducer on a CUDA grid. A warp for each node reads its scores, once, and keeps logarithms. From
// these come the weights of the edges, and the sums. For the gradient a warp has a node's scores again, and writes
// their slopes: the parts of all paths that its edges have are a few numbers.
#pragma once

#include "../kernels/transducer.h"
#include "lattice_grid_cuda.h"
#include "row_loads_cuda.h"

namespace baracuda {
namespace internal {

// The probabilities of a node's edges.
template <class Wide>
struct alignas(4 * sizeof(Wide)) TransducerEdges {
  ScaledElement<Wide> blank, label;
};

template <class W>
struct TransducerLattice : TransducerTargets {
  using Wide = W;
  using Weights = TransducerEdges<Wide>;
  using Saved = ScaledElement<Wide>;
  using Meeting = Saved;

  TransducerLogs<const Wide> logs;

  __device__ static Saved zero() { return {scaled_zero<Wide>()}; }
  // In reverse an edge belongs to the node that it leads back to.
  __device__ static int weights_row(const LatticeDirection& direction, int i) {
    return direction.row(direction.reverse ? i + 1 : i);
  }
  __device__ Weights weights(int64_t b, int t, int n) const {
    if (t < 0 || t >= lengths(b).frames) return {{scaled_zero<Wide>()}, {scaled_zero<Wide>()}};
    int64_t frame = b * shape.frames + t;
    return {{scaled_exponential(logs.of(frame, 0)[n])}, {scaled_exponential(logs.of(frame, 1)[n])}};
  }

  template <int N>
  struct Lane : GridSums<Wide, N> {
    using GridSums<Wide, N>::sums;
    int stay[N], enter[N];  // whose blank leads to a state, and whose label; -1 where there is none

    struct Fetched {
      Scaled<Wide> stay[N], enter[N];
    };

    __device__ Lane(const TransducerTargets&, int64_t, const LatticeDirection& direction, int first)
        : GridSums<Wide, N>(first) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        int j = first + n;
        bool is_state = j < direction.sample.states;
        stay[n] = is_state ? direction.state(j) : -1;
        enter[n] = is_state && j > 0 ? direction.between(j - 1) : -1;
      }
    }
    __device__ void load(const Saved* row, int64_t, bool, const Weights*, int first,
                         const LatticeDirection& direction) {
#pragma unroll
      for (int n = 0; n < N; ++n)
        if (first + n < direction.sample.states) sums[n] = row[first + n].number;
    }
    __device__ void meet(Meeting* row, int first, LatticeSample sample, int width) const {
      this->store(row, first, sample, width);
    }
    __device__ void fetch(const Weights* row, Fetched& to) const {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        to.stay[n] = to.enter[n] = scaled_zero<Wide>();
        if (stay[n] >= 0) to.stay[n] = row[stay[n]].blank.number;
        if (enter[n] >= 0) to.enter[n] = row[enter[n]].label.number;
      }
    }
    __device__ void emit(const Fetched&) {}
    __device__ Scaled<Wide> handed() const { return sums[N - 1]; }
    __device__ void advance(const Fetched& now, Scaled<Wide> before) {
#pragma unroll
      for (int n = N - 1; n > 0; --n) sums[n] = transducer_next(sums[n], now.stay[n], sums[n - 1], now.enter[n]);
      sums[0] = transducer_next(sums[0], now.stay[0], before, now.enter[0]);
    }
  };
};

// What a row is normalized by, of a warp that has it. It is read once, since the rows of a GPU's warps are more than
// its caches hold: each lane's sum is relative to the largest element that it met.
template <class T>
__device__ LogitBase<Accumulator<T>> logit_base_at_once(const T* x, int64_t classes) {
  using Wide = Accumulator<T>;
  using Loads = RowLoads<32, T>;
  Loads loads(x, 0, uint32_t(classes));
  Wide most = minus_infinity<Wide>, total = 0;
  auto shift = [](Wide most) { return most == minus_infinity<Wide> ? Wide(0) : most; };
  loads.template each<2>([&](const typename Loads::Load& load, uint32_t offset) {
    uint32_t mask = loads.mask(loads.position(offset));
    Wide some[Loads::elements], larger = most;
#pragma unroll
    for (uint32_t k = 0; k < Loads::elements; ++k) {
      some[k] = (mask >> k & 1) != 0 ? Wide(load.lane[k]) : minus_infinity<Wide>;
      larger = fmax(larger, some[k]);
    }
    total *= exponential<T>(most - shift(larger));
#pragma unroll
    for (uint32_t k = 0; k < Loads::elements; ++k) total += exponential<T>(some[k] - shift(larger));
    most = larger;
  });
  Wide all = largest_of_warp(most);
  total *= exponential<T>(most - shift(all));
  return {all, std::log(sum_of_lanes(total))};
}

// logs [batches, frames, 4, states] of what the sample has; of other nodes zeros.
template <class T>
__global__ void __launch_bounds__(32 * lattice_warps)
    transducer_logs(Transducer<T> transducer, TransducerLogs<Accumulator<T>> logs) {
  using Wide = Accumulator<T>;
  const LabelShape& shape = transducer.shape;
  int lane = threadIdx.x % 32, states = transducer.states();
  int64_t node = int64_t(blockIdx.x) * lattice_warps + threadIdx.x / 32, frame = node / states;
  if (frame >= shape.batches * shape.frames) return;
  int n = int(node - frame * states);
  int64_t b = frame / shape.frames, t = frame - b * shape.frames;
  LabelLengths sample = transducer.lengths(b);
  LogitBase<Wide> base{0, 0};
  Wide blank = 0, label = 0;
  if (t < sample.frames && n <= sample.labels) {
    const T* x = transducer.scores(b, t, n);
    if (!shape.is_log) base = logit_base_at_once(x, shape.classes);
    blank = base.log_probability(Wide(x[shape.blank]));
    int c = n < sample.labels ? transducer.label(b, n) : -1;
    label = c < 0 ? minus_infinity<Wide> : base.log_probability(Wide(x[c]));
  }
  if (lane < 4) logs.of(frame, lane)[n] = lane == 0 ? blank : lane == 1 ? label : lane == 2 ? base.most : base.log_sum;
}

// The loss of each sample, from the rows in which its directions meet.
template <class Wide>
__global__ void __launch_bounds__(32 * lattice_warps)
    transducer_losses(TransducerTargets targets, const ScaledElement<Wide>* meeting, Wide* losses,
                      ScaledElement<Wide>* totals) {
  int lane = threadIdx.x % 32, width = targets.states();
  int64_t b = int64_t(blockIdx.x) * lattice_warps + threadIdx.x / 32;
  if (b >= targets.batches()) return;
  LatticeSample sample = targets.sample(b);
  Scaled<Wide> total = scaled_zero<Wide>();
  if (sample.rows > 0) {
    const ScaledElement<Wide>*before = meeting + 2 * b * width, *after = before + width;
    for (int n = lane; n < sample.states; n += 32)
      total = total + before[n].number * after[sample.states - 1 - n].number;
  }
  total = sum_of_lanes(total);
  if (lane != 0) return;
  losses[b] = sample.rows == 0 ? targets.template loss_of_nothing<Wide>(b) : targets.loss(total);
  if (totals != nullptr) totals[b] = {total};
}

template <class T>
struct TransducerGradient {
  using Wide = Accumulator<T>;
  Transducer<T> transducer;
  TransducerLogs<const Wide> logs;
  const TransducerEdges<Wide>* weights;
  const ScaledElement<Wide>*half, *other_half;  // of each row one has the sums before it, the other those after it
  const ScaledElement<Wide>* totals;
  const Wide* dy;
  T* dx;
};

// Some elements of a row, of which the mask has those that are in it.
template <class Load, class T>
__device__ void store_some(T* row, uint32_t position, uint32_t mask, const Load& some) {
  constexpr int elements = sizeof(Load) / sizeof(T);
  T* to = row + int32_t(position);
  if (mask == (1u << elements) - 1 && reinterpret_cast<uintptr_t>(to) % 16 == 0) return store<elements>(to, some);
#pragma unroll
  for (int k = 0; k < elements; ++k)
    if ((mask >> k & 1) != 0) to[k] = some.lane[k];
}

template <class T>
__global__ void __launch_bounds__(32 * lattice_warps) transducer_gradients(TransducerGradient<T> work) {
  using Wide = Accumulator<T>;
  using Loads = RowLoads<32, T>;
  using Load = typename Loads::Load;
  const Transducer<T>& transducer = work.transducer;
  const LabelShape& shape = transducer.shape;
  int states = transducer.states();
  int64_t node = int64_t(blockIdx.x) * lattice_warps + threadIdx.x / 32, frame = node / states;
  if (frame >= shape.batches * shape.frames) return;
  int n = int(node - frame * states);
  int64_t b = frame / shape.frames, t = frame - b * shape.frames;
  LabelLengths lengths = transducer.lengths(b);
  Wide blank = 0, label = 0;
  if (t < lengths.frames && n <= lengths.labels) {
    LatticeSample sample = transducer.sample(b);
    int64_t r = t + n, row = (b * transducer.rows() + r) * states;
    auto after = [&](int n) {
      const ScaledElement<Wide>* sums = r + 1 < sample.middle() ? work.other_half : work.half;
      return sums[row + states + sample.states - 1 - n].number;
    };
    Scaled<Wide> before = (r < sample.middle() ? work.half : work.other_half)[row + n].number;
    TransducerEdges<Wide> edges = work.weights[row + n];
    Share<Wide> share(work.totals[b].number);
    blank = share.of(before * edges.blank.number * after(n));
    if (n < lengths.labels) label = share.of(before * edges.label.number * after(n + 1));
  }
  T* to = work.dx + node * shape.classes;
  Wide all = blank + label;
  if (all == 0) {  // nothing that the sample has, or no path
    Loads of_result(to, 0, uint32_t(shape.classes));
    Load zeros;
#pragma unroll
    for (uint32_t k = 0; k < Loads::elements; ++k) zeros.lane[k] = T(Wide(0));
    for (uint32_t chunk = 0; chunk < of_result.chunks(); ++chunk) {
      uint32_t position = of_result.position(of_result.offset(chunk));
      store_some(to, position, of_result.mask(position), zeros);
    }
    return;
  }
  LogitBase<Wide> base{work.logs.of(frame, 2)[n], work.logs.of(frame, 3)[n]};
  Wide dy = work.dy[b];
  int own = n < lengths.labels ? transducer.label(b, n) : -1;
  Loads loads(transducer.scores(b, t, n), 0, uint32_t(shape.classes));
  loads.template each<2>([&](const Load& load, uint32_t offset) {
    uint32_t position = loads.position(offset);
    Load slopes;
#pragma unroll
    for (uint32_t k = 0; k < Loads::elements; ++k) {
      int c = int(position + k);
      Wide slope = shape.is_log ? Wide(0) : all * exponential<T>(base.log_probability(Wide(load.lane[k])));
      slopes.lane[k] = T(dy * (slope - (c == shape.blank ? blank : c == own ? label : Wide(0))));
    }
    store_some(to, position, loads.mask(position), slopes);
  });
}

inline unsigned transducer_blocks(const TransducerTargets& targets) {
  return unsigned(ceil_div(targets.shape.batches * targets.shape.frames * targets.states(), lattice_warps));
}

}  // namespace internal

// loss [batches], and, where they are not null, what the gradient goes on from: logs [batches, frames, 4, states], half
// [batches, rows, 2, states], totals [batches, 2].
template <class T>
Status lattice(Executor executor, const Transducer<T>& transducer, Accumulator<T>* loss, Accumulator<T>* logs,
               Accumulator<T>* half, Accumulator<T>* totals) {
  using namespace internal;
  using Wide = Accumulator<T>;
  int64_t batches = transducer.batches(), states = transducer.states();
  if (batches == 0) return {};
  auto* weights = executor.scratch<TransducerEdges<Wide>>(batches * transducer.rows() * states);
  auto* meeting = executor.scratch<ScaledElement<Wide>>(batches * 2 * states);
  if (logs == nullptr) logs = executor.scratch<Wide>(batches * transducer.shape.frames * 4 * states);
  if (weights == nullptr || meeting == nullptr || logs == nullptr) return small_workspace;
  if (unsigned blocks = transducer_blocks(transducer)) {
    transducer_logs<<<blocks, 32 * lattice_warps, 0, executor.stream>>>(transducer, {logs, int(states)});
    if (Status status = launched(); !status.ok()) return status;
  }
  TransducerLattice<Wide> lattice{transducer, {logs, int(states)}};
  Status status = write_grid_weights(executor, lattice, weights);
  if (!status.ok()) return status;
  auto* rows = reinterpret_cast<ScaledElement<Wide>*>(half);
  status =
      lattice_sweeps(executor, LatticeSweep<TransducerLattice<Wide>>{lattice, weights, nullptr, rows, meeting, false});
  if (!status.ok()) return status;
  transducer_losses<<<unsigned(ceil_div(batches, lattice_warps)), 32 * lattice_warps, 0, executor.stream>>>(
      transducer, meeting, loss, reinterpret_cast<ScaledElement<Wide>*>(totals));
  return launched();
}

// dx of dy [batches].
template <class T>
Status lattice_backward(Executor executor, const Transducer<T>& transducer, const Accumulator<T>* logs,
                        const Accumulator<T>* half, const Accumulator<T>* totals, const Accumulator<T>* dy, T* dx) {
  using namespace internal;
  using Wide = Accumulator<T>;
  int64_t states = transducer.states(), elements = transducer.batches() * transducer.rows() * states;
  unsigned blocks = transducer_blocks(transducer);
  if (blocks == 0) return {};
  auto* weights = executor.scratch<TransducerEdges<Wide>>(elements);
  auto* other_half = executor.scratch<ScaledElement<Wide>>(elements);
  if (weights == nullptr || other_half == nullptr) return small_workspace;
  TransducerLattice<Wide> lattice{transducer, {logs, int(states)}};
  Status status = write_grid_weights(executor, lattice, weights);
  if (!status.ok()) return status;
  auto* rows = reinterpret_cast<const ScaledElement<Wide>*>(half);
  status = lattice_sweeps(executor,
                          LatticeSweep<TransducerLattice<Wide>>{lattice, weights, rows, other_half, nullptr, true});
  if (!status.ok()) return status;
  transducer_gradients<<<blocks, 32 * lattice_warps, 0, executor.stream>>>(
      TransducerGradient<T>{transducer,
                            {logs, int(states)},
                            weights,
                            rows,
                            other_half,
                            reinterpret_cast<const ScaledElement<Wide>*>(totals),
                            dy,
                            dx});
  return launched();
}

}  // namespace baracuda
