// Which bin an element of x [rows, count] is counted in; -1 for none.
#pragma once

#include "search.h"

namespace baracuda {

// The element is the bin's number.
template <class I>
struct BinOfId {
  const I* x;
  int64_t count, bins;

  BARACUDA_HD int64_t bin(int64_t row, int64_t i) const {
    int64_t id = x[row * count + i];
    return id >= 0 && id < bins ? id : -1;
  }
};

// The bins of one row of ascending edges. Bin b has what is in [edges[b], edges[b + 1]), the last one its right edge
// too.
template <class T>
struct Bins {
  using Value = Comparable<T>;
  using Key = typename SortKey<T>::Key;
  const T* edges;
  int64_t count;
  Value low, scale;
  bool uniform;

  Bins() = default;
  // Edges that were meant to be `uniform`, and are such that the arithmetic of a guess is safe.
  BARACUDA_HD Bins(const T* edges, int64_t count, bool is_uniform) : edges(edges), count(count), low(Value(edges[0])) {
    scale = Value(count) / (Value(edges[count]) - low);
    uniform = is_uniform && scale > Value(0) && scale < std::numeric_limits<Value>::max();
  }
  BARACUDA_HD Key edge(int64_t i) const { return SortKey<T>::of(edges[i], false); }
  // Where the bins are all alike, an element's bin or one nearby, for an element between the first and the last edge.
  BARACUDA_HD int64_t guess(T x) const {
    Value position = (Value(x) - low) * scale;
    position = position > Value(0) ? position : Value(0);
    return position < Value(count - 1) ? int64_t(position) : count - 1;
  }
  BARACUDA_HD int64_t of(T x) const {
    Key key = SortKey<T>::of(x, false);
    if (uniform) {
      if (key < edge(0) || key > edge(count)) return -1;
      int64_t bin = guess(x);
      while (bin + 1 < count && key >= edge(bin + 1)) ++bin;
      while (bin > 0 && key < edge(bin)) --bin;
      return bin;
    }
    int64_t position =
        key == edge(count) && key != SortKey<T>::all ? count : Search<T>{edges, count + 1, true}.of_key(key);
    return position <= count ? position - 1 : -1;
  }
};

// The element is between the bin's edges, of [edges_rows, bins + 1]: those of one row serve neighboring rows of x.
template <class T>
struct BinOfEdges {
  const T* x;
  const T* edges;
  int64_t count, bins, share;
  bool uniform;

  BARACUDA_HD Bins<T> of_row(int64_t row) const {
    return Bins<T>(edges + (share == 1 ? row : row / share) * (bins + 1), bins, uniform);
  }
  BARACUDA_HD int64_t bin(int64_t row, int64_t i) const { return of_row(row).of(x[row * count + i]); }
};

}  // namespace baracuda
