// Zeros and NaNs of a row that was sorted by keys alone: a key does not tell which zero, or which NaN, it was. Where a
// row has any, they are copied from it again, in their order.
#pragma once

#include "compact_tiles_cuda.h"
#include "sorted_row_cuda.h"

namespace baracuda {
namespace internal {

// The elements of one of the keys that several numbers chunk.
template <class Key>
struct SharedElements {
  Rows<Key> rows;
  Key* sorted;
  uint32_t* ranges;  // of each row's sorted elements
  Key key;

  // Where the sorted row's elements have keys of at least this, or of more.
  __device__ uint32_t first(int64_t row, bool after) const {
    int64_t low = 0, high = rows.count;
    while (low < high) {
      int64_t middle = (low + high) / 2;
      Key other = rows.order.of(sorted[row * rows.count + middle]);
      if (after ? other <= key : other < key)
        low = middle + 1;
      else
        high = middle;
    }
    return uint32_t(low);
  }

  __device__ bool idle(int64_t row) const { return ranges[2 * row] == ranges[2 * row + 1]; }
  __device__ bool operator()(Key element, Key, bool) const { return rows.order.of(element) == key; }
  __device__ void operator()(int64_t row, uint32_t position, int64_t i) const {
    sorted[row * rows.count + ranges[2 * row] + position] = rows.x[row * rows.count + i];
  }
};

template <class Key>
__global__ void find_shared(SharedElements<Key> elements) {
  int64_t step = int64_t(gridDim.x) * blockDim.x;
  for (int64_t i = int64_t(blockIdx.x) * blockDim.x + threadIdx.x; i < 2 * elements.rows.rows; i += step)
    elements.ranges[i] = elements.first(i / 2, i % 2 == 1);
}

template <class Key>
Status restore_shared(Executor executor, const Rows<Key>& rows, Key* sorted) {
  uint32_t* ranges = executor.scratch<uint32_t>(2 * rows.rows);
  if (!ranges) return small_workspace;
  constexpr Key of_zeros = KeyOrder<Key>::high, of_nans = KeyOrder<Key>::all;
  for (Key key : {of_zeros, of_nans}) {
    SharedElements<Key> elements{rows, sorted, ranges, Key(key ^ rows.order.inverted)};
    find_shared<<<unsigned(std::min<int64_t>(ceil_div(2 * rows.rows, 128), 1024)), 128, 0, executor.stream>>>(elements);
    int32_t* uncounted = nullptr;
    Status status = compact_long_rows(executor, rows.x, elements, elements, uncounted, rows.rows, rows.count);
    if (!status.ok()) return status;
  }
  return {};
}

}  // namespace internal
}  // namespace baracuda
