// What FFI targets of scans share. Arrays are [batches..., count, inner]: a scan goes along the last dimension but one,
// from its end where `reverse`. Gradients are those of inclusive scans, and go the other way.
#pragma once

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

template <template <class> class Functor>
auto cumulate(const Scanning& scanning, Device& device, ffi::AnyBuffer& x, ffi::AnyBuffer& workspace,
              ffi::Result<ffi::AnyBuffer>& y, bool reverse, bool exclusive) {
  return [&, reverse, exclusive](auto type) {
    using T = Modular<typename decltype(type)::type>;
    Functor<T> functor{};
    functor.x = in<T>(x), functor.y = out<T>(y);
    return scanning.run(device, workspace, functor, reverse, exclusive);
  };
}

template <template <class> class Functor>
ffi::Error cumulate_backward(const char* op, Device& device, ffi::AnyBuffer& x, ffi::AnyBuffer& y, ffi::AnyBuffer& dy,
                             ffi::AnyBuffer& workspace, ffi::Result<ffi::AnyBuffer>& dx, bool reverse) {
  Scanning scanning = Scanning(op, "operand", x).same("y", y).same("dy", dy).same("the result", *dx);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_float(op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    Functor<T> functor{};
    functor.x = in<T>(x), functor.y = in<T>(y), functor.dy = in<T>(dy), functor.dx = out<T>(dx);
    return scanning.run(device, workspace, functor, !reverse);
  });
}

// The workspace, and the first result.
template <int count>
auto scanned() {
  return operands<count>().template Ret<ffi::AnyBuffer>().template Ret<ffi::AnyBuffer>();
}

}  // namespace baracuda
