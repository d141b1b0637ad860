// Functions of a value in Comparable<T>, as exact as an array of T shows: on CUDA those of a half are in float.
#pragma once

#include <cmath>

#include "../number.h"
#include "../special/cbrt.h"
#include "../special/digamma.h"
#include "../special/erf.h"
#include "../special/erf_inv.h"
#include "../special/exp.h"
#include "../special/expm1.h"
#include "../special/gelu.h"
#include "../special/hypot.h"
#include "../special/lgamma.h"
#include "../special/log1p.h"
#include "../special/logit.h"
#include "../special/mish.h"
#include "../special/sigmoid.h"
#include "../special/single.h"
#include "../special/softplus.h"
#include "../special/tanh.h"
#include "../special/trigamma.h"

namespace baracuda::math {

#ifdef __CUDA_ARCH__
inline constexpr bool on_gpu = true;
#define BARACUDA_OF_HALF(Y) \
  if constexpr (is_half<T>) return Y;
#else
inline constexpr bool on_gpu = false;
#define BARACUDA_OF_HALF(Y)
#endif
// The second argument is for a half; without one that has what a float has.
#define BARACUDA_FUNCTION(NAME, ...)                                                  \
  template <class T>                                                                  \
  BARACUDA_HD Comparable<T> NAME(Comparable<T> x) {                                   \
    __VA_OPT__(BARACUDA_OF_HALF(__VA_ARGS__)) return special::NAME<Comparable<T>>(x); \
  }

BARACUDA_FUNCTION(exp, __expf(x))
BARACUDA_FUNCTION(exp2, ::exp2f(x))
BARACUDA_FUNCTION(expm1, special::single::expm1(x))
BARACUDA_FUNCTION(log, ::logf(x))
BARACUDA_FUNCTION(log2, ::log2f(x))
BARACUDA_FUNCTION(log10, ::log10f(x))
BARACUDA_FUNCTION(log1p, ::log1pf(x))
BARACUDA_FUNCTION(tanh, ::tanhf(x))
BARACUDA_FUNCTION(sigmoid, __fdividef(1, 1 + __expf(-x)))
BARACUDA_FUNCTION(softplus, fmaxf(x, 0) + ::log1pf(__expf(-fabsf(x))) + (x != x ? x : 0))
BARACUDA_FUNCTION(logit, ::logf(x / (1 - x)))
BARACUDA_FUNCTION(erf, ::erff(x))
BARACUDA_FUNCTION(erfc, ::erfcf(x))
BARACUDA_FUNCTION(erfinv, ::erfinvf(x))
BARACUDA_FUNCTION(cbrt, ::cbrtf(x))
BARACUDA_FUNCTION(lgamma)
BARACUDA_FUNCTION(digamma)
BARACUDA_FUNCTION(trigamma)
BARACUDA_FUNCTION(mish, special::single::mish(x))
BARACUDA_FUNCTION(mish_slope, special::single::mish_slope(x))

// Which in double would take twice as long as their memory on a GPU.
#define BARACUDA_FUNCTION_OF_FLOATS(NAME)                                      \
  template <class T>                                                           \
  BARACUDA_HD Comparable<T> NAME(Comparable<T> x) {                            \
    if constexpr (on_gpu && sizeof(T) < 8) return special::single::NAME<T>(x); \
    return special::NAME<Comparable<T>>(x);                                    \
  }
BARACUDA_FUNCTION_OF_FLOATS(gelu)
BARACUDA_FUNCTION_OF_FLOATS(gelu_slope)
BARACUDA_FUNCTION_OF_FLOATS(gelu_tanh)
BARACUDA_FUNCTION_OF_FLOATS(gelu_tanh_slope)

#undef BARACUDA_FUNCTION_OF_FLOATS
#undef BARACUDA_FUNCTION
#undef BARACUDA_OF_HALF

template <class T>
BARACUDA_HD Comparable<T> hypot(Comparable<T> x, Comparable<T> y) {
  return special::hypot<Comparable<T>>(x, y);
}

}  // namespace baracuda::math
