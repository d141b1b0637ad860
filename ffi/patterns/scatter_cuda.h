// Elements that are put into rows of zeros, on a CUDA grid. A row that fits is put together in shared memory, so that
// it is written from end to end.
#pragma once

#include <algorithm>

#include "../kernels/sort_key.h"
#include "scatter_parted_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int scatter_block = 256, scatter_row_block = 1024;
inline constexpr int64_t least_scatter_row = 4096, most_scatter_row = 200 * 1024;  // bytes

// Puts element `item` of a row. Where several go to one position the first of them adds them up, in their order.
template <bool unique, class T>
__device__ void scatter_one(const int32_t* index, const T* dy, T* dx, const ScatterShape& shape, int64_t item) {
  int32_t to = index[item];
  if (uint64_t(int64_t(to)) >= uint64_t(shape.count)) return;
  if constexpr (unique) {
    dx[to] = dy[item];
  } else {
    for (int64_t j = 0; j < item; ++j)
      if (index[j] == to) return;
    auto sum = Accumulator<T>(dy[item]);
    for (int64_t j = item + 1; j < shape.items; ++j)
      if (index[j] == to) sum += Accumulator<T>(dy[j]);
    dx[to] = T(sum);
  }
}

template <bool unique, class T>
__global__ void __launch_bounds__(scatter_row_block)
    scatter_by_rows(const int32_t* index, const T* dy, T* dx, ScatterShape shape) {
  extern __shared__ __align__(16) char memory[];
  T* mine = reinterpret_cast<T*>(memory);
  int count = int(shape.count);
  for (int64_t row = blockIdx.x; row < shape.rows; row += gridDim.x) {
    if (!unique || shape.items < count)
      for (int i = threadIdx.x; i < count; i += blockDim.x) mine[i] = T{};
    __syncthreads();
    const int32_t* positions = index + row * shape.items;
    const T* from = dy + row * shape.items;
    if constexpr (unique) {
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
    } else {
      for (int64_t item = threadIdx.x; item < shape.items; item += blockDim.x)
        scatter_one<unique>(positions, from, mine, shape, item);
    }
    __syncthreads();
#pragma unroll 4
    for (int i = threadIdx.x; i < count; i += blockDim.x) dx[row * shape.count + i] = mine[i];
    __syncthreads();
  }
}

template <bool unique, class T>
__global__ void __launch_bounds__(scatter_block)
    scatter_each(const int32_t* index, const T* dy, T* dx, ScatterShape shape) {
  int64_t step = int64_t(gridDim.x) * scatter_block;
  for (int64_t row = blockIdx.y; row < shape.rows; row += gridDim.y)
    for (int64_t item = int64_t(blockIdx.x) * scatter_block + threadIdx.x; item < shape.items; item += step)
      scatter_one<unique>(index + row * shape.items, dy + row * shape.items, dx + row * shape.count, shape, item);
}

}  // namespace internal

template <class T>
Status scatter_rows(Executor executor, const int32_t* index, const T* dy, T* dx, ScatterShape shape) {
  using namespace internal;
  bool is_permutation = shape.unique && shape.items == shape.count;
  if (shape.rows * shape.count == 0) return {};
  int64_t bytes = shape.count * int64_t(sizeof(T));
  if (bytes >= least_scatter_row && bytes <= most_scatter_row) {
    auto kernel = shape.unique ? scatter_by_rows<true, T> : scatter_by_rows<false, T>;
    if (Status status = allow_shared_memory(kernel, most_scatter_row); !status.ok()) return status;
    unsigned threads = bytes > 32 * 1024 ? scatter_row_block : 256;
    unsigned blocks = unsigned(std::min<int64_t>(shape.rows, 0x7fffffff));
    kernel<<<blocks, threads, size_t(bytes), executor.stream>>>(index, dy, dx, shape);
    return launched();
  }
  if (!is_permutation) {
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
  auto kernel = shape.unique ? scatter_each<true, T> : scatter_each<false, T>;
  kernel<<<blocks, scatter_block, 0, executor.stream>>>(index, dy, dx, shape);
  return launched();
}

}  // namespace baracuda
