// The FFI target of the tangent of images at the positions of a grid: x, positions, and a tangent of each give
// that of y.
#include "sample_grid.h"

namespace baracuda {
namespace {

ffi::Error tangent(Device device, ffi::AnyBuffer x, ffi::AnyBuffer positions, ffi::AnyBuffer dx, ffi::AnyBuffer moved,
                   ffi::Result<ffi::AnyBuffer> dy, int64_t taps, int64_t padding, bool align_corners) {
  GridSampling sampling("sample_tangent", x, positions, *dy, taps, padding, align_corners);
  return sample_tangent_of(device, sampling, x, positions, dx, moved, dy);
}

BARACUDA_TARGET(sample_tangent, tangent, with_grid(operands<4>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
