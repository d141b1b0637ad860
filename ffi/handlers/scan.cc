// FFI targets of the scan family. Arrays are [batches..., count, inner]: a scan goes along the last dimension but one,
// from its end where `reverse`. Gradients are those of inclusive scans, and go the other way.
#include "../kernels/scan_backward.h"
#include "saved.h"
#include "target.h"
#include BARACUDA_DRIVER(scan)

namespace baracuda {
namespace {

template <class T>
const T* in(const ffi::AnyBuffer& array) {
  return static_cast<const T*>(array.untyped_data());
}
template <class T>
T* out(ffi::Result<ffi::AnyBuffer>& array) {
  return static_cast<T*>(array->untyped_data());
}

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
void* ranged_of(Scanning& scanning, ffi::RemainingRets& more) {
  ffi::DataType dtype = scanning.first.element_type();
  bool is_another = ranged(dtype) != dtype;
  scanning.checks.require(is_another || more.size() == 0, "expected one result, got ", more.size() + 1);
  return second_of<void>(scanning, more, ranged(dtype));
}

// ---------------------------------------------------------------------------------------------------------------------
// Scans

template <template <class> class Functor>
auto cumulate(const Scanning& scanning, Device& device, ffi::AnyBuffer& x, ffi::AnyBuffer& workspace,
              ffi::Result<ffi::AnyBuffer>& y, bool reverse, bool exclusive) {
  return [&, reverse, exclusive](auto type) {
    using T = typename decltype(type)::type;
    Functor<T> functor{};
    functor.x = in<T>(x), functor.y = out<T>(y);
    return scanning.run(device, workspace, functor, reverse, exclusive);
  };
}

ffi::Error sum_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                       ffi::Result<ffi::AnyBuffer> y, bool reverse, bool exclusive) {
  Scanning scanning = Scanning("cumsum", "operand", x).same("the result", *y);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_number(scanning.op, "operand", x.element_type(),
                    cumulate<CumSum>(scanning, device, x, *workspace, y, reverse, exclusive));
}

ffi::Error prod_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                        ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more, bool reverse, bool exclusive) {
  Scanning scanning = Scanning("cumprod", "operand", x).same("the result", *y);
  void* ranged_y = ranged_of(scanning, more);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_number(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    CumProd<T> functor{};
    functor.x = in<T>(x), functor.y = out<T>(y), functor.ranged = static_cast<Ranged<T>*>(ranged_y);
    return scanning.run(device, *workspace, functor, reverse, exclusive);
  });
}

ffi::Error log_sum_exp_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                               ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more, bool reverse, bool exclusive) {
  Scanning scanning = Scanning("logcumsumexp", "operand", x).same("the result", *y);
  void* rest = second_of<void>(scanning, more, wide(x.element_type()));
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_float(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    LogCumSumExp<T> functor{};
    functor.x = in<T>(x), functor.y = out<T>(y), functor.rest = static_cast<Accumulator<T>*>(rest);
    return scanning.run(device, *workspace, functor, reverse, exclusive);
  });
}

template <bool is_max>
ffi::Error extremum_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                            ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more, bool reverse, bool exclusive) {
  Scanning scanning = Scanning(is_max ? "cummax" : "cummin", "operand", x).same("the result", *y);
  auto* index = second_of<int32_t>(scanning, more, ffi::DataType::S32);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_number(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (index) {
      CumArgExtremum<T, is_max> functor{};
      functor.x = in<T>(x), functor.y = out<T>(y), functor.index = index, functor.exclusive = exclusive;
      return scanning.run(device, *workspace, functor, reverse, exclusive);
    }
    CumExtremum<T, is_max> functor{};
    functor.x = in<T>(x), functor.y = out<T>(y);
    return scanning.run(device, *workspace, functor, reverse, exclusive);
  });
}

ffi::Error linear_handler(Device device, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::Result<ffi::AnyBuffer> workspace,
                          ffi::Result<ffi::AnyBuffer> h, ffi::RemainingRets more, bool reverse) {
  Scanning scanning = Scanning("linear_scan", "a", a).same("b", b).same("the result", *h);
  void* ranged_h = ranged_of(scanning, more);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_inexact(scanning.op, "a", a.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    LinearScan<T> functor{};
    functor.a = in<T>(a), functor.b = in<T>(b), functor.h = out<T>(h);
    functor.ranged = static_cast<Ranged<T>*>(ranged_h);
    return scanning.run(device, *workspace, functor, reverse);
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Gradients

ffi::Error prod_backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::AnyBuffer dy,
                                 ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx, bool reverse) {
  Scanning scanning =
      Scanning("cumprod_backward", "operand", x).same_shape("y", y).same("dy", dy).same("the result", *dx);
  scanning.checks.dtype("y", y, ranged(x.element_type()));
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_float(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    CumProdBackward<T> functor{};
    functor.x = in<T>(x), functor.y = in<Ranged<T>>(y), functor.dy = in<T>(dy), functor.dx = out<T>(dx);
    return scanning.run(device, *workspace, functor, !reverse);
  });
}

ffi::Error log_sum_exp_backward_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer y, ffi::AnyBuffer rest,
                                        ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> workspace,
                                        ffi::Result<ffi::AnyBuffer> dx, bool reverse) {
  Scanning scanning = Scanning("logcumsumexp_backward", "operand", x).same("y", y).same_shape("rest", rest);
  scanning.checks.dtype("rest", rest, wide(x.element_type()));
  scanning.same("dy", dy).same("the result", *dx);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_float(scanning.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    LogCumSumExpBackward<T> functor{};
    functor.x = in<T>(x), functor.y = in<T>(y), functor.rest = in<Accumulator<T>>(rest), functor.dy = in<T>(dy),
    functor.dx = out<T>(dx);
    return scanning.run(device, *workspace, functor, !reverse);
  });
}

ffi::Error extremum_backward_handler(Device device, ffi::AnyBuffer index, ffi::AnyBuffer dy,
                                     ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx,
                                     bool reverse) {
  Scanning scanning = Scanning("cumextremum_backward", "dy", dy).same_shape("index", index).same("the result", *dx);
  scanning.checks.dtype("index", index, ffi::DataType::S32);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_float(scanning.op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    CumExtremumBackward<T> functor{in<int32_t>(index), in<T>(dy), out<T>(dx)};
    return scanning.run(device, *workspace, functor, !reverse);
  });
}

ffi::Error linear_backward_handler(Device device, ffi::AnyBuffer a, ffi::AnyBuffer h, ffi::AnyBuffer dh,
                                   ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> da,
                                   ffi::Result<ffi::AnyBuffer> db, bool reverse) {
  Scanning scanning = Scanning("linear_scan_backward", "a", a).same_shape("h", h).same("dh", dh);
  scanning.checks.dtype("h", h, ranged(a.element_type()));
  scanning.same("the first result", *da).same("the second result", *db);
  if (scanning.checks.failed()) return scanning.checks.error();
  return for_inexact(scanning.op, "a", a.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    LinearScanBackward<T> functor{};
    functor.x = in<T>(a), functor.y = in<Ranged<T>>(h), functor.dy = in<T>(dh), functor.dx = out<T>(da),
    functor.db = out<T>(db);
    return scanning.run(device, *workspace, functor, !reverse);
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Targets

// The workspace, and the first result.
template <int count>
auto scanned() {
  return operands<count>().template Ret<ffi::AnyBuffer>().template Ret<ffi::AnyBuffer>();
}

BARACUDA_TARGET(cumsum, sum_handler, scanned<1>().Attr<bool>("reverse").Attr<bool>("exclusive"));
BARACUDA_TARGET(cumprod, prod_handler, scanned<1>().RemainingRets().Attr<bool>("reverse").Attr<bool>("exclusive"));
BARACUDA_TARGET(logcumsumexp, log_sum_exp_handler,
                scanned<1>().RemainingRets().Attr<bool>("reverse").Attr<bool>("exclusive"));
BARACUDA_TARGET(cummax, extremum_handler<true>,
                scanned<1>().RemainingRets().Attr<bool>("reverse").Attr<bool>("exclusive"));
BARACUDA_TARGET(cummin, extremum_handler<false>,
                scanned<1>().RemainingRets().Attr<bool>("reverse").Attr<bool>("exclusive"));
BARACUDA_TARGET(linear_scan, linear_handler, scanned<2>().RemainingRets().Attr<bool>("reverse"));
BARACUDA_TARGET(cumprod_backward, prod_backward_handler, scanned<3>().Attr<bool>("reverse"));
BARACUDA_TARGET(logcumsumexp_backward, log_sum_exp_backward_handler, scanned<4>().Attr<bool>("reverse"));
BARACUDA_TARGET(cumextremum_backward, extremum_backward_handler, scanned<2>().Attr<bool>("reverse"));
BARACUDA_TARGET(linear_scan_backward, linear_backward_handler,
                scanned<3>().Ret<ffi::AnyBuffer>().Attr<bool>("reverse"));

}  // namespace
}  // namespace baracuda
