// What FFI targets of depthwise convolutions share: x is [batches..., n, channels, spatial...], or has the channels
// last; weight is [batches..., outputs, window...], or has the outputs last too; bias is [batches..., outputs].
#pragma once

#include "handlers/target.h"
#include BARACUDA_DRIVER(stencil_window)

namespace baracuda {

// Of x, weight, an array that has the shape of the bias, and one that has that of the result.
struct DepthwiseArguments {
  const ffi::AnyBuffer &x, &weight, &bias;
  const ffi::AnyBuffer& y;
  Dimensions strides, dilation, before;
  bool channels_last;
  DepthwiseShape shape{};

  std::optional<ffi::Error> problem(const char* op, const char* result) {
    Checks checks(op);
    auto d = x.dimensions(), w = weight.dimensions(), b = bias.dimensions(), o = y.dimensions();
    size_t rank = strides.size();
    checks.require(rank >= 1 && rank <= 3, "strides must have 1 to 3 sizes, got ", describe(strides))
        .require(dilation.size() == rank, "dilation must have ", rank, " sizes, got ", describe(dilation))
        .require(before.size() == rank, "before must have ", rank, " sizes, got ", describe(before))
        .require(d.size() >= rank + 2, "x must have rank ", rank + 2, " or more, got ", describe(d))
        .same_dtype("weight", weight, "x", x)
        .same_dtype("bias", bias, "x", x)
        .same_dtype(result, y, "x", x);
    if (checks.failed()) return checks.error();
    size_t lead = d.size() - rank - 2, spatial = lead + (channels_last ? 1 : 2);
    auto has_lead = [&](Dimensions other, size_t rest) {
      return other.size() == lead + rest && std::equal(d.begin(), d.begin() + lead, other.begin());
    };
    int64_t channels = d[channels_last ? d.size() - 1 : lead + 1], outputs = b.size() ? b.back() : 0;
    checks
        .require(has_lead(b, 1), "bias must have the batches of x, ", describe(d), ", and the outputs, got ",
                 describe(b))
        .require(has_lead(w, rank + 1) && w[channels_last ? w.size() - 1 : lead] == outputs,
                 "weight must have the batches and outputs of bias, ", describe(b), ", and a window, got ", describe(w))
        .require(channels > 0 ? outputs % channels == 0 : outputs == 0, "the outputs must be a multiple of the ",
                 channels, " channels of x, got ", outputs)
        .require(has_lead(o, rank + 2) && o[lead] == d[lead] && o[channels_last ? o.size() - 1 : lead + 1] == outputs,
                 result, " must have the batches of x, ", describe(d), ", and ", outputs, " outputs, got ",
                 describe(o));
    if (checks.failed()) return checks.error();
    shape.groups = product(d, 0, lead), shape.batches = d[lead], shape.channels = channels;
    shape.multiplier = channels > 0 ? outputs / channels : 1, shape.channels_last = channels_last;
    constexpr int64_t most = int64_t(1) << 31;
    for (size_t i = 0; i < rank && !checks.failed(); ++i) {
      size_t axis = 3 - rank + i;
      int64_t n = d[spatial + i], k = w[lead + (channels_last ? 0 : 1) + i], m = o[spatial + i];
      checks
          .require(n < most && m < most, "x and ", result, " may have 2^31 - 1 elements along an axis, got ", n,
                   " and ", m)
          .require(k >= 1 && k < most, "weight must have windows of 1 element or more, got ", describe(w))
          .require(strides[i] >= 1, "strides must be 1 or more, got ", describe(strides))
          .require(dilation[i] >= 1 && (k == 1 || dilation[i] < most / (k - 1)),
                   "dilation must be 1 or more, and windows reach over 2^31 - 1 elements at most, got ",
                   describe(dilation))
          .require(before[i] >= 0 && before[i] < most, "before must be 0 or more, got ", describe(before));
      if (checks.failed()) break;
      shape.in[axis] = n, shape.out[axis] = m, shape.window[axis] = k;
      // With one window, or windows of one element, they say nothing.
      shape.stride[axis] = m > 1 ? strides[i] : 1, shape.dilation[axis] = k > 1 ? dilation[i] : 1;
      shape.before[axis] = before[i];
      checks.require(m <= 1 || strides[i] < most, "strides must be less than 2^31, got ", describe(strides));
    }
    if (checks.failed()) return checks.error();
    return std::nullopt;
  }

  template <class T>
  Depthwise<T> conv() const {
    return {shape, in<T>(x), in<T>(weight)};
  }
};

template <class Binding>
auto with_steps(Binding binding) {
  return binding.template Attr<Dimensions>("strides")
      .template Attr<Dimensions>("dilation")
      .template Attr<Dimensions>("before")
      .template Attr<bool>("channels_last");
}

}  // namespace baracuda
