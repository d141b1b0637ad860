// The rows pattern on a CUDA grid: a group of lanes, a power of two, for each row. Rows that fit stay in registers
// between the reduction and the writing, so that they are read once. Longer ones are in rings where the functor has
// what that takes (rows_ring_cuda.h), and few of them are divided among many blocks where it has `divided_from`
// (rows_parts_cuda.h).
#pragma once

#include <algorithm>
#include <type_traits>

#include "../kernels/number.h"
#include "executor.h"
#include "row_team_cuda.h"
#include "rows.h"
#include "rows_parts_cuda.h"
#include "rows_ring_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr unsigned rows_most_lanes = 512, rows_least_block = 128;

// What is read ahead by a functor without `read_ahead`.
struct NothingAhead {};

// What a lane has of a row: `held` vectors in registers, blockDim.x vectors apart; of longer rows the rest is read
// again.
template <int V, int held, class Values>
struct HeldRow {
  Values values[held];
  int64_t first, left;
  int step;

  template <class Functor>
  __device__ void read(const Functor& functor) {
#pragma unroll
    for (int i = 0; i < held; ++i)
      if (i * step < left) values[i] = functor.template read<V>(first + i * step);
  }
  template <class Functor, class State>
  __device__ State reduced(const Functor& functor, State* shared) const {
    State state = functor.start();
#pragma unroll
    for (int i = 0; i < held; ++i)
      if (i * step < left) functor.push(state, values[i]);
    for (int64_t i = held * step; i < left; i += step) functor.push(state, functor.template read<V>(first + i));
    return of_row(functor, state, shared);
  }
  // What is written first needs besides its values.
  template <class Functor>
  __device__ auto read_ahead(const Functor& functor) const {
    if constexpr (requires { functor.template read_ahead<V>(first); }) {
      decltype(functor.template read_ahead<V>(first)) of;
      if (left > 0) of = functor.template read_ahead<V>(first);
      return of;
    } else {
      return NothingAhead{};
    }
  }
  template <class Functor, class Block, class Ahead>
  __device__ void write(const Functor& functor, const Block& block, Ahead next) const {
#pragma unroll
    for (int i = 0; i < held; ++i) {
      if constexpr (std::is_same_v<Ahead, NothingAhead>) {
        if (i * step < left) functor.write(first + i * step, values[i], block);
      } else {
        Ahead here = next;
        if (i + 1 < held && (i + 1) * step < left) next = functor.template read_ahead<V>(first + (i + 1) * step);
        if (i * step < left) functor.write(first + i * step, values[i], here, block);
      }
    }
    for (int64_t i = held * step; i < left; i += step)
      functor.write(first + i, functor.template read<V>(first + i), block);
  }
};

template <int V, int held, class Functor>
__global__ void __launch_bounds__(rows_most_lanes) reduce_and_write(Functor every, int64_t rows, int64_t columns) {
  using State = decltype(every.start());
  __shared__ State shared[rows_most_lanes / 32];
  int64_t row = int64_t(blockIdx.x) * blockDim.y + threadIdx.y;
  Functor functor = at_row(every, row < rows ? row : rows - 1);
  HeldRow<V, held, decltype(functor.template read<V>(0))> of;
  of.first = row * columns + threadIdx.x * V;
  of.left = row < rows ? columns - threadIdx.x * V : 0;
  of.step = blockDim.x * V;
  of.read(functor);
  auto read_ahead = of.read_ahead(functor);
  auto finish = [&](const auto& functor, const State& state) {
    auto block = functor.block(state);
    if (threadIdx.x == 0 && row < rows) functor.finish(row, block);
    of.write(functor, block, read_ahead);
  };
  State state = of.reduced(functor, shared);
  if constexpr (requires { functor.after(state); }) {
    __shared__ State again[rows_most_lanes / 32];  // while others still read the first
    auto next = functor.after(state);
    finish(next, of.reduced(next, again));
  } else {
    finish(functor, state);
  }
}

// A functor that reads several arrays may say that a lane has registers for fewer vectors.
template <class Functor>
constexpr int rows_most_held() {
  if constexpr (requires { Functor::most_held; }) return Functor::most_held;
  return 8;
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
  constexpr int V = 16 / sizeof(typename Functor::Element), held = internal::rows_most_held<Functor>();
  if (rows == 0) return {};
  if constexpr (requires { functor.divided_from(columns); })
    if (Status status; internal::run_parts(executor, functor, rows, columns, status)) return status;
  constexpr bool has_ring = requires { Functor::most_in_registers; } && sizeof(typename Functor::Element) <= 4;
  if (columns % V) {
    if constexpr (has_ring)
      if (columns > 16 * internal::rows_most_lanes)
        if (Status status; internal::run_ring<false>(executor, functor, rows, columns, status)) return status;
    return internal::run_rows_by<Functor::least_width, held>(executor, functor, rows, columns);
  }
  if (columns <= 32 * V * 4) return internal::run_rows_by<V, 4>(executor, functor, rows, columns);  // a warp does it
  if constexpr (has_ring)
    if (columns > Functor::most_in_registers)
      if (Status status; internal::run_ring<true>(executor, functor, rows, columns, status)) return status;
  if constexpr (requires { Functor::held_of_long; })
    if (columns > internal::rows_most_lanes * V * held)
      return internal::run_rows_by<V, Functor::held_of_long>(executor, functor, rows, columns);
  return internal::run_rows_by<V, held>(executor, functor, rows, columns);
}

}  // namespace baracuda
