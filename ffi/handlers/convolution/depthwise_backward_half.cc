// Gradients of depthwise convolutions of floats of 16 bits.
#include "depthwise.h"

namespace baracuda {

template Status stencil_window_backward(Executor, const Depthwise<Half>&, const Half*, Half*, Half*, Half*);
template Status stencil_window_backward(Executor, const Depthwise<BFloat16>&, const BFloat16*, BFloat16*, BFloat16*,
                                        BFloat16*);

}  // namespace baracuda
