// FFI targets of the segment family. Leading dimensions are batches; `ids` and what belongs to them may have fewer of
// these than the data: each of their batches then serves several of the data's.
#include "target.h"
#include BARACUDA_DRIVER(segment)
#include BARACUDA_DRIVER(gather)

namespace baracuda {
namespace {

// Shapes [batches..., rows or segments, columns] against [batches of ids..., rows or segments].
template <class Data, class Ids>
bool batches_match(const Data& data, const Ids& ids) {
  auto x = data.dimensions(), i = ids.dimensions();
  return x.size() >= 2 && i.size() >= 1 && i.size() < x.size() && std::equal(i.begin(), i.end() - 1, x.begin());
}

SegmentShape shape_of(Dimensions data, Dimensions ids, int64_t rows, int64_t segments) {
  int64_t batches = product(data, 0, data.size() - 2), id_batches = product(ids, 0, ids.size() - 1);
  return {batches, rows, segments, data.back(), id_batches > 0 ? batches / id_batches : 1};
}

ffi::Error index_handler(Device device, ffi::AnyBuffer ids, ffi::Result<ffi::AnyBuffer> workspace,
                         ffi::Result<ffi::AnyBuffer> perm, ffi::Result<ffi::AnyBuffer> offsets, bool sorted) {
  constexpr const char* op = "segment_index";
  Checks checks(op);
  auto in = ids.dimensions(), order = perm->dimensions(), out = offsets->dimensions();
  checks.require(in.size() >= 1, "ids must have rank 1 or more, got ", describe(in))
      .dtype("perm", *perm, ffi::DataType::U32)
      .dtype("offsets", *offsets, ffi::DataType::U32);
  if (checks.failed()) return checks.error();
  checks
      .require(order.size() == in.size() && std::equal(in.begin(), in.end() - 1, order.begin()) &&
                   order.back() == (sorted ? 0 : in.back()),
               "perm must have the shape of ids, ", describe(in), ", or no column for sorted ids, got ",
               describe(order))
      .require(out.size() == in.size() && std::equal(in.begin(), in.end() - 1, out.begin()) && out.back() >= 1,
               "offsets must be ", describe(in), " with segments + 1 in the last place, got ", describe(out))
      .require(in.back() < int64_t(no_row), "at most 2^32 - 2 rows are supported, got ", in.back());
  if (checks.failed()) return checks.error();
  return for_index(op, "ids", ids.element_type(), [&](auto id) {
    using Id = typename decltype(id)::type;
    uint32_t* to = sorted ? nullptr : static_cast<uint32_t*>(perm->untyped_data());
    return to_error(op, index_segments(device.executor(*workspace), static_cast<const Id*>(ids.untyped_data()),
                                       product(in, 0, in.size() - 1), in.back(), out.back() - 1, to,
                                       static_cast<uint32_t*>(offsets->untyped_data())));
  });
}

// What reductions and gradients share: an index, and two arrays, one with rows and one with segments in their place.
struct Indexed {
  SegmentIndex index;
  Checks checks;

  Indexed(const char* op, const ffi::AnyBuffer& perm, const ffi::AnyBuffer& offsets, const char* x_name,
          const ffi::AnyBuffer& x_array, const char* y_name, const ffi::AnyBuffer& y_array)
      : checks(op) {
    auto x = x_array.dimensions(), y = y_array.dimensions(), order = perm.dimensions(), first = offsets.dimensions();
    checks.require(x.size() >= 2, x_name, " must have rank 2 or more, got ", describe(x))
        .require(batches_match(x_array, offsets), "offsets must begin with dimensions of ", x_name, ", ", describe(x),
                 ", got ", describe(first))
        .same_dtype(y_name, y_array, x_name, x_array)
        .dtype("perm", perm, ffi::DataType::U32)
        .dtype("offsets", offsets, ffi::DataType::U32);
    if (checks.failed()) return;
    int64_t rows = x[x.size() - 2], segments = first.back() - 1;
    checks
        .require(order.size() == first.size() && std::equal(order.begin(), order.end() - 1, first.begin()) &&
                     (order.back() == rows || order.back() == 0),
                 "perm must have the batches of offsets and ", rows, " or 0 columns, got ", describe(order))
        .require(y.size() == x.size() && std::equal(x.begin(), x.end() - 2, y.begin()) && y[y.size() - 2] == segments &&
                     y.back() == x.back(),
                 y_name, " must be ", x_name, "'s ", describe(x), " with ", segments, " segments for rows, got ",
                 describe(y));
    if (checks.failed()) return;
    index.shape = shape_of(x, first, rows, segments);
    index.perm = order.back() == 0 ? nullptr : static_cast<const uint32_t*>(perm.untyped_data());
    index.offsets = static_cast<const uint32_t*>(offsets.untyped_data());
  }

  void check_counts(const ffi::AnyBuffer& counts, const ffi::AnyBuffer& offsets) {
    if (checks.failed()) return;
    auto got = counts.dimensions(), first = offsets.dimensions();
    checks.dtype("counts", counts, ffi::DataType::S32)
        .require(got.size() == first.size() && std::equal(got.begin(), got.end() - 1, first.begin()) &&
                     got.back() == index.shape.segments,
                 "counts must be the batches of offsets by ", index.shape.segments, " segments, got ", describe(got));
  }
};

// Operands (data, perm, offsets, ...); the first result has data's dtype.
struct Reduction : Indexed {
  Reduction(const char* op, const ffi::AnyBuffer& data, const ffi::AnyBuffer& perm, const ffi::AnyBuffer& offsets,
            const ffi::AnyBuffer& y)
      : Indexed(op, perm, offsets, "data", data, "the result", y) {}

  template <class Reducer>
  ffi::Error run(const char* op, Device& device, const Reducer& reducer, const ffi::AnyBuffer& data,
                 const ffi::AnyBuffer& workspace) {
    using T = typename Reducer::Element;
    return to_error(
        op, reduce_segments(device.executor(workspace), reducer, index, static_cast<const T*>(data.untyped_data())));
  }
};

template <class T>
T from_bits(int64_t bits) {
  T value;
  memcpy(&value, &bits, sizeof(T));
  return value;
}

ffi::Error sum_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                       ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y, int64_t empty_bits) {
  constexpr const char* op = "segment_sum";
  Reduction reduction(op, data, perm, offsets, *y);
  if (reduction.checks.failed()) return reduction.checks.error();
  return for_number(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reduction.run(op, device, SegmentSum<T>{static_cast<T*>(y->untyped_data()), from_bits<T>(empty_bits)}, data,
                         *workspace);
  });
}

// The fourth operand, the number of rows that each sum is divided by, is there where it is not that of the rows here.
ffi::Error mean_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                        ffi::RemainingArgs more, ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y,
                        int64_t empty_bits) {
  constexpr const char* op = "segment_mean";
  Reduction reduction(op, data, perm, offsets, *y);
  const int32_t* counts = nullptr;
  reduction.checks.require(more.size() <= 1, "expected three or four operands, got ", more.size() + 3);
  if (more.size() == 1) {
    auto given = more.get<ffi::AnyBuffer>(0);
    if (given.has_error()) return given.error();
    reduction.check_counts(*given, offsets);
    counts = static_cast<const int32_t*>(given->untyped_data());
  }
  if (reduction.checks.failed()) return reduction.checks.error();
  return for_float(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SegmentSum<T> sum{static_cast<T*>(y->untyped_data()), from_bits<T>(empty_bits)};
    if (counts) return reduction.run(op, device, SegmentMean<T, true>{sum, counts}, data, *workspace);
    return reduction.run(op, device, SegmentMean<T, false>{sum, nullptr}, data, *workspace);
  });
}

// The second result is there when a gradient or the caller needs it: integers are the winning rows, floats the numbers
// of rows that tie.
template <bool is_max>
ffi::Error extremum_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                            ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y,
                            ffi::RemainingRets more, int64_t empty_bits) {
  constexpr const char* op = is_max ? "segment_max" : "segment_min";
  Reduction reduction(op, data, perm, offsets, *y);
  Checks& checks = reduction.checks;
  checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (checks.failed()) return checks.error();
  void* second = nullptr;
  bool ties = false;
  if (more.size() == 1) {
    auto rows = more.get<ffi::AnyBuffer>(0);
    if (rows.has_error()) return rows.error();
    ffi::DataType type = (*rows)->element_type();
    ties = type == ffi::DataType::F32;
    checks.same_shape("the second result", **rows, "the result", *y)
        .require(ties || type == ffi::DataType::S32 || type == ffi::DataType::U32,
                 "the second result must be int32 or uint32 for winning rows, float32 for ties, got type ", int(type));
    if (checks.failed()) return checks.error();
    second = (*rows)->untyped_data();
  }
  return for_number(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    T *to = static_cast<T*>(y->untyped_data()), empty = from_bits<T>(empty_bits);
    if (ties)
      return reduction.run(op, device, SegmentTies<T, is_max>{to, static_cast<float*>(second), empty}, data,
                           *workspace);
    SegmentExtremum<T, is_max> reducer{to, static_cast<uint32_t*>(second), empty, uint32_t(reduction.index.shape.rows)};
    return reduction.run(op, device, reducer, data, *workspace);
  });
}

// The second and third results, the product of the nonzero factors and the number of zeros (at most 2), serve the
// gradient.
ffi::Error prod_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                        ffi::Result<ffi::AnyBuffer> workspace, ffi::Result<ffi::AnyBuffer> y, ffi::RemainingRets more,
                        int64_t empty_bits) {
  constexpr const char* op = "segment_prod";
  Reduction reduction(op, data, perm, offsets, *y);
  Checks& checks = reduction.checks;
  checks.require(more.size() == 0 || more.size() == 2, "expected one or three results, got ", more.size() + 1);
  if (checks.failed()) return checks.error();
  void *nonzero = nullptr, *zeros = nullptr;
  if (more.size() == 2) {
    auto first = more.get<ffi::AnyBuffer>(0), second = more.get<ffi::AnyBuffer>(1);
    if (first.has_error()) return first.error();
    if (second.has_error()) return second.error();
    bool wide = data.element_type() == ffi::DataType::F64;
    checks.same_shape("product", **first, "the result", *y)
        .same_shape("zeros", **second, "the result", *y)
        .dtype("product", **first, wide ? ffi::DataType::F64 : ffi::DataType::F32)
        .dtype("zeros", **second, ffi::DataType::U8);
    if (checks.failed()) return checks.error();
    nonzero = (*first)->untyped_data(), zeros = (*second)->untyped_data();
  }
  return for_number(op, "data", data.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    if (!is_float<T> && nonzero) return invalid(op, "only floats have a gradient");
    SegmentProd<T> reducer{static_cast<T*>(y->untyped_data()), static_cast<Accumulator<T>*>(nonzero),
                           static_cast<uint8_t*>(zeros), from_bits<T>(empty_bits)};
    return reduction.run(op, device, reducer, data, *workspace);
  });
}

// Operands (perm, offsets, ..., dy) and the result dx.
struct Gradient : Indexed {
  Gradient(const char* op, const ffi::AnyBuffer& perm, const ffi::AnyBuffer& offsets, const ffi::AnyBuffer& dy,
           const ffi::AnyBuffer& dx)
      : Indexed(op, perm, offsets, "the result", dx, "dy", dy) {}

  // fill(spreader, type) sets what this spreader has beside dy.
  template <template <class> class Spreader, class Fill>
  ffi::Error run(const char* op, Device& device, const ffi::AnyBuffer& dy, const ffi::AnyBuffer& dx, const Fill& fill) {
    if (checks.failed()) return checks.error();
    return for_float(op, "dy", dy.element_type(), [&](auto type) {
      using T = typename decltype(type)::type;
      Spreader<T> spreader{};
      spreader.dy = static_cast<const T*>(dy.untyped_data());
      fill(spreader, type);
      return to_error(op, spread_segments(device.executor(), spreader, index, static_cast<T*>(dx.untyped_data())));
    });
  }
};

ffi::Error sum_backward_handler(Device device, ffi::AnyBuffer perm, ffi::AnyBuffer offsets, ffi::AnyBuffer dy,
                                ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_sum_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  return gradient.run<SegmentSumBackward>(op, device, dy, *dx, [](auto&, auto) {});
}

ffi::Error mean_backward_handler(Device device, ffi::AnyBuffer perm, ffi::AnyBuffer offsets, ffi::AnyBuffer counts,
                                 ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_mean_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  gradient.check_counts(counts, offsets);
  return gradient.run<SegmentMeanBackward>(op, device, dy, *dx, [&](auto& spreader, auto) {
    spreader.counts = static_cast<const int32_t*>(counts.untyped_data());
  });
}

ffi::Error extremum_backward_handler(Device device, ffi::AnyBuffer perm, ffi::AnyBuffer offsets, ffi::AnyBuffer winner,
                                     ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_extremum_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  gradient.checks.same_shape("winner", winner, "dy", dy)
      .require(winner.element_type() == ffi::DataType::S32 || winner.element_type() == ffi::DataType::U32,
               "winner must be int32 or uint32, got type ", int(winner.element_type()));
  return gradient.run<SegmentExtremumBackward>(op, device, dy, *dx, [&](auto& spreader, auto) {
    spreader.winner = static_cast<const uint32_t*>(winner.untyped_data());
  });
}

ffi::Error ties_backward_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                                 ffi::AnyBuffer y, ffi::AnyBuffer ties, ffi::AnyBuffer dy,
                                 ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_ties_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  gradient.checks.same_shape("data", data, "the result", *dx)
      .same_dtype("data", data, "dy", dy)
      .same_shape("y", y, "dy", dy)
      .same_dtype("y", y, "dy", dy)
      .same_shape("ties", ties, "dy", dy)
      .dtype("ties", ties, ffi::DataType::F32);
  return gradient.run<SegmentTiesBackward>(op, device, dy, *dx, [&](auto& spreader, auto type) {
    using T = typename decltype(type)::type;
    spreader.x = static_cast<const T*>(data.untyped_data());
    spreader.y = static_cast<const T*>(y.untyped_data());
    spreader.ties = static_cast<const float*>(ties.untyped_data());
  });
}

ffi::Error prod_backward_handler(Device device, ffi::AnyBuffer data, ffi::AnyBuffer perm, ffi::AnyBuffer offsets,
                                 ffi::AnyBuffer nonzero, ffi::AnyBuffer zeros, ffi::AnyBuffer dy,
                                 ffi::Result<ffi::AnyBuffer> dx) {
  constexpr const char* op = "segment_prod_backward";
  Gradient gradient(op, perm, offsets, dy, *dx);
  bool wide = dy.element_type() == ffi::DataType::F64;
  gradient.checks.same_shape("data", data, "the result", *dx)
      .same_dtype("data", data, "dy", dy)
      .same_shape("product", nonzero, "dy", dy)
      .same_shape("zeros", zeros, "dy", dy)
      .dtype("product", nonzero, wide ? ffi::DataType::F64 : ffi::DataType::F32)
      .dtype("zeros", zeros, ffi::DataType::U8);
  return gradient.run<SegmentProdBackward>(op, device, dy, *dx, [&](auto& spreader, auto type) {
    using T = typename decltype(type)::type;
    spreader.x = static_cast<const T*>(data.untyped_data());
    spreader.product = static_cast<const Accumulator<T>*>(nonzero.untyped_data());
    spreader.zeros = static_cast<const uint8_t*>(zeros.untyped_data());
  });
}

// With a workspace and a first result.
template <class Operands>
auto reduction(Operands&& operands) {
  return std::move(operands).template Ret<ffi::AnyBuffer>().template Ret<ffi::AnyBuffer>();
}
template <int count>
auto gradient() {
  return operands<count>().template Ret<ffi::AnyBuffer>();
}

BARACUDA_TARGET(segment_index, index_handler, reduction(operands<1>()).Ret<ffi::AnyBuffer>().Attr<bool>("sorted"));
BARACUDA_TARGET(segment_sum, sum_handler, reduction(operands<3>()).Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_mean, mean_handler, reduction(operands<3>().RemainingArgs()).Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_max, extremum_handler<true>,
                reduction(operands<3>()).RemainingRets().Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_min, extremum_handler<false>,
                reduction(operands<3>()).RemainingRets().Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_prod, prod_handler, reduction(operands<3>()).RemainingRets().Attr<int64_t>("empty_bits"));
BARACUDA_TARGET(segment_sum_backward, sum_backward_handler, gradient<3>());
BARACUDA_TARGET(segment_mean_backward, mean_backward_handler, gradient<4>());
BARACUDA_TARGET(segment_extremum_backward, extremum_backward_handler, gradient<4>());
BARACUDA_TARGET(segment_ties_backward, ties_backward_handler, gradient<6>());
BARACUDA_TARGET(segment_prod_backward, prod_backward_handler, gradient<6>());

}  // namespace
}  // namespace baracuda
