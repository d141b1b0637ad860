// The state-space model of Mamba-2. A head has a state of P rows and N columns, and one rate a; at position l, whose
// step is d:
//
//   h[p, n] = e^(d a) h[p, n] + d x[l, p] B[l, n];   y[l, p] = sum over n of C[l, n] h[p, n] + D x[l, p];
//
// the result is y z sigmoid(z). Where a segment begins, h is 0 before. Drivers keep h.
#pragma once

#include "selective_scan.h"

namespace baracuda {

// x, z and the result are [groups, batches, length, heads, rows], dt [groups, batches, length, heads], A and the bias
// [groups, heads], B and C [groups, batches, length, shared, columns]: neighboring heads have one of them. D is
// [groups, heads, skips], with as many skips as rows, or 1; states are [groups, batches, heads, rows, columns].
struct ChunkShape {
  int64_t groups, batches, length, heads, rows, shared, columns, skips;

  BARACUDA_HD int64_t sequences() const { return groups * batches; }
  BARACUDA_HD int64_t heads_each() const { return shared > 0 ? heads / shared : 0; }
  BARACUDA_HD int64_t state_size() const { return rows * columns; }
};

// The states before each chunk of so many positions are saved for the gradient.
template <class T>
inline constexpr int scan_chunk = sizeof(T) == 8 ? 32 : 64;
inline constexpr int most_columns = 128;

// What they are saved as: of bfloat16 they are factors of products in it.
template <class T>
using SavedState = std::conditional_t<std::is_same_v<T, BFloat16>, BFloat16, Accumulator<T>>;

template <class T>
struct ChunkScan {
  using Wide = Accumulator<T>;
  using Gate = SelectiveScan<T>;
  ChunkShape shape;
  const T *x, *dt;
  const Wide* a;
  const T *b, *c;
  const Wide* skip;
  const T* z;  // or null
  const Wide *bias, *state;
  const uint8_t* starts;  // [groups, batches, length], or null
  bool softplus;

  BARACUDA_HD int64_t chunks() const { return (shape.length + scan_chunk<T> - 1) / scan_chunk<T>; }
  BARACUDA_HD Wide step(Wide raw) const { return softplus ? Gate::soft(raw) : raw; }
  BARACUDA_HD Wide step_slope(Wide raw) const { return softplus ? Gate::sigmoid(raw) : Wide(1); }
  // Of an element of z, which is there.
  BARACUDA_HD Wide gate(int64_t at) const { return Gate::gate(Wide(z[at])); }
  BARACUDA_HD Wide gate_slope(int64_t at) const { return Gate::gate_slope(Wide(z[at])); }
  BARACUDA_HD bool is_start(int64_t sequence, int64_t position) const {
    return starts && position > 0 && starts[sequence * shape.length + position];
  }
  // A sequence is one of [groups, batches].
  BARACUDA_HD int64_t head_of(int64_t sequence, int64_t head) const {
    return sequence / shape.batches * shape.heads + head;
  }
  BARACUDA_HD int64_t dt_at(int64_t sequence, int64_t position, int64_t head) const {
    return (sequence * shape.length + position) * shape.heads + head;
  }
  BARACUDA_HD int64_t x_at(int64_t sequence, int64_t position, int64_t head) const {
    return dt_at(sequence, position, head) * shape.rows;
  }
  BARACUDA_HD int64_t b_at(int64_t sequence, int64_t position, int64_t which) const {
    return ((sequence * shape.length + position) * shape.shared + which) * shape.columns;
  }
  BARACUDA_HD int64_t state_at(int64_t sequence, int64_t head) const {
    return (sequence * shape.heads + head) * shape.state_size();
  }
  BARACUDA_HD int64_t saved_at(int64_t sequence, int64_t head, int64_t chunk) const {
    return ((sequence * shape.heads + head) * chunks() + chunk) * shape.state_size();
  }
  BARACUDA_HD Wide skip_of(int64_t sequence, int64_t head, int64_t row) const {
    return skip[head_of(sequence, head) * shape.skips + (shape.skips == 1 ? 0 : row)];
  }
};

// Cotangents of all arguments.
template <class T>
struct ChunkGradients {
  using Wide = Accumulator<T>;
  const SavedState<T>* states;  // [groups, batches, heads, chunks, rows, columns], before each chunk
  const T* dy;                  // of the result
  const Wide* dfinal;           // of the last state
  T *dx, *ddt;
  Wide* da;
  T *db, *dc;
  Wide* dskip;
  T* dz;
  Wide *dbias, *dstate;
};

}  // namespace baracuda
