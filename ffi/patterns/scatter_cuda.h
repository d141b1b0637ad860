// Elements that are put into rows of zeros, on a CUDA grid. A row that fits is put together in shared memory, so that
// it is written from end to end. Those that may have one position are added up (scatter_combined_cuda.h).
#pragma once

#include <algorithm>

#include "../kernels/sort_key.h"
#include "scatter_combined_cuda.h"
#include "scatter_parted_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int scatter_block = 256, scatter_row_block = 1024;
inline constexpr int64_t least_scatter_row = 4096, most_scatter_row = 200 * 1024;  // bytes

template <class T>
__device__ void scatter_one(const int32_t* index, const T* dy, T* dx, const ScatterShape& shape, int64_t item) {
  int32_t to = index[item];
  if (uint64_t(int64_t(to)) < uint64_t(shape.count)) dx[to] = dy[item];
}

template <class T>
__global__ void __launch_bounds__(scatter_row_block)
    scatter_by_rows(const int32_t* index, const T* dy, T* dx, ScatterShape shape) {
  extern __shared__ __align__(16) char memory[];
  T* mine = reinterpret_cast<T*>(memory);
  int count = int(shape.count);
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    if (shape.items < count)
      for (int i = threadIdx.x; i < count; i += blockDim.x) mine[i] = T{};
    __syncthreads();
    const int32_t* positions = index + row * shape.items;
    const T* from = dy + row * shape.items;
    constexpr int ahead = 8;
    int items = int(shape.items);
    for (int first = threadIdx.x; first < items; first += ahead * blockDim.x) {
      int32_t to[ahead];
      T values[ahead];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (int item = first + k * blockDim.x; item < items) to[k] = positions[item], values[k] = from[item];
#pragma unroll
      for (int k = 0; k < ahead; ++k)
        if (int(first + k * blockDim.x) < items && uint32_t(to[k]) < uint32_t(count)) mine[to[k]] = values[k];
    }
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < count; i += blockDim.x) dx[row * shape.count + i] = mine[i];
    __syncthreads();
  }
}

template <class T>
__global__ void __launch_bounds__(scatter_block)
    scatter_each(const int32_t* index, const T* dy, T* dx, ScatterShape shape) {
  int64_t step = int64_t(gridDim.x) * scatter_block;
  for (int64_t row = blockIdx.y; row < shape.rows; row += gridDim.y)
    for (int64_t item = int64_t(blockIdx.x) * scatter_block + threadIdx.x; item < shape.items; item += step)
      scatter_one(index + row * shape.items, dy + row * shape.items, dx + row * shape.count, shape, item);
}

}  // namespace internal

template <class T>
Status scatter_rows(Executor executor, const int32_t* index, const T* dy, T* dx, ScatterShape shape) {
  using namespace internal;
  if (shape.rows * shape.count == 0) return {};
  if (!shape.unique)
    return scatter_combined(executor, ScatterSum<Modular<T>>{nullptr, reinterpret_cast<Modular<T>*>(dx)}, index,
                            reinterpret_cast<const Modular<T>*>(dy), shape);
  int64_t bytes = shape.count * int64_t(sizeof(T));
  if (bytes >= least_scatter_row && bytes <= most_scatter_row) {
    if (Status status = allow_shared_memory(scatter_by_rows<T>, most_scatter_row); !status.ok()) return status;
    unsigned threads = bytes > 32 * 1024 ? scatter_row_block : 256;
    unsigned blocks = unsigned(std::min<int64_t>(shape.rows, 0x7fffffff));
    scatter_by_rows<<<blocks, threads, size_t(bytes), executor.stream>>>(index, dy, dx, shape);
    return launched();
  }
  if (shape.items != shape.count) {  // no permutation
    cudaError_t error = cudaMemsetAsync(dx, 0, size_t(shape.rows * bytes), executor.stream);
    if (error != cudaSuccess) return {cudaGetErrorString(error)};
  }
  if (shape.items == 0) return {};
  // Without a workspace, as in an export for any size, elements are put as they come.
  if (is_parted<T>(shape) && executor.workspace_bytes > 0) {
    using Bits = typename SortKey<T>::Key;
    return scatter_parted(executor, index, reinterpret_cast<const Bits*>(dy), reinterpret_cast<Bits*>(dx), shape);
  }
  dim3 blocks{unsigned(std::min<int64_t>(ceil_div(shape.items, scatter_block), 132 * 64)),
              unsigned(std::min<int64_t>(shape.rows, 65535)), 1};
  scatter_each<<<blocks, scatter_block, 0, executor.stream>>>(index, dy, dx, shape);
  return launched();
}

}  // namespace baracuda
