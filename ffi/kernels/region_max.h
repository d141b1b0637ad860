// The maximum of the elements of a bin, and which one it is: the first of equal ones, and the first NaN.
#pragma once

#include "number.h"

namespace baracuda {

template <class Sum>
struct RegionMaximum {
  Sum value = 0;
  int32_t index = -1;  // none yet

  // An element after all that there were.
  BARACUDA_HD void take(Sum x, int32_t at) {
    if (index < 0 || x > value || (x != x && value == value)) value = x, index = at;
  }
  // Those of another part of the bin.
  BARACUDA_HD void merge(const RegionMaximum& other) {
    if (other.index < 0) return;
    bool is_nan = value != value, other_is_nan = other.value != other.value;
    bool is_equal = is_nan ? other_is_nan : value == other.value;
    bool is_less = is_nan ? false : other_is_nan || value < other.value;
    if (index < 0 || is_less || (is_equal && other.index < index)) *this = other;
  }
};

}  // namespace baracuda
