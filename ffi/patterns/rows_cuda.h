// The rows pattern on a CUDA grid: a group of lanes, a power of two, for each row. Rows that fit stay in registers
// between the reduction and the writing, so that they are read once.
#pragma once

#include <algorithm>

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr unsigned rows_most_lanes = 512, rows_least_block = 128;

template <class State>
__device__ State from_lane(const State& state, int offset) {
  static_assert(sizeof(State) % sizeof(uint32_t) == 0);
  uint32_t words[sizeof(State) / sizeof(uint32_t)];
  memcpy(words, &state, sizeof(State));
  for (uint32_t& word : words) word = __shfl_xor_sync(0xffffffffu, word, offset);
  State other;
  memcpy(&other, words, sizeof(State));
  return other;
}

// The state of the lanes of a row, which have one threadIdx.y, in each of them. All threads of the block take part.
template <class Functor, class State>
__device__ State of_row(const Functor& functor, State state, State* shared) {
  int lanes = blockDim.x;
  for (int offset = 1; offset < 32 && offset < lanes; offset *= 2) functor.merge(state, from_lane(state, offset));
  if (lanes <= 32) return state;
  int warps = lanes / 32, first = threadIdx.y * warps;
  if (threadIdx.x % 32 == 0) shared[first + threadIdx.x / 32] = state;
  __syncthreads();
  state = shared[first];
  for (int k = 1; k < warps; ++k) functor.merge(state, shared[first + k]);
  return state;
}

// Each lane has `held` vectors of its row in registers, blockDim.x vectors apart; of longer rows the rest is read
// twice.
template <int V, int held, class Functor>
__global__ void __launch_bounds__(rows_most_lanes) reduce_and_write(Functor functor, int64_t rows, int64_t columns) {
  using State = decltype(functor.start());
  __shared__ State shared[rows_most_lanes / 32];
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y, first = row * columns + threadIdx.x * V;
  int64_t left = row < rows ? columns - threadIdx.x * V : 0;
  int step = blockDim.x * V;
  decltype(functor.template read<V>(0)) values[held];
  State state = functor.start();
#pragma unroll
  for (int i = 0; i < held; ++i)
    if (i * step < left) values[i] = functor.template read<V>(first + i * step);
#pragma unroll
  for (int i = 0; i < held; ++i)
    if (i * step < left) functor.push(state, values[i]);
  for (int64_t i = held * step; i < left; i += step) functor.push(state, functor.template read<V>(first + i));
  auto block = functor.block(of_row(functor, state, shared));
  if (threadIdx.x == 0 && row < rows) functor.finish(row, block);
#pragma unroll
  for (int i = 0; i < held; ++i)
    if (i * step < left) functor.write(first + i * step, values[i], block);
  for (int64_t i = held * step; i < left; i += step)
    functor.write(first + i, functor.template read<V>(first + i), block);
}

template <int V, int held, class Functor>
Status run_rows_by(const Executor& executor, const Functor& functor, int64_t rows, int64_t columns) {
  unsigned lanes = 1;
  while (lanes < rows_most_lanes && int64_t(lanes) * V * held < columns) lanes *= 2;
  dim3 block(lanes, std::max(rows_least_block / lanes, 1u));
  reduce_and_write<V, held><<<unsigned(ceil_div(rows, block.y)), block, 0, executor.stream>>>(functor, rows, columns);
  return launched();
}

}  // namespace internal

template <class Functor>
Status run_rows(const Executor& executor, const Functor& functor, int64_t rows, int64_t columns) {
  constexpr int V = 16 / sizeof(typename Functor::Element);
  if (rows == 0) return {};
  if (columns % V) return internal::run_rows_by<Functor::least_width, 8>(executor, functor, rows, columns);
  if (columns <= 32 * V * 4) return internal::run_rows_by<V, 4>(executor, functor, rows, columns);  // a warp does it
  return internal::run_rows_by<V, 8>(executor, functor, rows, columns);
}

}  // namespace baracuda
