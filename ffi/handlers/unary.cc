// FFI targets of ops of one array.
#include "elementwise.h"

#include "../kernels/elementwise/arithmetic.h"
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
// `INTEGER_VARIANTS` are those of integers.
#define BARACUDA_NUMBER_UNARY(NAME, INTEGER_VARIANTS)                                              \
  BARACUDA_ELEMENTWISE(NAME, joined(variants<op::NAME, Shape::flat>(Floats{}), INTEGER_VARIANTS)); \
  BARACUDA_ELEMENTWISE(NAME##_backward, (variants<op::NAME##_backward, Shape::flat>(Floats{})))

BARACUDA_NUMBER_UNARY(neg, (variants_of_bits<op::neg, Shape::flat>(Integers{})));
BARACUDA_NUMBER_UNARY(abs, (variants<op::abs, Shape::flat>(Signed{})));
BARACUDA_NUMBER_UNARY(sign, (variants<op::sign, Shape::flat>(Integers{})));
BARACUDA_NUMBER_UNARY(square, (variants_of_bits<op::square, Shape::flat>(Integers{})));
BARACUDA_NUMBER_UNARY(cube, (variants_of_bits<op::cube, Shape::flat>(Integers{})));
BARACUDA_FLOAT_UNARY(reciprocal);
BARACUDA_FLOAT_UNARY(sqrt);
BARACUDA_FLOAT_UNARY(rsqrt);
BARACUDA_FLOAT_UNARY(cbrt);

BARACUDA_FLOAT_UNARY(exp);
BARACUDA_FLOAT_UNARY(exp2);
BARACUDA_FLOAT_UNARY(expm1);
BARACUDA_FLOAT_UNARY(log);
BARACUDA_FLOAT_UNARY(log2);
BARACUDA_FLOAT_UNARY(log10);
BARACUDA_FLOAT_UNARY(log1p);

BARACUDA_FLOAT_UNARY(sin);
BARACUDA_FLOAT_UNARY(cos);
BARACUDA_FLOAT_UNARY(tan);
BARACUDA_FLOAT_UNARY(asin);
BARACUDA_FLOAT_UNARY(acos);
BARACUDA_FLOAT_UNARY(atan);
BARACUDA_FLOAT_UNARY(sinh);
BARACUDA_FLOAT_UNARY(cosh);
BARACUDA_FLOAT_UNARY(tanh);
BARACUDA_FLOAT_UNARY(asinh);
BARACUDA_FLOAT_UNARY(acosh);
BARACUDA_FLOAT_UNARY(atanh);

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
