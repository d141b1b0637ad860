// The slots pattern on a CUDA grid: a group of lanes, a power of two, has an item, or a row; each lane V neighboring
// columns at a time. Its lanes read what its slots name at once, a slot each, so that rows need not wait for each
// other.
#pragma once

#include <algorithm>

#include "slots.h"
#include "streaming_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int slot_block = 256;

// A group's item or row. Its lanes have neighboring columns, from `first` + `own` on; groups of neighboring blocks
// along y have the columns in turn.
struct SlotGroup {
  bool is_item;
  int64_t index;  // 0 where there is no item
  int64_t first, step;
  int own, lane, width;  // lane: of `width`, the part of a warp that belongs to the group

  template <int V>
  static __device__ SlotGroup of(const SlotShape& shape, int log_lanes) {
    int lanes = 1 << log_lanes, width = min(lanes, 32);
    int64_t index = int64_t(blockIdx.x) * (slot_block >> log_lanes) + (threadIdx.x >> log_lanes);
    int64_t tile = int64_t(lanes) * V;
    bool is_item = index < shape.all_items();
    return {is_item,
            is_item ? index : 0,
            blockIdx.y * tile,
            gridDim.y * tile,
            int(threadIdx.x & (lanes - 1)) * V,
            int(threadIdx.x & (width - 1)),
            width};
  }
};

// Some neighboring slots of a group's item: where their rows begin, -1 of those that there are not, and their weights.
// All lanes of a warp are here.
template <int count, class T>
struct NextSlots {
  int64_t element[count];
  Accumulator<T> weight[count];

  __device__ NextSlots(const SlotGroup& group, const SlotShape& shape, const typename Slots<T>::Item& item,
                       int64_t first) {
    int64_t slot = first + group.lane;
    bool is_slot = group.is_item && group.lane < count && slot < shape.slots;
    int64_t own = is_slot ? item.element(shape, slot) : -1;
    Accumulator<T> own_weight = is_slot ? item.weights[slot] : 0;
#pragma unroll
    for (int k = 0; k < count; ++k) {
      element[k] = __shfl_sync(~0u, own, k, group.width);
      weight[k] = __shfl_sync(~0u, own_weight, k, group.width);
    }
  }
};

inline constexpr int slots_at_once = 4;     // 8 take registers, and instructions of items that have fewer
inline constexpr int least_slot_lanes = 8;  // of a group: as many as slots that are read at once, or more

template <int V, class T>
__global__ void __launch_bounds__(slot_block) slot_sums(Slots<T> slots, const T* x, T* y, int log_lanes) {
  using Wide = Accumulator<T>;
  const SlotShape& shape = slots.shape;
  SlotGroup group = SlotGroup::of<V>(shape, log_lanes);
  auto item = slots.item(group.index);
  for (int64_t first_column = group.first; first_column < shape.columns; first_column += group.step) {
    int64_t column = first_column + group.own;
    bool is_here = group.is_item && column < shape.columns;
    Wide sums[V] = {};
    for (int64_t first = 0; first < shape.slots; first += slots_at_once) {
      NextSlots<slots_at_once, T> next(group, shape, item, first);
      Vector<T, V> rows[slots_at_once];
#pragma unroll
      for (int k = 0; k < slots_at_once; ++k)
        if (is_here && next.element[k] >= 0) rows[k] = load<V>(x + next.element[k] + column);
#pragma unroll
      for (int k = 0; k < slots_at_once; ++k)
        if (is_here && next.element[k] >= 0)
#pragma unroll
          for (int v = 0; v < V; ++v) sums[v] += next.weight[k] * Wide(rows[k].lane[v]);
    }
    if (!is_here) continue;
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
__global__ void __launch_bounds__(slot_block) slot_spreads(Slots<T> slots, const T* x, T* y, int log_lanes) {
  const SlotShape& shape = slots.shape;
  SlotGroup group = SlotGroup::of<V>(shape, log_lanes);
  auto item = slots.item(group.index);
  for (int64_t first_column = group.first; first_column < shape.columns; first_column += group.step) {
    int64_t column = first_column + group.own;
    bool is_here = group.is_item && column < shape.columns;
    Vector<T, V> own;
    if (is_here) own = load<V>(x + group.index * shape.columns + column);
    for (int64_t first = 0; first < shape.slots; first += slots_at_once) {
      NextSlots<slots_at_once, T> next(group, shape, item, first);
#pragma unroll
      for (int k = 0; k < slots_at_once; ++k)
        if (is_here && next.element[k] >= 0)
          store_streaming(reinterpret_cast<Vector<T, V>*>(y + next.element[k] + column), weighted(own, next.weight[k]));
    }
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

// A group has all columns of an item, of `step` slots at a time. The lanes' parts of a dot product are added in a fixed
// order.
template <int V, int step, class T>
__global__ void __launch_bounds__(slot_block)
    slot_gradients(Slots<T> slots, const T* x, const T* dy, T* dx, Accumulator<T>* dots, int log_lanes) {
  using Wide = Accumulator<T>;
  int lanes = 1 << log_lanes;
  __shared__ Wide of_warps[slot_block / 32][step];
  const SlotShape& shape = slots.shape;
  SlotGroup group = SlotGroup::of<V>(shape, log_lanes);
  auto item = slots.item(group.index);
  int lane = threadIdx.x & (lanes - 1), warp = threadIdx.x / 32;
  for (int64_t first = 0; first < shape.slots; first += step) {
    NextSlots<step, T> next(group, shape, item, first);
    Wide sums[step] = {};
    for (int64_t column = group.first + group.own; group.is_item && column < shape.columns; column += group.step) {
      Vector<T, V> own = load<V>(dy + group.index * shape.columns + column), rows[step];
#pragma unroll
      for (int k = 0; k < step; ++k)
        if (next.element[k] >= 0) rows[k] = load<V>(x + next.element[k] + column);
#pragma unroll
      for (int k = 0; k < step; ++k) {
        if (next.element[k] < 0) continue;
#pragma unroll
        for (int v = 0; v < V; ++v) sums[k] += Wide(rows[k].lane[v]) * Wide(own.lane[v]);
        store<V>(dx + next.element[k] + column, weighted(own, next.weight[k]));
      }
    }
#pragma unroll
    for (int k = 0; k < step; ++k) {
      for (int distance = min(lanes, 32) / 2; distance > 0; distance /= 2)
        sums[k] += __shfl_xor_sync(~0u, sums[k], distance);
      if (threadIdx.x % 32 == 0) of_warps[warp][k] = sums[k];
      if (lanes <= 32 && lane == 0 && group.is_item && first + k < shape.slots)
        dots[group.index * shape.slots + first + k] = sums[k];
    }
    if (lanes <= 32) continue;
    __syncthreads();
    if (lane < step && group.is_item && first + lane < shape.slots) {
      Wide total = 0;
      for (int w = 0; w < lanes / 32; ++w) total += of_warps[warp + w][lane];
      dots[group.index * shape.slots + first + lane] = total;
    }
    __syncthreads();
  }
}

// The binary logarithm of how many lanes so many columns have, at most `most`.
inline int log_slot_lanes(int64_t columns, int width, int most) {
  int log_lanes = 0;
  while (1 << log_lanes < least_slot_lanes) ++log_lanes;
  while (1 << log_lanes < most && (width << log_lanes) < columns) ++log_lanes;
  return log_lanes;
}

// The same for gradients: more than a warp where each lane still has four vectors, so that the last groups end soon.
inline int log_gradient_lanes(int64_t columns, int width) {
  int log_lanes = log_slot_lanes(columns, width, 32);
  while (log_lanes >= 5 && log_lanes < 7 && (4 * width << (log_lanes + 1)) <= columns) ++log_lanes;
  return log_lanes;
}

// A grid of groups of which several may share the columns of one.
inline dim3 slot_grid(int64_t groups, int64_t columns, int width, int log_lanes) {
  int64_t tiles = ceil_div(columns, int64_t(width) << log_lanes);
  return dim3(unsigned(ceil_div(groups, slot_block >> log_lanes)), unsigned(std::min<int64_t>(tiles, 65535)));
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
    int log_lanes = internal::log_slot_lanes(shape.columns, V, internal::slot_block);
    dim3 grid = internal::slot_grid(shape.all_items(), shape.columns, V, log_lanes);
    internal::slot_sums<V><<<grid, internal::slot_block, 0, executor.stream>>>(slots, x, y, log_lanes);
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
    int log_lanes = internal::log_slot_lanes(shape.columns, V, internal::slot_block);
    dim3 grid = internal::slot_grid(shape.all_items(), shape.columns, V, log_lanes);
    internal::slot_spreads<V><<<grid, internal::slot_block, 0, executor.stream>>>(slots, x, y, log_lanes);
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
    int log_lanes = internal::log_gradient_lanes(shape.columns, V);
    if (log_lanes >= 5 && shape.items * 32 < enough_lanes)
      log_lanes = internal::log_slot_lanes(shape.columns, V, internal::slot_block);
    unsigned blocks = unsigned(ceil_div(shape.all_items(), internal::slot_block >> log_lanes));
    // Slots that there are not would take registers, and so rows on their way.
    auto kernel = shape.slots <= 2   ? internal::slot_gradients<V, 2, T>
                  : shape.slots <= 4 ? internal::slot_gradients<V, 4, T>
                                     : internal::slot_gradients<V, internal::least_slot_lanes, T>;
    kernel<<<blocks, internal::slot_block, 0, executor.stream>>>(slots, x, dy, dx, dots, log_lanes);
    return launched();
  });
}

}  // namespace baracuda
