// The greater and the lesser of two floats, NaN where one is: an instruction of GPUs.
#pragma once

#include "number.h"

namespace baracuda {

// Of the instructions -0 is less than 0.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
inline constexpr bool has_extreme_instructions = true;
#define BARACUDA_EXTREME(NAME, INSTRUCTION)                     \
  __device__ inline float NAME(float a, float b) {              \
    float c;                                                    \
    asm(INSTRUCTION " %0, %1, %2;" : "=f"(c) : "f"(a), "f"(b)); \
    return c;                                                   \
  }
BARACUDA_EXTREME(greater, "max.NaN.f32")
BARACUDA_EXTREME(lesser, "min.NaN.f32")
#undef BARACUDA_EXTREME
#else
inline constexpr bool has_extreme_instructions = false;
BARACUDA_HD float greater(float a, float b) { return ((b > a) | (b != b)) ? b : a; }
BARACUDA_HD float lesser(float a, float b) { return ((b < a) | (b != b)) ? b : a; }
#endif

}  // namespace baracuda
