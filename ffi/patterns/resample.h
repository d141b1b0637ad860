// The resample pattern: arrays with another size along one axis, or along two that follow each other, by tables of
// taps. The gradient is the same with the transposed tables, so every element of any result is written once.
#pragma once

#include "../kernels/resample.h"
#include "divisor.h"
#include "executor.h"

namespace baracuda {

// x [outer, axis.in, inner] gives y [outer, axis.out, inner].
template <class Sum>
struct ResampleAxis {
  Taps<Sum> axis;
  int64_t outer, inner;
};

// x [outer, rows.in, columns.in, inner] gives y [outer, rows.out, columns.out, inner]. Both axes have the same number
// of taps, one of few that the compiler knows.
//
// Axes may be scaled. Then both are of twice the size and of 2 or 4 taps, or of half the size and of 4 or 8. Element o
// has the taps from (o + 1) / 2 - count / 2, or from 2 o + 1 - count / 2, of which those outside of x weigh nothing; no
// other weighs nothing. Where first(o) is not that, since it is in range, so are the others that weigh something.
template <class Sum>
struct ResamplePlane {
  Taps<Sum> rows, columns;
  int64_t outer, inner;
  bool are_scaled = false;
};

// Calls body with the number of taps of both axes as a type.
template <class Sum, class Body>
Status for_taps(const ResamplePlane<Sum>& shape, const Body& body) {
  switch (shape.rows.count) {
    case 1:
      return body(std::integral_constant<int, 1>());
    case 2:
      return body(std::integral_constant<int, 2>());
    case 4:
      return body(std::integral_constant<int, 4>());
    default:
      return body(std::integral_constant<int, 8>());
  }
}

}  // namespace baracuda
