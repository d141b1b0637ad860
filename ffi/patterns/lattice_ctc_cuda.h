// The lattice of Ctc on a CUDA grid: first a warp for each frame writes the probabilities of its sample's labels. The
// gradient's frames are again a warp's each: labels of one class are added in their order.
#pragma once

#include "../kernels/ctc.h"
#include "lattice_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int ctc_block_frames = 16;  // of a block that writes gradients

// What scores are normalized by, of a warp that has a row of them.
template <class T>
__device__ LogitBase<Accumulator<T>> ctc_base(const T* x, int64_t classes, bool is_log) {
  using Wide = Accumulator<T>;
  LogitBase<Wide> base{0, 0};
  if (is_log) return base;
  int lane = threadIdx.x % 32;
  Wide most = minus_infinity<Wide>, total = 0;
  for (int64_t c = lane; c < classes; c += 32) most = fmax(most, Wide(x[c]));
  base.most = largest_of_warp(most);
  for (int64_t c = lane; c < classes; c += 32) total += exponential<T>(Wide(x[c]) - base.most);
  base.log_sum = std::log(sum_of_lanes(total));
  return base;
}

// weights [batches, frames, states]: the probabilities of a frame, of the blank and of each label of its sample. Frames
// and labels that the sample does not have are left as they are.
template <class T>
__global__ void __launch_bounds__(32 * lattice_warps)
    ctc_weights(Ctc<T> ctc, ScaledElement<Accumulator<T>>* weights, LogitBase<Accumulator<T>>* bases) {
  using Wide = Accumulator<T>;
  const LabelShape& shape = ctc.shape;
  int lane = threadIdx.x % 32;
  int64_t index = int64_t(blockIdx.x) * lattice_warps + threadIdx.x / 32;
  if (index >= shape.batches * shape.frames) return;
  int64_t b = index / shape.frames;
  int t = int(index - b * shape.frames);
  LabelLengths sample = ctc.lengths(b);
  if (t >= sample.frames) return;
  const T* x = ctc.frame(b, t);
  LogitBase<Wide> base = ctc_base(x, shape.classes, shape.is_log);
  if (bases != nullptr && lane == 0) bases[index] = base;
  ScaledElement<Wide>* to = weights + index * ctc.states();
  for (int k = lane; k <= sample.labels; k += 32) {
    int c = k == 0 ? shape.blank : ctc.label(b, k - 1);
    Wide log = c < 0 ? minus_infinity<Wide> : base.log_probability(Wide(x[c]));
    to[k].number = scaled_exponential(log);
  }
}

// The sums of a frame, in memory: of each pair, in the order of the direction that made them.
template <class Wide>
struct alignas(16) CtcElement {
  CtcPair<Wide> sums;
};

// The same in the order of the sample's labels.
template <class Wide>
struct CtcSums {
  const CtcElement<Wide>* pairs;
  LatticeDirection direction;

  __device__ Scaled<Wide> blank(int i) const { return pairs[direction.state(i)].sums.blank; }
  __device__ Scaled<Wide> label(int i) const { return pairs[direction.between(i)].sums.label; }
};

template <class W>
struct CtcLattice : CtcTargets {
  using Wide = W;
  using Weights = ScaledElement<Wide>;
  using Saved = CtcElement<Wide>;
  using Meeting = Saved;

  __device__ static Saved zero() { return {{scaled_zero<Wide>(), scaled_zero<Wide>()}}; }
  __device__ static int weights_row(const LatticeDirection& direction, int i) { return direction.row(i); }

  template <int N>
  struct Lane {
    CtcPair<Wide> pairs[N];
    Wide skip[N];
    int weight[N];  // which of a frame's is that of each label; -1 where there is no label

    struct Fetched {
      Scaled<Wide> blank, label[N];
    };

    __device__ Lane(const CtcTargets& targets, int64_t b, const LatticeDirection& direction, int first) {
      int labels = direction.sample.states - 1;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        int j = first + n;
        bool is_label = j < labels;
        weight[n] = is_label ? 1 + direction.between(j) : -1;
        bool differs =
            is_label && j > 0 && targets.label(b, direction.between(j)) != targets.label(b, direction.between(j - 1));
        skip[n] = differs ? Wide(0) : minus_infinity<Wide>;
        pairs[n] = ctc_start<Wide>(j, labels);
      }
    }
    __device__ void load(const Saved* row, int64_t, bool, const Weights*, int first,
                         const LatticeDirection& direction) {
#pragma unroll
      for (int n = 0; n < N; ++n)
        if (first + n < direction.sample.states) pairs[n] = row[first + n].sums;
    }
    __device__ void store(Saved* row, int first, LatticeSample sample, int width) const {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        int j = first + n;
        if (j >= width) break;
        row[j] = {{j < sample.states ? pairs[n].blank : scaled_zero<Wide>(),
                   j < sample.states - 1 ? pairs[n].label : scaled_zero<Wide>()}};
      }
    }
    __device__ void meet(Meeting* row, int first, LatticeSample sample, int width) const {
      store(row, first, sample, width);
    }
    __device__ void fetch(const Weights* row, Fetched& to) const {
      to.blank = row[0].number;
#pragma unroll
      for (int n = 0; n < N; ++n) {
        to.label[n] = scaled_zero<Wide>();
        if (weight[n] >= 0) to.label[n] = row[weight[n]].number;
      }
    }
    __device__ void emit(const Fetched& now) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        pairs[n].blank = pairs[n].blank * now.blank;
        pairs[n].label = pairs[n].label * now.label[n];
      }
    }
    __device__ Scaled<Wide> handed() const { return pairs[N - 1].label; }
    __device__ void advance(const Fetched&, Scaled<Wide> before) {
#pragma unroll
      for (int n = N - 1; n > 0; --n) pairs[n] = ctc_next(pairs[n], pairs[n - 1].label, skip[n]);
      pairs[0] = ctc_next(pairs[0], before, skip[0]);
    }
    __device__ void normalize() {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        pairs[n].blank = normalized(pairs[n].blank);
        pairs[n].label = normalized(pairs[n].label);
      }
    }
  };
};

// The probability of a sample, from the rows in which its directions meet.
template <class T>
__global__ void __launch_bounds__(32 * lattice_warps)
    ctc_losses(Ctc<T> ctc, const ScaledElement<Accumulator<T>>* weights, const CtcElement<Accumulator<T>>* meeting,
               Accumulator<T>* losses) {
  using Wide = Accumulator<T>;
  const LabelShape& shape = ctc.shape;
  int lane = threadIdx.x % 32, pairs = ctc.states();
  int64_t b = int64_t(blockIdx.x) * lattice_warps + threadIdx.x / 32;
  if (b >= shape.batches) return;
  LatticeSample sample = ctc.sample(b);
  if (sample.rows == 0) {
    if (lane == 0) losses[b] = ctc.template loss_of_nothing<Wide>(b);
    return;
  }
  const ScaledElement<Wide>* weight = weights + (b * shape.frames + sample.middle()) * pairs;
  CtcSums<Wide> before{meeting + 2 * b * pairs, {sample, false}}, after{before.pairs + pairs, {sample, true}};
  Scaled<Wide> blank = weight[0].number, total = scaled_zero<Wide>();
  for (int i = lane; i < sample.states; i += 32) {
    total = total + before.blank(i) * after.blank(i) * blank;
    if (i < sample.states - 1) total = total + before.label(i) * after.label(i) * weight[1 + i].number;
  }
  total = sum_of_lanes(total);
  if (lane == 0) losses[b] = ctc.loss(total);
}

template <class T>
struct CtcGradientWork {
  using Wide = Accumulator<T>;
  Ctc<T> ctc;
  const ScaledElement<Wide>* weights;
  const LogitBase<Wide>* bases;
  const CtcElement<Wide>*half, *other_half;  // of each frame one has the sums before it, the other those after it
  const Wide* dy;
  T* dx;
};

// The labels of a sample in shared memory: each with the next label of its class, or -1.
struct CtcLabels {
  int *of_class, *next, *is_later;

  __device__ static CtcLabels of(const CtcTargets& targets, int64_t b, int labels, char* shared) {
    int* first = reinterpret_cast<int*>(shared);
    CtcLabels all{first, first + labels, first + 2 * labels};
    for (int n = threadIdx.x; n < labels; n += blockDim.x) all.of_class[n] = targets.label(b, n), all.is_later[n] = 0;
    __syncthreads();
    for (int n = threadIdx.x; n < labels; n += blockDim.x) {
      int next = n + 1;
      while (next < labels && all.of_class[next] != all.of_class[n]) ++next;
      all.next[n] = next < labels ? next : -1;
      if (next < labels) all.is_later[next] = 1;
    }
    __syncthreads();
    return all;
  }
  __device__ bool is_first_of_class(int n) const { return of_class[n] >= 0 && is_later[n] == 0; }
};

template <class T>
__global__ void __launch_bounds__(32 * lattice_warps) ctc_gradients(CtcGradientWork<T> work) {
  using Wide = Accumulator<T>;
  extern __shared__ double ctc_shared[];
  const Ctc<T>& ctc = work.ctc;
  const LabelShape& shape = ctc.shape;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, pairs = ctc.states();
  int64_t chunks = (shape.frames + ctc_block_frames - 1) / ctc_block_frames, b = blockIdx.x / chunks;
  int64_t chunk = blockIdx.x - b * chunks;
  LatticeSample sample = ctc.sample(b);
  int labels_of_sample = sample.states - 1;
  Wide* posterior = reinterpret_cast<Wide*>(ctc_shared) + warp * int64_t(labels_of_sample);
  CtcLabels labels =
      CtcLabels::of(ctc, b, labels_of_sample,
                    reinterpret_cast<char*>(reinterpret_cast<Wide*>(ctc_shared) + lattice_warps * labels_of_sample));

  for (int k = warp; k < ctc_block_frames; k += lattice_warps) {
    int64_t t = chunk * ctc_block_frames + k;
    if (t >= shape.frames) break;
    int64_t index = b * shape.frames + t;
    T* to = work.dx + index * shape.classes;
    bool is_frame = t < sample.rows;
    const ScaledElement<Wide>* weight = work.weights + index * pairs;
    bool is_later = t >= sample.middle();
    CtcSums<Wide> half{work.half + index * pairs, {sample, is_later}};
    CtcSums<Wide> other{work.other_half + index * pairs, {sample, !is_later}};
    Scaled<Wide> of_blank = scaled_zero<Wide>();
    Wide most = minus_infinity<Wide>, total = 0, total_of_blanks = 0;
    if (is_frame) {
      of_blank = weight[0].number;
      for (int i = lane; i < sample.states; i += 32) {
        most = fmax(most, (half.blank(i) * other.blank(i) * of_blank).e);
        if (i < sample.states - 1) most = fmax(most, (half.label(i) * other.label(i) * weight[1 + i].number).e);
      }
      most = largest_of_warp(most);
      for (int i = lane; i < sample.states; i += 32) {
        Scaled<Wide> blank = half.blank(i) * other.blank(i) * of_blank;
        total_of_blanks += blank.m * power_of_2(blank.e - most);
        if (i < sample.states - 1) {
          Scaled<Wide> label = half.label(i) * other.label(i) * weight[1 + i].number;
          Wide of_label = label.m * power_of_2(label.e - most);
          posterior[i] = of_label;
          total += of_label;
        }
      }
      total_of_blanks = sum_of_lanes(total_of_blanks);
      total = sum_of_lanes(total) + total_of_blanks;
    }
    if (!is_frame || total == 0) {  // nothing that the sample has, or no alignment
      for (int64_t c = lane; c < shape.classes; c += 32) to[c] = T(Wide(0));
      continue;
    }
    __syncwarp();  // posterior is written
    const T* x = ctc.frame(b, int(t));
    LogitBase<Wide> base = work.bases[index];
    Wide dy = work.dy[b];
    auto gradient = [&](int64_t c, Wide expected) {
      Wide own = shape.is_log ? Wide(0) : exponential<T>(base.log_probability(Wide(x[c])));
      return T(dy * (own - expected / total));
    };
    for (int64_t c = lane; c < shape.classes; c += 32)
      to[c] = gradient(c, c == shape.blank ? total_of_blanks : Wide(0));
    __syncwarp();  // labels' classes are written again
    for (int n = lane; n < labels_of_sample; n += 32) {
      if (!labels.is_first_of_class(n)) continue;
      Wide expected = posterior[n];
      for (int next = labels.next[n]; next >= 0; next = labels.next[next]) expected += posterior[next];
      to[labels.of_class[n]] = gradient(labels.of_class[n], expected);
    }
    __syncwarp();  // posterior is read
  }
}

template <class T>
Status ctc_weights_of(const Executor& executor, const Ctc<T>& ctc, ScaledElement<Accumulator<T>>* weights,
                      LogitBase<Accumulator<T>>* bases) {
  int64_t blocks = ceil_div(ctc.shape.batches * ctc.shape.frames, lattice_warps);
  if (blocks == 0) return {};
  ctc_weights<<<unsigned(blocks), 32 * lattice_warps, 0, executor.stream>>>(ctc, weights, bases);
  return launched();
}

}  // namespace internal

// loss [batches], and, where it is not null, half [batches, frames, row]: what the gradient goes on from.
template <class T>
Status lattice(Executor executor, const Ctc<T>& ctc, Accumulator<T>* loss, Accumulator<T>* half) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const LabelShape& shape = ctc.shape;
  if (shape.batches == 0) return {};
  auto* weights = executor.scratch<ScaledElement<Wide>>(shape.batches * shape.frames * ctc.states());
  auto* meeting = executor.scratch<CtcElement<Wide>>(shape.batches * 2 * ctc.states());
  if (weights == nullptr || meeting == nullptr) return small_workspace;
  Status status = ctc_weights_of(executor, ctc, weights, static_cast<LogitBase<Wide>*>(nullptr));
  if (!status.ok()) return status;
  auto* rows = reinterpret_cast<CtcElement<Wide>*>(half);
  status = lattice_sweeps(executor, LatticeSweep<CtcLattice<Wide>>{{ctc}, weights, nullptr, rows, meeting, false});
  if (!status.ok()) return status;
  ctc_losses<<<unsigned(ceil_div(shape.batches, lattice_warps)), 32 * lattice_warps, 0, executor.stream>>>(
      ctc, weights, meeting, loss);
  return launched();
}

// dx of dy [batches].
template <class T>
Status lattice_backward(Executor executor, const Ctc<T>& ctc, const Accumulator<T>* half, const Accumulator<T>* dy,
                        T* dx) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const LabelShape& shape = ctc.shape;
  int64_t frames = shape.batches * shape.frames;
  if (frames == 0) return {};
  auto* weights = executor.scratch<ScaledElement<Wide>>(frames * ctc.states());
  auto* other_half = executor.scratch<CtcElement<Wide>>(frames * ctc.states());
  auto* bases = executor.scratch<LogitBase<Wide>>(frames);
  if (weights == nullptr || other_half == nullptr || bases == nullptr) return small_workspace;
  Status status = ctc_weights_of(executor, ctc, weights, bases);
  if (!status.ok()) return status;
  auto* rows = reinterpret_cast<const CtcElement<Wide>*>(half);
  status = lattice_sweeps(executor, LatticeSweep<CtcLattice<Wide>>{{ctc}, weights, rows, other_half, nullptr, true});
  if (!status.ok()) return status;
  int64_t bytes = shape.labels * int64_t(lattice_warps * sizeof(Wide) + 3 * sizeof(int));
  if (bytes > 48 << 10) status = allow_shared_memory(ctc_gradients<T>, bytes);
  if (!status.ok()) return status;
  int64_t blocks = shape.batches * ceil_div(shape.frames, ctc_block_frames);
  ctc_gradients<<<unsigned(blocks), 32 * lattice_warps, size_t(bytes), executor.stream>>>(
      CtcGradientWork<T>{ctc, weights, bases, rows, other_half, dy, dx});
  return launched();
}

}  // namespace baracuda
