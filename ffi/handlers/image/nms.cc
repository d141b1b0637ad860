// The FFI target of non-maximum suppression: boxes [batches..., n, 4], their order [batches..., n] and, where there are
// some, classes [batches..., n], which give the indices of those that are kept [batches..., size] and their number
// [batches...].
#include "handlers/target.h"
#include BARACUDA_DRIVER(suppress)

namespace baracuda {
namespace {

ffi::Error suppression(Device device, ffi::AnyBuffer boxes, ffi::AnyBuffer order, ffi::RemainingArgs classes,
                       ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> indices,
                       ffi::Result<ffi::AnyBuffer> count, double limit) {
  constexpr const char* op = "nms";
  Checks checks(op);
  auto dims = boxes.dimensions(), of_order = order.dimensions(), found = indices->dimensions(),
       number = count->dimensions();
  auto is_of_boxes = [&](Dimensions other, size_t own) {
    return other.size() + 2 == dims.size() + own && std::equal(dims.begin(), dims.end() - 2, other.begin());
  };
  checks.require(dims.size() >= 2 && dims.back() == 4, "boxes must be [..., n, 4], got ", describe(dims))
      .dtype("order", order, ffi::DataType::S32)
      .dtype("the indices", *indices, ffi::DataType::S32)
      .dtype("the count", *count, ffi::DataType::S32)
      .require(classes.size() <= 1, "there may be one array of classes, got ", classes.size());
  if (checks.failed()) return checks.error();
  int64_t n = dims[dims.size() - 2];
  checks
      .require(is_of_boxes(of_order, 1) && of_order.back() == n, "order must have an element for each box of ",
               describe(dims), ", got ", describe(of_order))
      .require(is_of_boxes(found, 1), "the indices must have the batches of boxes, ", describe(dims), ", got ",
               describe(found))
      .require(is_of_boxes(number, 0), "the count must have the batches of boxes, ", describe(dims), ", got ",
               describe(number))
      .require(n < int64_t(1) << 31, "there may be 2^31 - 1 boxes, got ", n);
  if (checks.failed()) return checks.error();
  Classes of_class;
  if (classes.size() == 1) {
    auto array = *classes.get<ffi::AnyBuffer>(0);
    bool is_wide = array.element_type() == ffi::DataType::S64;
    if (!is_wide) checks.dtype("classes", array, ffi::DataType::S32);
    checks.same_shape("classes", array, "order", order);
    if (checks.failed()) return checks.error();
    if (is_wide)
      of_class.wide = in<int64_t>(array);
    else
      of_class.narrow = in<int32_t>(array);
  }
  int64_t batches = product(dims, 0, dims.size() - 2);
  if (batches == 0) return ffi::Error::Success();
  return for_float(op, "boxes", boxes.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Sum = typename Suppression<T>::Sum;
    Suppression<T> work{batches,  n,          found.back(),           in<T>(boxes),          in<int32_t>(order),
                        of_class, Sum(limit), next_after(Sum(limit)), out<int32_t>(indices), out<int32_t>(count)};
    return to_error(op, suppress(device.executor(*workspace), work));
  });
}

BARACUDA_TARGET(
    nms, suppression,
    operands<2>().RemainingArgs().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<double>(
        "limit"));

}  // namespace
}  // namespace baracuda
