// The rows pattern on a CUDA grid: a group of lanes, a power of two, for each row. Rows that fit stay in registers
// between the reduction and the writing, so that they are read once.
#pragma once

#include <algorithm>

#include "../kernels/number.h"
#include "executor.h"

namespace baracuda {
namespace internal {

inline constexpr int rows_block = 256;

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

// The state of all lanes of a group, in every lane. All threads of the block take part.
template <class Functor, class State>
__device__ State of_group(const Functor& functor, State state, int lanes, State* shared) {
  for (int offset = 1; offset < 32 && offset < lanes; offset *= 2) functor.merge(state, from_lane(state, offset));
  if (lanes <= 32) return state;
  int warps = lanes / 32, warp = threadIdx.x / 32, first = warp / warps * warps;
  if (threadIdx.x % 32 == 0) shared[warp] = state;
  __syncthreads();
  state = shared[first];
  for (int k = 1; k < warps; ++k) functor.merge(state, shared[first + k]);
  return state;
}

// Each lane has `held` vectors of its row in registers, `lanes` vectors apart; of longer rows the rest is read twice.
template <int V, int held, class Functor>
__global__ void __launch_bounds__(rows_block)
    reduce_and_write(Functor functor, const typename Functor::Element* x, int64_t rows, int64_t columns, int lanes) {
  using State = decltype(functor.start());
  __shared__ State shared[rows_block / 32];
  int64_t row = int64_t(blockIdx.x) * (rows_block / lanes) + threadIdx.x / lanes;
  bool in_range = row < rows;
  int64_t first = row * columns, lane = threadIdx.x % lanes * V, step = int64_t(lanes) * V;
  Vector<typename Functor::Element, V> values[held];
  State state = functor.start();
  if (in_range) {
#pragma unroll
    for (int i = 0; i < held; ++i)
      if (lane + i * step < columns) values[i] = load<V>(x + first + lane + i * step);
#pragma unroll
    for (int i = 0; i < held; ++i)
      if (lane + i * step < columns) functor.push(state, values[i]);
    for (int64_t column = lane + held * step; column < columns; column += step)
      functor.push(state, load<V>(x + first + column));
  }
  auto block = functor.block(of_group(functor, state, lanes, shared));
  if (!in_range) return;
  if (threadIdx.x % lanes == 0) functor.finish(row, block);
#pragma unroll
  for (int i = 0; i < held; ++i)
    if (lane + i * step < columns) functor.write(first + lane + i * step, values[i], block);
  for (int64_t column = lane + held * step; column < columns; column += step)
    functor.write(first + column, load<V>(x + first + column), block);
}

template <int V, class Functor>
Status run_rows_by(const Executor& executor, const Functor& functor, const typename Functor::Element* x, int64_t rows,
                   int64_t columns) {
  int lanes = 1;
  while (lanes < rows_block && lanes * V * 2 < columns) lanes *= 2;
  unsigned blocks = unsigned(ceil_div(rows, rows_block / lanes));
  auto run = [&](auto held) {
    reduce_and_write<V, decltype(held)::value>
        <<<blocks, rows_block, 0, executor.stream>>>(functor, x, rows, columns, lanes);
    return launched();
  };
  if constexpr (V > 1)
    if (columns <= int64_t(lanes) * V * 2) return run(std::integral_constant<int, 2>());
  return run(std::integral_constant<int, 8>());
}

}  // namespace internal

template <class Functor>
Status run_rows(const Executor& executor, const Functor& functor, const typename Functor::Element* x, int64_t rows,
                int64_t columns) {
  constexpr int V = 16 / sizeof(typename Functor::Element);
  if (rows == 0) return {};
  if (columns % V == 0) return internal::run_rows_by<V>(executor, functor, x, rows, columns);
  return internal::run_rows_by<Functor::least_width>(executor, functor, x, rows, columns);
}

}  // namespace baracuda
