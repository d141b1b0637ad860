// Short rows in order, a warp for each: a bitonic network over registers.
#pragma once

#include "key_at_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int warp_sort_block = 128, warp_sort_most = 256;

// Sorts 32 * items things, of which lane l has l, l + 32, ...
template <int items, class Thing>
__device__ void sort_in_warp(Thing (&thing)[items]) {
  int lane = threadIdx.x % 32;
#pragma unroll
  for (int run = 2; run <= 32 * items; run *= 2)
#pragma unroll
    for (int step = run / 2; step > 0; step /= 2) {
      if (step >= 32) {
#pragma unroll
        for (int i = 0; i < items; ++i) {
          int other = i ^ (step / 32);
          if (other < i) continue;
          bool ascending = (i * 32 & run) == 0;
          if (ascending ? thing[other] < thing[i] : thing[i] < thing[other]) {
            Thing swapped = thing[i];
            thing[i] = thing[other], thing[other] = swapped;
          }
        }
      } else {
#pragma unroll
        for (int i = 0; i < items; ++i) {
          Thing other = thing[i].of_lane(step);
          bool ascending = ((i * 32 + lane) & run) == 0, lower = (lane & step) == 0;
          if ((ascending == lower) == (other < thing[i])) thing[i] = other;
        }
      }
    }
}

template <int items, class Key, class Output>
__global__ void __launch_bounds__(warp_sort_block) sort_rows_by_warps(Rows<Key> rows, Output out) {
  __shared__ uint16_t positions[warp_sort_block / 32][32 * items];
  int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  uint16_t* order = positions[warp];
  int64_t step = int64_t(gridDim.x) * (warp_sort_block / 32);
  for (int64_t row = int64_t(blockIdx.x) * (warp_sort_block / 32) + warp; row < rows.rows; row += step) {
    auto elements = rows.row(row);
    KeyAt<Key> thing[items];
#pragma unroll
    for (int i = 0; i < items; ++i) {
      int at = i * 32 + lane;
      thing[i] = {at < rows.count ? elements.key(at) : KeyOrder<Key>::all, uint32_t(at)};
    }
    sort_in_warp(thing);
#pragma unroll
    for (int i = 0; i < items; ++i) order[i * 32 + lane] = uint16_t(thing[i].at());
    __syncwarp();
    write_row(out, rows, row, 32, lane, [&](int64_t rank) { return order[rank]; });
    __syncwarp();
  }
}

template <class Key, class Output>
Status sort_short_rows(Executor executor, const Rows<Key>& rows, const Output& out) {
  unsigned blocks = grid_of(ceil_div(rows.rows, warp_sort_block / 32));
  if (rows.count <= 32)
    sort_rows_by_warps<1><<<blocks, warp_sort_block, 0, executor.stream>>>(rows, out);
  else if (rows.count <= 128)
    sort_rows_by_warps<4><<<blocks, warp_sort_block, 0, executor.stream>>>(rows, out);
  else
    sort_rows_by_warps<8><<<blocks, warp_sort_block, 0, executor.stream>>>(rows, out);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
