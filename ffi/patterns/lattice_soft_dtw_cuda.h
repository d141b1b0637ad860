// The lattice of SoftDtw on a CUDA grid. For the gradient a thread has an element of the matrix.
#pragma once

#include "../kernels/soft_dtw.h"
#include "lattice_grid_cuda.h"

namespace baracuda {
namespace internal {

// The weights of elements.
template <class T>
struct SoftDtwWeights : SoftDtw<T> {
  using Wide = Accumulator<T>;

  __device__ ScaledElement<Wide> weights(int64_t b, int r, int c) const {
    if (r < 0 || r >= this->rows_of(b)) return {scaled_zero<Wide>()};
    Wide cost = Wide(this->matrix(b)[r * this->shape.columns + c]);
    return {scaled_exponential(soft_dtw_log_weight(cost, Wide(this->shape.gamma)))};
  }
};

// The sums of a row, and those of the row before it with their weights: paths may skip a row.
template <class Wide>
struct alignas(4 * sizeof(Wide)) SoftDtwMeeting {
  Scaled<Wide> sums, earlier;
};

template <class W>
struct SoftDtwLattice : SoftDtwLengths {
  using Wide = W;
  using Weights = ScaledElement<Wide>;
  using Saved = ScaledElement<Wide>;
  using Meeting = SoftDtwMeeting<Wide>;

  __device__ static Saved zero() { return {scaled_zero<Wide>()}; }
  __device__ static int weights_row(const LatticeDirection& direction, int i) { return direction.row(i); }

  template <int N>
  struct Lane : GridSums<Wide, N> {
    using GridSums<Wide, N>::sums;
    Scaled<Wide> earlier[N];
    int weight[N];  // which of a row's is that of each state; -1 where there is none

    struct Fetched {
      Scaled<Wide> weight[N];
    };

    __device__ Lane(const SoftDtwLengths&, int64_t, const LatticeDirection& direction, int first)
        : GridSums<Wide, N>(first) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        int j = first + n;
        weight[n] = j < direction.sample.states ? direction.state(j) : -1;
        earlier[n] = scaled_zero<Wide>();
      }
    }
    __device__ void load(const Saved* row, int64_t stride, bool has_before, const Weights* weights_before, int first,
                         const LatticeDirection& direction) {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        int j = first + n;
        if (j >= direction.sample.states) break;
        sums[n] = row[j].number;
        if (has_before) earlier[n] = (row - stride)[j].number * weights_before[weight[n]].number;
      }
    }
    __device__ void meet(Meeting* row, int first, LatticeSample sample, int) const {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        int j = first + n;
        if (j < sample.states) row[j] = {sums[n], earlier[n]};
      }
    }
    __device__ void fetch(const Weights* row, Fetched& to) const {
#pragma unroll
      for (int n = 0; n < N; ++n) {
        to.weight[n] = scaled_zero<Wide>();
        if (weight[n] >= 0) to.weight[n] = row[weight[n]].number;
      }
    }
    __device__ void emit(const Fetched& now) {
#pragma unroll
      for (int n = 0; n < N; ++n) sums[n] = sums[n] * now.weight[n];
    }
    __device__ Scaled<Wide> handed() const { return soft_dtw_carry(sums[N - 1], earlier[N - 1]); }
    __device__ void advance(const Fetched&, Scaled<Wide> before) {
#pragma unroll
      for (int n = N - 1; n > 0; --n) advance(n, soft_dtw_carry(sums[n - 1], earlier[n - 1]));
      advance(0, before);
    }
    __device__ void advance(int n, Scaled<Wide> carried) {
      earlier[n] = sums[n];
      sums[n] = sums[n] + carried;
    }
  };
};

// The soft minimum of each sample, from the rows in which its directions meet.
template <class Wide>
__global__ void __launch_bounds__(32 * lattice_warps)
    soft_dtw_minima(SoftDtwLengths lengths, const ScaledElement<Wide>* weights, const SoftDtwMeeting<Wide>* meeting,
                    Wide* y, ScaledElement<Wide>* totals) {
  int lane = threadIdx.x % 32, width = lengths.states();
  int64_t b = int64_t(blockIdx.x) * lattice_warps + threadIdx.x / 32;
  if (b >= lengths.batches()) return;
  LatticeSample sample = lengths.sample(b);
  Scaled<Wide> total = scaled_zero<Wide>();
  if (sample.rows > 0) {
    const ScaledElement<Wide>* weight = weights + (b * lengths.rows() + sample.middle()) * width;
    const SoftDtwMeeting<Wide>*before = meeting + 2 * b * width, *after = before + width;
    for (int c = lane; c < sample.states; c += 32) {
      int reverse = sample.states - 1 - c;
      total = total + before[c].sums * after[reverse].sums * weight[c].number;
      if (c > 0) total = total + before[c - 1].earlier * after[reverse].earlier;
    }
  }
  total = sum_of_lanes(total);
  if (lane != 0) return;
  y[b] = sample.rows == 0 ? lengths.template minimum_of_nothing<Wide>(b) : lengths.minimum(total);
  if (totals != nullptr) totals[b] = {total};
}

template <class T>
struct SoftDtwGradient {
  using Wide = Accumulator<T>;
  SoftDtwLengths lengths;
  const ScaledElement<Wide>* weights;
  const ScaledElement<Wide>*half, *other_half;  // of each row one has the sums before it, the other those after it
  const ScaledElement<Wide>* totals;
  const Wide* dy;
  T* dx;
};

template <class T>
__global__ void __launch_bounds__(32 * grid_warps) soft_dtw_gradients(SoftDtwGradient<T> work) {
  using Wide = Accumulator<T>;
  const SoftDtwLengths& lengths = work.lengths;
  int64_t rows = lengths.shape.rows, columns = lengths.shape.columns;
  GridTile tile = GridTile::of(rows, columns);
  int64_t b = tile.batch;
  int c = tile.column;
  if (c >= columns) return;
  LatticeSample sample = lengths.sample(b);
  int has_rows = sample.rows == 0 || c >= sample.states ? 0 : lengths.rows_of(b);
  Share<Wide> share(work.totals[b].number);
  Wide dy = work.dy[b];
  tile.each_row(rows, [&](int64_t r) {
    Wide part = 0;
    if (r < has_rows) {
      int64_t row = (b * lengths.rows() + r + c) * columns;
      bool is_later = r + c >= sample.middle();
      Scaled<Wide> before = (is_later ? work.other_half : work.half)[row + c].number;
      Scaled<Wide> after = (is_later ? work.half : work.other_half)[row + sample.states - 1 - c].number;
      part = share.of(before * after * work.weights[row + c].number);
    }
    work.dx[(b * rows + r) * columns + c] = T(part == 0 ? Wide(0) : dy * part);
  });
}

}  // namespace internal

// The soft minimum [batches], and, where they are not null, what the gradient goes on from: half [batches, rows, 2,
// states], totals [batches, 2].
template <class T>
Status lattice(Executor executor, const SoftDtw<T>& soft_dtw, Accumulator<T>* y, Accumulator<T>* half,
               Accumulator<T>* totals) {
  using namespace internal;
  using Wide = Accumulator<T>;
  int64_t batches = soft_dtw.batches(), states = soft_dtw.states();
  if (batches == 0) return {};
  auto* weights = executor.scratch<ScaledElement<Wide>>(batches * soft_dtw.rows() * states);
  auto* meeting = executor.scratch<SoftDtwMeeting<Wide>>(batches * 2 * states);
  if (weights == nullptr || meeting == nullptr) return small_workspace;
  Status status = write_grid_weights(executor, SoftDtwWeights<T>{soft_dtw}, weights);
  if (!status.ok()) return status;
  auto* rows = reinterpret_cast<ScaledElement<Wide>*>(half);
  status =
      lattice_sweeps(executor, LatticeSweep<SoftDtwLattice<Wide>>{{soft_dtw}, weights, nullptr, rows, meeting, false});
  if (!status.ok()) return status;
  soft_dtw_minima<<<unsigned(ceil_div(batches, lattice_warps)), 32 * lattice_warps, 0, executor.stream>>>(
      soft_dtw, weights, meeting, y, reinterpret_cast<ScaledElement<Wide>*>(totals));
  return launched();
}

// dx of dy [batches].
template <class T>
Status lattice_backward(Executor executor, const SoftDtw<T>& soft_dtw, const Accumulator<T>* half,
                        const Accumulator<T>* totals, const Accumulator<T>* dy, T* dx) {
  using namespace internal;
  using Wide = Accumulator<T>;
  const SoftDtwShape& shape = soft_dtw.shape;
  int64_t elements = soft_dtw.batches() * soft_dtw.rows() * soft_dtw.states();
  int64_t tiles = GridTile::count(shape.size, shape.rows, shape.columns);
  if (tiles == 0) return {};
  auto* weights = executor.scratch<ScaledElement<Wide>>(elements);
  auto* other_half = executor.scratch<ScaledElement<Wide>>(elements);
  if (weights == nullptr || other_half == nullptr) return small_workspace;
  Status status = write_grid_weights(executor, SoftDtwWeights<T>{soft_dtw}, weights);
  if (!status.ok()) return status;
  auto* rows = reinterpret_cast<const ScaledElement<Wide>*>(half);
  status = lattice_sweeps(executor,
                          LatticeSweep<SoftDtwLattice<Wide>>{{soft_dtw}, weights, rows, other_half, nullptr, true});
  if (!status.ok()) return status;
  soft_dtw_gradients<<<unsigned(tiles), 32 * grid_warps, 0, executor.stream>>>(SoftDtwGradient<T>{
      soft_dtw, weights, rows, other_half, reinterpret_cast<const ScaledElement<Wide>*>(totals), dy, dx});
  return launched();
}

}  // namespace baracuda
