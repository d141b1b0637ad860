// FFI targets of gated activations: y [..., n] of the halves x[..., 0, :] and x[..., 1, :] of x [..., 2, n].
#include "elementwise.h"

#include "../kernels/elementwise/gated.h"

namespace baracuda {
namespace {

// Operands come in pairs of halves, but for one without, the last of the backward targets; so does their result.
ffi::Error run_gated(const Call& call, const Variants& variants, size_t pairs, bool is_backward) {
  Checks checks(call.op);
  checks
      .require(call.operands.size() == pairs + is_backward, "expected ", pairs + is_backward, " operands, got ",
               call.operands.size())
      .require(call.results.size() == 1, "expected 1 result, got ", call.results.size());
  if (checks.failed()) return checks.error();
  auto x = *call.operands.get<ffi::AnyBuffer>(0);
  auto result = *call.results.get<ffi::AnyBuffer>(0);
  Dimensions whole = x.dimensions();
  checks.require(whole.size() >= 2 && whole[whole.size() - 2] == 2, "x must have 2 halves, [..., 2, n], got ",
                 describe(whole));
  if (checks.failed()) return checks.error();
  int64_t columns = whole[whole.size() - 1], rows = product(whole, 0, whole.size() - 2);
  std::vector<int64_t> half(whole.begin(), whole.end());
  half.erase(half.end() - 2);
  ElementwiseArrays arrays{};
  ElementwiseRows shape{rows, columns, {}, {}};
  Dtypes in, out;
  auto check = [&](const char* name, const ffi::AnyBuffer& array, bool is_pair) {
    Dimensions dims = array.dimensions(), expected = is_pair ? whole : Dimensions(half.data(), half.size());
    checks.require(dims.size() == expected.size() && std::equal(dims.begin(), dims.end(), expected.begin()), name,
                   " must have shape ", describe(expected), ", got ", describe(dims));
  };
  for (size_t i = 0; i < call.operands.size(); ++i) {
    auto operand = *call.operands.get<ffi::AnyBuffer>(i);
    bool is_pair = i < pairs;
    check(i == 0 ? "x" : is_pair ? "the tangent" : "the cotangent", operand, is_pair);
    auto array = static_cast<const char*>(operand.untyped_data());
    for (int half = 0; half <= int(is_pair); ++half) {
      size_t k = 2 * i + half;
      arrays.in[k] = array + half * columns * int64_t(ffi::ByteWidth(operand.element_type()));
      shape.in_pitch[k] = columns * (1 + is_pair);
      in.push_back(operand.element_type());
    }
  }
  check("the result", *result, is_backward);
  for (int half = 0; half <= int(is_backward); ++half) {
    arrays.out[half] =
        static_cast<char*>(result->untyped_data()) + half * columns * int64_t(ffi::ByteWidth(result->element_type()));
    shape.out_pitch[half] = columns * (1 + is_backward);
    out.push_back(result->element_type());
  }
  if (checks.failed()) return checks.error();
  const Variant* variant = choose(call.op, variants, in, out, checks);
  if (!variant) return checks.error();
  alignas(16) char functor[functor_bytes];
  variant->construct(nullptr, functor);
  return to_error(call.op, elementwise(call.device.executor(), variant->kernel, functor, arrays, shape));
}

#define BARACUDA_GATED_TARGET(NAME, FUNCTOR, PAIRS, IS_BACKWARD)                                 \
  ffi::Error NAME##_call(Device device, ffi::RemainingArgs operands, ffi::RemainingRets results, \
                         ffi::Dictionary attributes) {                                           \
    static const Variants known = variants<FUNCTOR, Shape::rows>(Floats{});                      \
    return run_gated({#NAME, device, operands, results, attributes}, known, PAIRS, IS_BACKWARD); \
  }                                                                                              \
  BARACUDA_TARGET(NAME, NAME##_call, elementwise_binding())
#define BARACUDA_GATED(NAME)                                           \
  BARACUDA_GATED_TARGET(NAME, op::NAME, 1, false);                     \
  BARACUDA_GATED_TARGET(NAME##_tangent, op::NAME##_tangent, 2, false); \
  BARACUDA_GATED_TARGET(NAME##_backward, op::NAME##_backward, 1, true)

BARACUDA_GATED(glu);
BARACUDA_GATED(reglu);
BARACUDA_GATED(swiglu);
BARACUDA_GATED(geglu);
BARACUDA_GATED(geglu_tanh);

}  // namespace
}  // namespace baracuda
