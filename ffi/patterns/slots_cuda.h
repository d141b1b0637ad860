// The slots pattern on a CUDA grid: a group of lanes, a power of two, has an item, or a row; each lane V neighboring
// columns at a time. Several rows are on their way to a lane.
#pragma once

#include <algorithm>

#include "slots.h"

namespace baracuda {
namespace internal {

inline constexpr int slot_block = 256;

// A group's item or row, and its lane's first column; groups of neighboring blocks along y have the columns in turn.
struct SlotGroup {
  int64_t index, column, step;

  template <int V>
  static __device__ SlotGroup of(int lanes) {
    int64_t index = int64_t(blockIdx.x) * (slot_block / lanes) + threadIdx.x / lanes;
    return {index, (int64_t(blockIdx.y) * lanes + threadIdx.x % lanes) * V, int64_t(gridDim.y) * lanes * V};
  }
};

template <int V, class T>
__global__ void __launch_bounds__(slot_block) slot_sums(Slots<T> slots, const T* x, T* y, int lanes) {
  using Wide = Accumulator<T>;
  constexpr int ahead = 4;
  const SlotShape& shape = slots.shape;
  SlotGroup group = SlotGroup::of<V>(lanes);
  if (group.index >= shape.all_items()) return;
  auto item = slots.item(group.index);
  for (int64_t column = group.column; column < shape.columns; column += group.step) {
    Wide sums[V] = {};
    for (int64_t first = 0; first < shape.slots; first += ahead) {
      int64_t element[ahead];
      Vector<T, V> rows[ahead];
      Wide weights[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        element[k] = first + k < shape.slots ? item.element(shape, first + k) : -1;
        if (element[k] < 0) continue;
        rows[k] = load<V>(x + element[k] + column);
        weights[k] = item.weights[first + k];
      }
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (element[k] >= 0)
#pragma unroll
          for (int v = 0; v < V; ++v) sums[v] += weights[k] * Wide(rows[k].lane[v]);
    }
    Vector<T, V> out;
#pragma unroll
    for (int v = 0; v < V; ++v) out.lane[v] = T(sums[v]);
    store<V>(y + group.index * shape.columns + column, out);
  }
}

template <int V, class T>
__device__ Vector<T, V> weighted(const Vector<T, V>& x, Accumulator<T> weight) {
  Vector<T, V> out;
#pragma unroll
  for (int v = 0; v < V; ++v) out.lane[v] = T(weight * Accumulator<T>(x.lane[v]));
  return out;
}

template <int V, class T>
__global__ void __launch_bounds__(slot_block) slot_spreads(Slots<T> slots, const T* x, T* y, int lanes) {
  const SlotShape& shape = slots.shape;
  SlotGroup group = SlotGroup::of<V>(lanes);
  if (group.index >= shape.all_items()) return;
  auto item = slots.item(group.index);
  for (int64_t column = group.column; column < shape.columns; column += group.step) {
    Vector<T, V> own = load<V>(x + group.index * shape.columns + column);
    for (int64_t slot = 0; slot < shape.slots; ++slot)
      if (int64_t element = item.element(shape, slot); element >= 0)
        store<V>(y + element + column, weighted(own, item.weights[slot]));
  }
}

// A warp asks of 32 rows, and clears those that are free.
template <int V, class T>
__global__ void __launch_bounds__(slot_block) clear_free_rows(Slots<T> slots, T* y) {
  const SlotShape& shape = slots.shape;
  int64_t row = int64_t(blockIdx.x) * slot_block + threadIdx.x, lane = threadIdx.x % 32;
  for (uint32_t left = __ballot_sync(~0u, row < shape.all_rows() && slots.is_free(row)); left; left &= left - 1)
    for (int64_t column = lane * V; column < shape.columns; column += 32 * V)
      store<V>(y + (row - lane + __ffs(left) - 1) * shape.columns + column, Vector<T, V>{});
}

// A group has all columns of an item. The lanes' parts of a dot product are added in a fixed order.
template <int V, class T>
__global__ void __launch_bounds__(slot_block)
    slot_gradients(Slots<T> slots, const T* x, const T* dy, T* dx, Accumulator<T>* dots, int lanes) {
  using Wide = Accumulator<T>;
  constexpr int step = 8;
  __shared__ Wide of_warps[slot_block / 32][step];
  const SlotShape& shape = slots.shape;
  SlotGroup group = SlotGroup::of<V>(lanes);
  bool is_item = group.index < shape.all_items();
  auto item = slots.item(is_item ? group.index : 0);
  int lane = threadIdx.x % lanes, warp = threadIdx.x / 32;
  for (int64_t first = 0; first < shape.slots; first += step) {
    int64_t element[step];
    Wide weights[step], sums[step] = {};
#pragma unroll
    for (int k = 0; k < step; ++k) {
      bool is_slot = is_item && first + k < shape.slots;
      element[k] = is_slot ? item.element(shape, first + k) : -1;
      weights[k] = is_slot ? item.weights[first + k] : Wide(0);
    }
    for (int64_t column = group.column; is_item && column < shape.columns; column += group.step) {
      Vector<T, V> own = load<V>(dy + group.index * shape.columns + column), rows[step];
#pragma unroll
      for (int k = 0; k < step; ++k)
        if (element[k] >= 0) rows[k] = load<V>(x + element[k] + column);
#pragma unroll
      for (int k = 0; k < step; ++k) {
        if (element[k] < 0) continue;
#pragma unroll
        for (int v = 0; v < V; ++v) sums[k] += Wide(rows[k].lane[v]) * Wide(own.lane[v]);
        store<V>(dx + element[k] + column, weighted(own, weights[k]));
      }
    }
#pragma unroll
    for (int k = 0; k < step; ++k) {
      for (int distance = min(lanes, 32) / 2; distance > 0; distance /= 2)
        sums[k] += __shfl_xor_sync(~0u, sums[k], distance);
      if (threadIdx.x % 32 == 0) of_warps[warp][k] = sums[k];
      if (lanes <= 32 && lane == 0 && is_item && first + k < shape.slots)
        dots[group.index * shape.slots + first + k] = sums[k];
    }
    if (lanes <= 32) continue;
    __syncthreads();
    if (lane < step && is_item && first + lane < shape.slots) {
      Wide total = 0;
      for (int w = 0; w < lanes / 32; ++w) total += of_warps[warp + w][lane];
      dots[group.index * shape.slots + first + lane] = total;
    }
    __syncthreads();
  }
}

// Lanes for so many columns, at most `most`.
inline int slot_lanes(int64_t columns, int width, int most) {
  int lanes = 1;
  while (lanes < most && lanes * width < columns) lanes *= 2;
  return lanes;
}

// A grid of groups of which several may share the columns of one.
inline dim3 slot_grid(int64_t groups, int64_t columns, int width, int lanes) {
  int64_t tiles = ceil_div(columns, int64_t(lanes) * width);
  return dim3(unsigned(ceil_div(groups, slot_block / lanes)), unsigned(std::min<int64_t>(tiles, 65535)));
}

template <int V, class T>
Status clear_free_rows_by(const Executor& executor, const Slots<T>& slots, T* y) {
  unsigned blocks = unsigned(ceil_div(slots.shape.all_rows(), slot_block));
  clear_free_rows<V><<<blocks, slot_block, 0, executor.stream>>>(slots, y);
  return launched();
}

// Calls run(width) with how many columns are read together.
template <class T, class Run>
Status by_width(const SlotShape& shape, const Run& run) {
  constexpr int V = 16 / sizeof(T);
  if (shape.columns % V == 0) return run(std::integral_constant<int, V>{});
  return run(std::integral_constant<int, 1>{});
}

}  // namespace internal

// y of rows x: each item the weighted sum of those of its slots, in order.
template <class T>
Status slot_sum(const Executor& executor, const Slots<T>& slots, const T* x, T* y) {
  const SlotShape& shape = slots.shape;
  if (shape.all_items() * shape.columns == 0) return {};
  return internal::by_width<T>(shape, [&](auto width) {
    constexpr int V = decltype(width)::value;
    int lanes = internal::slot_lanes(shape.columns, V, internal::slot_block);
    dim3 grid = internal::slot_grid(shape.all_items(), shape.columns, V, lanes);
    internal::slot_sums<V><<<grid, internal::slot_block, 0, executor.stream>>>(slots, x, y, lanes);
    return launched();
  });
}

// Rows y of items x: each item, times the weight, in the rows of its slots; 0 in rows that no slot names.
template <class T>
Status slot_spread(const Executor& executor, const Slots<T>& slots, const T* x, T* y) {
  const SlotShape& shape = slots.shape;
  if (shape.all_rows() * shape.columns == 0) return {};
  return internal::by_width<T>(shape, [&](auto width) {
    constexpr int V = decltype(width)::value;
    Status status = internal::clear_free_rows_by<V>(executor, slots, y);
    if (!status.ok() || shape.all_items() == 0) return status;
    int lanes = internal::slot_lanes(shape.columns, V, internal::slot_block);
    dim3 grid = internal::slot_grid(shape.all_items(), shape.columns, V, lanes);
    internal::slot_spreads<V><<<grid, internal::slot_block, 0, executor.stream>>>(slots, x, y, lanes);
    return launched();
  });
}

// What dy of a sum's items gives: dx as of a spread, and the dot product of each slot's row and its item's dy.
template <class T>
Status slot_gradient(const Executor& executor, const Slots<T>& slots, const T* x, const T* dy, T* dx,
                     Accumulator<T>* dots) {
  constexpr int64_t enough_lanes = 1 << 18;
  const SlotShape& shape = slots.shape;
  return internal::by_width<T>(shape, [&](auto width) {
    constexpr int V = decltype(width)::value;
    if (shape.all_rows() * shape.columns > 0)
      if (Status status = internal::clear_free_rows_by<V>(executor, slots, dx); !status.ok()) return status;
    if (shape.all_items() * shape.slots == 0) return Status{};
    // By the shape of a batch, so that the order of sums does not depend on how many there are.
    int lanes = internal::slot_lanes(shape.columns, V, 32);
    if (lanes == 32 && shape.items * lanes < enough_lanes)
      lanes = internal::slot_lanes(shape.columns, V, internal::slot_block);
    unsigned blocks = unsigned(ceil_div(shape.all_items(), internal::slot_block / lanes));
    internal::slot_gradients<V><<<blocks, internal::slot_block, 0, executor.stream>>>(slots, x, dy, dx, dots, lanes);
    return launched();
  });
}

}  // namespace baracuda
