// The FFI target of the cotangent of coordinates at which images are: x, positions and that of y give
// it. That of x is `sample_adjoint`'s.
#include "sample_coordinates.h"

namespace baracuda {
namespace {

ffi::Error backward(Device device, ffi::AnyBuffer x, ffi::AnyBuffer positions, ffi::AnyBuffer dy,
                    ffi::Result<ffi::AnyBuffer> moved, int64_t taps, int64_t mode, double fill) {
  CoordinateSampling sampling("sample_coordinates_backward", x, positions, dy, taps, mode, fill);
  return sample_backward_of(device, sampling, x, positions, dy, moved);
}

BARACUDA_TARGET(sample_coordinates_backward, backward, with_coordinates(operands<3>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
