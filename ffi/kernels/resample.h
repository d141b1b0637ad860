// A resampled axis: each element of the result is a weighted sum of `count` neighbors, its taps.
#pragma once

#include "number.h"

namespace baracuda {

// Element o has the taps first(o), ..., first(o) + count - 1, whose weights are weight[k * out + o]. A weight of 0
// means that the tap is not read: NaN and infinities do not come from there.
template <class Sum>
struct Taps {
  const int32_t* begin;  // [out]
  const Sum* weight;     // [count, out]
  int64_t in, out;
  int count;  // 1, ..., in

  // In range, whatever the table says.
  BARACUDA_HD int32_t first(int64_t o) const { return in_range(begin[o]); }
  BARACUDA_HD int32_t in_range(int32_t found) const {
    int32_t most = int32_t(in - count);
    return found < 0 ? 0 : found < most ? found : most;
  }
  BARACUDA_HD Sum weight_of(int64_t o, int k) const { return weight[k * out + o]; }
};

// What the first tap gives, which keeps the sign of a zero that is copied, and what the others add.
template <class Sum>
BARACUDA_HD Sum first_tap(Sum weight, Sum value) {
  return weight == 0 ? Sum(0) : weight * value;
}
template <class Sum>
BARACUDA_HD Sum add_tap(Sum sum, Sum weight, Sum value) {
  return weight == 0 ? sum : sum + weight * value;
}

}  // namespace baracuda
