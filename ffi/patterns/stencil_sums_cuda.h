// What ranges of a stencil give for weights and bias is written, and here added in the order of ranges.
#pragma once

#include "../kernels/number.h"
#include "early_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int stencil_block = 256;

inline Status too_large() { return {"the grid would have more than 2^31 - 1 blocks"}; }
inline bool is_grid(int64_t blocks) { return blocks < (int64_t(1) << 31); }

// Lanes of a warp for so many channels in vectors of V: a power of two.
template <int V>
int stencil_lanes(int64_t channels) {
  int lanes = 1;
  while (lanes < 32 && lanes * V < channels) lanes *= 2;
  return lanes;
}

// A block adds the parts of one slot of 32 channels, of [groups, parts, slots, channels]: each warp every eighth part,
// and then one warp those of all. store(group, slot, channel, total) takes the result.
template <class Wide, class Store>
__global__ void __launch_bounds__(stencil_block)
    stencil_sums(const Wide* sums, int64_t parts, int64_t slots, int64_t channels, int64_t tiles, Store store) {
  constexpr int warps = stencil_block / 32;
  __shared__ Wide of_warps[warps][32];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int64_t rest = int64_t(blockIdx.x) / tiles, group = rest / slots, slot = rest - group * slots;
  int64_t channel = (int64_t(blockIdx.x) - rest * tiles) * 32 + lane;
  bool is_channel = channel < channels;
  Wide total = 0;
  wait_for_kernel_before();
  if (is_channel)
#pragma unroll 4
    for (int64_t part = warp; part < parts; part += warps)
      total += sums[((group * parts + part) * slots + slot) * channels + channel];
  of_warps[warp][lane] = total;
  __syncthreads();
  if (warp > 0 || !is_channel) return;
  total = 0;
  for (int w = 0; w < warps; ++w) total += of_warps[w][lane];
  store(group, slot, channel, total);
}

template <class Wide, class Store>
Status add_stencil_parts(const Executor& executor, const Wide* sums, int64_t groups, int64_t parts, int64_t slots,
                         int64_t channels, const Store& store) {
  int64_t tiles = ceil_div(channels, 32), blocks = groups * slots * tiles;
  if (!is_grid(blocks)) return too_large();
  if (blocks == 0) return {};
  return launch_early(executor, stencil_sums<Wide, Store>, dim3(unsigned(blocks)), stencil_block, 0, sums, parts, slots,
                      channels, tiles, store);
}

}  // namespace internal
}  // namespace baracuda
