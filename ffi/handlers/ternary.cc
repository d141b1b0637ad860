// FFI targets of ops of three arrays.
#include "binary.h"

#include "../kernels/elementwise/arithmetic.h"
#include "../kernels/elementwise/comparison.h"
#include "../kernels/elementwise/complex.h"
#include "../kernels/elementwise/ternary.h"

namespace baracuda {
namespace {

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
