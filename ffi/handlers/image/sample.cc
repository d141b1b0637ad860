// The FFI target of images at the positions of a grid.
#include "sample_grid.h"

namespace baracuda {
namespace {

ffi::Error forward(Device device, ffi::AnyBuffer x, ffi::AnyBuffer positions, ffi::Result<ffi::AnyBuffer> y,
                   int64_t taps, int64_t padding, bool align_corners) {
  GridSampling sampling("sample", x, positions, *y, taps, padding, align_corners);
  return sample_forward(device, sampling, x, positions, y);
}

BARACUDA_TARGET(sample, forward, with_grid(operands<2>().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
