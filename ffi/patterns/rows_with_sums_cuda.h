// The rows pattern with sums of columns, on a CUDA grid: each row is reduced and then written with what that gave, and
// what its elements add to the sums of their columns stays in registers. A block has many rows, a grid's distance
// apart; what it has of the sums it writes to the workspace, and a second kernel adds those of all blocks in their
// order.
//
// A lane has the same columns of each row. While a row is written the next one is read, into the registers that become
// free. Of rows that are longer than a block's registers the sums are a pass of their own, which begins before rows are
// written.
#pragma once

#include <algorithm>

#include "early_cuda.h"
#include "executor.h"
#include "row_team_cuda.h"
#include "rows_cuda.h"
#include "rows_with_sums.h"

namespace baracuda {

namespace internal {

// A block's threads: where a row has 256 lanes or less, and where it has more.
inline constexpr int sums_block = 256, sums_most_lanes = rows_most_lanes;

// The elements of a row that a lane has, and the most columns of which all are in registers.
template <class T>
inline constexpr int sums_held = sizeof(T) == 8 ? 8 : 16;
template <class T>
inline constexpr int sums_most_columns = sums_most_lanes * sums_held<T>;

// What a block has found: `sums` arrays [columns] of it.
template <class Wide>
struct BlockSums {
  Wide* all;
  int sums;
  int64_t columns;

  __device__ Wide* of(int64_t block, int which) const { return all + (block * sums + which) * columns; }
};

// Rows of batch blockIdx.x / parts. `teams_sums` has, where a block has several rows at a time, blockDim.y * columns.
template <int V, int held, class Functor>
__global__ void __launch_bounds__(sums_most_lanes)
    reduce_write_and_sum(Functor every, int64_t rows, int columns, int parts,
                         BlockSums<typename Functor::Wide> blocks) {
  using T = typename Functor::Element;
  using Wide = typename Functor::Wide;
  using State = decltype(every.start());
  constexpr int count = V * held;
  constexpr bool two = Functor::column_sums == 2;
  __shared__ State shared[2][sums_most_lanes / 32];
  extern __shared__ char dynamic[];
  Wide* teams_sums = reinterpret_cast<Wide*>(dynamic);

  int64_t batch = blockIdx.x / parts, begin = batch * rows, stride = int64_t(parts) * blockDim.y;
  int64_t row = int64_t(blockIdx.x % parts) * blockDim.y + threadIdx.y;  // of the batch
  int first = threadIdx.x * V, step = blockDim.x * V;
  Wide factor[count], of_weight[count], of_bias[two ? count : 1];
#pragma unroll
  for (int i = 0; i < held; ++i) {
    Vector<Wide, V> of{};
    if (first + i * step < columns) of = every.template factors<V>(batch * columns + first + i * step);
#pragma unroll
    for (int k = 0; k < V; ++k) factor[i * V + k] = of.lane[k], of_weight[i * V + k] = 0;
    if constexpr (two)
#pragma unroll
      for (int k = 0; k < V; ++k) of_bias[i * V + k] = 0;
  }

  Vector<T, V> x[held], dy[held];
  auto read = [&](int i, int64_t row) {
    if (row < rows && first + i * step < columns) {
      int64_t element = (begin + row) * columns + first + i * step;
      x[i] = load<V>(every.x + element), dy[i] = load<V>(every.dy + element);
    }
  };
#pragma unroll
  for (int i = 0; i < held; ++i) read(i, row);
  Functor functor = every.at(begin + (row < rows ? row : 0));

  // All threads of a block go on as long as any has a row.
  int turn = 0;
  for (int64_t first_row = row - threadIdx.y; first_row < rows; first_row += stride, row += stride, turn ^= 1) {
    int end = row < rows ? columns : 0;
    State state = functor.start();
#pragma unroll
    for (int i = 0; i < held; ++i)
      if (first + i * step < end)
#pragma unroll
        for (int k = 0; k < V; ++k)
          functor.push_to(state, 0, Wide(x[i].lane[k]), Wide(dy[i].lane[k]), factor[i * V + k]);
    auto block = functor.block(of_row(functor, state, shared[turn]));
    int64_t element = (begin + row) * columns + first;
#pragma unroll
    for (int i = 0; i < held; ++i) {
      if (first + i * step < end) {
        Wide values[V];
#pragma unroll
        for (int k = 0; k < V; ++k) {
          Wide of_x = Wide(x[i].lane[k]), of_dy = Wide(dy[i].lane[k]);
          values[k] = functor.value(of_x, of_dy, factor[i * V + k], block);
          of_weight[i * V + k] += functor.of_weight(of_x, of_dy);
          if constexpr (two) of_bias[i * V + k] += of_dy;
        }
        functor.template write_values<V>(element + i * step, values);
      }
      read(i, row + stride);
    }
    functor = every.at(begin + (row + stride < rows ? row + stride : 0));
  }

  auto write = [&](const Wide(&sums)[count], Wide* to) {
    if (blockDim.y == 1) {
#pragma unroll
      for (int i = 0; i < held; ++i)
        if (first + i * step < columns)
#pragma unroll
          for (int k = 0; k < V; ++k) to[first + i * step + k] = sums[i * V + k];
      return;
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < held; ++i)
      if (first + i * step < columns)
#pragma unroll
        for (int k = 0; k < V; ++k) teams_sums[threadIdx.y * columns + first + i * step + k] = sums[i * V + k];
    __syncthreads();
    for (int c = threadIdx.y * blockDim.x + threadIdx.x; c < columns; c += blockDim.x * blockDim.y) {
      Wide sum = teams_sums[c];
      for (int team = 1; team < int(blockDim.y); ++team) sum += teams_sums[team * columns + c];
      to[c] = sum;
    }
  };
  write(of_weight, blocks.of(blockIdx.x, 0));
  if constexpr (two) write(of_bias, blocks.of(blockIdx.x, 1));
}

// The sums alone: a block has 32 vectors of columns, and a lane of each of its 8 warps every eighth row of its part.
// Where there is one part, its sums are the results.
inline constexpr int column_warps = 8;

template <int V, class Functor, class T = typename Functor::Element>
__global__ void __launch_bounds__(32 * column_warps)
    sum_columns(Functor every, int64_t rows, int64_t columns, int parts, int64_t tiles,
                BlockSums<typename Functor::Wide> blocks, ColumnSums<T> of_weight, ColumnSums<T> of_bias) {
  using Wide = typename Functor::Wide;
  constexpr int sums = Functor::column_sums;
  __shared__ Wide shared[column_warps][32 * V];
  int lane = threadIdx.x % 32, own = threadIdx.x / 32;  // the warp
  int64_t tile = blockIdx.x % tiles, block = blockIdx.x / tiles;
  int64_t column = (tile * 32 + lane) * V, begin = block / parts * rows;
  Wide found[sums][V];
#pragma unroll
  for (int k = 0; k < V; ++k)
#pragma unroll
    for (int which = 0; which < sums; ++which) found[which][k] = 0;
  next_may_begin();
  if (column < columns) {
#pragma unroll 4
    for (int64_t row = block % parts * column_warps + own; row < rows; row += parts * column_warps) {
      Functor functor = every.at(begin + row);
      auto x = load<V>(every.x + (begin + row) * columns + column);
      auto dy = load<V>(every.dy + (begin + row) * columns + column);
#pragma unroll
      for (int k = 0; k < V; ++k) {
        found[0][k] += functor.of_weight(Wide(x.lane[k]), Wide(dy.lane[k]));
        if constexpr (sums == 2) found[1][k] += Wide(dy.lane[k]);
      }
    }
  }
  wait_for_kernel_before();  // which may have states of rows where sums will be
#pragma unroll
  for (int which = 0; which < sums; ++which) {
    __syncthreads();
#pragma unroll
    for (int k = 0; k < V; ++k) shared[own][lane * V + k] = found[which][k];
    __syncthreads();
    for (int c = int(threadIdx.x); c < 32 * V; c += 32 * column_warps) {
      if (tile * 32 * V + c >= columns) continue;
      Wide sum = shared[0][c];
      for (int warp = 1; warp < column_warps; ++warp) sum += shared[warp][c];
      if (parts > 1)
        blocks.of(block, which)[tile * 32 * V + c] = sum;
      else
        (which ? of_bias : of_weight).write(block * columns + tile * 32 * V + c, sum);
    }
  }
}

// The sums of `parts` blocks. A block has 32 columns of one sum of one batch; a warp every 16th part.
inline constexpr int part_warps = 16;

template <class T>
__global__ void __launch_bounds__(32 * part_warps) add_parts(BlockSums<Accumulator<T>> blocks, int parts, int64_t tiles,
                                                             ColumnSums<T> of_weight, ColumnSums<T> of_bias) {
  using Wide = Accumulator<T>;
  __shared__ Wide shared[part_warps][32];
  int lane = threadIdx.x % 32, own = threadIdx.x / 32;  // the warp
  int64_t column = blockIdx.x % tiles * 32 + lane;
  int which = int(blockIdx.x / tiles % blocks.sums);
  int64_t batch = blockIdx.x / tiles / blocks.sums;
  wait_for_kernel_before();
  Wide sum = 0;
  if (column < blocks.columns)
#pragma unroll 4
    for (int part = own; part < parts; part += part_warps) sum += blocks.of(batch * parts + part, which)[column];
  shared[own][lane] = sum;
  __syncthreads();
  if (own > 0 || column >= blocks.columns) return;
  for (int warp = 1; warp < part_warps; ++warp) sum += shared[warp][lane];
  ColumnSums<T> to = which ? of_bias : of_weight;
  to.write(batch * blocks.columns + column, sum);
}

template <class T>
Status launch_add_parts(const Executor& executor, BlockSums<Accumulator<T>> blocks, int64_t batches, int parts,
                        ColumnSums<T> of_weight, ColumnSums<T> of_bias) {
  int64_t tiles = ceil_div(blocks.columns, 32);
  return launch_early(executor, add_parts<T>, dim3(unsigned(batches * blocks.sums * tiles)), 32 * part_warps, 0, blocks,
                      parts, tiles, of_weight, of_bias);
}

template <int V, class Functor>
Status run_rows_with_sums_by(const Executor& executor, const Functor& functor, int64_t batches, int64_t rows,
                             int64_t columns, int parts, BlockSums<typename Functor::Wide> blocks) {
  using T = typename Functor::Element;
  constexpr int held = sums_held<T> / V;
  int lanes = 1;
  while (lanes < sums_most_lanes && int64_t(lanes) * V * held < columns) lanes *= 2;
  dim3 block(unsigned(lanes), unsigned(std::max(sums_block / lanes, 1)));
  size_t bytes = block.y > 1 ? block.y * columns * sizeof(typename Functor::Wide) : 0;
  reduce_write_and_sum<V, held>
      <<<unsigned(batches * parts), block, bytes, executor.stream>>>(functor, rows, int(columns), parts, blocks);
  return launched();
}

template <int V, class Functor, class T = typename Functor::Element>
Status sum_columns_by(const Executor& executor, const Functor& functor, int64_t batches, int64_t rows, int64_t columns,
                      int parts, BlockSums<typename Functor::Wide> blocks, ColumnSums<T> of_weight,
                      ColumnSums<T> of_bias) {
  int64_t tiles = ceil_div(columns, 32 * V);
  return launch_early(executor, sum_columns<V, Functor>, dim3(unsigned(batches * parts * tiles)), 32 * column_warps, 0,
                      functor, rows, columns, parts, tiles, blocks, of_weight, of_bias);
}

}  // namespace internal

// `rows` of each batch, which has sums of its own. The workspace has, for each, a number of parts, which is thus known
// from the shapes.
template <class Functor, class T = typename Functor::Element>
Status run_rows_with_sums(Executor executor, const Functor& functor, int64_t batches, int64_t rows, int64_t columns,
                          ColumnSums<T> of_weight, ColumnSums<T> of_bias) {
  using Wide = typename Functor::Wide;
  constexpr int V = 16 / sizeof(T), sums = Functor::column_sums;
  if (batches * rows * columns == 0) return {};
  int parts = int(int64_t(executor.workspace_bytes) / (batches * columns * sums * int64_t(sizeof(Wide))));
  if (parts < 1) return small_workspace;
  internal::BlockSums<Wide> blocks{reinterpret_cast<Wide*>(executor.workspace), sums, columns};
  Status status;
  if (columns <= internal::sums_most_columns<T>) {
    status = columns % V ? internal::run_rows_with_sums_by<1>(executor, functor, batches, rows, columns, parts, blocks)
                         : internal::run_rows_with_sums_by<V>(executor, functor, batches, rows, columns, parts, blocks);
  } else {
    status = run_rows(executor, functor, batches * rows, columns);
    if (!status.ok()) return status;
    auto sum = [&](auto width) {
      return internal::sum_columns_by<decltype(width)::value>(executor, functor, batches, rows, columns, parts, blocks,
                                                              of_weight, of_bias);
    };
    status = columns % V ? sum(std::integral_constant<int, 1>{}) : sum(std::integral_constant<int, V>{});
    if (parts == 1) return status;
  }
  if (!status.ok()) return status;
  return internal::launch_add_parts<T>(executor, blocks, batches, parts, of_weight, of_bias);
}

}  // namespace baracuda
