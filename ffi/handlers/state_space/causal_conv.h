// What FFI targets of causal convolutions share: x is [batches..., b, channels, length], or has the channels last;
// weight is [batches..., channels, width], bias [batches..., channels], state [batches..., b, channels, width - 1], and
// starts [batches..., b, length], or of length 0 where there are no segments.
#pragma once

#include "handlers/target.h"
#include BARACUDA_DRIVER(stencil)

namespace baracuda {

struct ConvArguments {
  const ffi::AnyBuffer &x, &weight, &bias, &state, &starts;
  bool silu, channels_last;
  StencilShape shape{};

  std::optional<ffi::Error> problem(const char* op) {
    Checks checks(op);
    auto d = x.dimensions(), w = weight.dimensions(), v = bias.dimensions(), s = state.dimensions(),
         f = starts.dimensions();
    checks.require(d.size() >= 3, "x must have rank 3 or more, got ", describe(d))
        .same_dtype("weight", weight, "x", x)
        .same_dtype("bias", bias, "x", x)
        .same_dtype("state", state, "x", x)
        .dtype("starts", starts, ffi::DataType::PRED);
    if (checks.failed()) return checks.error();
    size_t lead = d.size() - 3;
    int64_t channels = d[lead + (channels_last ? 2 : 1)], length = d[lead + (channels_last ? 1 : 2)];
    auto has = [&](Dimensions other, std::initializer_list<int64_t> rest) {
      return other.size() == lead + rest.size() && std::equal(d.begin(), d.begin() + lead, other.begin()) &&
             std::equal(rest.begin(), rest.end(), other.begin() + lead);
    };
    int64_t width = w.size() ? w.back() : 0;
    checks
        .require(width >= 2 && width <= most_taps && has(w, {channels, width}),
                 "weight must be [batches..., channels, width] with a width of 2 to ", int64_t(most_taps), ", got ",
                 describe(w), " for x ", describe(d))
        .require(has(v, {channels}), "bias must have the channels of x, ", describe(d), ", got ", describe(v))
        .require(has(s, {d[lead], channels, width - 1}), "state must have the batches and channels of x, ", describe(d),
                 ", and the width less one, got ", describe(s))
        .require(has(f, {d[lead], length}) || has(f, {d[lead], 0}), "starts must have the batches and length of x, ",
                 describe(d), ", or be empty, got ", describe(f));
    if (checks.failed()) return checks.error();
    shape = {product(d, 0, lead), d[lead], channels, length, int(width), channels_last};
    return std::nullopt;
  }

  template <class T>
  CausalConv<T> conv() const {
    const uint8_t* flags = starts.element_count() ? in<uint8_t>(starts) : nullptr;
    return {shape, in<T>(x), in<T>(weight), in<T>(bias), in<T>(state), flags, silu};
  }
};

}  // namespace baracuda
