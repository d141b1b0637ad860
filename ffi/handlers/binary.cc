// FFI targets of ops of two and three arrays.
#include "elementwise.h"

#include "../kernels/elementwise/arithmetic.h"
#include "../kernels/elementwise/comparison.h"
#include "../kernels/elementwise/complex.h"
#include "../kernels/elementwise/exponential.h"
#include "../kernels/elementwise/integer.h"
#include "../kernels/elementwise/rounding.h"
#include "../kernels/elementwise/ternary.h"
#include "../kernels/elementwise/trigonometric.h"

namespace baracuda {
namespace {

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

BARACUDA_EVERY_OP(add);
BARACUDA_EVERY_OP(sub);
BARACUDA_EVERY_OP(mul);
BARACUDA_INEXACT_OP(div);
BARACUDA_INEXACT_OP(pow);
BARACUDA_FLOAT_OP(hypot);
BARACUDA_FLOAT_OP(atan2);
BARACUDA_FLOAT_OP(copysign);
BARACUDA_FLOAT_OP(heaviside);
BARACUDA_NUMBER_OP(floor_divide, variants);
BARACUDA_NUMBER_OP(mod, variants);
BARACUDA_NUMBER_OP(fmod, variants);
BARACUDA_NUMBER_OP(maximum, variants);
BARACUDA_NUMBER_OP(minimum, variants);
BARACUDA_FLOAT_OP(fmax);
BARACUDA_FLOAT_OP(fmin);
// Functors of the stored types themselves, whose neighbors are wanted.
BARACUDA_ELEMENTWISE(nextafter, (Variants{variant<op::nextafter<float>>(), variant<op::nextafter<double>>(),
                                          variant<op::nextafter<Half>>(), variant<op::nextafter<BFloat16>>()}));
BARACUDA_DERIVATIVE(nextafter, nextafter_slopes);

// Of equal bits or not, and in order.
#define BARACUDA_COMPARISON(NAME, INEXACT_VARIANTS, INTEGER_VARIANTS)                                 \
  BARACUDA_ELEMENTWISE(NAME, joined(joined(INEXACT_VARIANTS, INTEGER_VARIANTS<op::NAME>(Integers{})), \
                                    variants<op::NAME>(Types<bool>{})))

BARACUDA_COMPARISON(eq, BARACUDA_INEXACT(eq), variants_of_bits);
BARACUDA_COMPARISON(ne, BARACUDA_INEXACT(ne), variants_of_bits);
BARACUDA_COMPARISON(gt, variants<op::gt>(Floats{}), variants);
BARACUDA_COMPARISON(ge, variants<op::ge>(Floats{}), variants);
BARACUDA_COMPARISON(lt, variants<op::lt>(Floats{}), variants);
BARACUDA_COMPARISON(le, variants<op::le>(Floats{}), variants);

#define BARACUDA_BITWISE(NAME) \
  BARACUDA_ELEMENTWISE(NAME, joined(variants_of_bits<op::NAME>(Integers{}), variants<op::NAME>(Types<bool>{})))

BARACUDA_BITWISE(bitwise_and);
BARACUDA_BITWISE(bitwise_or);
BARACUDA_BITWISE(bitwise_xor);
BARACUDA_ELEMENTWISE(left_shift, variants_of_bits<op::left_shift>(Integers{}));
BARACUDA_ELEMENTWISE(right_shift, variants<op::right_shift>(Integers{}));
BARACUDA_ELEMENTWISE(logical_and, variants<op::logical_and>(Types<bool>{}));
BARACUDA_ELEMENTWISE(logical_or, variants<op::logical_or>(Types<bool>{}));
BARACUDA_ELEMENTWISE(logical_xor, variants<op::logical_xor>(Types<bool>{}));

// Elements of any dtype are moved as bits.
template <class T>
using Bits =
    std::conditional_t<sizeof(T) == 16, T,
                       std::conditional_t<sizeof(T) == 8, uint64_t,
                                          std::conditional_t<sizeof(T) == 4, uint32_t,
                                                             std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>>;
template <class... T>
Variants moved(Types<T...>) {
  return {variant<op::where<Bits<T>>, op::where<T>>()...};
}
BARACUDA_ELEMENTWISE(where, moved(Joined<Floats, Complexes, Integers, Types<bool>>::type{}));
BARACUDA_ELEMENTWISE(where_tangent, moved(Joined<Floats, Complexes>::type{}));
BARACUDA_ELEMENTWISE(where_backward, variants<op::where_backward>(Joined<Floats, Complexes>::type{}));

BARACUDA_FLOAT_OP(clamp_between);
BARACUDA_FLOAT_OP(fma);
BARACUDA_FLOAT_OP(addcmul, "value");
BARACUDA_FLOAT_OP(addcdiv, "value");

}  // namespace
}  // namespace baracuda
