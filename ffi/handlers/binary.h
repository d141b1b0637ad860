// What the targets of ops of two and three arrays share: with each op its derivatives.
#pragma once

#include "elementwise.h"

#define BARACUDA_DERIVATIVE(NAME, FUNCTOR, ...)                                                               \
  BARACUDA_ELEMENTWISE(NAME##_tangent, variants<op::FUNCTOR##_tangent>(Floats{}) __VA_OPT__(, ) __VA_ARGS__); \
  BARACUDA_ELEMENTWISE(NAME##_backward, variants<op::FUNCTOR##_backward>(Floats{}) __VA_OPT__(, ) __VA_ARGS__)
#define BARACUDA_FLOAT_OP(NAME, ...)                                                   \
  BARACUDA_ELEMENTWISE(NAME, variants<op::NAME>(Floats{}) __VA_OPT__(, ) __VA_ARGS__); \
  BARACUDA_DERIVATIVE(NAME, NAME __VA_OPT__(, ) __VA_ARGS__)
// Integers too: by their signs, or as bits.
#define BARACUDA_NUMBER_OP(NAME, INTEGER_VARIANTS)                                                          \
  BARACUDA_ELEMENTWISE(NAME, joined(variants<op::NAME>(Floats{}), INTEGER_VARIANTS<op::NAME>(Integers{}))); \
  BARACUDA_DERIVATIVE(NAME, NAME)

// Complex numbers too.
#define BARACUDA_INEXACT_DERIVATIVE(NAME)                                 \
  BARACUDA_ELEMENTWISE(NAME##_tangent, BARACUDA_INEXACT(NAME##_tangent)); \
  BARACUDA_ELEMENTWISE(NAME##_backward, BARACUDA_INEXACT(NAME##_backward))
#define BARACUDA_INEXACT_OP(NAME)                     \
  BARACUDA_ELEMENTWISE(NAME, BARACUDA_INEXACT(NAME)); \
  BARACUDA_INEXACT_DERIVATIVE(NAME)
#define BARACUDA_EVERY_OP(NAME)                                                                       \
  BARACUDA_ELEMENTWISE(NAME, joined(BARACUDA_INEXACT(NAME), variants_of_bits<op::NAME>(Integers{}))); \
  BARACUDA_INEXACT_DERIVATIVE(NAME)
