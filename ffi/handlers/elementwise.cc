// FFI targets of elementwise ops. Operands broadcast, aligned at their last dimensions, to the results' shape.
#include "target.h"

#include <array>

#include "../kernels/elementwise.h"

namespace baracuda {
namespace {

constexpr ffi::DataType dtype_of(Type<float>) { return ffi::DataType::F32; }
constexpr ffi::DataType dtype_of(Type<double>) { return ffi::DataType::F64; }
constexpr ffi::DataType dtype_of(Type<Half>) { return ffi::DataType::F16; }
constexpr ffi::DataType dtype_of(Type<BFloat16>) { return ffi::DataType::BF16; }
constexpr ffi::DataType dtype_of(Type<int8_t>) { return ffi::DataType::S8; }
constexpr ffi::DataType dtype_of(Type<int16_t>) { return ffi::DataType::S16; }
constexpr ffi::DataType dtype_of(Type<int32_t>) { return ffi::DataType::S32; }
constexpr ffi::DataType dtype_of(Type<int64_t>) { return ffi::DataType::S64; }
constexpr ffi::DataType dtype_of(Type<uint8_t>) { return ffi::DataType::U8; }
constexpr ffi::DataType dtype_of(Type<uint16_t>) { return ffi::DataType::U16; }
constexpr ffi::DataType dtype_of(Type<uint32_t>) { return ffi::DataType::U32; }
constexpr ffi::DataType dtype_of(Type<uint64_t>) { return ffi::DataType::U64; }

// One call of a target.
struct Call {
  const char* op;
  mutable Device device;  // whose executor borrows of it
  ffi::RemainingArgs operands;
  ffi::RemainingRets results;
  ffi::Dictionary attributes;

  // The first operand, by whose dtype kernels are chosen; an error if there is none.
  ffi::ErrorOr<ffi::AnyBuffer> first() const {
    if (operands.size() == 0) return ffi::Unexpected(invalid(op, "expected operands, got none"));
    return operands.get<ffi::AnyBuffer>(0);
  }
};

// Whether dims, aligned at the last dimension, broadcast to shape; in `repeats`, along which dimensions they do.
bool broadcasts(Dimensions dims, Dimensions shape, std::vector<bool>& repeats) {
  if (dims.size() > shape.size()) return false;
  size_t missing = shape.size() - dims.size();
  repeats.assign(shape.size(), true);
  for (size_t d = missing; d < shape.size(); ++d) {
    repeats[d] = dims[d - missing] != shape[d];
    if (repeats[d] && dims[d - missing] != 1) return false;
  }
  return true;
}

// body(Constant<0>{}) ... body(Constant<count - 1>{}), on the host.
template <int count, class Body>
void for_each(const Body& body) {
  [&]<int... i>(std::integer_sequence<int, i...>) {
    (body(std::integral_constant<int, i>{}), ...);
  }(std::make_integer_sequence<int, count>{});
}

template <class Functor>
ffi::Error run(const Call& call, Functor functor) {
  using Work = Elementwise<Functor>;
  Checks checks(call.op);
  checks
      .require(call.operands.size() == Work::operands, "expected ", Work::operands, " operands, got ",
               call.operands.size())
      .require(call.results.size() == Work::results, "expected ", Work::results, " results, got ", call.results.size());
  if (checks.failed()) return checks.error();
  Work work{functor, {}, {}};
  Dimensions dims[Work::operands], shape;
  for_each<Work::results>([&](auto j) {
    auto result = *call.results.template get<ffi::AnyBuffer>(j());
    if (j() == 0) shape = result->dimensions();
    auto of = result->dimensions();
    checks.dtype("the result", *result, dtype_of(Type<typename Work::Out::template at<j()>>{}))
        .require(of.size() == shape.size() && std::equal(of.begin(), of.end(), shape.begin()),
                 "the results must have one shape, got ", describe(shape), " and ", describe(of));
    work.out[j()] = result->untyped_data();
  });
  std::vector<bool> repeats[Work::operands];
  for_each<Work::operands>([&](auto i) {
    auto operand = *call.operands.template get<ffi::AnyBuffer>(i());
    dims[i()] = operand.dimensions();
    checks.dtype(Functor::names[i()], operand, dtype_of(Type<typename Work::In::template at<i()>>{}))
        .require(broadcasts(dims[i()], shape, repeats[i()]), Functor::names[i()],
                 " must broadcast to the result's shape, ", describe(shape), ", got ", describe(dims[i()]));
    work.in[i()] = operand.untyped_data();
  });
  if (checks.failed()) return checks.error();
  if (product(shape, 0, shape.size()) == 0) return ffi::Error::Success();
  ElementwiseShape<Work::operands> folded;
  for (size_t d = 0; d < shape.size(); ++d) {
    bool repeated[Work::operands];
    for (int i = 0; i < Work::operands; ++i) repeated[i] = repeats[i][d];
    checks.require(folded.push(shape[d], repeated), "more than ", elementwise_rank,
                   " dimensions that broadcast in turn, in ", describe(shape));
    if (checks.failed()) return checks.error();
  }
  return to_error(call.op, elementwise(call.device.executor(), work, folded));
}

// Ops of one array, whose parameters are the float64 attributes `names`.
template <template <class> class Functor, class... Name>
ffi::Error unary(Call call, const Name*... names) {
  auto x = call.first();
  if (!x) return x.error();
  std::array<double, sizeof...(names) + 1> parameters;
  Checks checks(call.op);
  int i = 0;
  auto read = [&](const char* name) {
    auto value = call.attributes.get<double>(name);
    checks.require(value.has_value(), "expected a float64 attribute ", name);
    parameters[i++] = value.has_value() ? *value : 0;
  };
  (read(names), ...);
  if (checks.failed()) return checks.error();
  return for_float(call.op, "x", x->element_type(),
                   [&](auto type) { return run(call, Functor<typename decltype(type)::type>(parameters.data())); });
}

// Functors of the dtype of the first operand and that of a weight: the same, or float32 beside a half.
template <template <class, class> class Functor>
ffi::Error beside(Call call, ffi::DataType weight) {
  auto x = call.first();
  if (!x) return x.error();
  return for_float(call.op, "the first operand", x->element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    if constexpr (is_half<T>)
      if (weight == ffi::DataType::F32) return run(call, Functor<T, float>{});
    return run(call, Functor<T, T>{});
  });
}

// The weight is the operand of that number.
template <template <class, class> class Functor>
ffi::Error weighted(Call call, size_t number) {
  auto weight = call.operands.get<ffi::AnyBuffer>(number);
  if (!weight) return weight.error();
  return beside<Functor>(call, weight->element_type());
}

// The result is the weight's cotangent.
template <template <class, class> class Functor>
ffi::Error of_weight(Call call) {
  auto result = call.results.get<ffi::AnyBuffer>(0);
  if (!result) return result.error();
  return beside<Functor>(call, (*result)->element_type());
}

// The bounds are numbers of x's dtype, as bits.
template <template <class> class Functor, class Select>
ffi::Error clamped(Call call, const Select& for_dtype) {
  auto x = call.first();
  if (!x) return x.error();
  auto low = call.attributes.get<int64_t>("min_bits"), high = call.attributes.get<int64_t>("max_bits");
  if (!low || !high) return invalid(call.op, "expected int64 attributes min_bits and max_bits");
  return for_dtype(call.op, "x", x->element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    auto bound = [](int64_t bits) {
      T value;
      memcpy(&value, &bits, sizeof(T));
      return Comparable<T>(value);
    };
    return run(call, Functor<T>(bound(*low), bound(*high)));
  });
}

auto binding() { return ffi::Ffi::Bind().Ctx<Device>().RemainingArgs().RemainingRets().Attrs(); }

// BARACUDA_ELEMENTWISE(name, handler, arguments...): the target `name`, handled by handler(call, arguments...).
#define BARACUDA_ELEMENTWISE(NAME, HANDLER, ...)                                                   \
  ffi::Error NAME##_call(Device device, ffi::RemainingArgs operands, ffi::RemainingRets results,   \
                         ffi::Dictionary attributes) {                                             \
    return HANDLER(Call{#NAME, device, operands, results, attributes} __VA_OPT__(, ) __VA_ARGS__); \
  }                                                                                                \
  BARACUDA_TARGET(NAME, NAME##_call, binding())

BARACUDA_ELEMENTWISE(leaky_relu, unary<LeakyRelu>, "negative_slope");
BARACUDA_ELEMENTWISE(leaky_relu_backward, unary<LeakyReluBackward>, "negative_slope");
BARACUDA_ELEMENTWISE(elu, unary<Elu>, "alpha");
BARACUDA_ELEMENTWISE(elu_backward, unary<EluBackward>, "alpha");
BARACUDA_ELEMENTWISE(threshold, unary<Threshold>, "threshold", "value");
BARACUDA_ELEMENTWISE(threshold_backward, unary<ThresholdBackward>, "threshold");
BARACUDA_ELEMENTWISE(hardtanh, unary<Clamp>, "min_val", "max_val");
BARACUDA_ELEMENTWISE(hardtanh_backward, unary<HardtanhBackward>, "min_val", "max_val");
BARACUDA_ELEMENTWISE(softshrink, unary<Softshrink>, "lambd");
BARACUDA_ELEMENTWISE(softshrink_backward, unary<ShrinkBackward>, "lambd");
BARACUDA_ELEMENTWISE(hardshrink, unary<Hardshrink>, "lambd");
BARACUDA_ELEMENTWISE(hardshrink_backward, unary<ShrinkBackward>, "lambd");
BARACUDA_ELEMENTWISE(powi, unary<Powi>, "exponent");
BARACUDA_ELEMENTWISE(powi_backward, unary<PowiBackward>, "exponent");
BARACUDA_ELEMENTWISE(affine, unary<Affine>, "scale", "shift");
BARACUDA_ELEMENTWISE(affine_backward, unary<AffineBackward>, "scale");

constexpr auto numbers = [](auto&&... arguments) { return for_number(arguments...); };
constexpr auto floats = [](auto&&... arguments) { return for_float(arguments...); };
BARACUDA_ELEMENTWISE(clamp, clamped<Clamp>, numbers);
BARACUDA_ELEMENTWISE(clamp_backward, clamped<ClampBackward>, floats);

BARACUDA_ELEMENTWISE(lerp, weighted<Lerp>, 2);
BARACUDA_ELEMENTWISE(lerp_tangent, weighted<LerpTangent>, 2);
BARACUDA_ELEMENTWISE(lerp_backward, weighted<LerpBackward>, 1);
BARACUDA_ELEMENTWISE(lerp_backward_weight, of_weight<LerpBackwardWeight>);
BARACUDA_ELEMENTWISE(prelu, weighted<Prelu>, 1);
BARACUDA_ELEMENTWISE(prelu_tangent, weighted<PreluTangent>, 1);
BARACUDA_ELEMENTWISE(prelu_backward, weighted<PreluBackward>, 1);
BARACUDA_ELEMENTWISE(prelu_backward_weight, of_weight<PreluBackwardWeight>);

}  // namespace
}  // namespace baracuda
