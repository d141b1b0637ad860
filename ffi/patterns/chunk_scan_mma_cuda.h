// The chunk scan pattern on tensor cores, of bfloat16 whose rows and columns are multiples of 8.
//
// A block has 64 rows of a head's state, and a warp 16 of these, in registers: as such they are a factor of the output
// and what a chunk adds to. While a chunk is computed, the next one is copied. Warps meet once for each chunk, when its
// scores are written: C B^T, which is read a chunk before, times decays.
#pragma once

#include "chunk_cb_mma_cuda.h"
#include "chunk_decays_cuda.h"

namespace baracuda {
namespace internal {

// 16 rows of a state, which a warp has: as Part of chunk_products_cuda.h.
template <int width>
struct StateStrip {
  static constexpr int tiles = width / 8;
  float value[tiles][4];

  // 64 columns, as a sum that wgmma adds to.
  __device__ float (&half(int which))[8][4] { return reinterpret_cast<float (&)[8][4]>(value[which * 8]); }
  static __device__ int row(int e) { return int(threadIdx.x) / 32 % unit_warps * mma_rows + mma_row(0, e / 2); }
  static __device__ int column(int t, int e) { return mma_column(t, e); }
  template <class Body>
  static __device__ void each(const Body& body) {
#pragma unroll
    for (int t = 0; t < tiles; ++t)
#pragma unroll
      for (int e = 0; e < 4; ++e) body(t, e);
  }
  // Between memory and registers, of so many rows and columns, which are multiples of 8.
  template <class Body>
  static __device__ void each_pair(int rows, int columns, const Body& body) {
    const int64_t at = row(0) * int64_t(columns) + column(0, 0);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      if (row(2 * half) >= rows) break;
#pragma unroll
      for (int t = 0; t < tiles; ++t)
        if (t * 8 < columns) body(t, 2 * half, at + half * 8 * columns + t * 8);
    }
  }
  __device__ void load(const float* from, int rows, int columns) {
    each([&](int t, int e) { value[t][e] = 0; });
    each_pair(rows, columns, [&](int t, int e, int64_t at) {
      const float2 pair = *reinterpret_cast<const float2*>(from + at);
      value[t][e] = pair.x, value[t][e + 1] = pair.y;
    });
  }
  __device__ void store(float* to, int rows, int columns) const {
    each_pair(rows, columns,
              [&](int t, int e, int64_t at) { *reinterpret_cast<float2*>(to + at) = {value[t][e], value[t][e + 1]}; });
  }
  // 32 columns, from 32 k on, rounded: of the fragments 2 k and 2 k + 1. The four lanes of a row exchange pairs, so
  // that each writes 16 bytes of 64 that are neighbors.
  static __device__ void store_rounded(BFloat16* to, int rows, int columns, int k,
                                       const uint32_t (&fragments)[2][2][2]) {
    const int lane = threadIdx.x % 4;
    const bool is_odd = lane % 2, is_second = lane / 2;
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      uint32_t pair[4];
#pragma unroll
      for (int t = 0; t < 4; ++t) pair[t] = fragments[t / 2][half][t % 2];
      // Lane 2 a + b gets the part 2 a + b of all four.
#pragma unroll
      for (int t = 0; t < 2; ++t) {
        const uint32_t other = __shfl_xor_sync(~0u, is_second ? pair[t] : pair[t + 2], 2);
        if (is_second)
          pair[t] = other;
        else
          pair[t + 2] = other;
      }
#pragma unroll
      for (int t = 0; t < 4; t += 2) {
        const uint32_t other = __shfl_xor_sync(~0u, is_odd ? pair[t] : pair[t + 1], 1);
        if (is_odd)
          pair[t] = other;
        else
          pair[t + 1] = other;
      }
      if (row(2 * half) < rows && k * 32 + lane * 8 < columns)
        *reinterpret_cast<uint4*>(to + row(2 * half) * int64_t(columns) + lane * 8 + k * 32) = {pair[0], pair[1],
                                                                                                pair[2], pair[3]};
    }
  }
  __device__ void store_rounded(BFloat16* to, int rows, int columns) const {
#pragma unroll
    for (int k = 0; k < tiles / 4; ++k) {
      uint32_t fragments[2][2][2];
      round(fragments[0], 2 * k), round(fragments[1], 2 * k + 1);
      store_rounded(to, rows, columns, k, fragments);
    }
  }
  // What a chunk keeps of the state before.
  __device__ void keep(const Positions<BFloat16>& positions) {
    const bool is_kept = positions.is_kept;
    const float kept = positions.kept;
    if (is_kept)
      each([&](int t, int e) { value[t][e] *= kept; });
    else
      each([&](int t, int e) { value[t][e] = 0; });
  }
  // Adds the product of a fragment and 16 rows of a tile.
  template <class Tile>
  __device__ void add_product(const uint32_t (&left)[4], uint32_t at, int row) {
#pragma unroll
    for (int t = 0; t < tiles / 2; ++t) {
      uint32_t right[2][2];
      Tile::right_of_rows(right, at, row, t);
      multiply_add<BFloat16>(value[2 * t], left, right[0]);
      multiply_add<BFloat16>(value[2 * t + 1], left, right[1]);
    }
  }
  // The fragments of 16 columns, rounded: of two Bs whose columns are 8 rows each.
  __device__ void round(uint32_t (&right)[2][2], int k) const {
#pragma unroll
    for (int t = 0; t < 2; ++t)
#pragma unroll
      for (int half = 0; half < 2; ++half)
        right[t][half] = rounded_pair<BFloat16>(value[2 * k + half][2 * t], value[2 * k + half][2 * t + 1]);
  }
};

// Two bfloat16, the first in the lower bits.
__device__ inline float low_of_pair(uint32_t pair) { return __uint_as_float(pair << 16); }
__device__ inline float high_of_pair(uint32_t pair) { return __uint_as_float(pair & 0xffff0000u); }

// The 16 columns of a tile's rows that one warp reads, and copies itself.
template <class Tile>
struct StripSource {
  static constexpr int together = 16;  // rows
  const BFloat16* next;
  int64_t stride;
  uint32_t to;
  int row, size;

  __device__ StripSource(const BFloat16* from, int64_t stride, int columns) : stride(stride) {
    int lane = threadIdx.x % 32, number = int(threadIdx.x) / 32 % unit_warps * 2 + lane % 2;
    row = lane / 2;
    to = Tile::in_bytes(row, number);
    size = number * Tile::chunk < columns ? 16 : 0;
    next = size > 0 ? from + row * stride + number * Tile::chunk : from;
  }
  __device__ void read(uint32_t tile, int count) {
#pragma unroll
    for (int i = 0; i < Tile::rows; i += together) {
      bool is_one = i + row < count;
      copy_async(tile + to + i * Tile::pitch, is_one ? next : next - i * stride, is_one ? size : 0);
      next += together * stride;
    }
  }
};

template <int width>
struct ForwardMmaShared {
  using Columns = MmaTile<BFloat16, width, chunk_side>;
  using Square = MmaTile<BFloat16, chunk_side, chunk_side>;
  alignas(1024) BFloat16 b[2][chunk_side * width], c[2][chunk_side * width];
  BFloat16 x[2][chunk_side * chunk_side], scores[2][chunk_side * chunk_side];
  Positions<BFloat16> positions[2];
  alignas(1024) BFloat16 z[chunk_side * chunk_side];  // at the end: without a gate it is not there

  static int64_t bytes(bool is_gated) { return is_gated ? sizeof(ForwardMmaShared) : offsetof(ForwardMmaShared, z); }
};

// The scores of one of a warp's blocks of 16 positions i and 16 positions j.
template <class Square>
__device__ void store_scores(const Square& scores, const Positions<BFloat16>& positions, const float4 (&products)[2],
                             int m, int n) {
  // All are read before the first one is written: else each waits for the one before.
  uint32_t rounded[2][2];
#pragma unroll
  for (int t = 0; t < 2; ++t) {
    const int j = n * mma_rows + mma_column(t, 0);
    const float2 step = *reinterpret_cast<const float2*>(positions.step + j);
    const float2 decay = *reinterpret_cast<const float2*>(positions.decay + j);
    const float2 value[2] = {{products[t].x, products[t].y}, {products[t].z, products[t].w}};
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const float2 factor = positions.passed_pair(mma_row(m * mma_rows, half), j, decay);
      rounded[half][t] = rounded_pair<BFloat16>(times_passed(factor.x, step.x * value[half].x),
                                                times_passed(factor.y, step.y * value[half].y));
    }
  }
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int half = 0; half < 2; ++half)
      *reinterpret_cast<uint32_t*>(scores.address(mma_row(m * mma_rows, half), n * 2 + t) + mma_column(0, 0)) =
          rounded[half][t];
}

template <int width>
__global__ void __launch_bounds__(unit_warps * 32, 2)
    chunk_forward_mma(ChunkScan<BFloat16> scan, const float4* products, BFloat16* y, float* last, BFloat16* states,
                      int64_t tiles, const Positions<BFloat16>* decays) {
  using T = BFloat16;
  using Shared = ForwardMmaShared<width>;
  using Columns = typename Shared::Columns;
  using Square = typename Shared::Square;
  constexpr int threads = unit_warps * 32, side = chunk_side, steps = side / 16;
  extern __shared__ __align__(1024) unsigned char bytes[];
  Shared& shared = *reinterpret_cast<Shared*>(bytes);
  const ChunkShape& shape = scan.shape;
  const auto [sequence, head, which, first] = HeadTile::of_block(shape, tiles, side);
  const int64_t chunks = scan.chunks();
  const int64_t stride = shape.heads * shape.rows, at = scan.x_at(sequence, 0, head) + first;
  const int rows = int(min(shape.rows - first, int64_t(side))), columns = int(shape.columns);
  const int strip = uniform_warp();
  auto count_of = [&](int64_t chunk) { return int(min(shape.length - chunk * side, int64_t(side))); };

  using State = StateStrip<width>;
  State h;
  h.load(scan.state + scan.state_at(sequence, head) + first * columns, rows, columns);
  float skip[2][2];
#pragma unroll
  for (int t = 0; t < 2; ++t)
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      int p = strip * mma_rows + mma_column(t, e);
      skip[t][e] = p < rows ? scan.skip_of(sequence, head, first + p) : 0.f;
    }
  MmaSource<Columns, threads> of_b(scan.b + scan.b_at(sequence, 0, which), shape.shared * columns, columns);
  MmaSource<Columns, threads> of_c(scan.c + scan.b_at(sequence, 0, which), shape.shared * columns, columns);
  StripSource<Square> of_x(scan.x + at, stride, rows), of_z((scan.z ? scan.z : scan.x) + at, stride, rows);
  decays += (sequence * shape.heads + head) * chunks;
  auto read_shared = [&](int64_t chunk) {
    if (chunk >= chunks) return;
    read_decays(shared.positions[chunk % 2], decays[chunk]);
    of_b.read(shared_address(shared.b[chunk % 2]), count_of(chunk));
    of_c.read(shared_address(shared.c[chunk % 2]), count_of(chunk));
  };
  auto read_x = [&](int64_t chunk) {
    if (chunk < chunks) of_x.read(shared_address(shared.x[chunk % 2]), count_of(chunk));
  };
  auto read_z = [&](int64_t chunk) {
    if (scan.z && chunk < chunks) of_z.read(shared_address(shared.z), count_of(chunk));
  };
  products += (sequence * shape.shared + which) * chunks * ChunkCb::of_chunk;
  ChunkCb product;
  auto read_products = [&](int64_t chunk) {
    if (chunk < chunks) product.load(products + chunk * ChunkCb::of_chunk, strip);
  };
  read_products(0);
  read_shared(0), read_x(0), read_z(0);
  __pipeline_commit();
  read_shared(1), read_x(1);
  __pipeline_commit();
  __pipeline_wait_prior(1);
  __syncthreads();

  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int now = int(chunk % 2);
    const Positions<T>& positions = shared.positions[now];
    BFloat16* saved = states ? states + scan.saved_at(sequence, head, chunk) + first * columns : nullptr;
    MmaRows<4, 16> result;
    result.clear();
    const uint32_t left_at = shared_address(shared.c[now]) + Columns::as_left();
    // Scores are found between products, while tensor cores have work.
    uint32_t fragments[2][4][4];
    auto read_fragments = [&](int k) {
#pragma unroll
      for (int m = 0; m < 4; ++m) Columns::left(fragments[k % 2][m], left_at, m * mma_rows, k);
    };
    read_fragments(0);
    static_assert(ChunkCb::each <= width / 16);
    uint32_t rounded[2][2][2];
#pragma unroll
    for (int k = 0; k < width / 16; ++k) {
      if (k + 1 < width / 16) read_fragments(k + 1);
      uint32_t (&right)[2][2] = rounded[k % 2];
      h.round(right, k);
#pragma unroll
      for (int m = 0; m < 4; ++m) result.template add<BFloat16>(m, 0, fragments[k % 2][m], right);
      if (k < ChunkCb::each && k < ChunkCb::count(strip))
        store_scores(Square{shared.scores[now]}, positions, product.part[k], ChunkCb::row(k, strip),
                     ChunkCb::column(k, strip));
      if (saved && k % 2) State::store_rounded(saved, rows, columns, k / 2, rounded);
    }
    read_products(chunk + 1);
#pragma unroll
    for (int m = 0; m < 4; ++m)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int i = mma_row(m * mma_rows, half);
        const float kept = positions.from_state[i];
        result.each(m, half, [&](float& value, int) { value *= kept; });
        if (scan.starts && positions.first[i] >= 0) result.each(m, half, [&](float& value, int) { value = 0; });
      }

    // Of the strip's columns of x; as a factor they are turned.
    uint32_t of_strip[steps][4];
    {
      const uint32_t x_at = (shared_address(shared.x[now]) + Square::as_left()) ^ Square::step(strip);
      const uint32_t right_at = shared_address(shared.b[now]) + Columns::as_left();
      h.keep(positions);
#pragma unroll
      for (int j = 0; j < steps; ++j) {
        load_transposed_matrices(of_strip[j], x_at + j * 16 * Square::pitch);
        uint32_t left[4];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const int p = j * 16 + half * 8 + int(threadIdx.x) % 4 * 2;
          const float2 step = *reinterpret_cast<const float2*>(positions.step + p);
          const float2 kept = *reinterpret_cast<const float2*>(positions.to_state + p);
          const float low = step.x * kept.x, high = step.y * kept.y;
#pragma unroll
          for (int t = 0; t < 2; ++t) {
            uint32_t pair = of_strip[j][2 * t + half];
            left[2 * half + t] = rounded_pair<T>(low_of_pair(pair) * low, high_of_pair(pair) * high);
          }
        }
        h.template add_product<Columns>(left, right_at, j * 16);
      }
    }
    __pipeline_wait_prior(0);
    __syncthreads();

    read_shared(chunk + 2);
    const uint32_t scores_at = shared_address(shared.scores[now]) + Square::as_left();
#pragma unroll
    for (int m = 0; m < 4; ++m)
#pragma unroll
      for (int j = 0; j <= m; ++j) {
        uint32_t left[4];
        Square::left(left, scores_at, m * mma_rows, j);
        result.template add<BFloat16>(m, 0, left, {{of_strip[j][0], of_strip[j][1]}, {of_strip[j][2], of_strip[j][3]}});
      }
    const uint32_t pairs_at = Square::as_left() ^ Square::step(strip);
#pragma unroll
    for (int m = 0; m < 4; ++m) {
      uint32_t pairs[4], gates[4];
      load_matrices(pairs, shared_address(shared.x[now]) + pairs_at + m * mma_rows * Square::pitch);
      if (scan.z) load_matrices(gates, shared_address(shared.z) + pairs_at + m * mma_rows * Square::pitch);
#pragma unroll
      for (int half = 0; half < 2; ++half)
#pragma unroll
        for (int t = 0; t < 2; ++t) {
          float* value = result.part[m][t] + 2 * half;
          uint32_t pair = pairs[2 * t + half];
          value[0] += skip[t][0] * low_of_pair(pair), value[1] += skip[t][1] * high_of_pair(pair);
          if (scan.z) {
            pair = gates[2 * t + half];
            value[0] *= ChunkScan<T>::Gate::gate(low_of_pair(pair));
            value[1] *= ChunkScan<T>::Gate::gate(high_of_pair(pair));
          }
        }
    }
    result.write(Square{shared.x[now]}, 0, y + at + chunk * side * stride, stride, count_of(chunk), rows, 2 * strip);
    __syncwarp();
    read_x(chunk + 2), read_z(chunk + 1);
    __pipeline_commit();
  }
  if (last) h.store(last + scan.state_at(sequence, head) + first * columns, rows, columns);
}

// Whether 16 bytes are of one position.
inline bool is_for_mma(const ChunkShape& shape) {
  return shape.rows % 8 == 0 && shape.columns % 8 == 0 && shape.columns > 0;
}

template <int width>
Status launch_chunk_forward_mma(Executor executor, const ChunkScan<BFloat16>& scan, BFloat16* y, float* last,
                                BFloat16* states) {
  const ChunkShape& shape = scan.shape;
  const int64_t tiles = ceil_div(shape.rows, chunk_side), blocks = shape.sequences() * shape.heads * tiles;
  float4* products = nullptr;
  Positions<BFloat16>* decays = nullptr;
  if (Status status = launch_chunk_cb<width>(executor, scan, products); !status.ok()) return status;
  if (Status status = launch_chunk_decays(executor, scan, decays); !status.ok()) return status;
  return launch_chunks(executor, chunk_forward_mma<width>, blocks, unit_warps * 32,
                       ForwardMmaShared<width>::bytes(scan.z), scan, products, y, last, states, tiles, decays);
}

}  // namespace internal
}  // namespace baracuda
