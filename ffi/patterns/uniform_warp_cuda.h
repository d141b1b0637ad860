// A block's warp. By a shuffle: so the compiler knows that all lanes have the same one, and keeps what a warp shares in
// uniform registers.
#pragma once

namespace baracuda {
namespace internal {

__device__ inline int uniform_warp() { return __shfl_sync(~0u, int(threadIdx.x) / 32, 0); }

}  // namespace internal
}  // namespace baracuda
