// The dtypes of what is saved for a gradient.
#pragma once

#include "checks.h"

namespace baracuda {

// What is computed in: float32 for 16-bit floats.
inline ffi::DataType wide(ffi::DataType dtype) {
  return dtype == ffi::DataType::F16 || dtype == ffi::DataType::BF16 ? ffi::DataType::F32 : dtype;
}
inline bool is_rounded(ffi::DataType dtype) { return wide(dtype) != dtype; }
// That of a Ranged element.
inline ffi::DataType ranged(ffi::DataType dtype) { return dtype == ffi::DataType::F16 ? ffi::DataType::F32 : dtype; }

}  // namespace baracuda
