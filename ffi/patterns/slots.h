// The slots pattern: items with so many slots each, of which each names a row, or none. A sum reads the rows of an
// item's slots, a spread writes the item to them; no two slots name the same. Nothing is sorted.
#pragma once

#include "../kernels/segment.h"
#include "executor.h"

namespace baracuda {

struct SlotShape {
  int64_t batches, items, slots, rows, columns;
  int64_t sharing;  // how many neighboring batches have the same rows for their slots

  BARACUDA_HD int64_t all_items() const { return batches * items; }
  BARACUDA_HD int64_t all_rows() const { return batches * rows; }
};

// Items are [batches, items, columns], rows [batches, rows, columns].
template <class T>
struct Slots {
  using Wide = Accumulator<T>;
  SlotShape shape;
  const uint32_t* row;   // [some of the batches, items, slots]; what is not below `rows` is none
  const int32_t* owner;  // [some of the batches, rows]: negative for rows that no slot names. Not of a sum.
  const Wide* weights;   // [batches, items, slots]

  // One item of all batches.
  struct Item {
    const uint32_t* row;
    const Wide* weights;
    int64_t first_row;  // of its batch, among those of all

    // Where the row of a slot begins; -1 where it has none.
    BARACUDA_HD int64_t element(const SlotShape& shape, int64_t slot) const {
      return row[slot] < shape.rows ? (first_row + row[slot]) * shape.columns : -1;
    }
  };
  BARACUDA_HD Item item(int64_t index) const {
    int64_t batch = shape.batches == 1 ? 0 : index / shape.items;
    int64_t first = batch / shape.sharing * shape.items + index - batch * shape.items;
    return {row + first * shape.slots, weights + index * shape.slots, batch * shape.rows};
  }
  BARACUDA_HD bool is_free(int64_t index) const {
    int64_t batch = shape.batches == 1 ? 0 : index / shape.rows;
    return owner[batch / shape.sharing * shape.rows + index - batch * shape.rows] < 0;
  }
};

}  // namespace baracuda
