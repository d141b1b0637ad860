// Floats of 8 bits, as they are stored. They are computed with as floats of 32 bits.
#pragma once

#include "number.h"

#ifdef __CUDACC__
#include <cuda_fp8.h>
#endif

namespace baracuda {

// 4 bits of exponent and 3 of fraction, finite numbers and NaN.
struct Float8E4M3 {
  uint8_t bits;
  BARACUDA_HD operator float() const {
#ifdef __CUDA_ARCH__
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, __NV_E4M3)));
#else
    // The bits are those of a half with an exponent that is 8 less.
    float value = float(Half(bit_cast<Half>(uint16_t((bits & 0x80u) << 8 | (bits & 0x7fu) << 7)))) * 256;
    return (bits & 0x7fu) == 0x7fu ? bit_cast<float>(0x7fc00000u) : value;
#endif
  }
};

// 5 bits of exponent and 2 of fraction: the upper half of a half.
struct Float8E5M2 {
  uint8_t bits;
  BARACUDA_HD operator float() const {
#ifdef __CUDA_ARCH__
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(bits, __NV_E5M2)));
#else
    return float(bit_cast<Half>(uint16_t(bits << 8)));
#endif
  }
};

}  // namespace baracuda
