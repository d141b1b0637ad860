// Extreme values alone, and with the numbers of rows that tie, which are compiled apart from those with winning rows.
#pragma once

#include "segment.h"

namespace baracuda {

ffi::Error reduce_with_ties(const char* op, bool is_max, Device& device, Reduction& reduction,
                            const ffi::AnyBuffer& data, const ffi::AnyBuffer& workspace, const ffi::AnyBuffer& y,
                            void* ties, int64_t empty_bits);

ffi::Error reduce_values(const char* op, bool is_max, Device& device, Reduction& reduction, const ffi::AnyBuffer& data,
                         const ffi::AnyBuffer& workspace, const ffi::AnyBuffer& y, int64_t empty_bits);

}  // namespace baracuda
