// The FFI target of quantization with given scales.
#include "quantize.h"
#include BARACUDA_DRIVER(blockwise)

namespace baracuda {
namespace {

ffi::Error quantized_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer scale, ffi::RemainingArgs zero,
                             ffi::Result<ffi::AnyBuffer> q, double low, double high) {
  constexpr const char* op = "quantize";
  Blocks blocks(op, x, x, scale, zero);
  blocks.checks.same_shape("the result", *q, "x", x);
  blocks.check_code(q->element_type(), low, high);
  if (blocks.checks.failed()) return blocks.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    return for_code(op, "the result", q->element_type(), [&](auto code) {
      using T = typename decltype(type)::type;
      using Kernel = Quantize<T, typename decltype(code)::type>;
      using Wide = Accumulator<T>;
      Kernel kernel{{blocks.scales<Wide>()},
                    memory<const T>(x),
                    memory<typename Kernel::Array::Memory>(*q),
                    range_of<Wide>(low, high)};
      return to_error(op, run_blockwise(device.executor(), kernel, blocks.shape));
    });
  });
}

BARACUDA_TARGET(quantize, quantized_handler,
                with_range(elements().Arg<ffi::AnyBuffer>().RemainingArgs().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
