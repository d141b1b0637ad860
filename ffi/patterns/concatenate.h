// The concatenate pattern: rows of y [rows, columns] are made of rows of several arrays, each of which has so many rows
// too; or they are cut, and go to several arrays.
#pragma once

#include "divisor.h"
#include "executor.h"

namespace baracuda {

inline constexpr int concatenate_chunks = 128;  // of one launch

// The chunks that follow each other in columns [start[0], start[count]) of y.
struct Chunks {
  int count = 0;
  void* chunk[concatenate_chunks];
  int64_t start[concatenate_chunks + 1];

  // The chunk that a column belongs to; not one that is empty.
  template <class Index>
  BARACUDA_HD int of(Index column) const {
    int low = 0, high = count - 1;
    while (low < high) {
      int middle = (low + high + 1) / 2;
      if (Index(start[middle]) <= column)
        low = middle;
      else
        high = middle - 1;
    }
    return low;
  }
};

}  // namespace baracuda
