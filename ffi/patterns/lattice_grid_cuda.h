// Lattices whose rows are the antidiagonals of a grid, on a CUDA grid: weights in the order in which sweeps read them.
#pragma once

#include "lattice_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int grid_tile = 32, grid_warps = 8;

// The sums of N neighboring states of an antidiagonal, which a lane has.
template <class Wide, int N>
struct GridSums {
  Scaled<Wide> sums[N];

  // Before the first node.
  __device__ explicit GridSums(int first) {
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] = first + n == 0 ? scaled_one<Wide>() : scaled_zero<Wide>();
  }
  __device__ void store(ScaledElement<Wide>* row, int first, LatticeSample sample, int width) const {
#pragma unroll
    for (int n = 0; n < N; ++n) {
      int j = first + n;
      if (j >= width) break;
      row[j] = {j < sample.states ? sums[n] : scaled_zero<Wide>()};
    }
  }
  __device__ void normalize() {
#pragma unroll
    for (int n = 0; n < N; ++n) sums[n] = normalized(sums[n]);
  }
};

// The part of an array of matrices [batches, rows, columns] that a block has: 32 columns, one for each lane of its
// warps, which take the rows in turn. So the antidiagonals of a grid are read while the cache has its rows, and the
// reverse.
struct GridTile {
  int64_t batch, first_row;
  int column;

  __device__ static GridTile of(int64_t rows, int64_t columns) {
    int64_t across = (columns + grid_tile - 1) / grid_tile, down = (rows + grid_tile - 1) / grid_tile;
    int64_t tile = blockIdx.x, row = tile / across;
    return {row / down, row % down * grid_tile + threadIdx.x / 32,
            int(tile - row * across) * grid_tile + int(threadIdx.x % 32)};
  }
  static int64_t count(int64_t batches, int64_t rows, int64_t columns) {
    return batches * ceil_div(rows, grid_tile) * ceil_div(columns, grid_tile);
  }
  // Calls body(row) for the rows that there are.
  template <class Body>
  __device__ void each_row(int64_t rows, const Body& body) const {
    for (int k = 0; k < grid_tile; k += grid_warps)
      if (first_row + k < rows) body(first_row + k);
  }
};

// weights [batches, rows, states]: of what state j of row r is, node (r - j, j); 0 where the sample has no such node.
// Rows and states that it does not have are left as they are.
template <class F, class Weights>
__global__ void __launch_bounds__(32 * grid_warps) grid_weights(F f, Weights* weights) {
  int64_t rows = f.rows(), states = f.states();
  GridTile tile = GridTile::of(rows, states);
  int64_t b = tile.batch;
  int j = tile.column;
  LatticeSample sample = f.sample(b);
  if (j >= sample.states) return;
  tile.each_row(sample.rows, [&](int64_t r) { weights[(b * rows + r) * states + j] = f.weights(b, int(r) - j, j); });
}

template <class F, class Weights>
Status write_grid_weights(const Executor& executor, const F& f, Weights* weights) {
  int64_t tiles = GridTile::count(f.batches(), f.rows(), f.states());
  if (tiles == 0) return {};
  grid_weights<<<unsigned(tiles), 32 * grid_warps, 0, executor.stream>>>(f, weights);
  return launched();
}

}  // namespace internal
}  // namespace baracuda
