// Gated activations of the two halves of an array: x times an activation of y.
#pragma once

#include "activation.h"
#include "functor.h"

namespace baracuda::op {

#define BARACUDA_GATED(NAME, ACTIVATION, SLOPE) \
  BARACUDA_BINARY_OP(NAME, x*(ACTIVATION), (ACTIVATION) * d, x * (SLOPE) * d)

BARACUDA_GATED(glu, math::sigmoid<T>(y), sigmoid_slope<T>(y))
BARACUDA_GATED(reglu, y <= 0 ? W(0) : y, y > 0 ? W(1) : W(0))
BARACUDA_GATED(swiglu, y < -500 ? W(-0.0) : y * math::sigmoid<T>(y), silu_slope<T>(y))
BARACUDA_GATED(geglu, math::gelu<T>(y), math::gelu_slope<T>(y))
BARACUDA_GATED(geglu_tanh, math::gelu_tanh<T>(y), math::gelu_tanh_slope<T>(y))

#undef BARACUDA_GATED

}  // namespace baracuda::op
