// The dtype of x and y, where it is a parameter of the call.
#pragma once

#include "../../patterns/packed_rows.h"
#include "../backend.h"

namespace baracuda {

inline std::optional<RowDtype> row_dtype(ffi::DataType dtype) {
  switch (dtype) {
    case ffi::DataType::F16:
      return RowDtype::f16;
    case ffi::DataType::BF16:
      return RowDtype::bf16;
    case ffi::DataType::F32:
      return RowDtype::f32;
    case ffi::DataType::F64:
      return RowDtype::f64;
    default:
      return std::nullopt;
  }
}

}  // namespace baracuda
