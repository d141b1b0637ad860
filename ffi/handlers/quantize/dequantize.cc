// The FFI target of dequantization.
#include "quantize.h"
#include BARACUDA_DRIVER(blockwise)

namespace baracuda {
namespace {

ffi::Error values_handler(Device device, ffi::AnyBuffer q, ffi::AnyBuffer scale, ffi::RemainingArgs zero,
                          ffi::Result<ffi::AnyBuffer> y) {
  constexpr const char* op = "dequantize";
  Blocks blocks(op, q, *y, scale, zero);
  blocks.checks.same_shape("the result", *y, "q", q);
  blocks.check_code(q.element_type(), 0, 0);
  if (blocks.checks.failed()) return blocks.checks.error();
  return for_float(op, "the result", y->element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto run = [&](auto code) {
      using Kernel = Dequantize<T, typename decltype(code)::type>;
      Kernel kernel{{blocks.scales<Accumulator<T>>()}, memory<const typename Kernel::Array::Memory>(q), memory<T>(*y)};
      return to_error(op, run_blockwise(device.executor(), kernel, blocks.shape));
    };
    if (q.element_type() == y->element_type()) return run(type);
    return for_code(op, "q", q.element_type(), run);
  });
}

BARACUDA_TARGET(dequantize, values_handler, elements().Arg<ffi::AnyBuffer>().RemainingArgs().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
