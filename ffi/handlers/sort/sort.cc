// The FFI target of sorts of arrays [batches..., count] along the last dimension.
#include "sort.h"

namespace baracuda {

#define BARACUDA_SORT_ELSEWHERE(T) extern BARACUDA_SORT(T)
BARACUDA_WIDE_KEYS(BARACUDA_SORT_ELSEWHERE)

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

BARACUDA_TARGET(sort, sort_rows_handler,
                operands<1>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().RemainingRets().Attr<bool>("descending"));

}  // namespace
}  // namespace baracuda
