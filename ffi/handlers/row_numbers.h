// Operands that name rows, of int32 or uint32: kernels compare them with the number of rows.
#pragma once

#include <algorithm>

#include "checks.h"

namespace baracuda {

template <class A>
bool is_row_number(const A& array) {
  return array.element_type() == ffi::DataType::S32 || array.element_type() == ffi::DataType::U32;
}

// What they are below, without a sign, where they name one of so many rows: negative ones name none.
template <class A>
uint32_t rows_below(const A& array, int64_t rows) {
  constexpr int64_t past_int32 = int64_t(1) << 31;
  return uint32_t(array.element_type() == ffi::DataType::S32 ? std::min(rows, past_int32) : rows);
}

}  // namespace baracuda
