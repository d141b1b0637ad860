// The FFI target of quantization by the range of each row.
#include "quantize.h"
#include BARACUDA_DRIVER(rows)

namespace baracuda {
namespace {

// Rows [batches..., inner]; scale, and the zero point of the asymmetric mode, are [batches..., 1].
ffi::Error dynamic_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> q,
                           ffi::Result<ffi::AnyBuffer> scale, ffi::RemainingRets zero, double low, double high) {
  constexpr const char* op = "dynamic_quantize";
  Checks checks(op);
  auto in = x.dimensions(), per = scale->dimensions();
  checks.require(in.size() >= 1, "x must have rank 1 or more, got ", describe(in))
      .require(per.size() == in.size() && per.back() == 1 && std::equal(per.begin(), per.end() - 1, in.begin()),
               "scale must be x's ", describe(in), " with rows of 1, got ", describe(per))
      .same_shape("the result", *q, "x", x)
      .dtype("scale", *scale, wide_of(x))
      .require(low <= 0 && 0 < high, "the quantized values must hold 0 and more, got ", low, " to ", high)
      .require(zero.size() <= 1, "expected two or three results, got ", zero.size() + 2);
  if (checks.failed()) return checks.error();
  int64_t columns = in.back(), rows = product(in, 0, in.size() - 1);
  checks.require(!is_packed(q->element_type()) || columns % 2 == 0,
                 "rows of quantized values of 4 bits must be even, got ", columns);
  int32_t* zeros = nullptr;
  if (zero.size() == 1) {
    auto array = zero.get<ffi::AnyBuffer>(0);
    if (array.has_error()) return array.error();
    checks.same_shape("zero_point", **array, "scale", *scale).dtype("zero_point", **array, ffi::DataType::S32);
    zeros = memory<int32_t>(**array);
  }
  if (checks.failed()) return checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    return for_code(op, "the result", q->element_type(), [&](auto code) {
      using T = typename decltype(type)::type;
      using Code = typename decltype(code)::type;
      using Wide = Accumulator<T>;
      Quantize<T, Code> quantize{
          {}, memory<const T>(x), memory<typename CodeArray<Code>::Memory>(*q), range_of<Wide>(low, high)};
      DynamicQuantize<T, Code> kernel{quantize, memory<Wide>(*scale), zeros};
      return to_error(op, run_rows(device.executor(), kernel, rows, columns));
    });
  });
}

BARACUDA_TARGET(dynamic_quantize, dynamic_handler,
                with_range(elements().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().RemainingRets()));

}  // namespace
}  // namespace baracuda
