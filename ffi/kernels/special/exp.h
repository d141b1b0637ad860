// e^x, 2^x and logarithms.
#pragma once

#include "elementary.h"

namespace baracuda::special {

// On a CPU a library's functions of floats would be calls that do not vectorize.
#ifdef __CUDACC__
#define BARACUDA_FLOAT(Y)
#else
#define BARACUDA_FLOAT(Y) \
  if constexpr (sizeof(T) == 4) return T(Y);
#endif
#define BARACUDA_FUNCTION(NAME, Y)         \
  template <class T>                       \
  BARACUDA_HD T NAME(T x) {                \
    BARACUDA_FLOAT(Y) return std::NAME(x); \
  }

BARACUDA_FUNCTION(exp, exponential_for<T>(x))
BARACUDA_FUNCTION(exp2, exponential_for<T>(x * 0x1.62e42fefa39efp-1))
BARACUDA_FUNCTION(log, logarithm_for<T>(x))
BARACUDA_FUNCTION(log2, logarithm_for<T>(x) * 0x1.71547652b82fep0)
BARACUDA_FUNCTION(log10, logarithm_for<T>(x) * 0x1.bcb7b1526e50ep-2)

#undef BARACUDA_FUNCTION
#undef BARACUDA_FLOAT

}  // namespace baracuda::special
