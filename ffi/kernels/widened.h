// What 16-bit floats are computed with, where elements in the upper halves of registers are most of a kernel's work.
#pragma once

#include "number.h"

namespace baracuda {

// Of a bfloat16 one instruction in either half of a register; the conversion has two in the upper one. In most kernels
// that gains nothing.
template <class T>
BARACUDA_HD Accumulator<T> widened(T x) {
#ifdef __CUDA_ARCH__
  if constexpr (std::is_same_v<T, BFloat16>) {
    float y;
    asm("mov.b32 %0, {0, %1};" : "=f"(y) : "h"(x.bits));
    return y;
  }
#endif
  return Accumulator<T>(x);
}

}  // namespace baracuda
