// The lattice pattern on a CUDA grid.
//
// First a warp for each frame writes the probabilities of its sample's labels, which all frames have at once. Then one
// warp for each sample and direction has the states in registers, N neighboring pairs in a lane: a step shuffles one
// label to the next lane, and loads come some frames ahead. Of long targets a block has them, whose warps hand over a
// label through shared memory. The gradient's frames are again a warp's each: labels of one class are added in their
// order.
#pragma once

#include "lattice.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int lattice_warps = 4;          // of a block that has a frame for each
inline constexpr int lattice_block_frames = 16;  // of a block that writes gradients
inline constexpr int lattice_most_threads = 1024;

template <class T>
__device__ T largest_of_warp(T x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) x = fmax(x, __shfl_xor_sync(0xffffffffu, x, distance));
  return x;
}
template <class T>
__device__ T sum_of_lanes(T x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) x += __shfl_xor_sync(0xffffffffu, x, distance);
  return x;
}

// The probabilities of a frame: of the blank, and of each label of its sample.
template <class Wide>
struct alignas(2 * sizeof(Wide)) Emission {
  Scaled<Wide> probability;
};

// emissions [batches, frames, pairs]. Frames and labels that the sample does not have are left as they are.
template <class T>
__global__ void __launch_bounds__(32 * lattice_warps)
    lattice_emissions(Ctc<T> ctc, Emission<Accumulator<T>>* emissions, CtcBase<Accumulator<T>>* bases) {
  using Wide = Accumulator<T>;
  const CtcShape& shape = ctc.shape;
  int lane = threadIdx.x % 32;
  int64_t index = int64_t(blockIdx.x) * lattice_warps + threadIdx.x / 32;
  if (index >= shape.batches * shape.frames) return;
  int64_t b = index / shape.frames;
  int t = int(index - b * shape.frames);
  CtcSample sample = ctc.sample(b);
  if (t >= sample.frames) return;
  const T* x = ctc.frame(b, t);
  CtcBase<Wide> base{0, 0};
  if (!shape.is_log) {
    Wide most = minus_infinity<Wide>, total = 0;
    for (int64_t c = lane; c < shape.classes; c += 32) most = fmax(most, Wide(x[c]));
    base.most = largest_of_warp(most);
    for (int64_t c = lane; c < shape.classes; c += 32) total += exponential<T>(Wide(x[c]) - base.most);
    base.log_sum = std::log(sum_of_lanes(total));
  }
  if (bases != nullptr && lane == 0) bases[index] = base;
  Emission<Wide>* to = emissions + index * shape.pairs();
  for (int k = lane; k <= sample.labels; k += 32) {
    int c = k == 0 ? shape.blank : ctc.label(b, k - 1);
    Wide log = c < 0 ? minus_infinity<Wide> : base.log_probability(Wide(x[c]));
    to[k].probability = scaled_exponential(log);
  }
}

// The sums of a frame, in memory: of each pair, in the order of the direction that made them.
template <class Wide>
struct alignas(16) LatticePair {
  CtcPair<Wide> sums;
};

// The same in the order of the sample's labels.
template <class Wide>
struct LatticeSums {
  const LatticePair<Wide>* pairs;
  LatticeDirection direction;

  __device__ Scaled<Wide> blank(int i) const { return pairs[direction.blank(i)].sums.blank; }
  __device__ Scaled<Wide> label(int i) const { return pairs[direction.label(i)].sums.label; }
};

// What the sweeps read and write: rows of sums, of which `start` has those where the second half begins, `rows` gets
// those of each frame or is null, and `meeting` [batches, 2] gets those of the middle frame.
template <class Wide>
struct LatticeSweep {
  CtcTargets targets;
  const Emission<Wide>* emissions;
  const LatticePair<Wide>* start;
  LatticePair<Wide>*rows, *meeting;
  bool is_second_half;
};

// The states of a lane.
template <int N, class Wide>
struct LatticeLane {
  CtcPair<Wide> pairs[N];
  Wide skip[N];
  int emission[N];  // which of a frame's is that of each label; -1 where there is no label

  __device__ LatticeLane(const CtcTargets& targets, int64_t b, const LatticeDirection& direction, int first) {
    int labels = direction.sample.labels;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      int j = first + n;
      bool is_label = j < labels;
      emission[n] = is_label ? 1 + direction.label(j) : -1;
      bool differs =
          is_label && j > 0 && targets.label(b, direction.label(j)) != targets.label(b, direction.label(j - 1));
      skip[n] = differs ? Wide(0) : minus_infinity<Wide>;
      pairs[n] = ctc_start<Wide>(j, direction.sample);
    }
  }
  __device__ void load(const LatticePair<Wide>* row, int first, int pairs_of_sample) {
#pragma unroll
    for (int n = 0; n < N; ++n)
      if (first + n < pairs_of_sample) pairs[n] = row[first + n].sums;
  }
  // Also zeros of states that the sample does not have.
  __device__ void store(LatticePair<Wide>* row, int first, int labels, int pairs_of_row) const {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      int j = first + n;
      if (j >= pairs_of_row) break;
      row[j] = {
          {j <= labels ? pairs[n].blank : scaled_zero<Wide>(), j < labels ? pairs[n].label : scaled_zero<Wide>()}};
    }
  }
};

// A block has one direction of one sample. All its branches outside of lanes are those of the whole block.
template <int N, bool is_block, class Wide>
__global__ void __launch_bounds__(is_block ? lattice_most_threads : 32) lattice_sweep(LatticeSweep<Wide> work) {
  constexpr int ahead = is_block ? 2 : 4;
  __shared__ Scaled<Wide> border[2][lattice_most_threads / 32];
  const CtcShape& shape = work.targets.shape;
  int64_t b = blockIdx.x;
  int pairs = shape.pairs(), lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = int(threadIdx.x) * N;
  LatticeDirection direction{work.targets.sample(b), blockIdx.y == 1};
  int frames = direction.sample.frames, labels = direction.sample.labels;
  auto row = [&](auto* rows, int64_t t) { return rows + (b * shape.frames + t) * pairs; };

  if (work.rows != nullptr && !work.is_second_half) {  // frames that the sample does not have
    for (int64_t t = frames + int(blockIdx.y); t < shape.frames; t += 2)
      for (int j = threadIdx.x; j < pairs; j += blockDim.x)
        row(work.rows, t)[j] = {{scaled_zero<Wide>(), scaled_zero<Wide>()}};
  }
  if (frames == 0) return;

  LatticeLane<N, Wide> states(work.targets, b, direction, first);
  int begin = direction.first(work.is_second_half), last = direction.last(work.is_second_half);
  if (work.is_second_half && direction.saved() > 0)
    states.load(row(work.start, direction.frame(begin)), first, labels + 1);

  // Both go from frame to frame.
  int64_t stride = direction.reverse ? -pairs : pairs;
  const Emission<Wide>* emission = row(work.emissions, direction.frame(begin));
  LatticePair<Wide>* sums = work.rows == nullptr ? nullptr : row(work.rows, direction.frame(begin));
  auto store = [&](int i) {
    bool is_stored = work.rows != nullptr && direction.stores(work.is_second_half, i);
    states.store(sums, first, labels, is_stored ? pairs : 0);
    sums += stride;
  };
  Scaled<Wide> of_blank[ahead], of_label[ahead][N];
  auto fetch = [&](Scaled<Wide>& blank, Scaled<Wide>(&label)[N]) {
    blank = emission[0].probability;
#pragma unroll
    for (int n = 0; n < N; ++n) {
      label[n] = scaled_zero<Wide>();
      if (states.emission[n] >= 0) label[n] = emission[states.emission[n]].probability;
    }
    emission += stride;
  };
  auto step = [&](Scaled<Wide> blank, const Scaled<Wide>(&label)[N], int parity) {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      states.pairs[n].blank = states.pairs[n].blank * blank;
      states.pairs[n].label = states.pairs[n].label * label[n];
    }
    Scaled<Wide> own = states.pairs[N - 1].label;
    Scaled<Wide> before{__shfl_up_sync(0xffffffffu, own.m, 1), __shfl_up_sync(0xffffffffu, own.e, 1)};
    if constexpr (is_block) {
      // Two buffers: who has passed the next barrier writes the other one.
      if (lane == 31) border[parity][warp] = own;
      __syncthreads();
      if (lane == 0 && warp > 0) before = border[parity][warp - 1];
    }
    if (threadIdx.x == 0) before = scaled_zero<Wide>();
#pragma unroll
    for (int n = N - 1; n > 0; --n)
      states.pairs[n] = ctc_next(states.pairs[n], states.pairs[n - 1].label, states.skip[n]);
    states.pairs[0] = ctc_next(states.pairs[0], before, states.skip[0]);
  };

  auto normalize = [&] {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      states.pairs[n].blank = normalized(states.pairs[n].blank);
      states.pairs[n].label = normalized(states.pairs[n].label);
    }
  };

#pragma unroll
  for (int d = 0; d < ahead; ++d)
    if (begin + d < last) fetch(of_blank[d], of_label[d]);
  int i = begin;
  // A lone warp waits for every branch: there is none as long as all frames are there.
#pragma unroll 1
  for (; i + 2 * ahead <= last; i += ahead) {
#pragma unroll
    for (int d = 0; d < ahead; ++d) {
      store(i + d);
      step(of_blank[d], of_label[d], d % 2);
      fetch(of_blank[d], of_label[d]);
    }
    normalize();
  }
#pragma unroll 1
  for (; i < last; i += ahead) {
#pragma unroll
    for (int d = 0; d < ahead; ++d) {
      if (i + d >= last) break;
      store(i + d);
      step(of_blank[d], of_label[d], d % 2);
      if (i + d + ahead < last) fetch(of_blank[d], of_label[d]);
    }
    normalize();
  }
  store(last);
  if (work.meeting != nullptr) states.store(work.meeting + (2 * b + blockIdx.y) * pairs, first, labels, pairs);
}

// The probability of a sample, from the rows in which its directions meet.
template <class T>
__global__ void __launch_bounds__(32 * lattice_warps)
    lattice_losses(Ctc<T> ctc, const Emission<Accumulator<T>>* emissions, const LatticePair<Accumulator<T>>* meeting,
                   Accumulator<T>* losses) {
  using Wide = Accumulator<T>;
  const CtcShape& shape = ctc.shape;
  int lane = threadIdx.x % 32, pairs = shape.pairs();
  int64_t b = int64_t(blockIdx.x) * lattice_warps + threadIdx.x / 32;
  if (b >= shape.batches) return;
  CtcSample sample = ctc.sample(b);
  if (sample.frames == 0) {
    if (lane == 0) losses[b] = ctc.loss_of_nothing(sample);
    return;
  }
  const Emission<Wide>* emission = emissions + (b * shape.frames + sample.middle()) * pairs;
  LatticeSums<Wide> before{meeting + 2 * b * pairs, {sample, false}}, after{before.pairs + pairs, {sample, true}};
  Scaled<Wide> blank = emission[0].probability, total = scaled_zero<Wide>();
  for (int i = lane; i <= sample.labels; i += 32) {
    total = total + before.blank(i) * after.blank(i) * blank;
    if (i < sample.labels) total = total + before.label(i) * after.label(i) * emission[1 + i].probability;
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    total = total + Scaled<Wide>{__shfl_xor_sync(0xffffffffu, total.m, distance),
                                 __shfl_xor_sync(0xffffffffu, total.e, distance)};
  if (lane == 0) losses[b] = ctc.loss(total);
}

template <class T>
struct LatticeGradient {
  using Wide = Accumulator<T>;
  Ctc<T> ctc;
  const Emission<Wide>* emissions;
  const CtcBase<Wide>* bases;
  const LatticePair<Wide>*half, *other_half;  // of each frame one has the sums before it, the other those after it
  const Wide* dy;
  T* dx;
};

// The labels of a sample in shared memory: each with the next label of its class, or -1.
struct LatticeLabels {
  int *of_class, *next, *is_later;

  __device__ static LatticeLabels of(const CtcTargets& targets, int64_t b, int labels, char* shared) {
    int* first = reinterpret_cast<int*>(shared);
    LatticeLabels all{first, first + labels, first + 2 * labels};
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
__global__ void __launch_bounds__(32 * lattice_warps) lattice_gradients(LatticeGradient<T> work) {
  using Wide = Accumulator<T>;
  extern __shared__ double lattice_shared[];
  const Ctc<T>& ctc = work.ctc;
  const CtcShape& shape = ctc.shape;
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, pairs = shape.pairs();
  int64_t chunks = (shape.frames + lattice_block_frames - 1) / lattice_block_frames, b = blockIdx.x / chunks;
  int64_t chunk = blockIdx.x - b * chunks;
  CtcSample sample = ctc.sample(b);
  Wide* posterior = reinterpret_cast<Wide*>(lattice_shared) + warp * int64_t(sample.labels);
  LatticeLabels labels = LatticeLabels::of(
      ctc, b, sample.labels,
      reinterpret_cast<char*>(reinterpret_cast<Wide*>(lattice_shared) + lattice_warps * sample.labels));

  for (int k = warp; k < lattice_block_frames; k += lattice_warps) {
    int64_t t = chunk * lattice_block_frames + k;
    if (t >= shape.frames) break;
    int64_t index = b * shape.frames + t;
    T* to = work.dx + index * shape.classes;
    bool is_frame = t < sample.frames;
    const Emission<Wide>* emission = work.emissions + index * pairs;
    bool is_later = t >= sample.middle();
    LatticeSums<Wide> half{work.half + index * pairs, {sample, is_later}};
    LatticeSums<Wide> other{work.other_half + index * pairs, {sample, !is_later}};
    Scaled<Wide> of_blank = scaled_zero<Wide>();
    Wide most = minus_infinity<Wide>, total = 0, total_of_blanks = 0;
    if (is_frame) {
      of_blank = emission[0].probability;
      for (int i = lane; i <= sample.labels; i += 32) {
        most = fmax(most, (half.blank(i) * other.blank(i) * of_blank).e);
        if (i < sample.labels) most = fmax(most, (half.label(i) * other.label(i) * emission[1 + i].probability).e);
      }
      most = largest_of_warp(most);
      for (int i = lane; i <= sample.labels; i += 32) {
        Scaled<Wide> blank = half.blank(i) * other.blank(i) * of_blank;
        total_of_blanks += blank.m * power_of_2(blank.e - most);
        if (i < sample.labels) {
          Scaled<Wide> label = half.label(i) * other.label(i) * emission[1 + i].probability;
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
    CtcBase<Wide> base = work.bases[index];
    Wide dy = work.dy[b];
    auto gradient = [&](int64_t c, Wide expected) {
      Wide own = shape.is_log ? Wide(0) : exponential<T>(base.log_probability(Wide(x[c])));
      return T(dy * (own - expected / total));
    };
    for (int64_t c = lane; c < shape.classes; c += 32)
      to[c] = gradient(c, c == shape.blank ? total_of_blanks : Wide(0));
    __syncwarp();  // labels' classes are written again
    for (int n = lane; n < sample.labels; n += 32) {
      if (!labels.is_first_of_class(n)) continue;
      Wide expected = posterior[n];
      for (int next = labels.next[n]; next >= 0; next = labels.next[next]) expected += posterior[next];
      to[labels.of_class[n]] = gradient(labels.of_class[n], expected);
    }
    __syncwarp();  // posterior is read
  }
}

template <class Wide>
Status lattice_sweeps(const Executor& executor, const LatticeSweep<Wide>& work) {
  dim3 grid(unsigned(work.targets.shape.batches), 2);
  int pairs = work.targets.shape.pairs(), threads = int(ceil_div(pairs, 32)) * 32;
  if (pairs <= 32) {
    lattice_sweep<1, false><<<grid, 32, 0, executor.stream>>>(work);
  } else if (pairs <= 2 * 32) {
    lattice_sweep<2, false><<<grid, 32, 0, executor.stream>>>(work);
  } else if (pairs <= 3 * 32) {
    lattice_sweep<3, false><<<grid, 32, 0, executor.stream>>>(work);
  } else if (pairs <= 4 * 32) {
    lattice_sweep<4, false><<<grid, 32, 0, executor.stream>>>(work);
  } else if (pairs <= lattice_most_threads) {
    lattice_sweep<1, true><<<grid, threads, 0, executor.stream>>>(work);
  } else if (pairs <= 2 * lattice_most_threads) {
    lattice_sweep<2, true><<<grid, int(ceil_div(pairs, 64)) * 32, 0, executor.stream>>>(work);
  } else {
    return {"a target may have at most 2047 labels"};
  }
  return launched();
}

template <class T>
Status emit(const Executor& executor, const Ctc<T>& ctc, Emission<Accumulator<T>>* emissions,
            CtcBase<Accumulator<T>>* bases) {
  int64_t blocks = ceil_div(ctc.shape.batches * ctc.shape.frames, lattice_warps);
  if (blocks == 0) return {};
  lattice_emissions<<<unsigned(blocks), 32 * lattice_warps, 0, executor.stream>>>(ctc, emissions, bases);
  return launched();
}

}  // namespace internal

// loss [batches], and, where it is not null, half [batches, frames, row]: what the gradient goes on from.
template <class T>
Status lattice(Executor executor, const Ctc<T>& ctc, Accumulator<T>* loss, Accumulator<T>* half) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const CtcShape& shape = ctc.shape;
  if (shape.batches == 0) return {};
  auto* emissions = executor.scratch<Emission<Wide>>(shape.batches * shape.frames * shape.pairs());
  auto* meeting = executor.scratch<LatticePair<Wide>>(shape.batches * 2 * shape.pairs());
  if (emissions == nullptr || meeting == nullptr) return small_workspace;
  Status status = emit(executor, ctc, emissions, static_cast<CtcBase<Wide>*>(nullptr));
  if (!status.ok()) return status;
  auto* rows = reinterpret_cast<LatticePair<Wide>*>(half);
  status = lattice_sweeps(executor, LatticeSweep<Wide>{ctc, emissions, nullptr, rows, meeting, false});
  if (!status.ok()) return status;
  lattice_losses<<<unsigned(ceil_div(shape.batches, lattice_warps)), 32 * lattice_warps, 0, executor.stream>>>(
      ctc, emissions, meeting, loss);
  return launched();
}

// dx of dy [batches].
template <class T>
Status lattice_backward(Executor executor, const Ctc<T>& ctc, const Accumulator<T>* half, const Accumulator<T>* dy,
                        T* dx) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const CtcShape& shape = ctc.shape;
  int64_t frames = shape.batches * shape.frames;
  if (frames == 0) return {};
  auto* emissions = executor.scratch<Emission<Wide>>(frames * shape.pairs());
  auto* other_half = executor.scratch<LatticePair<Wide>>(frames * shape.pairs());
  auto* bases = executor.scratch<CtcBase<Wide>>(frames);
  if (emissions == nullptr || other_half == nullptr || bases == nullptr) return small_workspace;
  Status status = emit(executor, ctc, emissions, bases);
  if (!status.ok()) return status;
  auto* rows = reinterpret_cast<const LatticePair<Wide>*>(half);
  status = lattice_sweeps(executor, LatticeSweep<Wide>{ctc, emissions, rows, other_half, nullptr, true});
  if (!status.ok()) return status;
  int64_t bytes = shape.labels * int64_t(lattice_warps * sizeof(Wide) + 3 * sizeof(int));
  if (bytes > 48 << 10) status = allow_shared_memory(lattice_gradients<T>, bytes);
  if (!status.ok()) return status;
  int64_t blocks = shape.batches * ceil_div(shape.frames, lattice_block_frames);
  lattice_gradients<<<unsigned(blocks), 32 * lattice_warps, size_t(bytes), executor.stream>>>(
      LatticeGradient<T>{ctc, emissions, bases, rows, other_half, dy, dx});
  return launched();
}

}  // namespace baracuda
