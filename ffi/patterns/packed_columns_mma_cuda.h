// The packed columns pattern for x in 16-bit floats, on tensor cores. A warp has a part of the rows of W and eight
// words of each, 64 columns. Eight rows of x are the columns of a product, N times, and columns of W its rows: lane
// 4 g + t has word g of the rows 8 t ... 8 t + 7 of a chunk of 32, and the same elements of x. As a product may have
// its k in any order, four of these rows are the lane's k of one product, and the others those of the next one; and the
// columns 2 j and 2 j + 1 of word g are the rows g and g + 8 of product j.
//
// Two words have pairs along k of eight columns, which are taken out by masks, as the last bits of a power of two, from
// which the power with the integer that is subtracted is subtracted: values are exact, and sums of a group are
// multiplied by its factors.
//
// Chunks come by asynchronous copies, row 8 t + i to 4 i + t, so that what lanes read at a time is in different banks.
#pragma once

#include "copy_async_cuda.h"
#include "keep_cuda.h"
#include "mma_cuda.h"
#include "packed_columns_join_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

template <int N>
struct PackedColumnsMemory {
  static constexpr int stages = 4, of_words = column_chunk * column_words * 4, of_x = N * 8 * column_chunk * 2;
  static constexpr int stage = of_words + of_x, of_tiles = column_warps * stages * stage;
  static constexpr int sums = column_warps * 8 * N * block_columns * int(sizeof(float));
  static constexpr int bytes = of_tiles > sums ? of_tiles : sums;
};

// The field j of the lower halves of two words, as a pair: of a power of two, in whose last bits a field counts in
// ones, plus the field.
template <class T>
inline constexpr int field_power = std::is_same_v<T, BFloat16> ? 0x43004300 : 0x64006400;

__device__ inline uint32_t field_pair(uint32_t halves, int j, int power) {
  return (halves >> (4 * j) & 0x000f000f) | uint32_t(power);
}

template <int N, class T>
__global__ void __launch_bounds__(column_threads)
    packed_columns_mma(const __grid_constant__ PackedColumns work, float* sums) {
  using Memory = PackedColumnsMemory<N>;
  constexpr int stages = Memory::stages, pairs = packed::word_columns / 2;
  extern __shared__ __align__(16) char memory[];
  int lane = threadIdx.x % 32, warp = threadIdx.x / 32, g = lane / 4, t = lane % 4;
  int split = int(blockIdx.y % uint32_t(work.splits)), first_row = int(blockIdx.y / uint32_t(work.splits)) * 8 * N;
  int64_t first_word = int64_t(blockIdx.x) * column_words, word = min(first_word + g, work.words - 1);
  ColumnsPart part(work, split * column_warps + warp);
  bool in_sixteens = work.words % 4 == 0;
  // Of the lane in the first stage, for copies and for words that it reads; and the power, of which as a constant of
  // the program each use would take two instructions.
  int at_copies = warp * stages * Memory::stage + 16 * lane, at_words = warp * stages * Memory::stage + t * 32 + g * 4;
  int power = work.words > 0 ? field_power<T> : 0;  // which is not known to be constant
  keep(at_copies), keep(at_words), keep(power);
  int row = 8 * (lane / 2 % 4) + lane / 8, half = lane % 2;  // that the lane copies of a chunk, and the row after 4
  int there = first_word + 4 * half < work.words ? 16 : 0;

  for (int64_t batch = blockIdx.z; batch < work.batches; batch += gridDim.z) {
    const uint32_t* data = work.data + batch * work.depth * work.words;
    const T* x = static_cast<const T*>(work.x) + batch * work.count * work.depth;
    // What the lane copies next, of words and of rows of x.
    int64_t first = int64_t(part.begin) * column_chunk;
    const uint32_t* from = in_sixteens ? data + (first + row) * work.words + (there ? first_word + 4 * half : 0)
                                       : data + (first + 8 * t) * work.words + word;
    const T* from_x = x + min(int64_t(first_row + g), work.count - 1) * work.depth + first + 8 * t;
    int rows_left = int(work.count) - first_row - g, next_row = rows_left > 8 ? 8 * int(work.depth) : 0;
    int of_row = rows_left > 0 ? 16 : 0, of_next_row = rows_left > 8 ? 16 : 0;
    static_assert(N <= 2);
    int next = part.begin, stage_of_next = 0;
    auto fetch_next = [&] {
      if (next < part.end) {
        char* to = memory + at_copies + stage_of_next * Memory::stage;
        if (in_sixteens) {
          copy_async_with_neighbors(to, from, there);
          copy_async_with_neighbors(to + 512, from + 4 * work.words, there);
        } else {
#pragma unroll
          for (int i = 0; i < 8; ++i)
            copy_async_word(memory + at_words + stage_of_next * Memory::stage + 128 * i, from + i * work.words, true);
        }
        copy_async(to + Memory::of_words, from_x, of_row);
        if constexpr (N > 1) copy_async(to + Memory::of_words + 512, from_x + next_row, of_next_row);
        from_x += column_chunk;
        from += column_chunk * work.words;
      }
      __pipeline_commit();
      ++next, stage_of_next = stage_of_next == stages - 1 ? 0 : stage_of_next + 1;
    };
#pragma unroll
    for (int k = 0; k < stages - 1; ++k) fetch_next();

    float total[N][pairs][4] = {};
    int stage = 0;
    int chunk = part.begin, group = chunk / part.of_group;
    const uint32_t* zeros = work.zero + (batch * work.groups) * work.words + word;
    uint32_t zero = chunk < part.end ? zeros[int64_t(group) * work.words] : 0;
    for (; chunk < part.end; ++group) {
      float factor[packed::word_columns], of_sums[N][pairs][4] = {};
      if constexpr (N == 1) load_factors(work, batch, group, word, factor);
      uint32_t minus[2][pairs];
#pragma unroll
      for (int j = 0; j < pairs; ++j) {
        minus[0][j] = field_pair(__byte_perm(zero, zero, 0x1010), j, power);
        minus[1][j] = field_pair(__byte_perm(zero, zero, 0x3232), j, power);
      }
      int end = min(part.end, (group + 1) * part.of_group);
      if (end < part.end) zero = zeros[int64_t(group + 1) * work.words];
#pragma unroll 1
      for (; chunk < end; ++chunk) {
        __pipeline_wait_prior(stages - 2);
        __syncwarp();  // all have what they copied, and are through with the stage before
        const char* of_stage = memory + stage * Memory::stage;
        stage = stage == stages - 1 ? 0 : stage + 1;
        fetch_next();
        uint4 of_x[N];
#pragma unroll
        for (int n = 0; n < N; ++n)
          of_x[n] = *reinterpret_cast<const uint4*>(of_stage + at_copies + Memory::of_words + 512 * n);
#pragma unroll
        for (int step = 0; step < 2; ++step) {
          uint32_t words[4];
#pragma unroll
          for (int i = 0; i < 4; ++i)
            words[i] = *reinterpret_cast<const uint32_t*>(of_stage + at_words + 128 * (4 * step + i));
          uint32_t low[2], high[2];  // of two neighbors along k: the columns 0, 2, 4, 6, and the others
#pragma unroll
          for (int i = 0; i < 2; ++i) {
            low[i] = __byte_perm(words[2 * i], words[2 * i + 1], 0x5410);
            high[i] = __byte_perm(words[2 * i], words[2 * i + 1], 0x7632);
          }
#pragma unroll
          for (int j = 0; j < pairs; ++j) {
            uint32_t a[4];
#pragma unroll
            for (int i = 0; i < 2; ++i) {
              a[2 * i] = pair_difference<T>(field_pair(low[i], j, power), minus[0][j]);
              a[2 * i + 1] = pair_difference<T>(field_pair(high[i], j, power), minus[1][j]);
            }
#pragma unroll
            for (int n = 0; n < N; ++n) {
              uint32_t b[2] = {step ? of_x[n].z : of_x[n].x, step ? of_x[n].w : of_x[n].y};
              multiply_add<T>(of_sums[n][j], a, b);
            }
          }
        }
      }
      // Of more rows there are no registers for them while sums are made.
      if constexpr (N > 1) load_factors(work, batch, group, word, factor);
#pragma unroll
      for (int n = 0; n < N; ++n)
#pragma unroll
        for (int j = 0; j < pairs; ++j)
#pragma unroll
          for (int e = 0; e < 4; ++e) total[n][j][e] = fmaf(factor[2 * j + e / 2], of_sums[n][j][e], total[n][j][e]);
    }

    __pipeline_wait_prior(0);
    __syncthreads();
    float* partial = reinterpret_cast<float*>(memory) + warp * 8 * N * block_columns + 8 * g;
#pragma unroll
    for (int n = 0; n < N; ++n)
#pragma unroll
      for (int j = 0; j < pairs; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e)
          *reinterpret_cast<float2*>(partial + (8 * n + 2 * t + e) * block_columns + 2 * j) = {total[n][j][e],
                                                                                               total[n][j][2 + e]};
    __syncthreads();
    join_parts<8 * N, T>(work, reinterpret_cast<const float*>(memory), batch, first_row, split, sums);
    __syncthreads();  // before chunks are written again
  }
}

template <int N, class T>
Status packed_columns_mma_by(const Executor& executor, const PackedColumns& work) {
  using Memory = PackedColumnsMemory<N>;
  auto kernel = packed_columns_mma<N, T>;
  if (Status status = allow_shared_memory(kernel, Memory::bytes); !status.ok()) return status;
  return launch_columns<T, float>(executor, work, kernel, 8 * N, Memory::bytes);
}

// Blocks of 16 rows of x need more memory than some GPUs have.
template <class T>
Status packed_columns_of(const Executor& executor, const PackedColumns& work) {
  int most = 0;
  if (Status status = most_shared_memory(most); !status.ok()) return status;
  if (work.count > 8 && PackedColumnsMemory<2>::bytes <= most) return packed_columns_mma_by<2, T>(executor, work);
  return packed_columns_mma_by<1, T>(executor, work);
}

}  // namespace internal

// Of x in half precision.
inline Status packed_columns_half(const Executor& executor, const PackedColumns& work) {
  if (work.batches * work.words * work.count == 0) return {};
  if (work.dtype == RowDtype::bf16) return internal::packed_columns_of<BFloat16>(executor, work);
  return internal::packed_columns_of<Half>(executor, work);
}

}  // namespace baracuda
