// The FFI target of the cotangent of the positions of a grid at which images are: x, positions and that of y give
// it. That of x is `sample_adjoint`'s.
#include "sample_grid.h"

namespace baracuda {
namespace {

ffi::Error backward(Device device, ffi::AnyBuffer x, ffi::AnyBuffer positions, ffi::AnyBuffer dy,
                    ffi::Result<ffi::AnyBuffer> moved, int64_t taps, int64_t padding, bool align_corners) {
  GridSampling sampling("sample_backward", x, positions, dy, taps, padding, align_corners);
  return sample_backward_of(device, sampling, x, positions, dy, moved);
}

BARACUDA_TARGET(sample_backward, backward, with_grid(operands<3>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
