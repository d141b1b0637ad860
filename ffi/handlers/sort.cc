// FFI targets of the sort family. Arrays are [batches..., count], sorted along the last dimension; those whose extrema
// are looked for are [batches..., count, inner].
#include "target.h"
#include BARACUDA_DRIVER(argextremum)
#include BARACUDA_DRIVER(select)
#include BARACUDA_DRIVER(sort)

namespace baracuda {
namespace {

bool same_batches(Dimensions x, Dimensions y) {
  return x.size() >= 1 && x.size() == y.size() && std::equal(x.begin(), x.end() - 1, y.begin());
}

// The results' last dimension says how many of each row are wanted. The second is there when a gradient or the caller
// needs it.
ffi::Error sort_rows_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                             ffi::Result<ffi::AnyBuffer> values, ffi::RemainingRets more, bool descending) {
  constexpr const char* op = "sort";
  Checks checks(op);
  auto in = x.dimensions(), out = values->dimensions();
  checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1)
      .same_dtype("the result", *values, "operand", x)
      .require(same_batches(in, out) && out.back() <= in.back(), "the result must be operand's ", describe(in),
               " or fewer of each row, got ", describe(out));
  if (checks.failed()) return checks.error();
  checks.require(in.back() <= INT32_MAX, "at most 2^31 - 1 elements of a row are supported, got ", in.back());
  int32_t* indices = nullptr;
  if (more.size() == 1) {
    auto second = more.get<ffi::AnyBuffer>(0);
    if (second.has_error()) return second.error();
    checks.same_shape("the second result", **second, "the first", *values)
        .dtype("the second result", **second, ffi::DataType::S32);
    indices = static_cast<int32_t*>((*second)->untyped_data());
  }
  if (checks.failed()) return checks.error();
  return for_key(op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SortShape shape{product(in, 0, in.size() - 1), in.back(), out.back(), descending};
    return to_error(op, sort_rows(device.executor(*workspace), static_cast<const T*>(x.untyped_data()),
                                  static_cast<T*>(values->untyped_data()), indices, shape));
  });
}

// ranks [batches..., many] may have fewer batches than x: each then serves several of x's.
ffi::Error statistics_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer ranks,
                              ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> values,
                              ffi::Result<ffi::AnyBuffer> indices) {
  constexpr const char* op = "order_statistics";
  Checks checks(op);
  auto in = x.dimensions(), many = ranks.dimensions(), out = values->dimensions();
  checks.dtype("ranks", ranks, ffi::DataType::S32)
      .require(in.size() >= 1 && many.size() >= 1 && many.size() <= in.size() &&
                   std::equal(many.begin(), many.end() - 1, in.begin()),
               "ranks must begin with dimensions of operand, ", describe(in), ", got ", describe(many))
      .same_dtype("the first result", *values, "operand", x)
      .same_shape("the second result", *indices, "the first", *values)
      .dtype("the second result", *indices, ffi::DataType::S32)
      .require(same_batches(in, out), "the first result must have the batches of operand, ", describe(in), ", got ",
               describe(out));
  if (checks.failed()) return checks.error();
  checks
      .require(out.back() == many.back(), "the first result must have a column for each of ", many.back(),
               " ranks, got ", describe(out))
      .require(in.back() > 0 || out.back() == 0, "a row without elements has no ranks")
      .require(in.back() <= INT32_MAX, "at most 2^31 - 1 elements of a row are supported, got ", in.back());
  if (checks.failed()) return checks.error();
  return for_key(op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SelectShape shape{product(in, 0, in.size() - 1), in.back(), many.back(), product(many, 0, many.size() - 1)};
    return to_error(
        op, select_rows(device.executor(*workspace), static_cast<const T*>(x.untyped_data()),
                        static_cast<const int32_t*>(ranks.untyped_data()), static_cast<T*>(values->untyped_data()),
                        static_cast<int32_t*>(indices->untyped_data()), shape));
  });
}

ffi::Error extremum_index_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> workspace,
                                  ffi::Result<ffi::AnyBuffer> index, bool is_max) {
  constexpr const char* op = "argextremum";
  Checks checks(op);
  auto in = x.dimensions(), out = index->dimensions();
  checks.dtype("the result", *index, ffi::DataType::S32)
      .require(in.size() >= 2 && out.size() + 1 == in.size() && std::equal(in.begin(), in.end() - 2, out.begin()) &&
                   in.back() == out.back(),
               "the result must be operand's ", describe(in), " without the last dimension but one, got ",
               describe(out));
  if (checks.failed()) return checks.error();
  int64_t count = in[in.size() - 2];
  checks.require(count > 0 && count <= INT32_MAX, "operand must have 1 to 2^31 - 1 cells along the axis, got ", count);
  if (checks.failed()) return checks.error();
  return for_key(op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    int64_t outer = product(in, 0, in.size() - 2);
    auto* from = static_cast<const T*>(x.untyped_data());
    auto* to = static_cast<int32_t*>(index->untyped_data());
    return to_error(op, is_max ? argextremum<T, true>(device.executor(*workspace), from, to, outer, count, in.back())
                               : argextremum<T, false>(device.executor(*workspace), from, to, outer, count, in.back()));
  });
}

BARACUDA_TARGET(sort, sort_rows_handler,
                operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().RemainingRets().Attr<bool>("descending"));
BARACUDA_TARGET(order_statistics, statistics_handler,
                operands<2>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(argextremum, extremum_index_handler,
                operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<bool>("is_max"));

}  // namespace
}  // namespace baracuda
