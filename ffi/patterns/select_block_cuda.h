// Cells of a few ranks of a row, a block for each row, without sorting it: cells are counted by the digits of their
// keys, from the highest, and those of the digit in which the rank falls are looked at again. What is few is sorted.
#pragma once

#include <cub/block/block_scan.cuh>

#include "key_at_cuda.h"
#include "shared_memory_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

inline constexpr int select_digit_bits = 11, select_digits = 1 << select_digit_bits;
inline constexpr int64_t most_ranks = 8;  // of a row, for which this is faster than to sort it

template <class KeyType>
struct RankSearch {
  using Key = KeyType;
  static constexpr int threads = 512, items = 8, own = select_digits / threads;
  static constexpr uint32_t few = 1024;
  using Scan = cub::BlockScan<uint32_t, threads>;

  struct Shared {
    union {
      uint32_t counts[select_digits];
      KeyAt<Key> cells[few];
    };
    typename Scan::TempStorage scan;
    uint32_t digit, rank, left;
  };

  Rows<Key> rows;
  CellsOfRanks<Key> out;

  __device__ void run(Shared& shared, int64_t row) const {
    for (int64_t item = 0; item < out.items; ++item) {
      uint32_t rank = uint32_t(out.rank(row, item)), left = uint32_t(rows.count);
      Key found = 0, known = 0;
      for (int end = 8 * sizeof(Key); end > 0 && left > few;) {
        int shift = end > select_digit_bits ? end - select_digit_bits : 0;
        Key mask = Key((Key(1) << (end - shift)) - 1);
        count(shared, row, found, known, shift, uint32_t(mask));
        find_digit(shared, rank);
        found |= Key(Key(shared.digit) << shift);
        known |= Key(mask << shift);
        rank = shared.rank, left = shared.left, end = shift;
        __syncthreads();
      }
      if (left <= few)
        sort_and_write(shared, row, item, found, known, rank);
      else
        write_equal(shared, row, item, found, rank);
      __syncthreads();
    }
  }

 private:
  // Calls body(key, place, whether there is such a cell) by all threads together.
  template <class Body>
  __device__ void each_cell(int64_t row, const Body& body) const {
    auto cells = rows.row(row);
    uint32_t count = uint32_t(rows.count);
    for (uint32_t first = 0; first < count; first += threads * items) {
      uint32_t mine = first + threadIdx.x;
      Key bits[items];
#pragma unroll
      for (int k = 0; k < items; ++k) bits[k] = mine + k * threads < count ? cells.x[mine + k * threads] : Key(0);
#pragma unroll
      for (int k = 0; k < items; ++k) body(cells.order.of(bits[k]), mine + k * threads, mine + k * threads < count);
    }
  }

  // Counts the digits of the cells with what is known of the key.
  __device__ void count(Shared& shared, int64_t row, Key found, Key known, int shift, uint32_t mask) const {
    for (int i = threadIdx.x; i < select_digits; i += threads) shared.counts[i] = 0;
    __syncthreads();
    each_cell(row, [&](Key key, uint32_t, bool exists) {
      bool counts = exists && Key(key & known) == found;
      if (!__any_sync(~0u, counts)) return;
      uint32_t digit = counts ? uint32_t(key >> shift) & mask : ~0u;
      int alike;
      __match_all_sync(~0u, digit, &alike);
      if (alike ? threadIdx.x % 32 == 0 : counts) atomicAdd(&shared.counts[digit], alike ? 32u : 1u);
    });
    __syncthreads();
  }

  // The digit in which the rank falls, the rank among its cells, and how many these are.
  __device__ void find_digit(Shared& shared, uint32_t rank) const {
    uint32_t mine[own], before[own];
#pragma unroll
    for (int i = 0; i < own; ++i) mine[i] = shared.counts[threadIdx.x * own + i];
    Scan(shared.scan).ExclusiveSum(mine, before);
#pragma unroll
    for (int i = 0; i < own; ++i)
      if (rank - before[i] < mine[i])
        shared.digit = threadIdx.x * own + i, shared.rank = rank - before[i], shared.left = mine[i];
    __syncthreads();
  }

  __device__ void sort_and_write(Shared& shared, int64_t row, int64_t item, Key found, Key known, uint32_t rank) const {
    if (threadIdx.x == 0) shared.left = 0;
    __syncthreads();
    each_cell(row, [&](Key key, uint32_t i, bool exists) {
      if (exists && Key(key & known) == found) shared.cells[atomicAdd(&shared.left, 1u)] = KeyAt<Key>(key, i);
    });
    __syncthreads();
    sort_in_block(shared.cells, shared.left);
    if (threadIdx.x == 0) {
      uint32_t at = shared.cells[rank].at();
      out.write(row, item, rows.x[row * rows.count + at], at);
    }
  }

  // Of the cells with the key, in the order of the row, that of the rank.
  __device__ void write_equal(Shared& shared, int64_t row, int64_t item, Key key, uint32_t rank) const {
    auto cells = rows.row(row);
    uint32_t count = uint32_t(rows.count);
    for (uint32_t first = 0; first < count; first += threads) {
      uint32_t i = first + threadIdx.x;
      bool equal = i < count && cells.key(i) == key;
      uint32_t number = __syncthreads_count(equal);
      if (rank >= number) {
        rank -= number;
        continue;
      }
      uint32_t before;
      Scan(shared.scan).ExclusiveSum(uint32_t(equal), before);
      if (equal && before == rank) out.write(row, item, cells.x[i], i);
      return;
    }
  }
};

template <class Key>
__global__ void __launch_bounds__(512, 3) find_ranks(RankSearch<Key> search) {
  extern __shared__ __align__(16) char memory[];
  auto& shared = *reinterpret_cast<typename RankSearch<Key>::Shared*>(memory);
  for (int64_t row = blockIdx.x; row < search.rows.rows; row += gridDim.x) search.run(shared, row);
}

template <class Key>
Status select_by_counts(Executor executor, const Rows<Key>& rows, const CellsOfRanks<Key>& out) {
  using Search = RankSearch<Key>;
  constexpr int bytes = int(sizeof(typename Search::Shared));
  if (Status status = allow_shared_memory(find_ranks<Key>, bytes); !status.ok()) return status;
  find_ranks<<<grid_of(rows.rows), Search::threads, bytes, executor.stream>>>(Search{rows, out});
  return launched();
}

}  // namespace internal
}  // namespace baracuda
