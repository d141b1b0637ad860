// What a block of the varlen pattern on tensor cores works on, and what of it a tile of the others sees.
#pragma once

#include "mma_rows_cuda.h"
#include "mma_softmax_cuda.h"
#include "shared_memory_cuda.h"
#include "varlen.h"

namespace baracuda {
namespace internal {

// How many columns a tile has whose first `columns` are multiplied.
__host__ __device__ constexpr int mma_pitch(int columns) { return columns > 64 ? 128 : 64; }

// A tile of queries or of keys of a head.
struct MmaBlock {
  int64_t batch, head;
  RowTiles::Tile tile;
  VarlenSequence of;
};

// A warp looks at 32 sequences at a time.
__device__ inline RowTiles::Tile mma_tile_of(const RowTiles& cut, int64_t t) {
  int64_t low = 0, high = cut.sequences + 1;
  while (low < high) {
    int64_t step = (high - low + 31) / 32, at = low + step * (int64_t(threadIdx.x) % 32 + 1);
    bool begins = at <= high && cut.first_tile(at) <= t;
    low += step * __popc(__ballot_sync(~0u, begins));
    high = min(high, low + step - 1);
  }
  return cut.tile_of(low, t);
}

// Heavy tiles come first: with a causal mask the last queries of a sequence see most keys, and its first keys are seen
// by most.
template <class T>
__device__ MmaBlock mma_block_of(const Varlen<T>& work, int64_t tiles, int64_t size, bool of_keys) {
  unsigned heads = unsigned(of_keys ? work.shape.kv_heads : work.shape.heads);
  unsigned all = unsigned(work.shape.batches) * heads, number = blockIdx.x / all, head = blockIdx.x % all;
  int64_t batch = head / heads;
  RowTiles cut = of_keys ? work.key_tiles(batch, size) : work.query_tiles(batch, size);
  RowTiles::Tile tile = mma_tile_of(cut, of_keys ? int64_t(number) : tiles - 1 - int64_t(number));
  return {batch, int64_t(head % heads), tile, work.sequence(batch, tile.sequence)};
}

// Runs a kernel of `threads` threads for each tile of `size` rows, of queries or of keys.
template <class Kernel, class T, class... Results>
Status launch_mma(const Executor& executor, Kernel kernel, const Varlen<T>& work, bool of_keys, int size, int threads,
                  int bytes, const Results&... results) {
  const VarlenShape& shape = work.shape;
  int64_t tiles = RowTiles::count(shape.sequences, of_keys ? shape.keys : shape.queries, size);
  int64_t blocks = tiles * shape.batches * (of_keys ? shape.kv_heads : shape.heads);
  if (blocks > (int64_t(1) << 31) - 1)
    return {of_keys ? "there are more than 2^31 - 1 tiles of keys" : "there are more than 2^31 - 1 tiles of queries"};
  if (blocks == 0) return {};
  if (Status status = allow_shared_memory(kernel, bytes); !status.ok()) return status;
  kernel<<<unsigned(blocks), threads, bytes, executor.stream>>>(work, tiles, results...);
  return launched();
}

// What a warp's rows see of the others, counted from where the block's tiles of these begin: any of the rows none from
// `end` on, each of them all of [all_begin, all_end).
struct MmaSeen {
  int end, all_begin, all_end;

  __device__ MmaSeen(int64_t from, KeyRange any, KeyRange of_first, KeyRange of_last)
      : end(int(any.end - from)), all_begin(int(of_last.begin - from)), all_end(int(of_first.end - from)) {}
  __device__ bool any(int at) const { return at < end; }
  __device__ bool all(int at, int size) const { return at >= all_begin && at <= all_end - size; }
};

// Which columns of a tile a row sees: those from row + low on, before row + high and before count.
struct MmaBand {
  static constexpr int most = 1 << 29;
  int low, high, count;

  // distance: of the tile's first column from its first row, where a row sees the columns from -left to right from its
  // own on.
  __device__ MmaBand(int64_t distance, int64_t left, int64_t right, int64_t count)
      : low(left < 0 ? -most : within(-distance - left)),
        high(right < 0 ? most : within(-distance + right + 1)),
        count(within(count)) {}
  __device__ bool operator()(int row, int column) const {
    return column >= row + low && column < min(row + high, count);
  }

 private:
  static __device__ int within(int64_t i) { return int(min(max(i, -int64_t(most)), int64_t(most))); }
};

// At which column of a tile a key is: its own, or, of listed keys, that of its position.
template <bool listed>
struct MmaColumns {
  const int* positions;  // of the tile
  int64_t from;          // the position of the first column
  int count;             // columns from here on have no key

  __device__ int operator()(int column) const {
    if constexpr (!listed) return column;
    constexpr int far = MmaBand::most / 2;
    int position = positions[column];
    if (column >= count || position == VarlenSequence::nowhere) return MmaBand::most;  // which no row sees
    return int(min(max(position - from, -int64_t(far)), int64_t(far)));
  }
  // Whether any of the rows first to last sees any of the columns, and each all of them.
  template <int size>
  __device__ void seen(const MmaBand& band, int first, int last, bool& any, bool& all) const {
    bool some = false, every = true;
#pragma unroll
    for (int i = 0; i < size; i += 32) {
      int own = i + int(threadIdx.x) % 32, column = own < size ? (*this)(own) : MmaBand::most;
      some = some || (column >= first + band.low && column < min(last + band.high, band.count));
      every = every && (own >= size || (band(first, column) && band(last, column)));
    }
    any = any && __any_sync(~0u, some), all = __all_sync(~0u, every);
  }
};

// At which row of a tile of keys a lane's keys are: their own, or, of listed keys, those of their positions.
template <bool listed, int m>
struct MmaRowsOfKeys {
  int first, row[listed ? m : 1][2];

  // The tile begins at a key of the sequence, the warp at a row, and the tile has so many rows that are keys.
  __device__ MmaRowsOfKeys(const VarlenSequence& of, int64_t begin, int first, int count) : first(first) {
    if constexpr (listed) {
      constexpr int64_t far = MmaBand::most / 2;
#pragma unroll
      for (int i = 0; i < m; ++i)
#pragma unroll
        for (int half = 0; half < 2; ++half) {
          int own = mma_row(first + mma_rows * i, half);
          bool is_one = own < count && of.is_somewhere(begin + own);
          row[i][half] = is_one ? int(min(max(of.position(begin + own) - begin, -far), far)) : MmaBand::most;
        }
    }
  }
  // most: of a key that no query sees.
  __device__ int operator()(int i, int half) const {
    if constexpr (listed)
      return row[i][half];
    else
      return mma_row(first + mma_rows * i, half);
  }
  // Whether any of the warp's keys is seen by any query of a tile, and each by all.
  template <int size>
  __device__ void seen(const MmaBand& band, bool& any, bool& all) const {
    bool some = false, every = band.count >= size;
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        int at = row[i][half];
        bool is_one = at != MmaBand::most;
        some = some || (is_one && at + band.low < size && at + band.high > 0);
        every = every && is_one && band(at, 0) && band(at, size - 1);
      }
    any = any && __any_sync(~0u, some), all = __all_sync(~0u, every);
  }
};

// Scores of a tile of queries and one of keys, in units of log(2), of products of the query and the key that begin the
// tiles plus so many. Plain ones are the products times a positive factor.
template <class T, bool plain>
struct MmaScores {
  AttentionScore<float> score;
  float slope, distance;

  __device__ MmaScores(const Varlen<T>& work, const MmaBlock& block, int64_t head, int64_t query, int64_t key)
      : score(work.score),
        slope(plain ? 0.f : work.slope(block.batch, head)),
        distance(float(key - query - block.of.shift)) {}
  __device__ float operator()(float product, int query, int key) const {
    return score(product, slope, from_to(query, key));
  }
  __device__ float from_to(int query, int key) const { return distance + float(key - query); }
};

}  // namespace internal
}  // namespace baracuda
