// Exponentials, logarithms and powers.
#pragma once

#include "functor.h"
#include "math.h"

namespace baracuda::op {

inline constexpr double ln_2 = 0x1.62e42fefa39efp-1, ln_10 = 0x1.26bb1bbb55516p1;

BARACUDA_UNARY_OP(exp, math::exp<T>(x), math::exp<T>(x) * d)
BARACUDA_UNARY_OP(exp2, math::exp2<T>(x), math::exp2<T>(x) * W(ln_2) * d)
BARACUDA_UNARY_OP(expm1, math::expm1<T>(x), math::exp<T>(x) * d)
BARACUDA_UNARY_OP(log, math::log<T>(x), d / x)
BARACUDA_UNARY_OP(log2, math::log2<T>(x), d / (x * W(ln_2)))
BARACUDA_UNARY_OP(log10, math::log10<T>(x), d / (x * W(ln_10)))
BARACUDA_UNARY_OP(log1p, math::log1p<T>(x), d / (1 + x))

// x^y; at x = 0 its derivative by y is 0, as that of x^y = 0 is for y > 0.
BARACUDA_BINARY_OP(pow, std::pow(x, y), y == 0 ? W(0) : y * std::pow(x, y - 1) * d,
                   std::log(x == 0 ? W(1) : x) * std::pow(x, y) * d)

}  // namespace baracuda::op
