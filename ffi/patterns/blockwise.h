// The blockwise pattern: elements in rows, each element with a block's parameters. A block is a row, or several, or
// each column is one. The functor reads a block's parameters (`block<K>(index)`) and V neighboring elements
// (`read<V>(element)`), and writes what they make (`write(element, values, block)`); K is 1 where the V elements share
// a block, V where each has its own.
#pragma once

#include <algorithm>

#include "../kernels/number.h"
#include "divisor.h"
#include "executor.h"

namespace baracuda {

// Elements [batches, channels, inner] with parameters [batches / share, channels].
struct BlockShape {
  int64_t rows, columns;
  int64_t channels, share;
  bool by_column;

  BlockShape(int64_t batches, int64_t channels, int64_t inner, int64_t parameters)
      : rows(batches * channels), columns(inner), channels(channels), share(1), by_column(false) {
    int64_t parameter_batches = parameters / std::max<int64_t>(channels, 1);
    if (parameter_batches > 0) share = std::max<int64_t>(batches / parameter_batches, 1);
    if (channels == 1 && parameters == 1) {  // one block: rows of any length
      int64_t elements = rows * columns;
      columns = std::min<int64_t>(elements & -elements, 4096);
      if (columns < 64) columns = elements;
      rows = columns ? elements / columns : 0;
      share = std::max<int64_t>(rows, 1);
    } else if (inner == 1) {
      rows = batches, columns = channels, by_column = true;
    }
  }
  int64_t elements() const { return rows * columns; }
};

// Where a row's parameters begin: those of its batch, and there its channel's.
template <class Index>
struct BlockIndex {
  Divisor<Index> channels, share;
  Index batch;

  explicit BlockIndex(const BlockShape& shape)
      : channels(shape.by_column ? 1 : shape.channels), share(shape.share), batch(Index(shape.channels)) {}

  BARACUDA_HD int64_t operator()(Index row) const {
    Index of = channels.quotient(row);
    return share.quotient(of) * batch + row - of * channels.value;
  }
};

}  // namespace baracuda
