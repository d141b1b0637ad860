// FFI targets of activations, and of other ops with static parameters or a weight.
#include "elementwise.h"

#include "../kernels/elementwise/activation.h"
#include "../kernels/elementwise/clamp.h"
#include "../kernels/elementwise/complex.h"
#include "../kernels/elementwise/power.h"
#include "../kernels/elementwise/weighted.h"

namespace baracuda {
namespace {

#define BARACUDA_ACTIVATION(NAME, ...) \
  BARACUDA_ELEMENTWISE(NAME, (variants<op::NAME, Shape::flat>(Floats{}))__VA_OPT__(, ) __VA_ARGS__)
#define BARACUDA_SMOOTH(NAME, ...)                      \
  BARACUDA_ACTIVATION(NAME __VA_OPT__(, ) __VA_ARGS__); \
  BARACUDA_ACTIVATION(NAME##_backward __VA_OPT__(, ) __VA_ARGS__)
#define BARACUDA_INEXACT_SMOOTH(NAME, ...)                                                    \
  BARACUDA_ELEMENTWISE(NAME, BARACUDA_INEXACT(NAME, Shape::flat) __VA_OPT__(, ) __VA_ARGS__); \
  BARACUDA_ELEMENTWISE(NAME##_backward, BARACUDA_INEXACT(NAME##_backward, Shape::flat) __VA_OPT__(, ) __VA_ARGS__)

BARACUDA_SMOOTH(relu);
BARACUDA_SMOOTH(relu6);
BARACUDA_SMOOTH(gelu);
BARACUDA_SMOOTH(gelu_tanh);
BARACUDA_INEXACT_SMOOTH(sigmoid);
BARACUDA_SMOOTH(silu);
BARACUDA_SMOOTH(mish);
BARACUDA_SMOOTH(selu);
BARACUDA_SMOOTH(hardsigmoid);
BARACUDA_SMOOTH(hardswish);
BARACUDA_SMOOTH(softsign);
BARACUDA_SMOOTH(tanhshrink);
BARACUDA_SMOOTH(softplus, "beta");

BARACUDA_SMOOTH(leaky_relu, "negative_slope");
BARACUDA_SMOOTH(elu, "alpha");
BARACUDA_ACTIVATION(threshold, "threshold", "value");
BARACUDA_ACTIVATION(threshold_backward, "threshold");
BARACUDA_ELEMENTWISE(clamp,
                     joined(variants<op::clamp, Shape::flat>(Floats{}), variants<op::clamp, Shape::flat>(Integers{})),
                     integer("min_bits"), integer("max_bits"));
BARACUDA_ACTIVATION(clamp_backward, integer("min_bits"), integer("max_bits"));
BARACUDA_SMOOTH(hardtanh, "min_val", "max_val");
BARACUDA_ACTIVATION(softshrink, "lambd");
BARACUDA_ELEMENTWISE(softshrink_backward, (variants<op::shrink_backward, Shape::flat>(Floats{})), "lambd");
BARACUDA_ACTIVATION(hardshrink, "lambd");
BARACUDA_ELEMENTWISE(hardshrink_backward, (variants<op::shrink_backward, Shape::flat>(Floats{})), "lambd");
BARACUDA_INEXACT_SMOOTH(powi, "exponent");
BARACUDA_ACTIVATION(affine, "scale", "shift");
BARACUDA_ACTIVATION(affine_backward, "scale");

// The weight has the dtype of the other arrays or, with 16-bit floats, is float32.
template <template <class, class> class Functor>
Variants weighted() {
  return {variant<Functor<float, float>>(),
          variant<Functor<double, double>>(),
          variant<Functor<Computed<Half>, Computed<Half>>, Functor<Half, Half>>(),
          variant<Functor<Computed<Half>, float>, Functor<Half, float>>(),
          variant<Functor<Computed<BFloat16>, Computed<BFloat16>>, Functor<BFloat16, BFloat16>>(),
          variant<Functor<Computed<BFloat16>, float>, Functor<BFloat16, float>>()};
}

BARACUDA_ELEMENTWISE(lerp, weighted<op::lerp>());
BARACUDA_ELEMENTWISE(lerp_tangent, weighted<op::lerp_tangent>());
BARACUDA_ELEMENTWISE(lerp_backward, weighted<op::lerp_backward>());
BARACUDA_ELEMENTWISE(lerp_backward_weight, weighted<op::lerp_backward_weight>());
BARACUDA_ELEMENTWISE(ldexp, weighted<op::ldexp>());
BARACUDA_ELEMENTWISE(prelu, weighted<op::prelu>());
BARACUDA_ELEMENTWISE(prelu_tangent, weighted<op::prelu_tangent>());
BARACUDA_ELEMENTWISE(prelu_backward, weighted<op::prelu_backward>());
BARACUDA_ELEMENTWISE(prelu_backward_weight, weighted<op::prelu_backward_weight>());

}  // namespace
}  // namespace baracuda
