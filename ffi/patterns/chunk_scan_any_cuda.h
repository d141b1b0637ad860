// The chunk scan pattern on a CUDA grid, of any floats and shapes. A block has some rows of a head's state in a
// sequence, in registers, and walks the sequence in chunks.
#pragma once

#include "chunk_positions_cuda.h"
#include "chunk_products_cuda.h"

namespace baracuda {
namespace internal {

// A state, or its cotangent, between memory and registers; rows from `first`.
template <class Part, class T, class Wide>
__device__ void load_state(Part& h, const ChunkScan<T>& scan, const Wide* from, int64_t first) {
  Part::each([&](int t, int e) {
    int64_t row = first + Part::row(e), column = Part::column(t, e);
    bool is_there = row < scan.shape.rows && column < scan.shape.columns;
    h.value[t][e] = is_there ? from[row * scan.shape.columns + column] : Wide(0);
  });
}
template <class Part, class T, class To>
__device__ void store_state(const Part& h, const ChunkScan<T>& scan, To* to, int64_t first) {
  const bool is_even = scan.shape.columns % 2 == 0;
#pragma unroll
  for (int t = 0; t < Part::tiles; ++t)
#pragma unroll
    for (int e = 0; e < 4; e += 2) {
      int64_t row = first + Part::row(e), column = Part::column(t, e);
      if (row >= scan.shape.rows || column >= scan.shape.columns) continue;
      Vector<To, 2> pair{{To(h.value[t][e]), To(h.value[t][e + 1])}};
      To* at = to + row * scan.shape.columns + column;
      if (is_even)
        store<2>(at, pair);
      else
        for (int k = 0; k < 2; ++k)
          if (column + k < scan.shape.columns) at[k] = pair.lane[k];
    }
}

// Neighbors (column, column + 1) of a row of x's shape, of which `count` are there.
template <class T, class Wide>
__device__ void store_pair(T* at, Wide first, Wide second, int64_t count, bool is_even) {
  if (count >= 2 && is_even) {
    store<2>(at, Vector<T, 2>{{T(first), T(second)}});
  } else {
    if (count >= 1) at[0] = T(first);
    if (count >= 2) at[1] = T(second);
  }
}

template <class T, int width>
struct ForwardShared {
  using S = Accumulator<T>;
  static constexpr int side = scan_chunk<T>, wide_pitch = pitch<S, width>, side_pitch = pitch<S, side>;
  alignas(16) S b[side * wide_pitch], c[side * wide_pitch], h[side * wide_pitch];
  alignas(16) S x[side * side_pitch], input[side * side_pitch], scores[side * side_pitch];
  Positions<T> positions;
};

template <int width, class T>
__global__ void __launch_bounds__(product_block)
    chunk_forward(ChunkScan<T> scan, T* y, Accumulator<T>* last, SavedState<T>* states, int64_t tiles) {
  using Shared = ForwardShared<T, width>;
  using Wide = Accumulator<T>;
  using S = Accumulator<T>;
  constexpr int side = Shared::side, wide_pitch = Shared::wide_pitch, side_pitch = Shared::side_pitch;
  using Square = Part<S, side, side>;
  using State = Part<S, side, width>;
  extern __shared__ __align__(16) char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  Positions<T>& positions = shared.positions;
  const ChunkShape& shape = scan.shape;
  const auto [sequence, head, which, first] = HeadTile::of_block(shape, tiles, side);
  const int columns = int(shape.columns), rows = int(min(shape.rows - first, int64_t(side)));
  const bool is_even = shape.rows % 2 == 0;

  State h;
  load_state(h, scan, scan.state + scan.state_at(sequence, head), first);
  for (int64_t chunk = 0; chunk < scan.chunks(); ++chunk) {
    const int64_t begin = chunk * side;
    const int count = int(min(shape.length - begin, int64_t(side)));
    __syncthreads();
    stage<side, width>(shared.b, scan.b + scan.b_at(sequence, begin, which), shape.shared * columns, count, columns);
    stage<side, width>(shared.c, scan.c + scan.b_at(sequence, begin, which), shape.shared * columns, count, columns);
    stage<side, side>(shared.x, scan.x + scan.x_at(sequence, begin, head) + first, shape.heads * shape.rows, count,
                      rows);
    h.keep(shared.h, wide_pitch, [](int, int, Wide value) { return value; });
    if (states) store_state(h, scan, states + scan.saved_at(sequence, head, chunk), first);
    if (threadIdx.x < 32) positions.load(scan, sequence, head, begin);
    __syncthreads();
    for (int i = threadIdx.x; i < side * side; i += product_block) {
      int j = i / side, at = j * side_pitch + i - j * side;
      shared.input[at] = S(Wide(shared.x[at]) * (positions.step[j] * positions.to_state[j]));
    }
    Square product;
    product.clear();
    product.template add_product<false, true, true>(shared.c, wide_pitch, shared.b, wide_pitch, 0, width);
    product.keep(shared.scores, side_pitch,
                 [&](int i, int j, Wide value) { return positions.passed(i, j, positions.step[j] * value); });
    product.clear();
    product.template add_product<false, true>(shared.c, wide_pitch, shared.h, wide_pitch, 0, width);
    Square::each([&](int t, int e) { product.value[t][e] = positions.seen(Square::row(e), product.value[t][e]); });
    __syncthreads();
    product.template add_product<false, false>(shared.scores, side_pitch, shared.x, side_pitch, 0, Square::lower_end());
#pragma unroll
    for (int t = 0; t < Square::tiles; ++t)
#pragma unroll
      for (int e = 0; e < 4; e += 2) {
        int i = Square::row(e), p = Square::column(t, e);
        if (i >= count || p >= rows) continue;
        int64_t at = scan.x_at(sequence, begin + i, head) + first + p;
        Wide pair[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          if (p + k >= rows) continue;
          pair[k] = product.value[t][e + k] +
                    scan.skip_of(sequence, head, first + p + k) * Wide(shared.x[i * side_pitch + p + k]);
          if (scan.z) pair[k] *= scan.gate(at + k);
        }
        store_pair(y + at, pair[0], pair[1], rows - p, is_even);
      }
    State::each([&](int t, int e) { h.value[t][e] = positions.is_kept ? positions.kept * h.value[t][e] : Wide(0); });
    h.template add_product<true, false>(shared.input, side_pitch, shared.b, wide_pitch, 0, side);
  }
  if (last) store_state(h, scan, last + scan.state_at(sequence, head), first);
}

template <int width, class T>
Status launch_chunk_forward(const Executor& executor, const ChunkScan<T>& scan, T* y, Accumulator<T>* last,
                            SavedState<T>* states) {
  int64_t tiles = ceil_div(scan.shape.rows, scan_chunk<T>);
  return launch_chunks(executor, chunk_forward<width, T>, scan.shape.sequences() * scan.shape.heads * tiles,
                       product_block, sizeof(ForwardShared<T, width>), scan, y, last, states, tiles);
}

}  // namespace internal
}  // namespace baracuda
