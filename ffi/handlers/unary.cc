// FFI targets of ops of one array.
#include "elementwise.h"

#include "../kernels/elementwise/arithmetic.h"
#include "../kernels/elementwise/complex.h"
#include "../kernels/elementwise/exponential.h"
#include "../kernels/elementwise/integer.h"
#include "../kernels/elementwise/rounding.h"
#include "../kernels/elementwise/special.h"
#include "../kernels/elementwise/trigonometric.h"

namespace baracuda {
namespace {

#define BARACUDA_FLOAT_UNARY(NAME, ...)                                                              \
  BARACUDA_ELEMENTWISE(NAME, (variants<op::NAME, Shape::flat>(Floats{}))__VA_OPT__(, ) __VA_ARGS__); \
  BARACUDA_ELEMENTWISE(NAME##_backward,                                                              \
                       (variants<op::NAME##_backward, Shape::flat>(Floats{}))__VA_OPT__(, ) __VA_ARGS__)
#define BARACUDA_INEXACT_UNARY(NAME)                               \
  BARACUDA_ELEMENTWISE(NAME, BARACUDA_INEXACT(NAME, Shape::flat)); \
  BARACUDA_ELEMENTWISE(NAME##_backward, BARACUDA_INEXACT(NAME##_backward, Shape::flat))
// `INTEGER_VARIANTS` are those of integers.
#define BARACUDA_NUMBER_UNARY(NAME, INTEGER_VARIANTS)                                              \
  BARACUDA_ELEMENTWISE(NAME, joined(variants<op::NAME, Shape::flat>(Floats{}), INTEGER_VARIANTS)); \
  BARACUDA_ELEMENTWISE(NAME##_backward, (variants<op::NAME##_backward, Shape::flat>(Floats{})))
#define BARACUDA_EVERY_UNARY(NAME, INTEGER_VARIANTS)                                         \
  BARACUDA_ELEMENTWISE(NAME, joined(BARACUDA_INEXACT(NAME, Shape::flat), INTEGER_VARIANTS)); \
  BARACUDA_ELEMENTWISE(NAME##_backward, BARACUDA_INEXACT(NAME##_backward, Shape::flat))

BARACUDA_EVERY_UNARY(neg, (variants_of_bits<op::neg, Shape::flat>(Integers{})));
BARACUDA_NUMBER_UNARY(abs, (variants<op::abs, Shape::flat>(Signed{})));
BARACUDA_NUMBER_UNARY(sign, (variants<op::sign, Shape::flat>(Integers{})));
BARACUDA_EVERY_UNARY(square, (variants_of_bits<op::square, Shape::flat>(Integers{})));
BARACUDA_EVERY_UNARY(cube, (variants_of_bits<op::cube, Shape::flat>(Integers{})));
BARACUDA_INEXACT_UNARY(reciprocal);
BARACUDA_INEXACT_UNARY(sqrt);
BARACUDA_INEXACT_UNARY(rsqrt);
BARACUDA_FLOAT_UNARY(cbrt);

BARACUDA_INEXACT_UNARY(exp);
BARACUDA_INEXACT_UNARY(exp2);
BARACUDA_INEXACT_UNARY(expm1);
BARACUDA_INEXACT_UNARY(log);
BARACUDA_INEXACT_UNARY(log2);
BARACUDA_INEXACT_UNARY(log10);
BARACUDA_INEXACT_UNARY(log1p);

BARACUDA_INEXACT_UNARY(sin);
BARACUDA_INEXACT_UNARY(cos);
BARACUDA_INEXACT_UNARY(tan);
BARACUDA_INEXACT_UNARY(asin);
BARACUDA_INEXACT_UNARY(acos);
BARACUDA_INEXACT_UNARY(atan);
BARACUDA_INEXACT_UNARY(sinh);
BARACUDA_INEXACT_UNARY(cosh);
BARACUDA_INEXACT_UNARY(tanh);
BARACUDA_INEXACT_UNARY(asinh);
BARACUDA_INEXACT_UNARY(acosh);
BARACUDA_INEXACT_UNARY(atanh);

BARACUDA_FLOAT_UNARY(floor);
BARACUDA_FLOAT_UNARY(ceil);
BARACUDA_FLOAT_UNARY(round);
BARACUDA_FLOAT_UNARY(trunc);
BARACUDA_FLOAT_UNARY(frac);

BARACUDA_FLOAT_UNARY(erf);
BARACUDA_FLOAT_UNARY(erfc);
BARACUDA_FLOAT_UNARY(erfinv);
BARACUDA_FLOAT_UNARY(lgamma);
BARACUDA_FLOAT_UNARY(digamma);
BARACUDA_FLOAT_UNARY(logit, "eps");

BARACUDA_ELEMENTWISE(bitwise_not, joined(variants_of_bits<op::bitwise_not, Shape::flat>(Integers{}),
                                         variants<op::bitwise_not, Shape::flat>(Types<bool>{})));
BARACUDA_ELEMENTWISE(population_count, (variants_of_bits<op::population_count, Shape::flat>(Integers{})));
BARACUDA_ELEMENTWISE(clz, (variants_of_bits<op::clz, Shape::flat>(Integers{})));
BARACUDA_ELEMENTWISE(ctz, (variants_of_bits<op::ctz, Shape::flat>(Integers{})));
BARACUDA_ELEMENTWISE(logical_not, (variants<op::logical_not, Shape::flat>(Types<bool>{})));

}  // namespace
}  // namespace baracuda
