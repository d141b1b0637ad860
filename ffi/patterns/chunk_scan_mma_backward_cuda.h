// Gradients of the chunk scan pattern on tensor cores, in the steps of chunk_scan_backward_cuda.h.
//
// A block has a chunk, and one head after the other, while it copies what the next rows, or the next head, need. Four
// teams of four warps share the products: what positions give each other, the gradient of x, that of C, and that of B.
// So each scheduler has a warp of each team, with work that waits for other things. Sums over heads stay in the
// registers of the team that needs them. All meet once for each head.
#pragma once

#include "chunk_dstates_mma_cuda.h"
#include "chunk_paths_mma_cuda.h"
#include "mma_padded_tile_cuda.h"
#include "named_barrier_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int team_threads = unit_warps * 32, backward_threads = 4 * team_threads;
enum class BackwardTeam { pairs, inputs, c, b };
enum BackwardBarrier { every_warp, kept_is_there };

// What a block has: in shared memory, since teams have no registers for what they need once for each head.
struct BackwardPart {
  int sequence, chunk, which, number, first_head, heads, tiles, count, columns;

  __device__ BackwardPart(const ChunkShape& shape, int64_t chunks, int64_t parts) {
    const ChunkPart of_block = ChunkPart::of_block(shape, chunks, parts);
    sequence = int(of_block.sequence), chunk = int(of_block.chunk);
    which = int(of_block.which), number = int(of_block.part);
    const int64_t each = shape.heads_each(), of_part = (each + parts - 1) / parts;
    tiles = int((shape.rows + chunk_side - 1) / chunk_side), columns = int(shape.columns);
    first_head = int(which * each + number * of_part);
    heads = tiles > 0 ? int(max(int64_t(0), min(of_part, each - number * of_part))) : 0;
    count = int(min(shape.length - int64_t(chunk) * chunk_side, int64_t(chunk_side)));
  }
};

template <int width>
struct BackwardMmaShared {
  using Columns = MmaPaddedTile<width, chunk_side>;
  using Square = MmaPaddedTile<chunk_side, chunk_side>;
  static constexpr int side = chunk_side;
  struct Stage {
    BFloat16 h[Columns::size], dh[Columns::size], x[Square::size], dy[Square::size], z[Square::size];
  };
  alignas(1024) BFloat16 b[Columns::size], c[Columns::size];
  Stage stages[2];
  // What positions keep of each other's, times C B; the same times steps, for the gate.
  BFloat16 kept[Square::size], scores[Square::size];
  Positions<BFloat16> positions[3];  // of the head before, of which the steps are stored, of this one, of the next
  PositionSums sums[2];
  float of_skip[2][2][side];
  BackwardPart part;
};

// A number of which the compiler does not know that it is the same for each head: what is computed of it is not kept in
// registers, of which there are too few.
__device__ inline int computed_again(int number) {
  asm volatile("" : "+r"(number));
  return number;
}

// Rows in memory at any address, which the threads of a block copy to a tile.
template <class Tile, int threads>
struct TileSource {
  static constexpr int together = threads / Tile::chunks;  // rows
  static_assert(together % 8 == 0 && Tile::rows % together == 0);

  // Others than the first so many rows and columns become 0.
  static __device__ void read(BFloat16* tile, const BFloat16* from, int64_t stride, int rows, int columns) {
    const int thread = computed_again(threadIdx.x), row = thread / Tile::chunks, number = thread % Tile::chunks;
    const uint32_t at = shared_address(tile) + Tile::in_bytes(row, number);
    const bool is_column = number * Tile::chunk < columns;
#pragma unroll
    for (int i = 0; i < Tile::rows; i += together) {
      const bool is_there = is_column && row + i < rows;
      const int64_t offset = (row + i) * stride + number * Tile::chunk;
      copy_async(at + i * Tile::pitch, is_there ? from + offset : from, is_there ? 16 : 0);
    }
  }
};

template <int width>
struct ChunkBackward {
  using T = BFloat16;
  using Shared = BackwardMmaShared<width>;
  using Columns = typename Shared::Columns;
  using Square = typename Shared::Square;
  static constexpr int side = chunk_side, steps = side / 16, wide_steps = width / 16;

  const ChunkScan<T>& scan;
  const ChunkGradients<T>& g;
  const ChunkSums<T>& sums;
  Shared& shared;
  const Positions<T>* decays;
  int warp;  // of its team
  const BackwardPart& part = shared.part;

  // Rows of a head.
  struct Unit {
    int number, of_head, head, tile, rows;  // of_head: which of the block's
    bool is_last;                           // of the head
  };

  __device__ int64_t begin() const { return int64_t(part.chunk) * side; }
  __device__ int64_t stride() const { return scan.shape.heads * scan.shape.rows; }
  // For gradients of x and the gate a warp has 32 positions, first_row() + mma_row(16 m, half), and 32 rows.
  __device__ int first_row() const { return warp % 2 * 32; }
  __device__ int strip() const { return warp / 2; }

  __device__ Unit unit_of(int of_head, int tile) const {
    Unit unit;
    unit.number = of_head * part.tiles + tile, unit.of_head = of_head, unit.tile = tile;
    unit.head = part.first_head + unit.of_head, unit.is_last = unit.tile == part.tiles - 1;
    unit.rows = int(min(scan.shape.rows - unit.tile * side, int64_t(side)));
    return unit;
  }
  __device__ int64_t at(const Unit& unit) const {
    return scan.x_at(part.sequence, begin(), unit.head) + unit.tile * side;
  }
  __device__ typename Shared::Stage& stage(const Unit& unit) const { return shared.stages[unit.number % 2]; }
  __device__ const Positions<T>& positions(const Unit& unit) const { return shared.positions[unit.of_head % 3]; }
  __device__ PositionSums& found(const Unit& unit) const { return shared.sums[unit.of_head % 2]; }
  __device__ float* of_heads(const Unit& unit) const {
    return sums.heads +
           ((part.sequence * scan.shape.heads + unit.head) * scan.chunks() + part.chunk) * (2 + scan.shape.skips);
  }

  __device__ void read(const Unit& unit) const {
    using Rows = TileSource<Square, backward_threads>;
    using States = TileSource<Columns, backward_threads>;
    typename Shared::Stage& to = stage(unit);
    const int64_t of_state =
        scan.saved_at(part.sequence, unit.head, part.chunk) + int64_t(unit.tile) * side * part.columns;
    Rows::read(to.x, scan.x + at(unit), stride(), part.count, unit.rows);
    Rows::read(to.dy, g.dy + at(unit), stride(), part.count, unit.rows);
    if (scan.z) Rows::read(to.z, scan.z + at(unit), stride(), part.count, unit.rows);
    States::read(to.h, g.states + of_state, part.columns, unit.rows, part.columns);
    if (unit.tile == 0)
      read_decays(shared.positions[unit.of_head % 3],
                  decays[(part.sequence * scan.shape.heads + unit.head) * scan.chunks() + part.chunk]);
    States::read(to.dh, sums.dstates + of_state, part.columns, unit.rows, part.columns);
  }
  __device__ void start() const {
    using Shares = TileSource<Columns, backward_threads>;
    const int64_t of_b = scan.b_at(part.sequence, begin(), part.which),
                  of_position = scan.shape.shared * scan.shape.columns;
    Shares::read(shared.b, scan.b + of_b, of_position, part.count, part.columns);
    Shares::read(shared.c, scan.c + of_b, of_position, part.count, part.columns);
    if (part.heads > 0) read(unit_of(0, 0));
    __pipeline_commit();
    if (threadIdx.x < mma_rows) shared.sums[0].of_row[threadIdx.x] = shared.sums[1].of_row[threadIdx.x] = 0;
    __pipeline_wait_prior(0);
    wait_at_barrier(every_warp, backward_threads);
  }
  __device__ void gate(const Unit& unit) const {
    const Square dy{stage(unit).dy}, z{stage(unit).z};
    static_assert(side * Square::chunks == backward_threads);
    const int row = int(threadIdx.x) / Square::chunks, number = int(threadIdx.x) % Square::chunks;
    uint32_t* of_dy = reinterpret_cast<uint32_t*>(dy.address(row, number));
    const uint32_t* of_z = reinterpret_cast<const uint32_t*>(z.address(row, number));
#pragma unroll
    for (int k = 0; k < 4; ++k)
      of_dy[k] = rounded_pair<T>(low_of_pair(of_dy[k]) * ChunkScan<T>::Gate::gate(low_of_pair(of_z[k])),
                                 high_of_pair(of_dy[k]) * ChunkScan<T>::Gate::gate(high_of_pair(of_z[k])));
    wait_at_barrier(every_warp, backward_threads);
  }
  // Calls body of all units, of which the next one is copied meanwhile.
  template <class Body>
  __device__ void each_unit(const Body& body) const {
    for (int of_head = 0, tile = 0; of_head < part.heads;) {
      const Unit unit = unit_of(of_head, tile);
      if (unit.is_last)
        ++of_head, tile = 0;
      else
        ++tile;
      if (of_head < part.heads) read(unit_of(of_head, tile));
      __pipeline_commit();
      if (scan.z) gate(unit);
      body(unit);
      __pipeline_wait_prior(0);
      wait_at_barrier(every_warp, backward_threads);
    }
  }

  // 16 rows of a square times what a chunk's states are, 16 columns after the other: end(t, product) of each.
  template <class End>
  __device__ void times_states(const T* square, const T* states, const End& end) const {
    const uint32_t right_at = shared_address(states) + Columns::as_left();
    MmaLeft<1, steps> left;
    left.template load<Square>(shared_address(square) + Square::as_left() + warp * mma_rows * Square::pitch);
#pragma unroll
    for (int t = 0; t < width / 16; ++t) {
      MmaRows<1, 16> product;
      product.clear();
#pragma unroll
      for (int k = 0; k < steps; ++k) {
        uint32_t right[2][2];
        Columns::right_of_rows(right, right_at, k * 16, t);
        product.template add<T>(0, 0, left.part[k][0], right);
      }
      end(t, product);
    }
  }
  // Adds products of the sums over heads of pairs of positions, which are there, and B or C.
  template <bool is_turned>
  __device__ void add_pairs(MmaRows<1, width>& to, const T* of) const {
    const uint32_t pairs_at = shared_address(shared.kept) + Square::as_left();
    const uint32_t right_at = shared_address(of) + Columns::as_left();
#pragma unroll
    for (int k = 0; k < steps; ++k) {
      if (is_turned ? k < warp : k > warp) continue;
      uint32_t left[4], right[2][2];
      if constexpr (is_turned)
        Square::turned_left(left, pairs_at, k * 16, warp);
      else
        Square::left(left, pairs_at, warp * mma_rows, k);
#pragma unroll
      for (int t = 0; t < width / 16; ++t) {
        Columns::right_of_rows(right, right_at, k * 16, t);
        to.template add<T>(0, t, left, right);
      }
    }
  }
  // A block's part of the gradient of B or C.
  __device__ void store_shared(const MmaRows<1, width>& of, int kind, T* whole) const {
    const ChunkShape& shape = scan.shape;
    const int64_t of_part = ((part.sequence * shape.shared + part.which) * sums.parts + part.number) * shape.length;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int i = mma_row(warp * mma_rows, half);
      if (i >= part.count) continue;
      float* to = sums.shared + ((of_part + begin() + i) * 2 + kind) * part.columns;
      T* to_whole = whole + scan.b_at(part.sequence, begin() + i, part.which);
#pragma unroll
      for (int t = 0; t < width / 8; ++t) {
        const int n = mma_column(t, 0);
        const float* value = of.part[0][t] + 2 * half;
        if (n >= part.columns) continue;
        if (sums.shared)
          *reinterpret_cast<float2*>(to + n) = {value[0], value[1]};
        else
          *reinterpret_cast<uint32_t*>(to_whole + n) = rounded_pair<T>(value[0], value[1]);
      }
    }
  }

  // What positions give each other, in blocks of 16 x 16 as in ChunkCb.
  __device__ void find_pairs() const {
    constexpr int each = ChunkCb::each;
    MmaRows<1, 16> products[each], dproducts[each], pairs[each];  // of C and B; dy x^T
    auto each_block = [&](const auto& body) {
#pragma unroll
      for (int k = 0; k < each; ++k)
        if (k < ChunkCb::count(warp)) body(k, ChunkCb::row(k, warp), ChunkCb::column(k, warp));
    };
    each_block([&](int k, int row, int column) {
      products[k].clear(), dproducts[k].clear();
      products[k].template add_product<wide_steps, Columns, Columns>(
          shared_address(shared.c) + Columns::as_left() + row * 16 * Columns::pitch,
          shared_address(shared.b) + Columns::as_right() + column * 16 * Columns::pitch);
    });
    each_unit([&](const Unit& unit) {
      const Positions<T>& of = positions(unit);
      PositionSums& to = found(unit);
      each_block([&](int k, int row, int column) {
        if (unit.tile == 0) pairs[k].clear();
        pairs[k].template add_product<steps, Square, Square>(
            shared_address(stage(unit).dy) + Square::as_left() + row * 16 * Square::pitch,
            shared_address(stage(unit).x) + Square::as_right() + column * 16 * Square::pitch);
      });
      float of_row[2] = {};
      each_block([&](int k, int row, int column) {
        if (unit.tile > 0 && !unit.is_last) return;
        const Square kept{shared.kept}, scores{shared.scores};
        // All are read before the first one is written.
        float2 factor[2][2], step[2];
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          const int j = column * 16 + mma_column(t, 0);
          const float2 decay = *reinterpret_cast<const float2*>(of.decay + j);
          step[t] = *reinterpret_cast<const float2*>(of.step + j);
#pragma unroll
          for (int half = 0; half < 2; ++half) factor[half][t] = of.passed_pair(mma_row(row * 16, half), j, decay);
        }
        float path[2][2][2];
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int t = 0; t < 2; ++t) {
            const int i = mma_row(row * 16, half), number = column * 2 + t, within = mma_column(0, 0);
            const float2 by = factor[half][t];
            const float* value = products[k].part[0][t] + 2 * half;
            if (unit.tile == 0) {
              const float low = times_passed(by.x, value[0]), high = times_passed(by.y, value[1]);
              *reinterpret_cast<uint32_t*>(kept.address(i, number) + within) = rounded_pair<T>(low, high);
              if (scan.z)
                *reinterpret_cast<uint32_t*>(scores.address(i, number) + within) =
                    rounded_pair<T>(step[t].x * low, step[t].y * high);
            }
            if (unit.is_last) {
              const float* of_pair = pairs[k].part[0][t] + 2 * half;
              float* sum = dproducts[k].part[0][t] + 2 * half;
              const float low = times_passed(by.x, step[t].x * of_pair[0]);
              const float high = times_passed(by.y, step[t].y * of_pair[1]);
              sum[0] += low, sum[1] += high;
              path[half][t][0] = low * value[0], path[half][t][1] = high * value[1];
            }
          }
        if (!unit.is_last) return;
        float of_column[4];
        if (row == column) {
          sum_within_block(path);
        } else {
#pragma unroll
          for (int half = 0; half < 2; ++half)
            of_row[half] += path[half][0][0] + path[half][0][1] + (path[half][1][0] + path[half][1][1]);
        }
#pragma unroll
        for (int e = 0; e < 4; ++e) of_column[e] = path[0][e / 2][e % 2] + path[1][e / 2][e % 2];
        const float sum = sum_of_columns(of_column);
        if (threadIdx.x / 4 % 2 == 0)
          (row == column ? to.of_block : to.of_column[warp])[column * 16 + column_of_sum<4>()] = sum;
      });
      wait_at_barrier(kept_is_there, 2 * team_threads);
      if (unit.is_last && warp < unit_warps - 1) {
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float sum = sum_of_row(of_row[half]);
          if (threadIdx.x % 4 == 0) to.of_row[mma_row(ChunkCb::row(0, warp) * 16, half)] = sum;
        }
      }
    });
    const Square kept{shared.kept};
    each_block([&](int k, int row, int column) {
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          const float* of = dproducts[k].part[0][t] + 2 * half;
          *reinterpret_cast<uint32_t*>(kept.address(mma_row(row * 16, half), column * 2 + t) + mma_column(0, 0)) =
              rounded_pair<T>(of[0], of[1]);
        }
    });
    wait_at_barrier(every_warp, backward_threads);
  }
  // The gradients of x and of the gate.
  __device__ void find_inputs() const {
    const int square_column = strip() * 32;
    float of_to[2][2], of_x[2][2];
    each_unit([&](const Unit& unit) {
      const Positions<T>& of = positions(unit);
      PositionSums& to = found(unit);
      const Square x{stage(unit).x}, dy{stage(unit).dy};
      auto pair_of = [&](const Square& tile, int m, int half, int t) {
        return *reinterpret_cast<const uint32_t*>(
            tile.address(first_row() + mma_row(m * 16, half), square_column / 8 + t) + mma_column(0, 0));
      };
      if (unit.tile == 0)
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) of_to[m][half] = of_x[m][half] = 0;
      MmaRows<2, 32> result;
      result.clear();
      result.template add_product<wide_steps, Columns, Columns>(
          shared_address(shared.b) + Columns::as_left() + first_row() * Columns::pitch,
          shared_address(stage(unit).dh) + Columns::as_right() + square_column * Columns::pitch);
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int j = first_row() + mma_row(m * 16, half);
          const float to_state = of.to_state[j];
          float sum = 0;
#pragma unroll
          for (int t = 0; t < 4; ++t) {
            float* value = result.part[m][t] + 2 * half;
            const uint32_t pair = pair_of(x, m, half, t);
            value[0] *= to_state, value[1] *= to_state;
            sum += value[0] * low_of_pair(pair) + value[1] * high_of_pair(pair);
          }
          of_to[m][half] += of.step[j] * sum;
        }
      wait_at_barrier(kept_is_there, 2 * team_threads);
      {
        const uint32_t left_at = shared_address(shared.kept) + Square::as_left();
        const uint32_t right_at = shared_address(stage(unit).dy) + Square::as_left();
        const int block = first_row() / 16;
#pragma unroll
        for (int k = 0; k < steps; ++k) {
          if (k < block) continue;
          uint32_t left[4], right[2][2][2];
#pragma unroll
          for (int t = 0; t < 2; ++t) Square::right_of_rows(right[t], right_at, k * 16, strip() * 2 + t);
#pragma unroll
          for (int m = 0; m < 2; ++m) {
            if (k < block + m) continue;
            Square::turned_left(left, left_at, k * 16, block + m);
#pragma unroll
            for (int t = 0; t < 2; ++t) result.template add<T>(m, t, left, right[t]);
          }
        }
      }
      float of_skip[8] = {};
      const float* skips = scan.skip + scan.head_of(part.sequence, unit.head) * scan.shape.skips;
      const int first_column = computed_again(square_column);
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        const int p = first_column + mma_column(t, 0);
        const bool is_row = p < unit.rows;
        const int of_first = scan.shape.skips == 1 ? 0 : unit.tile * side + p;
        const int of_second = scan.shape.skips == 1 ? 0 : of_first + 1;
        const float skip[2] = {is_row ? skips[of_first] : 0.f, is_row ? skips[of_second] : 0.f};
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const int j = first_row() + mma_row(m * 16, half);
            const float step = of.step[j];
            float* value = result.part[m][t] + 2 * half;
            const uint32_t of_row = pair_of(x, m, half, t), of_dy = pair_of(dy, m, half, t);
            of_x[m][half] += low_of_pair(of_row) * value[0] + high_of_pair(of_row) * value[1];
            of_skip[2 * t] += low_of_pair(of_row) * low_of_pair(of_dy);
            of_skip[2 * t + 1] += high_of_pair(of_row) * high_of_pair(of_dy);
            value[0] = step * value[0] + low_of_pair(of_dy) * skip[0];
            value[1] = step * value[1] + high_of_pair(of_dy) * skip[1];
          }
      }
      // Neighboring lanes exchange pairs, so that each writes 8 bytes.
      const bool is_odd = threadIdx.x % 2;
      const int first = computed_again(first_row());
      T* dx = g.dx + at(unit) + square_column + mma_column(0, 0) + (is_odd ? 8 - 2 : 0);
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int t = 0; t < 4; t += 2) {
            const int j = first + mma_row(m * 16, half);
            const float *low = result.part[m][t] + 2 * half, *high = result.part[m][t + 1] + 2 * half;
            const uint32_t pairs[2] = {rounded_pair<T>(low[0], low[1]), rounded_pair<T>(high[0], high[1])};
            const uint32_t own = is_odd ? pairs[1] : pairs[0];
            const uint32_t other = __shfl_xor_sync(~0u, is_odd ? pairs[0] : pairs[1], 1);
            if (j < part.count && square_column + (t + is_odd) * 8 < unit.rows)
              *reinterpret_cast<uint2*>(dx + j * stride() + t * 8) = is_odd ? uint2{other, own} : uint2{own, other};
          }
      const float skip = sum_of_columns(of_skip);
      shared.of_skip[unit.number % 2][first_row() / 32][square_column + column_of_sum<8>()] = skip;
      if (unit.is_last)
#pragma unroll
        for (int m = 0; m < 2; ++m)
#pragma unroll
          for (int half = 0; half < 2; ++half) {
            const float sum = sum_of_row(of_to[m][half]), other = sum_of_row(of_x[m][half]);
            const int j = first_row() + mma_row(m * 16, half);
            if (threadIdx.x % 4 == 0) to.of_to[strip()][j] = sum, to.of_x[strip()][j] = other;
          }
      if (scan.z) find_gate(unit);
    });
    wait_at_barrier(every_warp, backward_threads);
  }

  __device__ void find_gate(const Unit& unit) const {
    const int square_column = strip() * 32, block = first_row() / 16;
    const int64_t begins = at(unit);
    const int first = computed_again(first_row());
    const Positions<T>& of = positions(unit);
    const Square x{stage(unit).x}, z{stage(unit).z};
    MmaRows<2, 32> result;
    result.clear();
    result.template add_product<wide_steps, Columns, Columns>(
        shared_address(shared.c) + Columns::as_left() + first_row() * Columns::pitch,
        shared_address(stage(unit).h) + Columns::as_right() + square_column * Columns::pitch);
#pragma unroll
    for (int m = 0; m < 2; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = first_row() + mma_row(m * 16, half);
        const bool is_seen = of.first[i] < 0;
        const float kept = of.from_state[i];
        result.each(m, half, [&](float& value, int) { value = is_seen ? kept * value : 0.f; });
      }
#pragma unroll
    for (int k = 0; k < steps; ++k) {
      if (k > block + 1) continue;
      uint32_t left[4], right[2][2][2];
#pragma unroll
      for (int t = 0; t < 2; ++t)
        Square::right_of_rows(right[t], shared_address(stage(unit).x) + Square::as_left(), k * 16, strip() * 2 + t);
#pragma unroll
      for (int m = 0; m < 2; ++m) {
        if (k > block + m) continue;
        Square::left(left, shared_address(shared.scores) + Square::as_left(), (block + m) * 16, k);
#pragma unroll
        for (int t = 0; t < 2; ++t) result.template add<T>(m, t, left, right[t]);
      }
    }
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const int p = square_column + mma_column(t, 0);
      if (p >= unit.rows) continue;
      const float skip[2] = {scan.skip_of(part.sequence, unit.head, unit.tile * side + p),
                             scan.skip_of(part.sequence, unit.head, unit.tile * side + p + 1)};
#pragma unroll
      for (int m = 0; m < 2; ++m)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int i = first + mma_row(m * 16, half);
          if (i >= part.count) continue;
          const int64_t to = begins + i * stride() + p;
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

  // The gradient of C.
  __device__ void find_c() const {
    MmaRows<1, width> dc;
    dc.clear();
    float of_from[2];
    each_unit([&](const Unit& unit) {
      const Positions<T>& of = positions(unit);
      const uint32_t c_at = shared_address(shared.c) + Columns::as_left() + warp * mma_rows * Columns::pitch;
      float kept[2], from[2] = {};
      bool is_seen[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int i = mma_row(warp * mma_rows, half);
        kept[half] = of.from_state[i], is_seen[half] = of.first[i] < 0;
      }
      times_states(stage(unit).dy, stage(unit).h, [&](int t, MmaRows<1, 16>& product) {
        uint32_t pairs[4];
        Columns::left(pairs, c_at, 0, t);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          if (!is_seen[half]) product.each(0, half, [](float& value, int) { value = 0; });
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            const float* value = product.part[0][k] + 2 * half;
            float* to = dc.part[0][2 * t + k] + 2 * half;
            const uint32_t pair = pairs[2 * k + half];
            to[0] += kept[half] * value[0], to[1] += kept[half] * value[1];
            from[half] += value[0] * low_of_pair(pair), from[half] += value[1] * high_of_pair(pair);
          }
        }
      });
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float of_tile = kept[half] * sum_of_row(from[half]);
        of_from[half] = unit.tile == 0 ? of_tile : of_from[half] + of_tile;
        if (unit.is_last && threadIdx.x % 4 == 0)
          found(unit).of_from[0][mma_row(warp * mma_rows, half)] = of_from[half];
      }
    });
    wait_at_barrier(every_warp, backward_threads);
    add_pairs<false>(dc, shared.b);
    store_shared(dc, 1, g.dc);
  }
  // The gradient of B; sums of states and their cotangents. Meanwhile sums of the unit before are stored: by the first
  // warp of D, by the second one of steps.
  __device__ void find_b() const {
    MmaRows<1, width> db;
    db.clear();
    float of_kept = 0;
    each_unit([&](const Unit& unit) {
      const Positions<T>& of = positions(unit);
      if (unit.tile == 0) of_kept = 0;
      float weight[2];
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int j = mma_row(warp * mma_rows, half);
        weight[half] = of.step[j] * of.to_state[j];
      }
      times_states(stage(unit).x, stage(unit).dh, [&](int t, const MmaRows<1, 16>& product) {
#pragma unroll
        for (int k = 0; k < 2; ++k)
#pragma unroll
          for (int e = 0; e < 4; ++e) db.part[0][2 * t + k][e] += weight[e / 2] * product.part[0][k][e];
      });
      if (of.is_kept) {
        // The diagonal of 16 rows of h dh^T.
        const uint32_t first = warp * mma_rows * Columns::pitch;
        MmaRows<1, 16> product;
        product.clear();
        product.template add_product<wide_steps, Columns, Columns>(
            shared_address(stage(unit).h) + Columns::as_left() + first,
            shared_address(stage(unit).dh) + Columns::as_right() + first);
#pragma unroll
        for (int half = 0; half < 2; ++half)
#pragma unroll
          for (int e = 0; e < 2; ++e)
            if (mma_row(0, half) == mma_column(half, e)) of_kept += product.part[0][half][2 * half + e];
      }
      if (unit.is_last) {
        float sum = of_kept;
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(~0u, sum, distance);
        if (threadIdx.x % 32 == 0) found(unit).of_kept[warp] = sum;
      }
      if (unit.tile > 0)
        store_sums(unit_of(unit.of_head, unit.tile - 1));
      else if (unit.of_head > 0)
        store_sums(unit_of(unit.of_head - 1, part.tiles - 1));
    });
    wait_at_barrier(every_warp, backward_threads);
    if (part.heads > 0) store_sums(unit_of(part.heads - 1, part.tiles - 1));
    add_pairs<true>(db, shared.c);
    store_shared(db, 0, g.db);
  }
  __device__ void store_sums(const Unit& unit) const {
    if (warp == 0) {
      const float (&of)[2][side] = shared.of_skip[unit.number % 2];
      float* to = of_heads(unit) + 2;
      float total = 0;
      for (int p = threadIdx.x % 32; p < unit.rows; p += 32) {
        const float sum = of[0][p] + of[1][p];
        if (scan.shape.skips > 1) to[unit.tile * side + p] = sum;
        total += sum;
      }
      if (scan.shape.skips == 1) {
#pragma unroll
        for (int distance = 16; distance > 0; distance /= 2) total += __shfl_xor_sync(~0u, total, distance);
        if (threadIdx.x % 32 == 0) *to = unit.tile > 0 ? *to + total : total;
      }
    }
    if (warp == 1 && unit.is_last) {
      sum_paths(found(unit));
      store_steps(scan, found(unit), positions(unit), part.sequence, unit.head, begin(), g.ddt, of_heads(unit));
    }
  }
};

template <int width>
__global__ void __launch_bounds__(backward_threads, 1)
    chunk_backward_mma(const __grid_constant__ ChunkScan<BFloat16> scan,
                       const __grid_constant__ ChunkGradients<BFloat16> g,
                       const __grid_constant__ ChunkSums<BFloat16> sums, const Positions<BFloat16>* decays) {
  extern __shared__ __align__(1024) unsigned char bytes[];
  BackwardMmaShared<width>& shared = *reinterpret_cast<BackwardMmaShared<width>*>(bytes);
  if (threadIdx.x == 0) shared.part = BackwardPart(scan.shape, scan.chunks(), sums.parts);
  __syncthreads();
  const int warp = uniform_warp();
  const ChunkBackward<width> block{scan, g, sums, shared, decays, warp % unit_warps};
  block.start();
  switch (BackwardTeam(warp / unit_warps)) {
    case BackwardTeam::pairs:
      return block.find_pairs();
    case BackwardTeam::inputs:
      return block.find_inputs();
    case BackwardTeam::c:
      return block.find_c();
    case BackwardTeam::b:
      return block.find_b();
  }
}

}  // namespace internal
}  // namespace baracuda
