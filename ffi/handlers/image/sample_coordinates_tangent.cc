// The FFI target of the tangent of images at coordinates: x, positions, and a tangent of each give
// that of y.
#include "sample_coordinates.h"

namespace baracuda {
namespace {

ffi::Error tangent(Device device, ffi::AnyBuffer x, ffi::AnyBuffer positions, ffi::AnyBuffer dx, ffi::AnyBuffer moved,
                   ffi::Result<ffi::AnyBuffer> dy, int64_t taps, int64_t mode, double fill) {
  CoordinateSampling sampling("sample_coordinates_tangent", x, positions, *dy, taps, mode, fill);
  return sample_tangent_of(device, sampling, x, positions, dx, moved, dy);
}

BARACUDA_TARGET(sample_coordinates_tangent, tangent, with_coordinates(operands<4>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
