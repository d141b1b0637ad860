// What FFI targets of scans share. Arrays are [batches..., count, inner]: a scan goes along the last dimension but one,
// from its end where `reverse`. Gradients are those of inclusive scans, and go the other way.
#pragma once

#include "handlers/saved.h"
#include "handlers/target.h"
#include "kernels/scan_backward.h"
#include BARACUDA_DRIVER(scan)

namespace baracuda {

// What all targets share: arrays of one shape.
struct Scanning {
  const char* op;
  Checks checks;
  const char* name;
  const ffi::AnyBuffer& first;

  Scanning(const char* op, const char* name, const ffi::AnyBuffer& first)
      : op(op), checks(op), name(name), first(first) {
    auto dims = first.dimensions();
    checks.require(dims.size() >= 2, name, " must have rank 2 or more, got ", describe(dims));
  }

  Scanning& same_shape(const char* other, const ffi::AnyBuffer& array) {
    checks.same_shape(other, array, name, first);
    return *this;
  }
  Scanning& same(const char* other, const ffi::AnyBuffer& array) {
    checks.same_dtype(other, array, name, first);
    return same_shape(other, array);
  }

  template <class Functor>
  ffi::Error run(Device& device, const ffi::AnyBuffer& workspace, const Functor& functor, bool reverse,
                 bool exclusive = false) const {
    auto dims = first.dimensions();
    ScanShape shape{product(dims, 0, dims.size() - 2), dims[dims.size() - 2], dims.back(), reverse, exclusive};
    return to_error(op, scan(device.executor(workspace), functor, shape));
  }
};

// The second result, which is there when a gradient or the caller needs it; or null.
template <class T>
T* second_of(Scanning& scanning, ffi::RemainingRets& more, ffi::DataType dtype) {
  Checks& checks = scanning.checks;
  checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (checks.failed() || more.size() == 0) return nullptr;
  auto second = more.get<ffi::AnyBuffer>(0);
  checks.require(second.has_value(), "the second result must be an array");
  if (checks.failed()) return nullptr;
  scanning.same_shape("the second result", **second);
  checks.dtype("the second result", **second, dtype);
  return out<T>(*second);
}

// What a gradient reads in place of y, where that is another array: of float16.
inline void* ranged_of(Scanning& scanning, ffi::RemainingRets& more) {
  ffi::DataType dtype = scanning.first.element_type();
  bool is_another = ranged(dtype) != dtype;
  scanning.checks.require(is_another || more.size() == 0, "expected one result, got ", more.size() + 1);
  return second_of<void>(scanning, more, ranged(dtype));
}

// The workspace, and the first result.
template <int count>
auto scanned() {
  return operands<count>().template Ret<ffi::AnyBuffer>().template Ret<ffi::AnyBuffer>();
}

}  // namespace baracuda
