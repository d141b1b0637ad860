// FFI targets of arithmetic with two arrays.
#include "binary.h"

#include "../kernels/elementwise/arithmetic.h"
#include "../kernels/elementwise/complex.h"
#include "../kernels/elementwise/exponential.h"
#include "../kernels/elementwise/integer.h"
#include "../kernels/elementwise/rounding.h"
#include "../kernels/elementwise/trigonometric.h"

namespace baracuda {
namespace {

BARACUDA_EVERY_OP(add);
BARACUDA_EVERY_OP(sub);
BARACUDA_EVERY_OP(mul);
BARACUDA_INEXACT_OP(div);
BARACUDA_INEXACT_OP(pow);
BARACUDA_FLOAT_OP(hypot);
BARACUDA_FLOAT_OP(atan2);
BARACUDA_FLOAT_OP(copysign);
BARACUDA_NUMBER_OP(floor_divide, variants);
BARACUDA_NUMBER_OP(mod, variants);
BARACUDA_NUMBER_OP(fmod, variants);
// Functors of the stored types themselves, whose neighbors are wanted.
BARACUDA_ELEMENTWISE(nextafter, (Variants{variant<op::nextafter<float>>(), variant<op::nextafter<double>>(),
                                          variant<op::nextafter<Half>>(), variant<op::nextafter<BFloat16>>()}));
BARACUDA_DERIVATIVE(nextafter, nextafter_slopes);

}  // namespace
}  // namespace baracuda
