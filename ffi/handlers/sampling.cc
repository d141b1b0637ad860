// The FFI target of tokens drawn from rows [batches..., tokens] of logits or probabilities. The other operands may have
// fewer of the batches: each element then serves several rows.
#include "handlers/target.h"
#include BARACUDA_DRIVER(mass)

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

// The number of rows of an operand that has some of the batches, and then dimensions of its own.
int64_t rows_of(Checks& checks, const char* name, const Array& array, Dimensions x, size_t own) {
  auto dims = array.dimensions();
  bool fits =
      dims.size() >= own && dims.size() - own < x.size() && std::equal(dims.begin(), dims.end() - own, x.begin());
  checks.require(fits, name, " must begin with batch dimensions of x, ", describe(x), ", got ", describe(dims));
  return fits ? product(dims, 0, dims.size() - own) : 0;
}

// body(Type<T>) of the dtype of x.
template <class Body>
ffi::Error for_tokens(const char* op, const Array& x, const Body& body) {
  switch (x.element_type()) {
    case ffi::DataType::F32:
      return body(Type<float>{});
    case ffi::DataType::F16:
      return body(Type<Half>{});
    case ffi::DataType::BF16:
      return body(Type<BFloat16>{});
    default:
      return invalid(op, "x must be float16, bfloat16 or float32, got type ", int(x.element_type()));
  }
}

ffi::Error sampling_call(Device device, Array x, Array bits, Array k, Array p, Array smallest, Array scale,
                         Output tokens, Output logs, bool probabilities, bool joint) {
  constexpr const char* op = "sampling";
  constexpr int64_t most = 1 << 26;
  Checks checks(op);
  auto dims = x.dimensions(), found = tokens->dimensions();
  checks.require(dims.size() >= 1, "x must have rank 1 or more, got ", describe(dims))
      .dtype("bits", bits, ffi::DataType::U32)
      .require(bits.dimensions().size() >= 1 && bits.dimensions().back() == 2, "bits must be pairs, got ",
               describe(bits.dimensions()))
      .dtype("k", k, ffi::DataType::S32)
      .dtype("p", p, ffi::DataType::F32)
      .dtype("smallest", smallest, ffi::DataType::F32)
      .dtype("scale", scale, ffi::DataType::F32)
      .dtype("the first result", *tokens, ffi::DataType::S32)
      .dtype("the second result", *logs, ffi::DataType::F32)
      .same_shape("the second result", *logs, "the first", *tokens)
      .require(
          found.size() == dims.size() && std::equal(dims.begin(), dims.end() - 1, found.begin()) && found.back() == 1,
          "the first result must have one element for each row of x, ", describe(dims), ", got ", describe(found));
  if (checks.failed()) return checks.error();
  int64_t rows = product(dims, 0, dims.size() - 1), count = dims.back();
  int64_t bits_rows = rows_of(checks, "bits", bits, dims, 1), k_rows = rows_of(checks, "k", k, dims, 0),
          p_rows = rows_of(checks, "p", p, dims, 0), smallest_rows = rows_of(checks, "smallest", smallest, dims, 0),
          scale_rows = rows_of(checks, "scale", scale, dims, 0);
  checks.require(count > 0 || rows == 0, "a row without tokens has none to draw")
      .require(count <= most, "at most 2^26 tokens of a row are supported, got ", count);
  if (checks.failed()) return checks.error();
  return for_tokens(op, x, [&](auto type) {
    using T = typename decltype(type)::type;
    SamplingRows<T> of{in<T>(x),
                       in<uint32_t>(bits),
                       in<int32_t>(k),
                       in<float>(p),
                       in<float>(smallest),
                       in<float>(scale),
                       out<int32_t>(tokens),
                       out<float>(logs),
                       rows,
                       count,
                       bits_rows,
                       k_rows,
                       p_rows,
                       smallest_rows,
                       scale_rows,
                       joint};
    return to_error(op, probabilities ? sample_tokens<ProbabilityMass>(device.executor(), of)
                                      : sample_tokens<LogitMass>(device.executor(), of));
  });
}

BARACUDA_TARGET(sampling, sampling_call,
                operands<6>().Ret<Array>().Ret<Array>().Attr<bool>("probabilities").Attr<bool>("joint"));

ffi::Error sampling_digits_call(Device device, Array x, Array keys, Array smallest, Array scale, Output sums,
                                bool probabilities, int64_t shift) {
  constexpr const char* op = "sampling_digits";
  Checks checks(op);
  auto dims = x.dimensions(), found = sums->dimensions();
  checks.require(dims.size() >= 1, "x must have rank 1 or more, got ", describe(dims))
      .dtype("keys", keys, ffi::DataType::U32)
      .require(keys.dimensions().size() >= 1 && keys.dimensions().back() == 2, "keys must be pairs, got ",
               describe(keys.dimensions()))
      .dtype("smallest", smallest, ffi::DataType::F32)
      .dtype("scale", scale, ffi::DataType::F32)
      .dtype("the result", *sums, ffi::DataType::U32)
      .require(found.size() == dims.size() + 1 && std::equal(dims.begin(), dims.end() - 1, found.begin()) &&
                   found[found.size() - 2] == 3 && found.back() == 256,
               "the result must have [3, 256] for each row of x, ", describe(dims), ", got ", describe(found))
      .require(shift >= 0 && shift <= 24, "shift must be from 0 to 24, got ", shift);
  if (checks.failed()) return checks.error();
  int64_t rows = product(dims, 0, dims.size() - 1);
  int64_t keys_rows = rows_of(checks, "keys", keys, dims, 1),
          smallest_rows = rows_of(checks, "smallest", smallest, dims, 0),
          scale_rows = rows_of(checks, "scale", scale, dims, 0);
  if (checks.failed()) return checks.error();
  return for_tokens(op, x, [&](auto type) {
    using T = typename decltype(type)::type;
    MassDigits<T> of{in<T>(x),    in<uint32_t>(keys), in<float>(smallest), in<float>(scale), out<uint32_t>(sums), rows,
                     dims.back(), keys_rows,          smallest_rows,       scale_rows,       int(shift)};
    return to_error(op, probabilities ? add_mass_digits<ProbabilityMass>(device.executor(), of)
                                      : add_mass_digits<LogitMass>(device.executor(), of));
  });
}

BARACUDA_TARGET(sampling_digits, sampling_digits_call,
                operands<4>().Ret<Array>().Attr<bool>("probabilities").Attr<int64_t>("shift"));

}  // namespace
}  // namespace baracuda
