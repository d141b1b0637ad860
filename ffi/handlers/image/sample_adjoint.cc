// The FFI target of the cotangent of images that are read at positions: dy [batches..., channels, points], the bins
// of positions [batches..., points], -1 for those that read nothing, and positions in an image, in what sums are
// computed in, [batches..., axes, points], the last axis first, give dx [batches..., channels, elements].
//
// `sizes` are those of an image, the last axis first. `weights` says what positions give to the elements around, and so
// how many bins there are: see the pattern.
#include <algorithm>

#include "handlers/target.h"
#include BARACUDA_DRIVER(sample_adjoint)

namespace baracuda {
namespace {

enum class Weights : int64_t { nearest, linear, keys, spline };

// Calls body(type) with a functor of weights.
template <class Sum, class Body>
ffi::Error for_weights(Weights weights, const Body& body) {
  switch (weights) {
    case Weights::nearest:
      return body(Type<NearestWeight<Sum>>{});
    case Weights::linear:
      return body(Type<LinearWeight<Sum>>{});
    case Weights::keys:
      return body(Type<KeysWeight<Sum>>{});
    default:
      return body(Type<SplineWeight<Sum>>{});
  }
}

ffi::Error adjoint(Device device, ffi::AnyBuffer dy, ffi::AnyBuffer bins, ffi::AnyBuffer positions,
                   ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> dx, int64_t weights,
                   Dimensions sizes) {
  constexpr const char* op = "sample_adjoint";
  Checks checks(op);
  auto from = dy.dimensions(), of_bins = bins.dimensions(), at = positions.dimensions(), to = dx->dimensions();
  checks.same_dtype("dx", *dx, "dy", dy)
      .dtype("bins", bins, ffi::DataType::S32)
      .dtype("positions", positions, wide_of(dy))
      .require(from.size() >= 2, "dy must have channels and points, got ", describe(from))
      .require(0 <= weights && weights <= 3, "weights must be 0 to 3, got ", weights)
      .require(1 <= sizes.size() && sizes.size() <= 3, "sizes must be of 1 to 3 axes, got ", describe(sizes));
  if (checks.failed()) return checks.error();
  size_t batches = from.size() - 2;
  auto has_batches = [&](const auto& dims, size_t more) {
    return dims.size() == batches + more && std::equal(from.begin(), from.begin() + batches, dims.begin());
  };
  for (int64_t n : sizes) checks.require(0 < n && n < int64_t(1) << 31, "sizes must be from 1, got ", describe(sizes));
  if (checks.failed()) return checks.error();
  checks
      .require(has_batches(of_bins, 1) && of_bins.back() == from.back(),
               "bins must have the batches and points of dy, ", describe(from), ", got ", describe(of_bins))
      .require(has_batches(at, 2) && at.back() == from.back() && at[batches] == int64_t(sizes.size()),
               "positions must have the batches and points of dy, ", describe(from), ", and axes, got ", describe(at))
      .require(has_batches(to, 2) && to[batches] == from[batches] && to.back() == product(sizes, 0, sizes.size()),
               "dx must have the batches and channels of dy, ", describe(from), ", and elements of ", describe(sizes),
               ", got ", describe(to))
      .require(from.back() < (int64_t(1) << 32) - (1 << 16), "at most 2^32 - 2^16 points are supported, got ",
               from.back());
  if (checks.failed()) return checks.error();
  constexpr int taps[] = {1, 2, 4, 4};
  SampleAdjointShape shape{product(from, 0, batches), from[batches], from.back(),
                           int(sizes.size()),         taps[weights], {1, 1, 1}};
  std::copy(sizes.begin(), sizes.end(), shape.sizes);
  checks.require(shape.bins() < (int64_t(1) << 31) - (1 << 16), "there are too many bins around ", describe(sizes));
  if (checks.failed()) return checks.error();
  if (shape.batches * shape.channels == 0) return ffi::Error::Success();
  return for_float(op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Sum = Accumulator<T>;
    return for_weights<Sum>(Weights(weights), [&](auto weight) {
      using Weight = typename decltype(weight)::type;
      return to_error(op, sample_adjoint<Weight>(device.executor(*workspace), shape, in<int32_t>(bins),
                                                 in<Sum>(positions), in<T>(dy), out<T>(dx)));
    });
  });
}

BARACUDA_TARGET(
    sample_adjoint, adjoint,
    operands<3>().Ret<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<int64_t>("weights").Attr<Dimensions>("sizes"));

}  // namespace
}  // namespace baracuda
