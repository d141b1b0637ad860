// The attention pattern on tensor cores, for caches of 8 and 16 bits. A block has a chunk of the keys of a head, and
// eight or sixteen of the queries that share it. Its warps take turns at tiles of keys and values, which come by
// asynchronous copies while those before are multiplied; no warp waits for another one before all merge their sums. The
// block that is through last of those of all chunks merges them, in order, while they are in cache.
//
// Of the 16 rows that a product has, eight are queries, or weights, rounded to 16 bits, and eight are what rounding
// took away from them. So scores and sums are as exact as products of float32, for groups of up to eight queries at no
// cost. Where a row is not finite, what was taken away is left out, since 0 * infinity is NaN.
//
// Numbers of 8 bits are multiplied as float16, which has all of them; a query is scaled by a power of two, so that
// float16 has room for it.
#pragma once

#include "attention.h"
#include "copy_async_cuda.h"
#include "float8_pairs_cuda.h"
#include "mma_cuda.h"
#include "mma_softmax_cuda.h"
#include "shared_memory_cuda.h"
#include "store_shared_cuda.h"

namespace baracuda {
namespace internal {

// How many columns are multiplied, eights of queries a block has, keys a tile, tiles a warp, warps a block and blocks a
// multiprocessor.
template <class Stored_, int columns_, int m_, int keys_, int stages_, int warps_, int blocks_,
          bool keeps_ = m_ * columns_ <= 128>
struct DecodeMmaSizes {
  using Stored = Stored_;
  using T = std::conditional_t<sizeof(Stored) == 1, Half, Stored>;
  static constexpr int columns = columns_, m = m_, keys = keys_, stages = stages_, warps = warps_, blocks = blocks_;
  static constexpr int threads = 32 * warps, queries = 8 * m;
  static constexpr int chunk = 16 / int(sizeof(Stored)), chunks = columns / chunk, pitch = chunks * 16;
  static constexpr int tile = keys * pitch, stage = 2 * tile;  // bytes
  static_assert(keys % 16 == 0 && keys <= 32 && columns % 64 == 0 && chunks <= 32 && stages > 1);
  // Whether fragments of queries stay in registers, or are in shared memory.
  static constexpr bool keeps = keeps_;
  static constexpr int fragments = m * columns / 16, fragment = 32 * 16;
  static constexpr int bytes = warps * stages * stage + (keeps ? 0 : fragments * fragment);
  // A row of sums, for all warps, when tiles are no longer needed. Neighboring rows are in different banks.
  static constexpr int row = columns + chunk;
  static_assert(warps * queries * row * int(sizeof(float)) <= warps * stages * stage);
  // So is a weight for each chunk of a query, and one more.
  static_assert(queries * (DecodeShape::most_chunks + 1) * int(sizeof(float)) <= warps * stages * stage);

  // Where a row's chunk of 16 bytes is in a tile. Chunks of one number of eight neighboring rows are in different
  // banks. From a row on that is a multiple of 16, chunk n + 2 s is where chunk n is ^ 32 s, for n < 2.
  static __device__ uint32_t offset(int row, int number) {
    constexpr int rows = chunks < 8 ? 8 / chunks : 1, mixed = chunks < 8 ? chunks : 8;
    return uint32_t(row * pitch + (number ^ (row / rows % mixed)) * 16);
  }
  // The column of a query that a lane's pair `half` of step k begins with, as keys have it.
  static __device__ int query_column(int k, int half) {
    int c = int(threadIdx.x) % 4;
    return 16 * k + (sizeof(Stored) == 1 ? 4 * c + 2 * half : 2 * c + 8 * half);
  }
};

struct DecodeMmaGrid {
  unsigned tiles, chunks, group;  // tiles of the queries of a group, chunks of keys, and queries of a group
};

// A pair of 16-bit floats and what is left of the numbers that it rounds, 0 where they are not finite.
template <class T>
struct PairAndRest {
  uint32_t pair, rest;

  __device__ PairAndRest(float low, float high) : pair(rounded_pair<T>(low, high)) {
    rest = rounded_pair<T>(left_of(low, uint16_t(pair)), left_of(high, uint16_t(pair >> 16)));
  }

 private:
  static __device__ float left_of(float x, uint16_t bits) {
    float rounded = bit_cast<T>(bits);
    return fabsf(rounded) < std::numeric_limits<float>::infinity() ? x - rounded : 0.f;
  }
};

// What a row's products and those of its rest sum to.
__device__ inline float with_rest(float sum, float rest) {
  return fabsf(sum) < std::numeric_limits<float>::infinity() ? sum + rest : sum;
}

// The power of two by which a query is multiplied before it is rounded to float16, and its inverse. The largest element
// becomes less than 2^15.
struct QueryScale {
  float factor, inverse;

  __device__ explicit QueryScale(float largest) {
    uint32_t exponent = bit_cast<uint32_t>(largest) >> 23, field = min(268u - exponent, 253u);
    factor = bit_cast<float>(field << 23), inverse = bit_cast<float>((254u - field) << 23);
  }
};

// The fragments of queries as a lane has them.
template <class Sizes>
struct DecodeQueries {
  using T = typename Sizes::T;
  static constexpr int m = Sizes::m, steps = Sizes::columns / 16;
  uint32_t kept[Sizes::keeps ? m : 1][Sizes::keeps ? steps : 1][4];
  float inverse[m];
  const uint4* shared;

  // of(i): the query of the lane's row, in eight number i. Fragments in shared memory are written by all warps.
  template <class Of>
  __device__ DecodeQueries(const Of& of, int d, unsigned char* at) : shared(reinterpret_cast<const uint4*>(at)) {
    int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32;
#pragma unroll
    for (int i = 0; i < m; ++i) {
      const float* q = of(i);
      auto pair = [&](int k, int half) {
        int column = Sizes::query_column(k, half);
        return column < d ? load<2>(q + column) : Vector<float, 2>{};
      };
      float factor = inverse[i] = 1;
      if constexpr (std::is_same_v<T, Half>) {
        float largest = 0;
#pragma unroll
        for (int k = 0; k < steps; ++k)
#pragma unroll
          for (int half = 0; half < 2; ++half)
#pragma unroll
            for (float x : pair(k, half).lane)
              if (float size = fabsf(x); size < std::numeric_limits<float>::infinity()) largest = fmaxf(largest, size);
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 1));
        largest = fmaxf(largest, __shfl_xor_sync(~0u, largest, 2));
        QueryScale scale(largest);
        factor = scale.factor, inverse[i] = scale.inverse;
      }
#pragma unroll
      for (int k = 0; k < steps; ++k) {
        if (!Sizes::keeps && k % Sizes::warps != warp) continue;
        Vector<float, 2> first = pair(k, 0), second = pair(k, 1);
        PairAndRest<T> low(first.lane[0] * factor, first.lane[1] * factor);
        PairAndRest<T> high(second.lane[0] * factor, second.lane[1] * factor);
        if constexpr (Sizes::keeps) {
          kept[i][k][0] = low.pair, kept[i][k][1] = low.rest, kept[i][k][2] = high.pair, kept[i][k][3] = high.rest;
        } else {
          Vector<uint32_t, 4> all{{low.pair, low.rest, high.pair, high.rest}};
          store_shared<4>(reinterpret_cast<uint32_t*>(at) + ((i * steps + k) * 32 + lane) * 4, all);
        }
      }
    }
  }
  __device__ void fragment(uint32_t (&a)[4], int i, int k) const {
    if constexpr (Sizes::keeps) {
#pragma unroll
      for (int j = 0; j < 4; ++j) a[j] = kept[i][k][j];
    } else {
      uint4 all = shared[(i * steps + k) * 32 + int(threadIdx.x) % 32];
      a[0] = all.x, a[1] = all.y, a[2] = all.z, a[3] = all.w;
    }
  }
};

// Products of eights of queries and the keys of a tile: rows of a query, then those of its rest.
template <class Sizes>
struct DecodeScores {
  using T = typename Sizes::T;
  static constexpr int m = Sizes::m, parts = Sizes::keys / 8;
  float part[m][parts][4];

  __device__ DecodeScores(const DecodeQueries<Sizes>& q, uint32_t keys) {
    int lane = int(threadIdx.x) % 32;
    uint32_t at = keys + Sizes::offset(lane % 8 + lane / 16 * 8, lane / 8 % 2);
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int j = 0; j < parts; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) part[i][j][e] = 0;
#pragma unroll
    for (int s = 0; s < Sizes::pitch / 32; ++s) {
      constexpr int steps = 2 / int(sizeof(typename Sizes::Stored));  // of 16 columns, in 32 bytes
      uint32_t a[steps][m][4];
#pragma unroll
      for (int k = 0; k < steps; ++k)
#pragma unroll
        for (int i = 0; i < m; ++i) q.fragment(a[k][i], i, s * steps + k);
#pragma unroll
      for (int j = 0; j < parts; j += 2) {
        uint32_t all[4];  // of eight keys the chunks 2 s and 2 s + 1, and of the next eight
        load_matrices(all, (at ^ (32 * s)) + j * 8 * Sizes::pitch);
#pragma unroll
        for (int next = 0; next < 2; ++next)
#pragma unroll
          for (int k = 0; k < steps; ++k) {
            uint32_t b[2];
            if constexpr (steps == 2)
              neighbors<typename Sizes::Stored>(b, all[2 * next + k]);
            else
              b[0] = all[2 * next], b[1] = all[2 * next + 1];
#pragma unroll
            for (int i = 0; i < m; ++i) multiply_add<T>(part[i][j + next], a[k][i], b);
          }
      }
    }
  }
};

// Sums of values: rows of rounded weights, then those of their rests.
template <class Sizes>
struct DecodeSums {
  using Stored = typename Sizes::Stored;
  using T = typename Sizes::T;
  static constexpr int m = Sizes::m, parts = Sizes::columns / 8;
  static constexpr bool narrow = sizeof(Stored) == 1;
  float part[m][parts][4];

  __device__ DecodeSums() {
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int j = 0; j < parts; ++j)
#pragma unroll
        for (int e = 0; e < 4; ++e) part[i][j][e] = 0;
  }
  __device__ void scale(int i, float factor) {
#pragma unroll
    for (int j = 0; j < parts; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e) part[i][j][e] *= factor;
  }
  // Adds weights, which are in place of the scores of queries, times the values of a tile.
  __device__ void add(const DecodeScores<Sizes>& weights, uint32_t values) {
    int lane = int(threadIdx.x) % 32;
    uint32_t at = values + Sizes::offset(lane % 16, lane / 16);
#pragma unroll
    for (int k = 0; k < Sizes::keys / 16; ++k) {
      uint32_t a[m][4];
#pragma unroll
      for (int i = 0; i < m; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          const float* two = weights.part[i][2 * k + half];
          PairAndRest<T> pair(two[0], two[1]);
          a[i][2 * half] = pair.pair, a[i][2 * half + 1] = pair.rest;
        }
#pragma unroll
      for (int s = 0; s < Sizes::pitch / 32; ++s) {
        uint32_t all[4];  // of the chunk 2 s eight keys and eight more, and of the next chunk
        load_transposed_matrices(all, (at ^ (32 * s)) + k * 16 * Sizes::pitch);
#pragma unroll
        for (int next = 0; next < 2; ++next) {
          uint32_t b[narrow ? 2 : 1][2];
          if constexpr (narrow) {
            uint32_t first[2], second[2];
            alternate<Stored>(first, all[2 * next]), alternate<Stored>(second, all[2 * next + 1]);
            b[0][0] = first[0], b[0][1] = second[0], b[1][0] = first[1], b[1][1] = second[1];
          } else {
            b[0][0] = all[2 * next], b[0][1] = all[2 * next + 1];
          }
#pragma unroll
          for (int odd = 0; odd < (narrow ? 2 : 1); ++odd)
#pragma unroll
            for (int i = 0; i < m; ++i) multiply_add<T>(part[i][(2 * s + next) * (narrow ? 2 : 1) + odd], a[i], b[odd]);
        }
      }
    }
  }
  // Writes the lane's columns of the eight number i, whole.
  __device__ void write(int i, float* row) const {
    int c = int(threadIdx.x) % 4;
    constexpr int some = narrow ? 4 : 2;  // neighbors; of 8 bits columns are in turn of two parts
#pragma unroll
    for (int j = 0; j < parts; j += some / 2) {
      Vector<float, some> sums;
#pragma unroll
      for (int e = 0; e < some; ++e) {
        const float* of = part[i][narrow ? j + e % 2 : j];
        sums.lane[e] = with_rest(of[narrow ? e / 2 : e], of[(narrow ? e / 2 : e) + 2]);
      }
      store_shared<some>(row + 8 * j + some * c, sums);
    }
  }
};

// Merges chunks of some queries that follow each other, by all threads of a block. `weights` is shared memory for as
// many numbers, and for one more of each query.
template <class Sizes>
__device__ void merge_chunks(const Decode<typename Sizes::Stored, float>& work, int64_t query, int some, int first,
                             int count, int chunks, const SoftmaxState<float>* states, const float* partial_sums,
                             float* weights) {
  using State = SoftmaxState<float>;
  constexpr float empty = -1;  // the weight of a chunk whose sums are of nothing
  int lane = int(threadIdx.x) % 32, values = int(work.shape.values), parts = values / 4;
  float* totals = weights + some * count;
  for (int g = int(threadIdx.x) / 32; g < some; g += Sizes::warps) {
    const float2* of_query = reinterpret_cast<const float2*>(states + (query + g) * chunks + first);
    State whole = State::empty();
    for (int i = lane; i < count; i += 32) whole.largest = State::larger(whole.largest, __ldcg(of_query + i).x);
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
      whole.largest = State::larger(whole.largest, __shfl_xor_sync(~0u, whole.largest, step));
    for (int i = lane; i < count; i += 32) {
      float2 state = __ldcg(of_query + i);
      float weight = State::weight(state.x, whole.largest);
      whole.total += state.y == 0 ? 0.f : weight * state.y;
      weights[g * count + i] = state.y == 0 ? empty : weight;
    }
#pragma unroll
    for (int step = 16; step > 0; step /= 2) whole.total += __shfl_xor_sync(~0u, whole.total, step);
    if (lane == 0) totals[g] = whole.total, work.lse[query + g] = whole.log_sum_exp();
  }
  __syncthreads();
  for (int at = int(threadIdx.x); at < some * parts; at += Sizes::threads) {
    int g = at / parts, part = at % parts;
    const float4* of_part =
        reinterpret_cast<const float4*>(partial_sums + ((query + g) * chunks + first) * values) + part;
    Vector<float, 4> sum{};
#pragma unroll 8
    for (int i = 0; i < count; ++i) {
      float weight = weights[g * count + i];
      float4 of_chunk = __ldcg(of_part + int64_t(i) * parts);
      sum.lane[0] += weight < 0 ? 0.f : weight * of_chunk.x;
      sum.lane[1] += weight < 0 ? 0.f : weight * of_chunk.y;
      sum.lane[2] += weight < 0 ? 0.f : weight * of_chunk.z;
      sum.lane[3] += weight < 0 ? 0.f : weight * of_chunk.w;
    }
    float total = totals[g];
#pragma unroll
    for (float& x : sum.lane) x = total == 0 ? 0.f : x / total;
    store<4>(work.y + (query + g) * values + 4 * part, sum);
  }
}

template <class Sizes>
__global__ void __launch_bounds__(Sizes::threads, Sizes::blocks)
    decode_mma(Decode<typename Sizes::Stored, float> work, DecodeMmaGrid grid, SoftmaxState<float>* states,
               float* partial_sums, unsigned* blocks_done) {
  using Stored = typename Sizes::Stored;
  using State = SoftmaxState<float>;
  constexpr int m = Sizes::m, size = Sizes::keys, ahead = Sizes::stages - 1;
  extern __shared__ __align__(1024) unsigned char shared[];
  __shared__ uint32_t present[Sizes::warps][Sizes::stages];  // which keys of a tile are seen
  __shared__ State of_warps[Sizes::warps][Sizes::queries];
  const DecodeShape& shape = work.shape;
  // Blocks that follow each other read rows that do: those of all heads.
  unsigned tiles_of_all = grid.tiles * unsigned(shape.kv_heads), tile_of_all = blockIdx.x % tiles_of_all;
  unsigned first_query = tile_of_all % grid.tiles * Sizes::queries, chunk_of_all = blockIdx.x / tiles_of_all;
  int64_t kv_head = tile_of_all / grid.tiles, number = chunk_of_all % grid.chunks;
  int64_t sequence = chunk_of_all / grid.chunks;
  int64_t query = sequence * shape.heads + kv_head * grid.group + first_query;
  int some = min(Sizes::queries, int(grid.group - first_query)), values = int(shape.values);
  KeyRange seen = work.seen(sequence), keys = work.in_chunk(seen, number);
  if (keys.begin >= keys.end) {
    if (number > 0 || seen.begin < seen.end) return;
    for (int i = int(threadIdx.x); i < some * values; i += Sizes::threads) work.y[query * values + i] = 0;
    if (int(threadIdx.x) < some) work.lse[query + threadIdx.x] = State::nothing;
    return;
  }
  unsigned chunk = unsigned(work.chunk());
  int first_chunk = int(unsigned(seen.begin) / chunk), chunks = int(unsigned(seen.end - 1) / chunk) + 1 - first_chunk;

  int lane = int(threadIdx.x) % 32, warp = int(threadIdx.x) / 32, row = lane / 4;
  uint32_t tiles = shared_address(shared) + warp * Sizes::stages * Sizes::stage;
  // A lane copies the same chunk of rows that are `together` apart.
  constexpr int together = 32 / Sizes::chunks;
  int number_of_chunk = lane % Sizes::chunks, column = number_of_chunk * Sizes::chunk,
      row_of_copy = lane / Sizes::chunks;
  auto part_of = [&](const Stored* rows, int64_t columns) {
    return rows + work.offset(sequence, 0, kv_head, columns) + (column < columns ? column : 0);
  };
  const Stored *k = part_of(work.k, shape.d), *v = part_of(work.v, shape.values);
  int k_stride = int(shape.kv_heads * shape.d), v_stride = int(shape.kv_heads * shape.values);
  int k_bytes = column < shape.d ? 16 : 0, v_bytes = column < shape.values ? 16 : 0;
  // Tiles begin at multiples of their size, whatever is seen of them, and are dealt to warps by their number.
  constexpr int turn = Sizes::warps * size;
  int64_t first = keys.begin / turn * turn + warp * size;
  // The lane's key of the next tile to be looked up, and where that is in its page. The table is read a turn before it
  // is needed, without a condition, and what it has is used no earlier.
  unsigned next_key = unsigned(first) + unsigned(lane % size);
  unsigned page_size = unsigned(shape.page_size), pages_of_turn = turn / page_size, rest_of_turn = turn % page_size;
  unsigned next_page = unsigned(next_key) / page_size, next_in_page = unsigned(next_key) % page_size;
  unsigned last_page = unsigned(shape.table) - 1;
  const int32_t* table = work.page_table + sequence * shape.table;
  struct KeyInPage {
    int32_t page;
    unsigned in_page;
    unsigned key;
  };
  auto look_up = [&] {
    KeyInPage found{table[min(next_page, last_page)], next_in_page, next_key};
    next_key += turn, next_page += pages_of_turn, next_in_page += rest_of_turn;
    if (next_in_page >= page_size) next_in_page -= page_size, ++next_page;
    return found;
  };
  // The row of a key, or -1.
  auto row_of = [&](const KeyInPage& of) {
    bool is_seen = of.key >= unsigned(keys.begin) && of.key < unsigned(keys.end);
    bool exists = of.page >= 0 && of.page < int64_t(shape.pages);
    return is_seen && exists ? int32_t(unsigned(of.page) * page_size + of.in_page) : -1;
  };
  // Begins to copy a tile. Rows that are not seen become 0.
  auto copy = [&](int stage, int32_t of_lane) {
    uint32_t some_rows = __ballot_sync(~0u, of_lane >= 0);
    if (lane == 0) present[warp][stage] = some_rows;
    uint32_t to = tiles + stage * Sizes::stage;
#pragma unroll
    for (int i = 0; i < size; i += together) {
      int32_t of = __shfl_sync(~0u, of_lane, i + row_of_copy);
      int from = max(of, 0);
      uint32_t at = to + Sizes::offset(i + row_of_copy, number_of_chunk);
      copy_async(at, k + int64_t(from) * k_stride, of < 0 ? 0 : k_bytes);
      copy_async(at + Sizes::tile, v + int64_t(from) * v_stride, of < 0 ? 0 : v_bytes);
    }
  };
  KeyInPage key_ahead[ahead], next;
#pragma unroll
  for (int i = 0; i < ahead; ++i) key_ahead[i] = look_up();
  next = look_up();
#pragma unroll
  for (int i = 0; i < ahead; ++i) {
    if (first + i * turn < keys.end) copy(i, row_of(key_ahead[i]));
    __pipeline_commit();
  }
  auto query_of = [&](int i) {
    return query + min(8 * i + row, some - 1);
  };  // the last one again where there are fewer
  DecodeQueries<Sizes> q([&](int i) { return work.q + query_of(i) * shape.d; }, int(shape.d),
                         shared + Sizes::warps * Sizes::stages * Sizes::stage);
  if constexpr (!Sizes::keeps) __syncthreads();
  float slope[m], factor[m];
#pragma unroll
  for (int i = 0; i < m; ++i) {
    slope[i] = work.slope(sequence, query_of(i) - sequence * shape.heads) * log2_e<float>;
    factor[i] = work.score.factor * q.inverse[i];
  }
  int64_t position = work.length(sequence) - 1;
  MmaState state[m];
  DecodeSums<Sizes> sums;

  int stage = 0;
#pragma unroll 1
  for (int64_t tile = first; tile < keys.end; tile += turn) {
    __pipeline_wait_prior(ahead - 1);
    __syncwarp();  // the tile is there, and all lanes have done with the one before
    if (tile + ahead * turn < keys.end) copy(stage == 0 ? ahead : stage - 1, row_of(next));
    __pipeline_commit();
    next = look_up();
    uint32_t of_keys = tiles + stage * Sizes::stage, is_seen = present[warp][stage] >> (2 * (lane % 4));
    float distance = float(int(tile - position) + 2 * (lane % 4));
    stage = stage == ahead ? 0 : stage + 1;
    DecodeScores<Sizes> scores(q, of_keys);
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int j = 0; j < size / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float* of = scores.part[i][j];
          of[e] = with_rest(of[e], of[e + 2]) * factor[i];
        }
    if (work.score.cap > 0) {  // of all scores at once: branches for each would be computed one after the other
#pragma unroll
      for (int i = 0; i < m; ++i)
#pragma unroll
        for (int j = 0; j < size / 8; ++j)
#pragma unroll
          for (int e = 0; e < 2; ++e) scores.part[i][j][e] = work.score.capped(scores.part[i][j][e]);
    }
    float largest[m];
    bool grows = false;
#pragma unroll
    for (int i = 0; i < m; ++i) {
      largest[i] = MmaState::nothing;
#pragma unroll
      for (int j = 0; j < size / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float* of = scores.part[i][j];
          float score = fmaf(slope[i], distance + float(8 * j + e), of[e]);
          of[e] = is_seen >> (8 * j + e) & 1 ? score : MmaState::nothing;
          largest[i] = fmaxf(largest[i], of[e]);
        }
      grows = grows || largest[i] > state[i].limit;
    }
    if (__any_sync(~0u, grows)) {
#pragma unroll
      for (int i = 0; i < m; ++i) {
        float of_row = largest[i];
        of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 1));
        of_row = fmaxf(of_row, __shfl_xor_sync(~0u, of_row, 2));
        sums.scale(i, state[i].grow(of_row, 1));
      }
    }
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int j = 0; j < size / 8; ++j)
#pragma unroll
        for (int e = 0; e < 2; ++e) {
          float& x = scores.part[i][j][e];
          state[i].total += x = fast_power_of_two(x - state[i].offset);
        }
    sums.add(scores, of_keys + Sizes::tile);
  }

  // Sums of the block's warps are written over tiles, when none is copied any more.
  __pipeline_wait_prior(0);
  __syncthreads();
  float* of_rows = reinterpret_cast<float*>(shared);
#pragma unroll
  for (int i = 0; i < m; ++i) {
    float total = sum_of_row(state[i].total);
    if (lane % 4 == 0) of_warps[warp][8 * i + row] = {total == 0 ? State::nothing : state[i].offset, total};
    sums.write(i, of_rows + (warp * Sizes::queries + 8 * i + row) * Sizes::row);
  }
  __syncthreads();
  int parts = values / 4;
  for (int at = int(threadIdx.x); at < some * parts; at += Sizes::threads) {
    int g = at / parts, part = at % parts;
    State whole = State::empty();
#pragma unroll
    for (int w = 0; w < Sizes::warps; ++w) whole.largest = State::larger(whole.largest, of_warps[w][g].largest);
    Vector<float, 4> sum{};
#pragma unroll
    for (int w = 0; w < Sizes::warps; ++w) {
      float weight = State::weight(of_warps[w][g].largest, whole.largest);
      Vector<float, 4> of_warp = load<4>(of_rows + (w * Sizes::queries + g) * Sizes::row + 4 * part);
      whole.total += weight * of_warps[w][g].total;
#pragma unroll
      for (int e = 0; e < 4; ++e) sum.lane[e] += weight * of_warp.lane[e];
    }
    if (chunks == 1) {
#pragma unroll
      for (float& x : sum.lane) x = whole.is_empty() ? 0.f : x / whole.total;
      store<4>(work.y + (query + g) * values + 4 * part, sum);
      if (part == 0) work.lse[query + g] = whole.log_sum_exp();
    } else {
      int64_t of_chunk = (query + g) * grid.chunks + number;
      store<4>(partial_sums + of_chunk * values + 4 * part, sum);
      if (part == 0) states[of_chunk] = whole;
    }
  }
  if (chunks == 1) return;
  __shared__ bool is_last;
  __threadfence();  // what this block wrote is there before it counts as done
  __syncthreads();
  if (threadIdx.x == 0)
    is_last = atomicAdd(blocks_done + sequence * tiles_of_all + tile_of_all, 1u) == unsigned(chunks - 1);
  __syncthreads();
  if (!is_last) return;
  __threadfence();
  merge_chunks<Sizes>(work, query, some, first_chunk, chunks, int(grid.chunks), states, partial_sums, of_rows);
}

template <class Sizes>
Status decode_mma_by(Executor executor, const Decode<typename Sizes::Stored, float>& work) {
  const DecodeShape& shape = work.shape;
  int64_t all = shape.all_sequences(), chunks = work.chunks(), tiles = ceil_div(shape.group(), Sizes::queries);
  int64_t blocks = all * shape.kv_heads * tiles * chunks, most = (int64_t(1) << 31) - 1;
  if (blocks > most || all * shape.heads > most) return {"there are more than 2^31 - 1 blocks of keys"};
  auto* states = executor.scratch<SoftmaxState<float>>(all * shape.heads * chunks);
  float* sums = executor.scratch<float>(all * shape.heads * chunks * shape.values);
  int64_t counters = all * shape.kv_heads * tiles;
  auto* blocks_done = executor.scratch<unsigned>(counters);
  if (states == nullptr || sums == nullptr || blocks_done == nullptr) return small_workspace;
  if (chunks > 1) {
    cudaError_t error = cudaMemsetAsync(blocks_done, 0, size_t(counters) * sizeof(unsigned), executor.stream);
    if (error != cudaSuccess) return {cudaGetErrorString(error)};
  }
  auto kernel = decode_mma<Sizes>;
  if (Status status = allow_shared_memory(kernel, Sizes::bytes); !status.ok()) return status;
  DecodeMmaGrid grid{unsigned(tiles), unsigned(chunks), unsigned(shape.group())};
  kernel<<<unsigned(blocks), Sizes::threads, Sizes::bytes, executor.stream>>>(work, grid, states, sums, blocks_done);
  return launched();
}

// Tiles of 4 KB of keys and as much of values, or less, of which two are on the way to each of a multiprocessor's warps
// while one is multiplied. Of 8 bits and up to 128 columns there are three blocks on a multiprocessor: one tile on the
// way is then enough, and queries are in shared memory for the sake of registers.
template <class Stored, int columns, int m>
struct DecodeMmaDefault {
  static constexpr int pitch = columns * int(sizeof(Stored));
  static constexpr bool three = sizeof(Stored) == 1 && columns == 128 && m == 1;
  static constexpr int keys = pitch < 256 ? 32 : 16, stages = three ? 2 : pitch < 128 ? 6 : 3;
  static constexpr int blocks = three ? 3 : pitch <= 256 ? 2 : 1;
  using Sizes = DecodeMmaSizes<Stored, columns, m, keys, stages, 4, blocks, !three && m * columns <= 128>;
};

// Whether tensor cores compute this: rows are whole numbers of 16 bytes, and no longer than those of a tile for which
// blocks may have the shared memory. Then `status` is that of the launch.
template <class Stored>
bool decode_by_mma(const Executor& executor, const Decode<Stored, float>& work, Status& status) {
  const DecodeShape& shape = work.shape;
  constexpr int chunk = 16 / int(sizeof(Stored));
  int64_t columns = std::max(shape.d, shape.values);
  if (columns * shape.kv_heads > std::numeric_limits<int32_t>::max()) return false;
  if (shape.capacity() == 0 || shape.d <= 0 || shape.values <= 0 || shape.d % chunk != 0 || shape.values % chunk != 0)
    return false;
  int most = 0;
  if (status = most_shared_memory(most); !status.ok()) return true;
  auto run = [&](auto sizes) {
    using Sizes = typename decltype(sizes)::Sizes;
    constexpr int in_arrays = 2048;  // at most, besides tiles
    if (Sizes::bytes + in_arrays > most) return false;
    status = decode_mma_by<Sizes>(executor, work);
    return true;
  };
  auto of_columns = [&](auto number) {
    // Of 128 columns of 8 bits, groups of more than eight are read twice, from the second-level cache, and that is
    // faster.
    if constexpr (sizeof(Stored) > 1 || number() < 128)
      if (shape.group() > 8 && run(DecodeMmaDefault<Stored, number(), 2>{})) return true;
    return run(DecodeMmaDefault<Stored, number(), 1>{});
  };
  if (columns <= 64) return of_columns(std::integral_constant<int, 64>{});
  if (columns <= 128) return of_columns(std::integral_constant<int, 128>{});
  return columns <= 256 && run(DecodeMmaDefault<Stored, 256, 1>{});
}

}  // namespace internal
}  // namespace baracuda
