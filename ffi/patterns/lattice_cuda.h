// The lattice pattern on a CUDA grid.
//
// What leads from a row to the next, the weights, is written first, for all rows at once. Then one warp for each sample
// and direction has the states in registers, N neighboring ones in a lane: a step shuffles one number to the next lane,
// and loads come some rows ahead. Of many states a block has them, whose warps hand over a number through shared
// memory.
//
// The lattice's type L says what is in a row:
//   batches(), rows(), states(), sample(b)    sizes, as its functor has them
//   Weights, Saved, Meeting    elements of rows of memory: weights, sums, and sums of the middle row
//   weights_row(direction, i)  the row whose weights lead from step i to the next
//   Lane<N>                    a lane's states, [first, first + N) in the order of its direction
//     Fetched, fetch           weights for a step, loaded some steps ahead
//     emit, handed, advance    a step: before the next lane gets a number, what that is, and after it came
//     store, meet, load        to memory and back, all states of the sample; of those that it does not have, zeros
#pragma once

#include "lattice.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int lattice_warps = 4;  // of a block that has a row for each
inline constexpr int lattice_most_threads = 1024;
inline constexpr int lattice_most_states = 2 * lattice_most_threads;

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
template <class T>
__device__ Scaled<T> sum_of_lanes(Scaled<T> x) {
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2)
    x = x + Scaled<T>{__shfl_xor_sync(0xffffffffu, x.m, distance), __shfl_xor_sync(0xffffffffu, x.e, distance)};
  return x;
}

// A number that is loaded and stored as one.
template <class Wide>
struct alignas(2 * sizeof(Wide)) ScaledElement {
  Scaled<Wide> number;
};

// What the sweeps read and write: rows of sums, of which `start` has those where the second half begins, `rows` gets
// those of each row or is null, and `meeting` [batches, 2] gets those of the middle row.
template <class L>
struct LatticeSweep {
  L lattice;
  const typename L::Weights* weights;
  const typename L::Saved* start;
  typename L::Saved* rows;
  typename L::Meeting* meeting;
  bool is_second_half;
};

// A block has one direction of one sample. All its branches outside of lanes are those of the whole block.
template <int N, bool is_block, class L>
__global__ void __launch_bounds__(is_block ? lattice_most_threads : 32) lattice_sweep(LatticeSweep<L> work) {
  using Wide = typename L::Wide;
  using Lane = typename L::template Lane<N>;
  constexpr int ahead = is_block ? 2 : 4;
  __shared__ Scaled<Wide> border[2][lattice_most_threads / 32];
  const L& lattice = work.lattice;
  int64_t b = blockIdx.x, all_rows = lattice.rows();
  int width = lattice.states(), lane = threadIdx.x % 32, warp = threadIdx.x / 32, first = int(threadIdx.x) * N;
  LatticeDirection direction{lattice.sample(b), blockIdx.y == 1};
  int rows = direction.sample.rows;
  auto row = [&](auto* memory, int64_t r) { return memory + (b * all_rows + r) * width; };

  if (work.rows != nullptr && !work.is_second_half) {  // rows that the sample does not have
    for (int64_t r = rows + int(blockIdx.y); r < all_rows; r += 2)
      for (int j = threadIdx.x; j < width; j += blockDim.x) row(work.rows, r)[j] = L::zero();
  }
  if (rows == 0) return;

  Lane states(lattice, b, direction, first);
  int begin = direction.first(work.is_second_half), last = direction.last(work.is_second_half);
  // All go from row to row.
  int64_t stride = direction.reverse ? -width : width;
  if (work.is_second_half && direction.saved() > 0)
    states.load(row(work.start, direction.row(begin)), stride, begin > 0,
                row(work.weights, L::weights_row(direction, begin - 1)), first, direction);

  const typename L::Weights* weights = row(work.weights, L::weights_row(direction, begin));
  typename L::Saved* sums = work.rows == nullptr ? nullptr : row(work.rows, direction.row(begin));
  auto store = [&](int i) {
    bool is_stored = work.rows != nullptr && direction.stores(work.is_second_half, i);
    states.store(sums, first, direction.sample, is_stored ? width : 0);
    sums += stride;
  };
  typename Lane::Fetched fetched[ahead];
  auto fetch = [&](typename Lane::Fetched& to) {
    states.fetch(weights, to);
    weights += stride;
  };
  auto step = [&](const typename Lane::Fetched& now, int parity) {
    states.emit(now);
    Scaled<Wide> own = states.handed();
    Scaled<Wide> before{__shfl_up_sync(0xffffffffu, own.m, 1), __shfl_up_sync(0xffffffffu, own.e, 1)};
    if constexpr (is_block) {
      // Two buffers: who has passed the next barrier writes the other one.
      if (lane == 31) border[parity][warp] = own;
      __syncthreads();
      if (lane == 0 && warp > 0) before = border[parity][warp - 1];
    }
    if (threadIdx.x == 0) before = scaled_zero<Wide>();
    states.advance(now, before);
  };

#pragma unroll
  for (int d = 0; d < ahead; ++d)
    if (begin + d < last) fetch(fetched[d]);
  int i = begin;
  // A lone warp waits for every branch: there is none as long as all rows are there.
#pragma unroll 1
  for (; i + 2 * ahead <= last; i += ahead) {
#pragma unroll
    for (int d = 0; d < ahead; ++d) {
      store(i + d);
      step(fetched[d], d % 2);
      fetch(fetched[d]);
    }
    states.normalize();
  }
#pragma unroll 1
  for (; i < last; i += ahead) {
#pragma unroll
    for (int d = 0; d < ahead; ++d) {
      if (i + d >= last) break;
      store(i + d);
      step(fetched[d], d % 2);
      if (i + d + ahead < last) fetch(fetched[d]);
    }
    states.normalize();
  }
  store(last);
  if (work.meeting != nullptr) states.meet(work.meeting + (2 * b + blockIdx.y) * width, first, direction.sample, width);
}

template <class L>
Status lattice_sweeps(const Executor& executor, const LatticeSweep<L>& work) {
  dim3 grid(unsigned(work.lattice.batches()), 2);
  int states = work.lattice.states(), threads = int(ceil_div(states, 32)) * 32;
  if (states <= 32) {
    lattice_sweep<1, false><<<grid, 32, 0, executor.stream>>>(work);
  } else if (states <= 2 * 32) {
    lattice_sweep<2, false><<<grid, 32, 0, executor.stream>>>(work);
  } else if (states <= 3 * 32) {
    lattice_sweep<3, false><<<grid, 32, 0, executor.stream>>>(work);
  } else if (states <= 4 * 32) {
    lattice_sweep<4, false><<<grid, 32, 0, executor.stream>>>(work);
  } else if (states <= lattice_most_threads) {
    lattice_sweep<1, true><<<grid, threads, 0, executor.stream>>>(work);
  } else if (states <= lattice_most_states) {
    lattice_sweep<2, true><<<grid, int(ceil_div(states, 64)) * 32, 0, executor.stream>>>(work);
  } else {
    return {"a row of the lattice may have at most 2048 states"};
  }
  return launched();
}

}  // namespace internal
}  // namespace baracuda
