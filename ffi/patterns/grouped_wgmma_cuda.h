// The grouped pattern on the tensor cores of Hopper, for half precisions whose lines are whole chunks of 16 bytes.
//
// A block has tiles of 128 rows and 256 columns, one after the other, each in steps of 64 along the axis that is summed
// over. Four warps copy the operands of the next steps to shared memory, also of the next tile's, and two warpgroups
// multiply, 64 rows each. A cluster of two blocks has neighboring tiles of rows and the same columns: where both are of
// one group, each block copies half of its matrix, for both. Rows that are neighbors in memory come as boxes, and
// others one by one.
#pragma once

#include <algorithm>
#include <limits>

#include "cluster_cuda.h"
#include "device_cuda.h"
#include "grouped_tile_cuda.h"
#include "mma_rows_cuda.h"
#include "shared_memory_cuda.h"
#include "tensor_map_cuda.h"
#include "wgmma_cuda.h"

namespace baracuda {
namespace internal {

struct GroupedWgmma {
  static constexpr int rows = 128, columns = 256, step = 64, stages = 4, chunk = 8;
  static constexpr int warps = 8, loaders = 4, threads = 32 * (warps + loaders);  // warps that multiply, and that copy
  static constexpr int pair = 2;                                                  // blocks of a cluster
  static constexpr int left_bytes = rows * step * 2, right_bytes = columns * step * 2;
  static constexpr int few = 104, many = 200;  // registers of threads that copy and of those that multiply
  static constexpr int passes = 2, pass_columns = columns / passes, pass_bytes = mma_rows * pass_columns * 2;
};

// What those that multiply know of a tile: `begin` is the first of its rows, which are so many. Without products the
// sums are 0. After the last tile comes one of no steps.
struct GroupedWgmmaTile {
  int batch, begin, rows, column, steps, has_products;
};

struct GroupedWgmmaMemory {
  using Sizes = GroupedWgmma;
  char left[Sizes::stages][Sizes::left_bytes], right[Sizes::stages][Sizes::right_bytes];
  char result[Sizes::warps][Sizes::pass_bytes];
  GroupedWgmmaTile tile[Sizes::stages];  // of those whose first step is there
  int is_listed[Sizes::stages];          // whether rows came one by one
  CopyBarrier full[Sizes::stages], free[Sizes::stages];
};

#ifdef __CUDA_ARCH_FEAT_SM90_ALL

// Where a step is, and whether its stage was used an odd number of times before.
struct GroupedWgmmaStage {
  int stage = 0, parity = 0;
  __device__ void next() {
    if (++stage == GroupedWgmma::stages) stage = 0, parity ^= 1;
  }
};

__device__ inline void grouped_wgmma_begin(GroupedWgmmaMemory& memory) {
  using Sizes = GroupedWgmma;
  if (threadIdx.x == 0)
    for (int i = 0; i < Sizes::stages; ++i)
      memory.full[i].init(Sizes::loaders), memory.free[i].init(Sizes::pair * Sizes::warps);
  sync_cluster(Sizes::pair);
}

// After the last tile, by the warps that copy.
__device__ inline void grouped_wgmma_end(GroupedWgmmaMemory& memory, GroupedWgmmaStage at) {
  memory.free[at.stage].wait(at.parity ^ 1);
  if (threadIdx.x == 32 * GroupedWgmma::warps) memory.tile[at.stage].steps = 0;
  if (threadIdx.x % 32 == 0) memory.full[at.stage].arrive();
}

// Tells both blocks of the cluster, which copy for each other, that a warp has read a stage.
__device__ inline void grouped_wgmma_release(CopyBarrier& free) {
  if (threadIdx.x % 32 < GroupedWgmma::pair)
    asm volatile(
        "{\n"
        ".reg .b32 there;\n"
        "mapa.shared::cluster.u32 there, %0, %1;\n"
        "mbarrier.arrive.shared::cluster.b64 _, [there];\n"
        "}" ::"r"(free.address()),
        "r"(threadIdx.x % 32)
        : "memory");
}

// The part of those that multiply. `rows_of(tile, row)` gives what says where the result's rows begin, from a row on.
template <class T, bool left_is_steps, bool right_is_steps, class RowsOf>
__device__ void grouped_wgmma_multiply(GroupedWgmmaMemory& memory, int columns, const RowsOf& rows_of) {
  using Sizes = GroupedWgmma;
  using Tile = MmaTile<T, Sizes::pass_columns, mma_rows>;
  constexpr int box = Sizes::step * 128;  // bytes of 64 lines
  const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, first_row = warp * mma_rows;
  const uint64_t lefts = wgmma_operand<left_is_steps>(shared_address(memory.left[0]) + warp / 4 * box, box);
  const uint64_t rights = wgmma_operand<right_is_steps>(shared_address(memory.right[0]), box);
  const Tile result{reinterpret_cast<T*>(memory.result[warp])};
  const uint32_t to_result = shared_address(memory.result[warp]) + Tile::as_left();
  GroupedWgmmaStage at;
  float part[128];
  while (true) {
    memory.full[at.stage].wait(at.parity);
    const GroupedWgmmaTile tile = memory.tile[at.stage];
    if (tile.steps == 0) return;
    const auto row_at = rows_of(tile, first_row);
    int before = 0;
#pragma unroll 1
    for (int step = 0; step < tile.steps; ++step) {
      memory.full[at.stage].wait(at.parity);
      if (memory.is_listed[at.stage]) asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
      const uint64_t left = lefts + at.stage * (Sizes::left_bytes >> 4);
      const uint64_t right = rights + at.stage * (Sizes::right_bytes >> 4);
      wgmma_begin();
#pragma unroll
      for (int k = 0; k < Sizes::step / 16; ++k)
        wgmma<T, left_is_steps, right_is_steps>(part, left + k * wgmma_next<left_is_steps>,
                                                right + k * wgmma_next<right_is_steps>, step > 0 || k > 0);
      wgmma_commit();
      if (step > 0) {
        wgmma_wait<1>();
        grouped_wgmma_release(memory.free[before]);
      }
      before = at.stage;
      at.next();
    }
    wgmma_wait<0>();
    wgmma_end(part);
    grouped_wgmma_release(memory.free[before]);

#pragma unroll
    for (int pass = 0; pass < Sizes::passes; ++pass) {
      constexpr int pairs = Sizes::pass_columns / 16, chunks = Tile::chunks;
#pragma unroll
      for (int j = 0; j < pairs; ++j) {
        uint32_t pair[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) {
          const float* c = part + (pass * pairs + j) * 8 + 2 * i;
          pair[i] = tile.has_products ? rounded_pair<T>(c[0], c[1]) : 0;
        }
        store_matrices(to_result ^ Tile::step(j), pair);
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < mma_rows * chunks / 32; ++i) {
        const int row = (lane + 32 * i) / chunks, number = (lane + 32 * i) % chunks;
        const int column = pass * Sizes::pass_columns + number * Sizes::chunk;
        T* to = row_at(row);
        if (first_row + row < tile.rows && tile.column + column < columns)
          *reinterpret_cast<uint4*>(to + tile.column + column) =
              *reinterpret_cast<const uint4*>(result.address(row, number));
      }
      __syncwarp();
    }
  }
}

// Copies 16 bytes for each chunk of a box's lines, by a warp. `chunk_at(line, number)` is where a chunk is, or null for
// zeros.
template <int lines, class ChunkAt>
__device__ void grouped_wgmma_copy_lines(uint32_t to, const void* any, const ChunkAt& chunk_at) {
  const int number = threadIdx.x % 8, first = threadIdx.x % 32 / 8;
#pragma unroll
  for (int i = 0; i < lines / 4; ++i) {
    const int line = 4 * i + first;
    const void* from = chunk_at(i, number);
    copy_async(to + line * 128 + ((number ^ (line & 7)) << 4), from ? from : any, from ? 16 : 0);
  }
}
// The barrier's phase ends after the copies of the thread so far, if it has not ended when this is called.
__device__ inline void arrive_after_copies(CopyBarrier& barrier) {
  asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(barrier.address()) : "memory");
}

// The part of the warps that copy, of products. The first of them copies boxes.
template <class T, bool transposed>
struct GroupedProductsLoader {
  using Sizes = GroupedWgmma;
  static constexpr int rows = Sizes::rows / Sizes::loaders;  // that the warp copies one by one
  const GroupedProducts<T>& work;
  const CUtensorMap &a, &b;
  int pairs, across, index, lane = threadIdx.x % 32, loader = threadIdx.x / 32 - Sizes::warps;
  int rank = int(rank_in_cluster());
  GroupedWgmmaTile tile;
  int matrix, row;  // of all batches, and the first of neighboring rows, or -1
  bool is_shared;   // whether the cluster's other block has a tile of the same group

  __device__ GroupedProductsLoader(const GroupedProducts<T>& work, const CUtensorMap& a, const CUtensorMap& b,
                                   int pairs, int across)
      : work(work), a(a), b(b), pairs(pairs), across(across), index(blockIdx.x / Sizes::pair) {
    find();
  }
  // The next tile of the block, from `index` on.
  __device__ void find() {
    const int groups = int(work.by.groups) + 1, clusters = gridDim.x / Sizes::pair;
    const int total = int(work.by.batches) * pairs * across;
    tile.steps = 0;
    for (; index < total; index += clusters) {
      tile.batch = index / across / pairs;
      const int pair = index / across % pairs * Sizes::pair;
      const int32_t* first = work.first + int64_t(tile.batch) * (groups + 1);
      const int32_t* edges = work.by.edges + int64_t(tile.batch) * (groups + 1);
      const uint32_t* order = work.by.order + tile.batch * work.by.rows;
      const int last = first[groups];
      if (pair >= last) continue;
      const int group_of_pair = group_of_tile(first, groups, pair);
      const int group_after = pair + 1 < last ? group_of_tile(first, groups, pair + 1) : groups;
      const int group = rank ? group_after : group_of_pair;
      is_shared = group_of_pair == group_after;
      // Both blocks have as many steps: one, if no row has a group.
      tile.steps = group_of_pair < groups - 1 ? (int(work.inner) + Sizes::step - 1) / Sizes::step : 1;
      tile.has_products = group < groups - 1;
      tile.column = index % across * Sizes::columns;
      tile.begin = tile.rows = row = 0;
      if (group < groups) {
        tile.begin = edges[group] + (pair + rank - first[group]) * Sizes::rows;
        tile.rows = min(edges[group + 1] - tile.begin, Sizes::rows);
      }
      if (tile.has_products) {
        row = int(order[tile.begin]);
        bool is_next = true;
#pragma unroll
        for (int i = lane; i < Sizes::rows; i += 32)
          if (i < tile.rows) is_next &= int(order[tile.begin + i]) == row + i;
        if (!__all_sync(~0u, is_next)) row = -1;
      }
      matrix = tile.batch * (groups - 1) + min(group, groups - 2);
      index += clusters;
      return;
    }
  }
  __device__ void run(GroupedWgmmaMemory& memory) {
    GroupedWgmmaStage at;
    while (tile.steps > 0) {
      const GroupedWgmmaTile now = tile;
      const int first = row, matrix_of_tile = matrix;
      const bool shares = is_shared;
      uint32_t lines[rows / 4];
      if (first < 0) {
        const uint32_t* order = work.by.order + now.batch * work.by.rows + now.begin;
#pragma unroll
        for (int i = 0; i < rows / 4; ++i) {
          const int line = loader * rows + 4 * i + lane / 8;
          lines[i] = line < now.rows ? order[line] : ~0u;
        }
      }
#pragma unroll 1
      for (int step = 0; step < now.steps; ++step) {
        CopyBarrier& full = memory.full[at.stage];
        const int k = step * Sizes::step;
        const uint32_t left = shared_address(memory.left[at.stage]), right = shared_address(memory.right[at.stage]);
        memory.free[at.stage].wait(at.parity ^ 1);
        if (first < 0) {
          const T* from = work.a + now.batch * work.by.rows * work.inner;
          grouped_wgmma_copy_lines<rows>(left + loader * rows * 128, from, [&](int i, int number) {
            const int column = k + number * Sizes::chunk;
            return lines[i] != ~0u && column < work.inner ? from + lines[i] * work.inner + column : nullptr;
          });
          arrive_after_copies(full);
          __syncwarp();
        }
        if (lane == 0 && loader > 0) {
          full.arrive();
        } else if (lane == 0) {
          if (step == 0) memory.tile[at.stage] = now;
          memory.is_listed[at.stage] = first < 0;
          full.arrive_expecting(Sizes::right_bytes + (first < 0 ? 0 : Sizes::left_bytes));
          if (first >= 0) copy_box(left, a, k, first, now.batch, full);
          constexpr int boxes = transposed ? 2 : 4, lines_of_box = transposed ? Sizes::columns / 2 : Sizes::step;
#pragma unroll
          for (int i = 0; i < boxes; ++i) {
            const uint32_t to = right + i * lines_of_box * 128;
            const int column = now.column + i * (Sizes::columns / boxes);
            if (!shares)
              copy_box(to, b, transposed ? k : column, transposed ? column : k, matrix_of_tile, full);
            else if (i / (boxes / 2) == rank)
              copy_box_to_blocks(to, b, transposed ? k : column, transposed ? column : k, matrix_of_tile, full, 3);
          }
        }
        __syncwarp();
        at.next();
        if (step + 1 == min(now.steps, Sizes::stages)) find();
      }
    }
    grouped_wgmma_end(memory, at);
  }
};

// The part of the warps that copy, of sums. Steps are rows of the group, of which the last are filled up with zeros.
template <class T>
struct GroupedSumsLoader {
  using Sizes = GroupedWgmma;
  static constexpr int box = Sizes::step * 128, rows = Sizes::step / Sizes::loaders;  // that the warp copies one by one
  const GroupedSums<T>& work;
  const CUtensorMap &a, &b;
  int pairs, across, index, lane = threadIdx.x % 32, loader = threadIdx.x / 32 - Sizes::warps;
  int rank = int(rank_in_cluster());
  GroupedWgmmaTile tile;
  int first_row, count;
  const uint32_t* order;

  __device__ GroupedSumsLoader(const GroupedSums<T>& work, const CUtensorMap& a, const CUtensorMap& b, int pairs,
                               int across)
      : work(work), a(a), b(b), pairs(pairs), across(across), index(blockIdx.x / Sizes::pair) {
    find();
  }
  // The next tile of the block, from `index` on.
  __device__ void find() {
    const int groups = int(work.by.groups);
    tile.steps = 0;
    if (index >= int(work.by.batches) * groups * pairs * across) return;
    const int group = index / across / pairs;  // of all batches
    tile.batch = group / groups;
    tile.column = index % across * Sizes::columns;
    first_row = (index / across % pairs * Sizes::pair + rank) * Sizes::rows;
    const int32_t* edges = work.by.edges + int64_t(tile.batch) * (groups + 2) + group % groups;
    const int begin = edges[0];
    count = edges[1] - begin;
    order = work.by.order + tile.batch * work.by.rows + begin;
    tile.begin = group * int(work.left) + first_row;
    tile.rows = min(int(work.left) - first_row, Sizes::rows);
    tile.has_products = count > 0;
    tile.steps = max(1, (count + Sizes::step - 1) / Sizes::step);
    index += gridDim.x / Sizes::pair;
  }
  __device__ void run(GroupedWgmmaMemory& memory) {
    GroupedWgmmaStage at;
    while (tile.steps > 0) {
      const GroupedWgmmaTile now = tile;
      const int row = first_row, listed = count;
      const uint32_t* list = order;
      const T* left_rows = work.a + now.batch * work.by.rows * work.left;
      const T* right_rows = work.b + now.batch * work.by.rows * work.right;
      // The rows of a step, which are read a step before.
      uint32_t next[2];
      auto read = [&](int step) {
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          const int at = step * Sizes::step + 32 * i + lane;
          next[i] = at < listed ? list[at] : ~0u;
        }
      };
      read(0);
#pragma unroll 1
      for (int step = 0; step < now.steps; ++step) {
        CopyBarrier& full = memory.full[at.stage];
        const uint32_t left = shared_address(memory.left[at.stage]), right = shared_address(memory.right[at.stage]);
        const uint32_t line[2] = {next[0], next[1]};
        read(step + 1);
        const uint32_t first = __shfl_sync(~0u, line[0], 0);
        const bool is_box = __all_sync(~0u, line[0] == first + lane && line[1] == first + 32 + lane);
        memory.free[at.stage].wait(at.parity ^ 1);
        if (!is_box) {
          uint32_t lines[rows / 4];
#pragma unroll
          for (int i = 0; i < rows / 4; ++i)
            lines[i] = __shfl_sync(~0u, loader < 2 ? line[0] : line[1], loader % 2 * rows + 4 * i + lane / 8);
          auto copy = [&](uint32_t to, const T* from, int64_t columns, int first_column) {
            grouped_wgmma_copy_lines<rows>(to + loader * rows * 128, from, [&](int i, int number) {
              const int column = first_column + number * Sizes::chunk;
              return lines[i] != ~0u && column < columns ? from + lines[i] * columns + column : nullptr;
            });
          };
#pragma unroll 1
          for (int i = 0; i < 2; ++i) copy(left + i * box, left_rows, work.left, row + i * box_columns);
#pragma unroll 1
          for (int i = 0; i < 4; ++i) copy(right + i * box, right_rows, work.right, now.column + i * box_columns);
          arrive_after_copies(full);
          __syncwarp();
        }
        if (lane == 0 && loader > 0) {
          full.arrive();
        } else if (lane == 0) {
          if (step == 0) memory.tile[at.stage] = now;
          memory.is_listed[at.stage] = !is_box;
          if (is_box) {
            full.arrive_expecting(Sizes::left_bytes + Sizes::right_bytes);
#pragma unroll
            for (int i = 0; i < 2; ++i) copy_box(left + i * box, a, row + i * box_columns, int(first), now.batch, full);
#pragma unroll
            for (int i = 0; i < 4; ++i)
              if (i / 2 == rank)
                copy_box_to_blocks(right + i * box, b, now.column + i * box_columns, int(first), now.batch, full, 3);
          } else {
            full.arrive();
          }
        }
        __syncwarp();
        at.next();
        if (step + 1 == min(now.steps, Sizes::stages)) find();
      }
    }
    grouped_wgmma_end(memory, at);
  }
};

#endif

template <class T, bool transposed>
__global__ void __launch_bounds__(GroupedWgmma::threads, 1)
    grouped_wgmma_products(const __grid_constant__ GroupedProducts<T> work, const __grid_constant__ CUtensorMap a,
                           const __grid_constant__ CUtensorMap b, int pairs, int across) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char bytes[];
  auto& memory = *reinterpret_cast<GroupedWgmmaMemory*>(bytes);
  grouped_wgmma_begin(memory);
  if (threadIdx.x >= 32 * GroupedWgmma::warps) {
    fewer_registers<GroupedWgmma::few>();
    GroupedProductsLoader<T, transposed>(work, a, b, pairs, across).run(memory);
  } else {
    more_registers<GroupedWgmma::many>();
    grouped_wgmma_multiply<T, false, !transposed>(
        memory, int(work.columns), [&](const GroupedWgmmaTile& tile, int first_row) {
          const int row = first_row + threadIdx.x % 32;
          const uint32_t* order = work.by.order + tile.batch * work.by.rows + tile.begin;
          const uint32_t own = row < tile.rows ? order[row] : 0;
          T* y = work.y + tile.batch * work.by.rows * work.columns;
          return [=, &work](int row) { return y + __shfl_sync(~0u, own, row) * work.columns; };
        });
  }
  __syncwarp();
  sync_cluster(GroupedWgmma::pair);
#endif
}

template <class T>
__global__ void __launch_bounds__(GroupedWgmma::threads, 1)
    grouped_wgmma_sums(const __grid_constant__ GroupedSums<T> work, const __grid_constant__ CUtensorMap a,
                       const __grid_constant__ CUtensorMap b, int pairs, int across) {
#ifdef __CUDA_ARCH_FEAT_SM90_ALL
  extern __shared__ __align__(1024) char bytes[];
  auto& memory = *reinterpret_cast<GroupedWgmmaMemory*>(bytes);
  grouped_wgmma_begin(memory);
  if (threadIdx.x >= 32 * GroupedWgmma::warps) {
    fewer_registers<GroupedWgmma::few>();
    GroupedSumsLoader<T>(work, a, b, pairs, across).run(memory);
  } else {
    more_registers<GroupedWgmma::many>();
    grouped_wgmma_multiply<T, true, true>(memory, int(work.right), [&](const GroupedWgmmaTile& tile, int first_row) {
      T* sums = work.sums + (int64_t(tile.begin) + first_row) * work.right;
      return [=, &work](int row) { return sums + row * work.right; };
    });
  }
  __syncwarp();
  sync_cluster(GroupedWgmma::pair);
#endif
}

// Numbers of all batches' tiles, matrices and sums have 32 bits, and strides of tensor maps 40.
inline constexpr int64_t wgmma_most = std::numeric_limits<int32_t>::max(), wgmma_most_bytes = 1ll << 40;

// Whether these kernels can and should multiply: they take longer to begin, and their tiles are wide.
template <class T>
bool suits_wgmma(const GroupedProducts<T>& work) {
  using Sizes = GroupedWgmma;
  const GroupedRows& by = work.by;
  const int64_t across = ceil_div(work.columns, Sizes::columns), tiles = by.batches * (work.tiles() + 1) * across;
  const int64_t narrow = ceil_div(work.columns, Sizes::columns / 2);  // tiles of half as many columns
  const bool is_wide = narrow > 1 && narrow != 3;
  const bool is_long = work.inner >= 1024 || by.batches * by.rows / Sizes::rows * across >= multiprocessors_of_device();
  return work.tile == Sizes::rows && by.groups > 0 && work.inner >= Sizes::step && is_wide && is_long &&
         by.batches * by.groups < wgmma_most && tiles < wgmma_most &&
         std::max(by.rows, work.columns) * work.inner * 2 < wgmma_most_bytes && is_hopper();
}
template <class T>
bool suits_wgmma(const GroupedSums<T>& work) {
  using Sizes = GroupedWgmma;
  const GroupedRows& by = work.by;
  const int64_t lefts = by.batches * by.groups * (work.left + Sizes::pair * Sizes::rows);
  const int64_t pairs = ceil_div(work.left, Sizes::pair * Sizes::rows), across = ceil_div(work.right, Sizes::columns);
  const int64_t computed = pairs * Sizes::pair * Sizes::rows * across * Sizes::columns;
  const bool is_wide = work.left > Sizes::rows && (pairs * across == 1 || 3 * work.left * work.right > computed);
  const bool is_long =
      by.rows >= 256 * by.groups ||
      by.batches * by.groups * ceil_div(work.left, Sizes::rows) * across >= 2 * multiprocessors_of_device();
  return is_wide && is_long && lefts < wgmma_most && lefts * across < wgmma_most &&
         by.rows * std::max(work.left, work.right) * 2 < wgmma_most_bytes && is_hopper();
}

template <class Kernel, class Work>
Status grouped_wgmma_launch(const Executor& executor, Kernel kernel, const Work& work, const CUtensorMap& a,
                            const CUtensorMap& b, int64_t tiles, int64_t pairs, int64_t across) {
  using Sizes = GroupedWgmma;
  constexpr int bytes = sizeof(GroupedWgmmaMemory);
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  const int64_t clusters = std::min<int64_t>(multiprocessors_of_device() / Sizes::pair, tiles);
  return launch_clusters(executor, kernel, unsigned(clusters * Sizes::pair), Sizes::pair, Sizes::threads, bytes, work,
                         a, b, int(pairs), int(across));
}

template <class T>
Status grouped_products_by_wgmma(const Executor& executor, const GroupedProducts<T>& work) {
  using Sizes = GroupedWgmma;
  CUtensorMap a, b;
  const GroupedRows& by = work.by;
  if (Status status = tensor_map(a, work.a, by.batches, by.rows, work.inner, Sizes::rows); !status.ok()) return status;
  if (Status status = work.transposed
                          ? tensor_map(b, work.b, by.batches * by.groups, work.columns, work.inner, Sizes::columns / 2)
                          : tensor_map(b, work.b, by.batches * by.groups, work.inner, work.columns, Sizes::step);
      !status.ok())
    return status;
  const int64_t pairs = ceil_div(work.tiles(), Sizes::pair), across = ceil_div(work.columns, Sizes::columns);
  return grouped_wgmma_launch(executor,
                              work.transposed ? grouped_wgmma_products<T, true> : grouped_wgmma_products<T, false>,
                              work, a, b, by.batches * pairs * across, pairs, across);
}

template <class T>
Status grouped_sums_by_wgmma(const Executor& executor, const GroupedSums<T>& work) {
  using Sizes = GroupedWgmma;
  CUtensorMap a, b;
  const GroupedRows& by = work.by;
  if (Status status = tensor_map(a, work.a, by.batches, by.rows, work.left, Sizes::step); !status.ok()) return status;
  if (Status status = tensor_map(b, work.b, by.batches, by.rows, work.right, Sizes::step); !status.ok()) return status;
  const int64_t pairs = ceil_div(work.left, Sizes::pair * Sizes::rows), across = ceil_div(work.right, Sizes::columns);
  return grouped_wgmma_launch(executor, grouped_wgmma_sums<T>, work, a, b, by.batches * by.groups * pairs * across,
                              pairs, across);
}

}  // namespace internal
}  // namespace baracuda
