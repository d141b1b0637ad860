// The FFI target of images at coordinates.
#include "sample_coordinates.h"

namespace baracuda {
namespace {

ffi::Error forward(Device device, ffi::AnyBuffer x, ffi::AnyBuffer positions, ffi::Result<ffi::AnyBuffer> y,
                   int64_t taps, int64_t mode, double fill) {
  CoordinateSampling sampling("sample_coordinates", x, positions, *y, taps, mode, fill);
  return sample_forward(device, sampling, x, positions, y);
}

BARACUDA_TARGET(sample_coordinates, forward, with_coordinates(operands<2>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
