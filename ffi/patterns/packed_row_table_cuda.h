// The packed rows pattern for one row of x and formats whose bytes are two entries of a table, with weights straight to
// registers and sums in float32.
//
// A warp has 1024 columns, 32 of a lane, whose elements of x it keeps while it goes down rows of W. A byte is looked up
// whole: shared memory has the 256 pairs of entries 16 times, in different banks for the lanes of half a warp. Sums of
// eight rows are added over lanes at a time, and each step halves the lanes and the rows that a lane has.
//
// The items of a block are eight rows of a warp's columns, those of the same columns next to each other. Its warps take
// equal parts of them, and the block adds the columns of each row in their order.
#pragma once

#include "device_cuda.h"
#include "divisor.h"
#include "keep_cuda.h"
#include "packed_row_sums_cuda.h"
#include "packed_rows.h"
#include "shared_memory_cuda.h"

#include <algorithm>

namespace baracuda {
namespace internal {

template <class Format>
inline constexpr bool packed_table_serves = Format::has_table && Format::has_arrays && Format::interleaved;

inline constexpr int packed_table_warps = 16, packed_table_rows = 8, packed_table_copies = 16;
inline constexpr uint32_t packed_table_bytes = 256 * packed_table_copies * uint32_t(sizeof(float2));

// Of eight sums a lane, the sum over all lanes of sum number lane / 4.
__device__ inline float sum_of_eight(float (&sums)[8], int lane) {
#pragma unroll
  for (int half = 4, step = 16; half > 0; half /= 2, step /= 2)
#pragma unroll
    for (int k = 0; k < half; ++k) {
      bool upper = lane & step;
      float kept = upper ? sums[half + k] : sums[k], given = upper ? sums[k] : sums[half + k];
      sums[k] = kept + __shfl_xor_sync(~0u, given, step);
    }
  float sum = sums[0];
  sum += __shfl_xor_sync(~0u, sum, 2);
  sum += __shfl_xor_sync(~0u, sum, 1);
  return sum;
}

// Of bytes that are read once. Their neighbors come to the second-level cache. The compiler leaves the load before a
// wait of the warp.
__device__ inline uint4 load_ahead(const uint8_t* from) {
  uint4 some;
  asm volatile("ld.global.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(some.x), "=r"(some.y), "=r"(some.z), "=r"(some.w)
               : "l"(__cvta_generic_to_global(from))
               : "memory");
  return some;
}

// Entry number i, without a table in memory.
template <class Format>
__device__ float selected_entry(int i) {
  float entry = 0;
#pragma unroll
  for (int k = 0; k < 16; ++k) entry = i == k ? table_entry<Format>(k) : entry;
  return entry;
}

// Pairs of which the high four bits are the first.
template <class Format>
__device__ void fill_pairs(uint32_t table) {
  constexpr int at_once = 32 * packed_table_warps / packed_table_copies;
  static_assert(at_once == 32);
  auto to = static_cast<float2*>(__cvta_shared_to_generic(table)) + threadIdx.x;
  float low = selected_entry<Format>(threadIdx.x / packed_table_copies % 16);
#pragma unroll
  for (int k = 0; k < 8; ++k) {
    float high = threadIdx.x < 16 * packed_table_copies ? table_entry<Format>(2 * k) : table_entry<Format>(2 * k + 1);
    to[k * at_once * packed_table_copies] = {high, low};
  }
}

template <class T, class Format>
__global__ void __launch_bounds__(32 * packed_table_warps, 1)
    packed_row_table_kernel(const __grid_constant__ PackedRows<Format> work, int rows_of_block,
                            Divisor<int32_t> group_blocks) {
  using namespace packed;
  constexpr int warps = packed_table_warps, threads = 32 * warps, together = packed_table_rows, half = together / 2;
  extern __shared__ __align__(16) char memory[];
  __shared__ float table[16];
  float* partial = reinterpret_cast<float*>(memory);  // by chunk and row
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
  int blocks = int(work.blocks), chunks = (blocks + 31) / 32;
  int64_t first_of_block = int64_t(blockIdx.x) * rows_of_block;
  int rows = int(min(int64_t(rows_of_block), work.rows - first_of_block)), steps = (rows + together - 1) / together;
  uint32_t row_bytes = uint32_t(work.blocks * Format::bytes), groups = uint32_t(work.groups);
  // Pairs begin at a multiple of their bytes, so that an address is put together by its bits.
  uint32_t sums_end = uint32_t(__cvta_generic_to_shared(partial + chunks * rows_of_block));
  uint32_t pairs = (sums_end + packed_table_bytes - 1) & ~(packed_table_bytes - 1);
  if (threadIdx.x < 16) table[threadIdx.x] = selected_entry<Format>(threadIdx.x);

  for (int64_t batch = blockIdx.z; batch < work.batches; batch += gridDim.z) {
    int64_t matrix = work.matrix(batch), first_of_matrix = matrix * work.rows;
    int items = matrix < 0 ? 0 : chunks * steps;
    int begin = int(int64_t(items) * warp / warps), left = int(int64_t(items) * (warp + 1) / warps) - begin;
    const uint8_t* data = work.weights.data + (first_of_matrix + first_of_block) * int64_t(row_bytes);
    const float* scale = work.weights.scale + (first_of_matrix + first_of_block) * work.groups;
    const T* x = static_cast<const T*>(work.x) + batch * work.columns();
    keep(data), keep(scale);

    float with[32];
    auto load_x = [&](int chunk) {
      constexpr int V = 16 / sizeof(T);
      int64_t block = chunk * 32 + lane;
#pragma unroll
      for (int k = 0; k < 32; k += V) {
        Vector<T, V> some{};
        if (block < blocks) some = load<V>(x + block * 32 + k);
#pragma unroll
        for (int j = 0; j < V; ++j) with[k + j] = float(some.lane[j]);
      }
    };
    // In place of rows and columns that are not there the last ones', which are not added.
    struct Rows {
      uint4 weights[half];
      float scale[half];
    };
    auto fetch = [&](Rows& to, int chunk, int row) {
      int block = min(chunk * 32 + lane, blocks - 1);
      const uint8_t* from = data + int64_t(block) * Format::bytes;
      const float* scale_from = scale + group_blocks.quotient(block);
#pragma unroll
      for (int k = 0; k < half; ++k) {
        uint64_t of = uint32_t(min(row + k, rows - 1));
        to.weights[k] = load_ahead(from + of * row_bytes);
        to.scale[k] = scale_from[of * groups];
      }
    };
    uint32_t of_lane = pairs + lane % packed_table_copies * uint32_t(sizeof(float2));
    auto multiply = [&](const Rows& of, bool there, float* sums) {
#pragma unroll
      for (int k = 0; k < half; ++k) {
        const uint32_t words[4] = {of.weights[k].x, of.weights[k].y, of.weights[k].z, of.weights[k].w};
        float2 sum{};
#pragma unroll
        for (int w = 0; w < 4; ++w)
#pragma unroll
          for (int j = 0; j < 4; ++j) {
            constexpr int log_stride = 7;
            static_assert(packed_table_copies * sizeof(float2) == 1 << log_stride);
            int by = 8 * j - log_stride;
            uint32_t at = ((by < 0 ? words[w] << -by : words[w] >> by) & (255u << log_stride)) | of_lane;
            float2 pair = *static_cast<const float2*>(__cvta_shared_to_generic(at));
            sum.x = fmaf(pair.x, with[8 * w + 2 * j], sum.x), sum.y = fmaf(pair.y, with[8 * w + 2 * j + 1], sum.y);
          }
        sums[k] = there ? of.scale[k] * (sum.x + sum.y) : 0.f;
      }
    };

    int chunk = begin / steps, step = begin - chunk * steps;
    Rows first, second;
    if (left > 0) {
      fetch(first, chunk, step * together);
      load_x(chunk);
    }
    fill_pairs<Format>(pairs);
    __syncthreads();
    for (; left > 0; --left) {
      bool there = chunk * 32 + lane < blocks;
      int row = step * together, to = chunk * rows_of_block + row + lane / 4;
      float sums[together];
      fetch(second, chunk, row + half);
      __syncwarp();  // else the compiler moves loads to where they are used
      multiply(first, there, sums);
      if (++step == steps) step = 0, ++chunk;
      if (left > 1) fetch(first, chunk, step * together);
      __syncwarp();
      multiply(second, there, sums + half);
      float sum = sum_of_eight(sums, lane);
      if (lane % 4 == 0) partial[to] = sum;
      if (left > 1 && step == 0) load_x(chunk);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < (rows + 31) / 32 * 32; k += threads) {
      float sum = 0;
      if (items > 0 && k < rows)
        for (int c = 0; c < chunks; ++c) sum += partial[c * rows_of_block + k];
      write_row_sums<T>(work, batch, first_of_matrix, first_of_block + k - lane, k < rows, sum, group_blocks, table);
    }
    __syncthreads();  // before sums are written again
  }
}

// How many groups of eight rows a block may have, by the room for their sums. Rows of a million columns have none.
template <class Format>
int64_t packed_table_groups(const PackedRows<Format>& work) {
  constexpr int64_t group_bytes = packed_table_rows * sizeof(float), most_bytes = 30 << 10;
  return most_bytes / (std::max<int64_t>(1, ceil_div(work.blocks, 32)) * group_bytes);
}

// Whether the kernel is taken. On an H200, in us, with x in float32, that of packed_rows_cuda.h and this one: [1024,
// 1024] 3.3 and 3.9, [2048, 2048] 5.0 and 5.4, [1024, 2048] 5.4 and 4.7, [6144, 1024] 4.9 and 4.6, [30000, 128] 14 and
// 8, [256, 2048] 4.3 and 3.5, [128, 8192] 14 and 5. With x in half precision it was faster than others at all sizes.
template <class T, class Format>
bool packed_table_is_faster(const PackedRows<Format>& work) {
  constexpr int64_t few_rows = 1024, many_rows = 16384, many_weights = int64_t(17) << 18;
  if (packed_table_groups(work) == 0) return false;
  if (sizeof(T) == 2) return true;
  int64_t rows = work.batches * work.rows, columns = work.columns();
  return columns > 2048 || rows > many_rows || rows * columns > many_weights || (columns > 1024 && rows <= few_rows);
}

template <class T, class Format>
Status packed_row_table(const Executor& executor, const PackedRows<Format>& work) {
  constexpr int64_t most_blocks_z = 65535;
  int64_t multiprocessors = std::max(1, multiprocessors_of_device()), most = packed_table_groups(work);
  int64_t groups = ceil_div(work.rows, packed_table_rows);
  int64_t turns = ceil_div(work.batches * ceil_div(groups, most), multiprocessors);
  int64_t of_block = std::min(most, ceil_div(groups * work.batches, multiprocessors * turns));
  int64_t sums = ceil_div(work.blocks, 32) * of_block * packed_table_rows * int64_t(sizeof(float));
  int64_t bytes = sums + 2 * packed_table_bytes;  // pairs, wherever sums end
  auto kernel = packed_row_table_kernel<T, Format>;
  if (Status status = allow_dynamic_memory(kernel, bytes); !status.ok()) return status;
  dim3 grid(unsigned(ceil_div(groups, of_block)), 1, unsigned(std::min(work.batches, most_blocks_z)));
  kernel<<<grid, 32 * packed_table_warps, size_t(bytes), executor.stream>>>(
      work, int(of_block * packed_table_rows), Divisor<int32_t>(work.groups ? work.blocks / work.groups : 1));
  return launched();
}

}  // namespace internal
}  // namespace baracuda
