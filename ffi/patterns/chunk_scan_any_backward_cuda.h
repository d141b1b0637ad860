// Gradients of the chunk scan pattern on a CUDA grid, of any floats and shapes: the steps of
// chunk_scan_backward_cuda.h.
#pragma once

#include "chunk_scan_any_cuda.h"
#include "chunk_sums_cuda.h"

namespace baracuda {
namespace internal {

template <class T, int width>
struct StateGradientShared {
  using S = Accumulator<T>;
  static constexpr int side = scan_chunk<T>, wide_pitch = pitch<S, width>, side_pitch = pitch<S, side>;
  alignas(16) S c[side * wide_pitch], dy[side * side_pitch];
  Positions<T> positions;
};

template <int width, class T>
__global__ void __launch_bounds__(product_block, 2)
    chunk_dstates(ChunkScan<T> scan, ChunkGradients<T> g, SavedState<T>* dstates, int64_t tiles) {
  using Shared = StateGradientShared<T, width>;
  using Wide = Accumulator<T>;
  using S = Accumulator<T>;
  constexpr int side = Shared::side;
  using State = Part<S, side, width>;
  extern __shared__ __align__(16) char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  Positions<T>& positions = shared.positions;
  const ChunkShape& shape = scan.shape;
  const auto [sequence, head, which, first] = HeadTile::of_block(shape, tiles, side);
  const int columns = int(shape.columns), rows = int(min(shape.rows - first, int64_t(side)));

  State dh;
  load_state(dh, scan, g.dfinal + scan.state_at(sequence, head), first);
  for (int64_t chunk = scan.chunks(); chunk-- > 0;) {
    const int64_t begin = chunk * side, from = scan.x_at(sequence, begin, head) + first;
    const int count = int(min(shape.length - begin, int64_t(side)));
    store_state(dh, scan, dstates + scan.saved_at(sequence, head, chunk), first);
    __syncthreads();
    if (threadIdx.x < 32) positions.load(scan, sequence, head, begin);
    stage<side, width>(shared.c, scan.c + scan.b_at(sequence, begin, which), shape.shared * columns, count, columns);
    __syncthreads();
    const int64_t stride = shape.heads * shape.rows;
    stage<side, side>(shared.dy, g.dy + from, stride, count, rows, [&](int i, int p, Wide dy) {
      return positions.seen(i, scan.z ? dy * scan.gate(from + i * stride + p) : dy);
    });
    __syncthreads();
    State::each([&](int t, int e) { dh.value[t][e] = positions.is_kept ? positions.kept * dh.value[t][e] : Wide(0); });
    dh.template add_product<true, false>(shared.dy, Shared::side_pitch, shared.c, Shared::wide_pitch, 0, side);
  }
  store_state(dh, scan, g.dstate + scan.state_at(sequence, head), first);
}

template <class T, int width>
struct BackwardShared {
  using S = Accumulator<T>;
  using Wide = Accumulator<T>;
  static constexpr int side = scan_chunk<T>, wide_pitch = pitch<S, width>, side_pitch = pitch<S, side>,
                       path_pitch = side + 4;
  static constexpr int strips = Part<S, side, side>::across;
  alignas(16) S b[side * wide_pitch], c[side * wide_pitch], h[side * wide_pitch], dh[side * wide_pitch];
  alignas(16) S x[side * side_pitch], dy[side * side_pitch];
  alignas(16) S kept[side * side_pitch];  // what positions keep of each other's, times C B
  // The same times steps, for the gate; then what each pair of positions gives for the decays between them.
  union {
    alignas(16) S scores[side * side_pitch];
    Wide paths[side * path_pitch];
  };
  Positions<T> positions;
  // Sums over a position's elements, by the warps that have some: of what the state before gives, of what the state
  // after gets, and of x with its cotangent.
  Wide of_from[strips][side], of_to[strips][side], of_x[strips][side];
  Wide of_path[side], of_skip[side], of_kept[product_block / 32];
};

template <int width, class T>
__global__ void __launch_bounds__(product_block)
    chunk_backward(ChunkScan<T> scan, ChunkGradients<T> g, ChunkSums<T> sums) {
  using Shared = BackwardShared<T, width>;
  using Wide = Accumulator<T>;
  using S = Accumulator<T>;
  constexpr int side = Shared::side, wide_pitch = Shared::wide_pitch, side_pitch = Shared::side_pitch;
  using Square = Part<S, side, side>;
  using Columns = Part<S, side, width>;
  extern __shared__ __align__(16) char memory[];
  Shared& shared = *reinterpret_cast<Shared*>(memory);
  Positions<T>& positions = shared.positions;
  const ChunkShape& shape = scan.shape;
  const auto [sequence, chunk, which, part] = ChunkPart::of_block(shape, scan.chunks(), sums.parts);
  const int64_t begin = chunk * side;
  const int64_t each = shape.heads_each(), of_part = (each + sums.parts - 1) / sums.parts;
  const int count = int(min(shape.length - begin, int64_t(side))), columns = int(shape.columns);
  const int64_t stride = shape.heads * shape.rows;
  const bool is_even = shape.rows % 2 == 0;

  stage<side, width>(shared.b, scan.b + scan.b_at(sequence, begin, which), shape.shared * columns, count, columns);
  stage<side, width>(shared.c, scan.c + scan.b_at(sequence, begin, which), shape.shared * columns, count, columns);
  __syncthreads();
  Square products, dproducts;  // of C and B
  Columns db, dc;
  products.clear(), dproducts.clear(), db.clear(), dc.clear();
  products.template add_product<false, true, true>(shared.c, wide_pitch, shared.b, wide_pitch, 0, width);

  for (int64_t k = part * of_part; k < min(each, (part + 1) * of_part); ++k) {
    const int64_t head = which * each + k;
    Wide* of_head = sums.heads + ((sequence * shape.heads + head) * scan.chunks() + chunk) * (2 + shape.skips);
    __syncthreads();
    if (threadIdx.x < 32) positions.load(scan, sequence, head, begin);
    __syncthreads();
    products.keep(shared.kept, side_pitch, [&](int i, int j, Wide value) { return positions.passed(i, j, value); });
    if (scan.z)
      products.keep(shared.scores, side_pitch,
                    [&](int i, int j, Wide value) { return positions.passed(i, j, positions.step[j] * value); });
    Square of_pairs;  // dy x^T
    of_pairs.clear();
    Wide of_from[2] = {}, of_to[2] = {}, of_x[2] = {}, of_kept = 0, of_skip = 0;
    for (int64_t first = 0; first < shape.rows; first += side) {
      const int rows = int(min(shape.rows - first, int64_t(side)));
      const int64_t at = scan.x_at(sequence, begin, head) + first;
      const int64_t of_state = scan.saved_at(sequence, head, chunk) + first * columns;
      __syncthreads();
      stage<side, side>(shared.x, scan.x + at, stride, count, rows);
      stage<side, side>(shared.dy, g.dy + at, stride, count, rows,
                        [&](int i, int p, Wide dy) { return scan.z ? dy * scan.gate(at + i * stride + p) : dy; });
      stage<side, width>(shared.h, g.states + of_state, columns, rows, columns);
      stage<side, width>(shared.dh, sums.dstates + of_state, columns, rows, columns);
      __syncthreads();
      of_pairs.template add_product<false, true, true>(shared.dy, side_pitch, shared.x, side_pitch, 0, side);
      {
        Columns product;
        product.clear();
        product.template add_product<false, false>(shared.dy, side_pitch, shared.h, wide_pitch, 0, side);
        Columns::each([&](int t, int e) {
          int i = Columns::row(e);
          Wide value = positions.seen(i, product.value[t][e]);
          dc.value[t][e] += value, of_from[e / 2] += value * Wide(shared.c[i * wide_pitch + Columns::column(t, e)]);
        });
        product.clear();
        product.template add_product<false, false>(shared.x, side_pitch, shared.dh, wide_pitch, 0, side);
        Columns::each([&](int t, int e) {
          int j = Columns::row(e);
          Wide value = positions.step[j] * positions.to_state[j] * product.value[t][e];
          db.value[t][e] += value, of_to[e / 2] += value * Wide(shared.b[j * wide_pitch + Columns::column(t, e)]);
        });
      }
      if (positions.is_kept) {
#pragma unroll 4
        for (int i = threadIdx.x; i < side * width; i += product_block) {
          int p = i / width, from = p * wide_pitch + i - p * width;
          of_kept += Wide(shared.h[from]) * Wide(shared.dh[from]);
        }
      }
      if (threadIdx.x < side)
#pragma unroll 4
        for (int i = 0; i < side; ++i)
          of_skip += Wide(shared.dy[i * side_pitch + threadIdx.x]) * Wide(shared.x[i * side_pitch + threadIdx.x]);
      if (shape.skips > 1 && int(threadIdx.x) < rows) of_head[2 + first + threadIdx.x] = of_skip, of_skip = 0;

      Square result;
      result.clear();
      result.template add_product<false, true>(shared.b, wide_pitch, shared.dh, wide_pitch, 0, width);
      Square::each([&](int t, int e) { result.value[t][e] *= positions.to_state[Square::row(e)]; });
      result.template add_product<true, false>(shared.kept, side_pitch, shared.dy, side_pitch, Square::lower_begin(),
                                               side);
#pragma unroll
      for (int t = 0; t < Square::tiles; ++t)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
          int j = Square::row(e), p = Square::column(t, e), from = j * side_pitch + p;
          Wide pair[2];
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            Wide value = result.value[t][e + c];
            of_x[e / 2] += Wide(shared.x[from + c]) * value;
            Wide skip = p + c < rows ? scan.skip_of(sequence, head, first + p + c) : Wide(0);
            pair[c] = positions.step[j] * value + Wide(shared.dy[from + c]) * skip;
          }
          if (j < count) store_pair(g.dx + at + j * stride + p, pair[0], pair[1], rows - p, is_even);
        }
      if (!scan.z) continue;
      result.clear();
      result.template add_product<false, true>(shared.c, wide_pitch, shared.h, wide_pitch, 0, width);
      Square::each([&](int t, int e) { result.value[t][e] = positions.seen(Square::row(e), result.value[t][e]); });
      result.template add_product<false, false>(shared.scores, side_pitch, shared.x, side_pitch, 0,
                                                Square::lower_end());
#pragma unroll
      for (int t = 0; t < Square::tiles; ++t)
#pragma unroll
        for (int e = 0; e < 4; e += 2) {
          int i = Square::row(e), p = Square::column(t, e);
          if (i >= count || p >= rows) continue;
          int64_t to = at + i * stride + p;
          Wide pair[2];
#pragma unroll
          for (int c = 0; c < 2; ++c) {
            if (p + c >= rows) continue;
            Wide y = result.value[t][e + c] +
                     scan.skip_of(sequence, head, first + p + c) * Wide(shared.x[i * side_pitch + p + c]);
            pair[c] = Wide(g.dy[to + c]) * y * scan.gate_slope(to + c);
          }
          store_pair(g.dz + to, pair[0], pair[1], rows - p, is_even);
        }
    }
    __syncthreads();
    Square::each([&](int t, int e) {
      int i = Square::row(e), j = Square::column(t, e);
      Wide value = positions.passed(i, j, positions.step[j] * of_pairs.value[t][e]);
      dproducts.value[t][e] += value;
      shared.paths[i * Shared::path_pitch + j] = value * products.value[t][e];
    });
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      Wide from = sum_of_row(of_from[half]), to = sum_of_row(of_to[half]), x = sum_of_row(of_x[half]);
      int i = Square::row(2 * half), strip = Square::strip();
      if (Square::lane() % 4 == 0)
        shared.of_from[strip][i] = from, shared.of_to[strip][i] = to, shared.of_x[strip][i] = x;
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) of_kept += __shfl_xor_sync(~0u, of_kept, distance);
    if (Square::lane() == 0) shared.of_kept[threadIdx.x / 32] = of_kept;
    if (threadIdx.x < side) shared.of_skip[threadIdx.x] = of_skip;
    __syncthreads();
    sum_paths<product_block, side, Shared::path_pitch>(shared.paths, shared.of_path);
    __syncthreads();
    if (threadIdx.x < 32) store_steps(scan, shared, positions, sequence, head, begin, g.ddt, of_head);
    if (shape.skips == 1 && threadIdx.x == 32) {
      Wide total = 0;
      for (int p = 0; p < side; ++p) total += shared.of_skip[p];
      of_head[2] = total;
    }
  }
  __syncthreads();
  dproducts.keep(shared.kept, side_pitch, [](int, int, Wide value) { return value; });
  __syncthreads();
  dc.template add_product<false, false>(shared.kept, side_pitch, shared.b, wide_pitch, 0, Square::lower_end());
  db.template add_product<true, false>(shared.kept, side_pitch, shared.c, wide_pitch, Square::lower_begin(), side);
  Columns::each([&](int t, int e) {
    int i = Columns::row(e), n = Columns::column(t, e);
    if (i >= count || n >= columns) return;
    if (sums.shared) {
      int64_t row = ((sequence * shape.shared + which) * sums.parts + part) * shape.length + begin + i;
      Wide* to = sums.shared + row * 2 * columns + n;
      to[0] = db.value[t][e], to[columns] = dc.value[t][e];
    } else {
      int64_t to = scan.b_at(sequence, begin + i, which) + n;
      g.db[to] = T(db.value[t][e]), g.dc[to] = T(dc.value[t][e]);
    }
  });
}

template <int width, class T>
Status launch_chunk_backward(const Executor& executor, const ChunkScan<T>& scan, const ChunkGradients<T>& g,
                             const ChunkSums<T>& sums, int64_t blocks) {
  const int64_t tiles = ceil_div(scan.shape.rows, scan_chunk<T>);
  Status status = launch_chunks(executor, chunk_dstates<width, T>, scan.shape.sequences() * scan.shape.heads * tiles,
                                product_block, sizeof(StateGradientShared<T, width>), scan, g, sums.dstates, tiles);
  if (!status.ok()) return status;
  return launch_chunks(executor, chunk_backward<width, T>, blocks, product_block, sizeof(BackwardShared<T, width>),
                       scan, g, sums);
}

}  // namespace internal
}  // namespace baracuda
