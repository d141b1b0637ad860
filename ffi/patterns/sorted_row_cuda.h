// What becomes of a row when the order of its elements is known: the first elements of the order are written, or those
// of given ranks.
#pragma once

#include "sort.h"

namespace baracuda {
namespace internal {

// Rows [rows, count] by the bits of their elements.
template <class KeyType>
struct Rows {
  using Key = KeyType;
  const Key* x;
  int64_t rows, count;
  KeyOrder<Key> order;

  // One of them, which has less than 2^31 elements.
  struct Row {
    const Key* x;
    KeyOrder<Key> order;

    __device__ Key key(uint32_t i) const { return order.of(x[i]); }
  };

  __device__ Row row(int64_t row) const { return {x + row * count, order}; }
  Rows some(int64_t first, int64_t number) const { return {x + first * count, number, count, order}; }
};

template <class Key>
struct FirstElements {
  Key* values;
  int32_t* indices;  // or null
  int64_t items;     // of a row

  __device__ int64_t rank(int64_t row, int64_t item) const { return item; }
  __device__ void write(int64_t row, int64_t item, Key value, int64_t index) const {
    values[row * items + item] = value;
    if (indices) indices[row * items + item] = int32_t(index);
  }
};

template <class Key>
struct ElementsOfRanks : FirstElements<Key> {
  const int32_t* ranks;
  SelectShape shape;

  __device__ int64_t rank(int64_t row, int64_t item) const {
    int64_t rank = ranks[shape.rank_row(row) * shape.ranks + item], last = shape.count - 1;
    return rank < 0 ? 0 : rank > last ? last : rank;
  }
};

// `index_of(rank)` is where the order has its element from.
template <class Key, class Output, class Order>
__device__ void write_row(const Output& out, const Rows<Key>& rows, int64_t row, int threads, int thread,
                          const Order& index_of) {
  for (int64_t item = thread; item < out.items; item += threads) {
    int64_t index = index_of(out.rank(row, item));
    out.write(row, item, rows.x[row * rows.count + index], index);
  }
}

inline unsigned grid_of(int64_t blocks) { return unsigned(blocks < 0x7fffffff ? blocks : 0x7fffffff); }

}  // namespace internal
}  // namespace baracuda
