// The FFI target of quantisation with given scales.
#include "quantize.h"
#include BARACUDA_DRIVER(blocks)

namespace baracuda {
namespace {

ffi::Error codes_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer scale, ffi::RemainingArgs zero,
                         ffi::Result<ffi::AnyBuffer> codes, double low, double high) {
  constexpr const char* op = "quantize";
  Blocks blocks(op, x, x, scale, zero);
  blocks.checks.same_shape("the result", *codes, "x", x);
  blocks.check_code(codes->element_type(), low, high);
  if (blocks.checks.failed()) return blocks.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    return for_code(op, "the result", codes->element_type(), [&](auto code) {
      using T = typename decltype(type)::type;
      using Kernel = Quantize<T, typename decltype(code)::type>;
      using Wide = Accumulator<T>;
      Kernel kernel{{blocks.scales<Wide>()},
                    memory<const T>(x),
                    memory<typename Kernel::Array::Memory>(*codes),
                    range_of<Wide>(low, high)};
      return to_error(op, run_blocks(device.executor(), kernel, blocks.shape));
    });
  });
}

BARACUDA_TARGET(quantize, codes_handler,
                with_range(cells().Arg<ffi::AnyBuffer>().RemainingArgs().Ret<ffi::AnyBuffer>()));

}  // namespace
}  // namespace baracuda
