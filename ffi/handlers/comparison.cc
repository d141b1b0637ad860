// FFI targets of ops that compare two arrays, and of logic.
#include "binary.h"

#include "../kernels/elementwise/arithmetic.h"
#include "../kernels/elementwise/comparison.h"
#include "../kernels/elementwise/complex.h"
#include "../kernels/elementwise/integer.h"

namespace baracuda {
namespace {

BARACUDA_NUMBER_OP(maximum, variants);
BARACUDA_NUMBER_OP(minimum, variants);
BARACUDA_FLOAT_OP(fmax);
BARACUDA_FLOAT_OP(fmin);
BARACUDA_FLOAT_OP(heaviside);

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

}  // namespace
}  // namespace baracuda
