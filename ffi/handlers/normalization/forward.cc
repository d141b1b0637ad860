// The FFI targets of normalizations. What is saved of a row, its mean and r, or r alone, has the shape [batches...].
#include <optional>
#include <type_traits>

#include "handlers/normalization/normalization.h"

#include BARACUDA_DRIVER(rows)

namespace baracuda {
namespace {

// Where the numbers of rows are written: `saved` is nothing, or the mean, where it is found, and r.
struct Saved {
  void *mean = nullptr, *r = nullptr;

  Saved(NormalizedRows& shape, ffi::RemainingRets& saved, bool finds_mean) {
    size_t count = 1 + finds_mean;
    shape.checks.require(saved.size() == 0 || saved.size() == count, "there must be no results of rows or ",
                         int64_t(count), ", got ", int64_t(saved.size()));
    if (shape.checks.failed() || saved.size() == 0) return;
    for (size_t i = 0; i < count; ++i) {
      auto array = saved.get<ffi::AnyBuffer>(i);
      shape.checks.require(array.has_value(), "the results of rows must be arrays");
      if (!array) return;
      bool is_mean = i + 1 < count;
      shape.by_row(is_mean ? "mean" : "r", **array);
      (is_mean ? mean : r) = (*array)->untyped_data();
    }
  }
};

// run(weight, bias), of null where there is no bias, as they are stored, or on a CPU as they are computed with.
template <class T, class Run>
Status with_columns(const Array& weight, const Array* bias, const Run& run) {
  using Wide = Accumulator<T>;
  Columns<T> weights(weight);
  std::optional<Columns<T>> biases;
  if (bias) biases.emplace(*bias);
  if (weights.numbers.wide)
    return run(weights.numbers.wide, biases ? biases->numbers.wide : static_cast<const Wide*>(nullptr));
#ifdef BARACUDA_CUDA
  if constexpr (!std::is_same_v<T, Wide>)
    return run(weights.numbers.narrow, biases ? biases->numbers.narrow : static_cast<const T*>(nullptr));
#endif
  return {"there are no numbers of columns"};
}

struct NormalizeOptions {
  double eps, offset;
  bool rounds;
};

template <class T, bool centered, bool widens = false, class W>
Normalize<T, W, centered, centered, widens> functor_of(const NormalizedRows& shape, const Array& x, const Array& weight,
                                                       const W* weights, const W* biases, Output& y, const Saved& saved,
                                                       const NormalizeOptions& options) {
  using Wide = Accumulator<T>;
  return {{},
          in<T>(x),
          out<T>(y),
          weights,
          biases,
          static_cast<Wide*>(saved.mean),
          static_cast<Wide*>(saved.r),
          Wide(options.eps),
          Wide(options.offset),
          options.rounds,
          shape.with(weight)};
}

template <bool centered>
ffi::Error normalize(const char* op, Device& device, const Array& x, const Array& weight, const Array* bias, Output& y,
                     ffi::RemainingRets& results, const NormalizeOptions& options) {
  NormalizedRows shape(op, x);
  if (shape.checks.failed()) return shape.checks.error();
  shape.like_x("y", *y, x), shape.by_column("weight", weight);
  if (bias) {
    shape.by_column("bias", *bias);
    shape.like("bias", *bias, "weight", weight);
  }
  Saved saved(shape, results, centered);
  if (shape.checks.failed()) return shape.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, with_columns<T>(weight, bias, [&](const auto* weights, const auto* biases) {
                      auto functor = functor_of<T, centered>(shape, x, weight, weights, biases, y, saved, options);
                      return run_rows(device.executor(), functor, shape.rows, shape.columns);
                    }));
  });
}

ffi::Error layer_norm_call(Device device, Array x, Array weight, Array bias, Output y, ffi::RemainingRets saved,
                           double eps) {
  return normalize<true>("layer_norm", device, x, weight, &bias, y, saved, {eps, 0, false});
}
ffi::Error rms_norm_call(Device device, Array x, Array weight, Output y, ffi::RemainingRets saved, double eps,
                         double offset, bool rounds) {
  return normalize<false>("rms_norm", device, x, weight, nullptr, y, saved, {eps, offset, rounds});
}
ffi::Error add_rms_norm_call(Device device, Array x, Array residual, Array weight, Output y, Output total,
                             ffi::RemainingRets results, double eps, double offset, bool rounds) {
  constexpr const char* op = "add_rms_norm";
  NormalizedRows shape(op, x);
  if (shape.checks.failed()) return shape.checks.error();
  shape.like_x("residual", residual, x), shape.like_x("y", *y, x), shape.like_x("total", *total, x);
  shape.by_column("weight", weight);
  Saved saved(shape, results, false);
  if (shape.checks.failed()) return shape.checks.error();
  return for_float(op, "x", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, with_columns<T>(weight, nullptr, [&](const auto* weights, const auto* biases) {
                      using W = std::remove_cvref_t<decltype(*weights)>;
                      auto base = functor_of<T, false, true>(shape, x, weight, weights, biases, y, saved,
                                                             {eps, offset, rounds});
                      AddNormalize<T, W> functor{base, in<T>(residual), out<T>(total)};
                      return run_rows(device.executor(), functor, shape.rows, shape.columns);
                    }));
  });
}

BARACUDA_TARGET(layer_norm, layer_norm_call, operands<3>().Ret<Array>().RemainingRets().Attr<double>("eps"));
BARACUDA_TARGET(
    rms_norm, rms_norm_call,
    operands<2>().Ret<Array>().RemainingRets().Attr<double>("eps").Attr<double>("offset").Attr<bool>("rounds"));
BARACUDA_TARGET(
    add_rms_norm, add_rms_norm_call,
    operands<3>().Ret<Array>().Ret<Array>().RemainingRets().Attr<double>("eps").Attr<double>("offset").Attr<bool>(
        "rounds"));

}  // namespace
}  // namespace baracuda
