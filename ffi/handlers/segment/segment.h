// What FFI targets of the segment family share. Leading dimensions are batches; `ids` and what belongs to them may have
// fewer of these than the data: each of their batches then serves several of the data's.
#pragma once

#include "handlers/target.h"
#include BARACUDA_DRIVER(segment)

namespace baracuda {

// Shapes [batches..., rows or segments, columns] against [batches of ids..., rows or segments].
template <class Data, class Ids>
bool batches_match(const Data& data, const Ids& ids) {
  auto x = data.dimensions(), i = ids.dimensions();
  return x.size() >= 2 && i.size() >= 1 && i.size() < x.size() && std::equal(i.begin(), i.end() - 1, x.begin());
}

inline SegmentShape shape_of(Dimensions data, Dimensions ids, int64_t rows, int64_t segments) {
  int64_t batches = product(data, 0, data.size() - 2), id_batches = product(ids, 0, ids.size() - 1);
  return {batches, rows, segments, data.back(), id_batches > 0 ? batches / id_batches : 1};
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

// Operands (perm, offsets, ..., dy) and the result dx.
struct Gradient : Indexed {
  Gradient(const char* op, const ffi::AnyBuffer& perm, const ffi::AnyBuffer& offsets, const ffi::AnyBuffer& dy,
           const ffi::AnyBuffer& dx)
      : Indexed(op, perm, offsets, "the result", dx, "dy", dy) {}

  // fill(broadcaster, type) sets what this broadcaster has besides dy.
  template <template <class> class Broadcaster, class Fill>
  ffi::Error run(const char* op, Device& device, const ffi::AnyBuffer& dy, const ffi::AnyBuffer& dx, const Fill& fill) {
    if (checks.failed()) return checks.error();
    return for_float(op, "dy", dy.element_type(), [&](auto type) {
      using T = typename decltype(type)::type;
      Broadcaster<T> broadcaster{};
      broadcaster.dy = static_cast<const T*>(dy.untyped_data());
      fill(broadcaster, type);
      return to_error(op,
                      broadcast_segments(device.executor(), broadcaster, index, static_cast<T*>(dx.untyped_data())));
    });
  }
};

// With a workspace and a first result.
template <class Operands>
auto reduction(Operands&& operands) {
  return std::move(operands).template Ret<ffi::AnyBuffer>().template Ret<ffi::AnyBuffer>();
}
template <int count>
auto gradient() {
  return operands<count>().template Ret<ffi::AnyBuffer>();
}

}  // namespace baracuda
