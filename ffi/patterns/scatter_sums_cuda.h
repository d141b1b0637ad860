// Elements that are added up by their positions in rows of zeros, on a CUDA grid.
//
// A warp has a part of a row in shared memory and goes through the row's elements in their order, 32 at a time. Of
// those with one position the first adds itself, then the second, and so on: each sum has the order of its elements.
#pragma once

#include <algorithm>

#include "../kernels/number.h"
#include "shared_memory_cuda.h"
#include "sort.h"

namespace baracuda {
namespace internal {

inline constexpr int scatter_sum_warps = 4;            // of a block; each goes its own way
inline constexpr int64_t scatter_sum_bytes = 1 << 14,  // of a warp's part of a row, so that 12 warps have room
    least_scatter_sums = 256, enough_scatter_warps = 512;

template <class T>
__global__ void __launch_bounds__(32 * scatter_sum_warps)
    scatter_sums(const int32_t* index, const T* dy, T* dx, ScatterShape shape, int length, int64_t parts) {
  using Wide = Accumulator<T>;
  constexpr int ahead = 8;
  constexpr uint32_t all = ~0u, none = ~0u;
  extern __shared__ __align__(16) char memory[];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  Wide* sums = reinterpret_cast<Wide*>(memory) + warp * length;
  int64_t tasks = shape.rows * parts, step = int64_t(gridDim.x) * scatter_sum_warps;
  for (int64_t task = int64_t(blockIdx.x) * scatter_sum_warps + warp; task < tasks; task += step) {
    int64_t row = task / parts, begin = task % parts * length;
    int size = int(shape.count - begin < length ? shape.count - begin : length);
    for (int i = lane; i < size; i += 32) sums[i] = Wide(0);
    __syncwarp();
    const int32_t* positions = index + row * shape.items;
    const T* from = dy + row * shape.items;
    for (int64_t first = 0; first < shape.items; first += 32 * ahead) {
      uint32_t to[ahead];
      T values[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        int64_t item = first + k * 32 + lane;
        to[k] = none;
        if (item < shape.items) {
          int64_t offset = positions[item] - begin;
          if (uint64_t(offset) < uint64_t(size)) to[k] = uint32_t(offset);
          values[k] = from[item];
        }
      }
#pragma unroll
      for (int k = 0; k < ahead; ++k) {
        uint32_t same = __match_any_sync(all, to[k]);
        int turn = to[k] == none ? -1 : __popc(same & ((1u << lane) - 1));
        for (int now = 0; __any_sync(all, turn >= now); ++now) {
          if (turn == now) sums[to[k]] += Wide(values[k]);
          __syncwarp();
        }
      }
    }
    for (int i = lane; i < size; i += 32) dx[row * shape.count + begin + i] = T(sums[i]);
    __syncwarp();
  }
}

template <class T>
Status scatter_added(const Executor& executor, const int32_t* index, const T* dy, T* dx, const ScatterShape& shape) {
  using Wide = Accumulator<T>;
  int64_t length = std::min(scatter_sum_bytes / int64_t(sizeof(Wide)), shape.count);
  while (length > least_scatter_sums && shape.rows * ceil_div(shape.count, length) < enough_scatter_warps)
    length = ceil_div(length, 2);
  int64_t parts = ceil_div(shape.count, length), bytes = scatter_sum_warps * length * int64_t(sizeof(Wide));
  if (Status status = allow_shared_memory(scatter_sums<T>, scatter_sum_warps * scatter_sum_bytes); !status.ok())
    return status;
  int64_t blocks = std::min<int64_t>(ceil_div(shape.rows * parts, scatter_sum_warps), 0x7fffffff);
  scatter_sums<<<unsigned(blocks), 32 * scatter_sum_warps, size_t(bytes), executor.stream>>>(index, dy, dx, shape,
                                                                                             int(length), parts);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
