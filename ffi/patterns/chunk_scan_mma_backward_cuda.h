// Gradients of the chunk scan pattern on tensor cores, in the steps of chunk_scan_backward_cuda.h.
//
// Of a chunk a block of eight warps has all products, while it copies what the next rows, or the next head, need. A
// warp has 32 positions, and a fourth of the columns or rows of a product.
#pragma once

#include "chunk_dstates_mma_cuda.h"

namespace baracuda {
namespace internal {

template <int width>
struct BackwardMmaShared {
  using Columns = MmaTile<BFloat16, width, chunk_side>;
  using Square = MmaTile<BFloat16, chunk_side, chunk_side>;
  static constexpr int side = chunk_side, strips = 4, path_pitch = side + 4;
  struct Stage {
    BFloat16 h[side * width], dh[side * width], x[side * side], dy[side * side], z[side * side];
  };
  alignas(1024) BFloat16 b[side * width], c[side * width];
  Stage stages[2];
  // What positions keep of each other's, times C B; the same times steps, for the gate.
  BFloat16 kept[side * side], scores[side * side];
  float paths[side * path_pitch];  // what each pair of positions gives for the decays between them
  Positions<BFloat16> positions[2];
  // As in BackwardShared.
  float of_from[strips][side], of_to[strips][side], of_x[strips][side];
  float of_path[side], of_skip[2][side], of_kept[product_block / 32];
};

// Rows in memory at any address, which the threads of a block copy to a tile.
template <class Tile, int threads>
struct TileSource {
  static constexpr int together = threads / Tile::chunks;  // rows
  static_assert(together % 8 == 0 && Tile::rows % together == 0);
  int64_t offset, step;
  int row, column;
  uint32_t to;

  __device__ explicit TileSource(int64_t stride) {
    row = int(threadIdx.x) / Tile::chunks;
    const int number = int(threadIdx.x) % Tile::chunks;
    column = number * Tile::chunk, offset = row * stride + column, step = together * stride;
    to = Tile::in_bytes(row, number);
  }
  // Others than the first so many rows and columns become 0.
  __device__ void read(BFloat16* tile, const BFloat16* from, int rows, int columns) const {
    const uint32_t at = shared_address(tile) + to;
    const bool is_column = column < columns;
#pragma unroll
    for (int i = 0; i < Tile::rows / together; ++i) {
      const bool is_there = is_column && row + i * together < rows;
      copy_async(at + i * together * Tile::pitch, is_there ? from + offset + i * step : from, is_there ? 16 : 0);
    }
  }
};

// What a warp has of the products of a chunk: 32 rows.
struct ProductTile {
  static __device__ int first_row() { return int(threadIdx.x) / 32 % 2 * 32; }
  static __device__ int strip() { return int(threadIdx.x) / 64; }
};

// Fragments of A whose columns are rows of a tile, from a row on; 16 columns from 16 k on.
template <class Tile>
__device__ void turned_left(uint32_t (&a)[4], uint32_t at, int row, int k) {
  uint32_t all[4];
  load_transposed_matrices(all, (at ^ Tile::step(k)) + row * Tile::pitch);
  a[0] = all[0], a[1] = all[2], a[2] = all[1], a[3] = all[3];
}

// Sums over the lanes that have the same column.
__device__ inline float sum_of_column(float value) {
#pragma unroll
  for (int distance = 4; distance < 32; distance *= 2) value += __shfl_xor_sync(~0u, value, distance);
  return value;
}

template <int width>
__global__ void __launch_bounds__(product_block, 1)
    chunk_backward_mma(ChunkScan<BFloat16> scan, ChunkGradients<BFloat16> g, ChunkSums<BFloat16> sums) {
  using T = BFloat16;
  using Shared = BackwardMmaShared<width>;
  using Columns = typename Shared::Columns;
  using Square = typename Shared::Square;
  constexpr int side = chunk_side, across = width / 4, steps = side / 16, wide_steps = width / 16;
  extern __shared__ __align__(1024) unsigned char bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(bytes);
  const ChunkShape& shape = scan.shape;
  const auto [sequence, chunk, which, part] = ChunkPart::of_block(shape, scan.chunks(), sums.parts);
  const int64_t begin = chunk * side;
  const int64_t each = shape.heads_each(), of_part = (each + sums.parts - 1) / sums.parts;
  const int tiles = int((shape.rows + side - 1) / side);
  const int64_t first_head = which * each + part * of_part;
  const int64_t heads = tiles > 0 ? max(int64_t(0), min(of_part, each - part * of_part)) : 0;
  const int count = int(min(shape.length - begin, int64_t(side))), columns = int(shape.columns);
  const int64_t stride = shape.heads * shape.rows;
  const int warp = threadIdx.x / 32, strip = ProductTile::strip(), first_row = ProductTile::first_row();
  // A lane's rows are first_row + mma_row(16 m, half); its columns of a square from square_column on.
  const int square_column = strip * 16, wide_column = strip * across;
  const bool has_pairs = square_column <= first_row + 31;

  const TileSource<Square, product_block> of_rows(stride);
  const TileSource<Columns, product_block> of_states(columns), of_shared(shape.shared * columns);
  auto read = [&](int64_t head, int tile, int to) {
    const int64_t first = tile * side, at = scan.x_at(sequence, begin, head) + first;
    const int64_t of_state = scan.saved_at(sequence, head, chunk) + first * columns;
    const int rows = int(min(shape.rows - first, int64_t(side)));
    typename Shared::Stage& stage = shared.stages[to];
    of_rows.read(stage.x, scan.x + at, count, rows);
    of_rows.read(stage.dy, g.dy + at, count, rows);
    if (scan.z) of_rows.read(stage.z, scan.z + at, count, rows);
    of_states.read(stage.h, g.states + of_state, rows, columns);
    of_states.read(stage.dh, sums.dstates + of_state, rows, columns);
  };
  const int64_t of_b = scan.b_at(sequence, begin, which);
  of_shared.read(shared.b, scan.b + of_b, count, columns);
  of_shared.read(shared.c, scan.c + of_b, count, columns);
  if (heads > 0) read(first_head, 0, 0);
  __pipeline_commit();
  // The first warp finds positions and stores steps.
  typename Positions<T>::Raw raw;
  typename Positions<T>::Head of_next;
  if (warp == 0 && heads > 0) shared.positions[0].load(scan, sequence, first_head, begin);
  __pipeline_wait_prior(0);
  __syncthreads();

  const uint32_t rows_at = first_row * Columns::pitch, square_rows_at = first_row * Square::pitch;
  const uint32_t b_at = shared_address(shared.b), c_at = shared_address(shared.c);
  MmaRows<2, 16> products, dproducts, pairs;  // of C and B; dy x^T
  MmaRows<2, across> db, dc;
  products.clear(), dproducts.clear(), db.clear(), dc.clear();
  if (has_pairs)
    products.template add_product<wide_steps, Columns, Columns>(
        c_at + Columns::as_left() + rows_at, b_at + Columns::as_right() + square_column * Columns::pitch);

  // Rows of a square times what a chunk's states are.
  auto times_states = [&](uint32_t square, uint32_t states) {
    MmaRows<2, across> product;
    product.clear();
    const uint32_t left_at = square + Square::as_left() + square_rows_at, right_at = states + Columns::as_left();
#pragma unroll
    for (int k = 0; k < steps; ++k) {
      uint32_t left[2][4], right[2][2];
#pragma unroll
      for (int m = 0; m < 2; ++m) Square::left(left[m], left_at, m * 16, k);
#pragma unroll
      for (int t = 0; t < across / 16; ++t) {
        Columns::right_of_rows(right, right_at, k * 16, strip * (across / 16) + t);
#pragma unroll
        for (int m = 0; m < 2; ++m) product.template add<T>(m, t, left[m], right);
      }
    }
    return product;
  };

  float of_from[2][2] = {}, of_to[2][2] = {}, of_x[2][2] = {}, of_kept = 0;
  int tile = 0;
  for (int64_t head = first_head, unit = 0; head < first_head + heads; ++unit) {
    const int64_t first = tile * side, at = scan.x_at(sequence, begin, head) + first;
    const int rows = int(min(shape.rows - first, int64_t(side))), of_head = int((head - first_head) % 2);
    const bool is_last = tile == tiles - 1;
    const Positions<T>& positions = shared.positions[of_head];
    typename Shared::Stage& stage = shared.stages[unit % 2];
    float* to_heads = sums.heads + ((sequence * shape.heads + head) * scan.chunks() + chunk) * (2 + shape.skips);
    const uint32_t x_at = shared_address(stage.x), dy_at = shared_address(stage.dy);
    const uint32_t h_at = shared_address(stage.h), dh_at = shared_address(stage.dh);
    const Square x{stage.x}, dy{stage.dy}, z{stage.z};
    const bool is_next_head = is_last && head + 1 < first_head + heads;
    if (!is_last || is_next_head) read(head + is_last, is_last ? 0 : tile + 1, int((unit + 1) % 2));
    __pipeline_commit();
    if (warp == 0 && is_next_head) raw.load(scan, sequence, head + 1, begin), of_next.load(scan, sequence, head + 1);
    if (scan.z) {
      for (int i = threadIdx.x; i < side * Square::chunks; i += product_block) {
        const int row = i / Square::chunks, number = i % Square::chunks;
        uint32_t* of_dy = reinterpret_cast<uint32_t*>(dy.address(row, number));
        const uint32_t* of_z = reinterpret_cast<const uint32_t*>(z.address(row, number));
#pragma unroll
        for (int k = 0; k < 4; ++k)
          of_dy[k] = rounded_pair<T>(low_of_pair(of_dy[k]) * ChunkScan<T>::Gate::gate(low_of_pair(of_z[k])),
                                     high_of_pair(of_dy[k]) * ChunkScan<T>::Gate::gate(high_of_pair(of_z[k])));
      }
      __syncthreads();
    }

    if (tile == 0) {
      pairs.clear(), of_kept = 0;
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) of_from[m][half] = of_to[m][half] = of_x[m][half] = 0;
    }
    if (has_pairs)
      pairs.template add_product<steps, Square, Square>(dy_at + Square::as_left() + square_rows_at,
                                                        x_at + Square::as_right() + square_column * Square::pitch);
    if (tile == 0 || is_last) {
      // All are read before the first one is written.
      float2 factor[2][2][2], step[2];
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const int j = square_column + mma_column(t, 0);
        const float2 decay = *reinterpret_cast<const float2*>(positions.decay + j);
        step[t] = *reinterpret_cast<const float2*>(positions.step + j);
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half)
            factor[m][half][t] = positions.passed_pair(first_row + mma_row(m * 16, half), j, decay);
      }
      const Square kept{shared.kept}, scores{shared.scores};
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int t = 0; t < 2; ++t) {
            const int i = first_row + mma_row(m * 16, half), number = strip * 2 + t, within = mma_column(0, 0);
            const float2 of = factor[m][half][t];
            const float* value = products.part[m][t] + 2 * half;
            if (tile == 0) {
              const float low = times_passed(of.x, value[0]), high = times_passed(of.y, value[1]);
              *reinterpret_cast<uint32_t*>(kept.address(i, number) + within) = rounded_pair<T>(low, high);
              if (scan.z)
                *reinterpret_cast<uint32_t*>(scores.address(i, number) + within) =
                    rounded_pair<T>(step[t].x * low, step[t].y * high);
            }
            if (is_last) {
              const float* of_pair = pairs.part[m][t] + 2 * half;
              const float low = times_passed(of.x, step[t].x * of_pair[0]);
              const float high = times_passed(of.y, step[t].y * of_pair[1]);
              dproducts.part[m][t][2 * half] += low, dproducts.part[m][t][2 * half + 1] += high;
              *reinterpret_cast<float2*>(shared.paths + i * Shared::path_pitch + number * 8 + within) = {
                  low * value[0], high * value[1]};
            }
          }
    }

    {  // dy h
      MmaRows<2, across> product = times_states(dy_at, h_at);
      const Columns c{shared.c};
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i = first_row + mma_row(m * 16, half);
          const float kept = positions.from_state[i];
          if (scan.starts && positions.first[i] >= 0) product.each(m, half, [](float& value, int) { value = 0; });
#pragma unroll
          for (int t = 0; t < across / 8; ++t) {
            float* value = product.part[m][t] + 2 * half;
            float* to = dc.part[m][t] + 2 * half;
            const int n = wide_column + mma_column(t, 0);
            const uint32_t pair = *reinterpret_cast<const uint32_t*>(c.address(i, n / 8) + n % 8);
            value[0] *= kept, value[1] *= kept;
            to[0] += value[0], to[1] += value[1];
            of_from[m][half] += value[0] * low_of_pair(pair) + value[1] * high_of_pair(pair);
          }
        }
    }
    {  // x dh
      MmaRows<2, across> product = times_states(x_at, dh_at);
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int j = first_row + mma_row(m * 16, half);
          const float weight = positions.step[j] * positions.to_state[j];
#pragma unroll
          for (int t = 0; t < across / 8; ++t) {
            db.part[m][t][2 * half] += weight * product.part[m][t][2 * half];
            db.part[m][t][2 * half + 1] += weight * product.part[m][t][2 * half + 1];
          }
        }
    }
    if (positions.is_kept) {
#pragma unroll
      for (int i = threadIdx.x * 8; i < side * width; i += product_block * 8) {
        const uint4 of_h = *reinterpret_cast<const uint4*>(stage.h + i);
        const uint4 of_dh = *reinterpret_cast<const uint4*>(stage.dh + i);
        const uint32_t left[4] = {of_h.x, of_h.y, of_h.z, of_h.w}, right[4] = {of_dh.x, of_dh.y, of_dh.z, of_dh.w};
#pragma unroll
        for (int k = 0; k < 4; ++k)
          of_kept += low_of_pair(left[k]) * low_of_pair(right[k]) + high_of_pair(left[k]) * high_of_pair(right[k]);
      }
    }
    MmaRows<2, 16> result;
    result.clear();
    result.template add_product<wide_steps, Columns, Columns>(
        b_at + Columns::as_left() + rows_at, dh_at + Columns::as_right() + square_column * Columns::pitch);
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int j = first_row + mma_row(m * 16, half);
        const float to_state = positions.to_state[j];
        float sum = 0;
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          float* value = result.part[m][t] + 2 * half;
          const uint32_t pair = *reinterpret_cast<const uint32_t*>(x.address(j, strip * 2 + t) + mma_column(0, 0));
          value[0] *= to_state, value[1] *= to_state;
          sum += value[0] * low_of_pair(pair) + value[1] * high_of_pair(pair);
        }
        of_to[m][half] += positions.step[j] * sum;
      }
    __syncthreads();  // kept, scores and paths are there

    {  // what positions give those before
      const uint32_t left_at = shared_address(shared.kept) + Square::as_left();
      const uint32_t right_at = dy_at + Square::as_left();
#pragma unroll
      for (int k = 0; k < steps; ++k) {
        if (k * 16 < first_row) continue;
        uint32_t left[4], right[2][2];
        Square::right_of_rows(right, right_at, k * 16, strip);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          turned_left<Square>(left, left_at, k * 16, first_row / 16 + m);
          result.template add<T>(m, 0, left, right);
        }
      }
    }
    float of_skip[2][2] = {};
#pragma unroll
    for (int t = 0; t < 2; ++t) {
      const int p = square_column + mma_column(t, 0);
      const float skip[2] = {p < rows ? scan.skip_of(sequence, head, first + p) : 0.f,
                             p < rows ? scan.skip_of(sequence, head, first + p + 1) : 0.f};
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int j = first_row + mma_row(m * 16, half);
          const float step = positions.step[j];
          float* value = result.part[m][t] + 2 * half;
          const uint32_t of_row = *reinterpret_cast<const uint32_t*>(x.address(j, p / 8) + p % 8);
          const uint32_t of_dy = *reinterpret_cast<const uint32_t*>(dy.address(j, p / 8) + p % 8);
          of_x[m][half] += low_of_pair(of_row) * value[0] + high_of_pair(of_row) * value[1];
          of_skip[t][0] += low_of_pair(of_row) * low_of_pair(of_dy);
          of_skip[t][1] += high_of_pair(of_row) * high_of_pair(of_dy);
          value[0] = step * value[0] + low_of_pair(of_dy) * skip[0];
          value[1] = step * value[1] + high_of_pair(of_dy) * skip[1];
          if (j < count && p < rows)
            *reinterpret_cast<uint32_t*>(g.dx + at + j * stride + p) = rounded_pair<T>(value[0], value[1]);
        }
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float sum = sum_of_column(of_skip[t][e]);
        if (threadIdx.x % 32 < 4) shared.of_skip[warp % 2][p + e] = sum;
      }
    }
    if (scan.z) {
      result.clear();
      result.template add_product<wide_steps, Columns, Columns>(
          c_at + Columns::as_left() + rows_at, h_at + Columns::as_right() + square_column * Columns::pitch);
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i = first_row + mma_row(m * 16, half);
          const bool is_seen = positions.first[i] < 0;
          const float kept = positions.from_state[i];
          result.each(m, half, [&](float& value, int) { value = is_seen ? kept * value : 0.f; });
        }
      const uint32_t left_at = shared_address(shared.scores) + Square::as_left() + square_rows_at;
      const uint32_t right_at = x_at + Square::as_left();
#pragma unroll
      for (int k = 0; k < steps; ++k) {
        if (k * 16 > first_row + 16) continue;
        uint32_t left[4], right[2][2];
        Square::right_of_rows(right, right_at, k * 16, strip);
#pragma unroll
        for (int m = 0; m < 2; ++m) {
          Square::left(left, left_at, m * 16, k);
          result.template add<T>(m, 0, left, right);
        }
      }
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const int p = square_column + mma_column(t, 0);
        if (p >= rows) continue;
        const float skip[2] = {scan.skip_of(sequence, head, first + p), scan.skip_of(sequence, head, first + p + 1)};
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int i = first_row + mma_row(m * 16, half);
            if (i >= count) continue;
            const int64_t to = at + i * stride + p;
            const uint32_t of_row = *reinterpret_cast<const uint32_t*>(x.address(i, p / 8) + p % 8);
            const uint32_t of_z = *reinterpret_cast<const uint32_t*>(z.address(i, p / 8) + p % 8);
            const uint32_t of_dy = *reinterpret_cast<const uint32_t*>(g.dy + to);
            const float* value = result.part[m][t] + 2 * half;
            *reinterpret_cast<uint32_t*>(g.dz + to) =
                rounded_pair<T>(low_of_pair(of_dy) * (value[0] + skip[0] * low_of_pair(of_row)) *
                                    ChunkScan<T>::Gate::gate_slope(low_of_pair(of_z)),
                                high_of_pair(of_dy) * (value[1] + skip[1] * high_of_pair(of_row)) *
                                    ChunkScan<T>::Gate::gate_slope(high_of_pair(of_z)));
          }
      }
    }
    if (is_last) {
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          float from = sum_of_row(of_from[m][half]), to = sum_of_row(of_to[m][half]), of = sum_of_row(of_x[m][half]);
          const int i = first_row + mma_row(m * 16, half);
          if (threadIdx.x % 4 == 0)
            shared.of_from[strip][i] = from, shared.of_to[strip][i] = to, shared.of_x[strip][i] = of;
        }
#pragma unroll
      for (int distance = 16; distance > 0; distance /= 2) of_kept += __shfl_xor_sync(~0u, of_kept, distance);
      if (threadIdx.x % 32 == 0) shared.of_kept[warp] = of_kept;
      sum_paths<product_block, side, Shared::path_pitch>(shared.paths, shared.of_path);
    }
    if (warp == 0 && is_next_head) shared.positions[1 - of_head].find(scan, begin, of_next, raw);
    __pipeline_wait_prior(0);
    __syncthreads();  // the next stage is there, and sums
    if (warp == 0 && is_last) store_steps(scan, shared, positions, sequence, head, begin, g.ddt, to_heads);
    if (warp == 1) {
      float total = 0;
      for (int p = threadIdx.x % 32; p < rows; p += 32) {
        const float sum = shared.of_skip[0][p] + shared.of_skip[1][p];
        if (shape.skips > 1) to_heads[2 + first + p] = sum;
        total += sum;
      }
      if (shape.skips == 1) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) total += __shfl_xor_sync(~0u, total, distance);
        if (threadIdx.x % 32 == 0) to_heads[2] = tile > 0 ? to_heads[2] + total : total;
      }
    }
    tile = is_last ? 0 : tile + 1, head += is_last;
  }

  const Square kept{shared.kept};
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half)
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const int i = first_row + mma_row(m * 16, half);
        const float* of = dproducts.part[m][t] + 2 * half;
        *reinterpret_cast<uint32_t*>(kept.address(i, strip * 2 + t) + mma_column(0, 0)) = rounded_pair<T>(of[0], of[1]);
      }
  __syncthreads();
  const uint32_t kept_at = shared_address(shared.kept) + Square::as_left();
#pragma unroll
  for (int k = 0; k < steps; ++k) {
    uint32_t left[4], right[2][2];
#pragma unroll
    for (int t = 0; t < across / 16; ++t) {
      const int number = strip * (across / 16) + t;
      Columns::right_of_rows(right, b_at + Columns::as_left(), k * 16, number);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        Square::left(left, kept_at + square_rows_at, m * 16, k);
        dc.template add<T>(m, t, left, right);
      }
      Columns::right_of_rows(right, c_at + Columns::as_left(), k * 16, number);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        turned_left<Square>(left, kept_at, k * 16, first_row / 16 + m);
        db.template add<T>(m, t, left, right);
      }
    }
  }
#pragma unroll
  for (int m = 0; m < 2; ++m)
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = first_row + mma_row(m * 16, half);
      if (i >= count) continue;
      const int64_t row = ((sequence * shape.shared + which) * sums.parts + part) * shape.length + begin + i;
#pragma unroll
      for (int t = 0; t < across / 8; ++t) {
        const int n = wide_column + mma_column(t, 0);
        if (n >= columns) continue;
        float* to = sums.shared + row * 2 * columns + n;
        *reinterpret_cast<float2*>(to) = {db.part[m][t][2 * half], db.part[m][t][2 * half + 1]};
        *reinterpret_cast<float2*>(to + columns) = {dc.part[m][t][2 * half], dc.part[m][t][2 * half + 1]};
      }
    }
}

template <int width>
Status launch_chunk_backward_mma(const Executor& executor, const ChunkScan<BFloat16>& scan,
                                 const ChunkGradients<BFloat16>& g, const ChunkSums<BFloat16>& sums, int64_t blocks) {
  const int64_t tiles = ceil_div(scan.shape.rows, chunk_side);
  Status status = launch_chunks(executor, chunk_dstates_mma<width>, scan.shape.sequences() * scan.shape.heads * tiles,
                                unit_warps * 32, sizeof(DstatesMmaShared<width>), scan, g, sums.dstates, tiles);
  if (!status.ok()) return status;
  return launch_chunks(executor, chunk_backward_mma<width>, blocks, product_block, sizeof(BackwardMmaShared<width>),
                       scan, g, sums);
}

}  // namespace internal
}  // namespace baracuda
