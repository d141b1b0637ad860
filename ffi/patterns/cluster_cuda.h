// Blocks of a cluster, which see each other's shared memory. Where a device has none, a block is alone.
#pragma once

#include <cooperative_groups.h>

#include "device_cuda.h"
#include "launch_with_cuda.h"

namespace baracuda {
namespace internal {

__device__ inline unsigned rank_in_cluster() {
#if __CUDA_ARCH__ >= 900
  return cooperative_groups::this_cluster().block_rank();
#else
  return 0;
#endif
}
__device__ inline unsigned blocks_of_cluster() {
#if __CUDA_ARCH__ >= 900
  return cooperative_groups::this_cluster().num_blocks();
#else
  return 1;
#endif
}
// Where another block has what this one has at `own`.
template <class T>
__device__ T* of_block(T* own, unsigned rank) {
#if __CUDA_ARCH__ >= 900
  return cooperative_groups::this_cluster().map_shared_rank(own, rank);
#else
  return own;
#endif
}
__device__ inline void sync_cluster(unsigned blocks) {
#if __CUDA_ARCH__ >= 900
  if (blocks > 1) return cooperative_groups::this_cluster().sync();
#endif
  __syncthreads();
}

// Whether the device has clusters, and the kernel was compiled for them.
template <class Kernel>
bool has_clusters(Kernel* kernel) {
  cudaFuncAttributes attributes{};
  return device_attribute(cudaDevAttrClusterLaunch) != 0 && cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess &&
         attributes.ptxVersion >= 90;
}

inline cudaLaunchAttribute cluster_attribute(unsigned cluster) {
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  return attribute;
}

// How many clusters of a kernel the device has at a time.
template <class Kernel>
Status most_clusters(Kernel* kernel, unsigned cluster, unsigned threads, size_t bytes, int& clusters) {
  cudaLaunchAttribute attribute = cluster_attribute(cluster);
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(cluster), config.blockDim = dim3(threads), config.dynamicSmemBytes = bytes;
  config.attrs = &attribute, config.numAttrs = 1;
  cudaError_t error = cudaOccupancyMaxActiveClusters(&clusters, kernel, &config);
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

// Launches a kernel whose blocks are in clusters of so many.
template <class... Parameters, class... Values>
Status launch_clusters(const Executor& executor, void (*kernel)(Parameters...), unsigned blocks, unsigned cluster,
                       unsigned threads, size_t bytes, const Values&... values) {
  cudaLaunchAttribute attribute = cluster_attribute(cluster);
  return launch_with(executor, cluster > 1 ? &attribute : nullptr, kernel, dim3(blocks), threads, bytes, values...);
}

}  // namespace internal
}  // namespace baracuda
