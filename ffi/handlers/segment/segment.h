// What FFI targets of the segment family share. Leading dimensions are batches; `ids` and what belongs to them may have
// fewer of these than the data: each of their batches then serves several of the data's.
#pragma once

#include "handlers/row_numbers.h"
#include "handlers/target.h"
#include BARACUDA_DRIVER(segment)

namespace baracuda {

// The operand after those that a target always has, where it came.
inline std::optional<ffi::AnyBuffer> optional_operand(const ffi::RemainingArgs& more) {
  if (more.size() == 0) return {};
  auto given = more.get<ffi::AnyBuffer>(0);
  if (given.has_error()) return {};
  return *given;
}

// Shapes [batches..., rows or segments, columns] against [batches of ids..., rows or segments].
template <class Data, class Ids>
bool batches_match(const Data& data, const Ids& ids) {
  auto x = data.dimensions(), i = ids.dimensions();
  return x.size() >= 2 && i.size() >= 1 && i.size() < x.size() && std::equal(i.begin(), i.end() - 1, x.begin());
}

inline SegmentShape shape_of(Dimensions data, Dimensions ids, int64_t rows, int64_t segments) {
  int64_t batches = product(data, 0, data.size() - 2), id_batches = product(ids, 0, ids.size() - 1);
  return {batches, rows, segments, data.back(), id_batches > 0 ? batches / id_batches : 1, rows};
}

// What reductions and gradients share: an index, and two arrays, one with rows and one with segments in their place.
// `sources`, where there are any, are the rows that the index's entries name. Instead of an index ids may come: then
// they are `perm`, as int32, and `offsets` has no columns. With ids, `sources` without columns say that equally many
// neighboring entries name each row. If neither `perm` nor `offsets` has columns, segments have one length.
struct Indexed {
  SegmentIndex index{};
  Checks checks;

  Indexed(const char* op, const ffi::AnyBuffer& perm, const ffi::AnyBuffer& offsets, const char* x_name,
          const ffi::AnyBuffer& x_array, const char* y_name, const ffi::AnyBuffer& y_array,
          const std::optional<ffi::AnyBuffer>& sources = {})
      : checks(op) {
    auto x = x_array.dimensions(), y = y_array.dimensions(), order = perm.dimensions(), first = offsets.dimensions();
    checks.require(x.size() >= 2, x_name, " must have rank 2 or more, got ", describe(x))
        .require(batches_match(x_array, offsets), "offsets must begin with dimensions of ", x_name, ", ", describe(x),
                 ", got ", describe(first))
        .dtype("offsets", offsets, ffi::DataType::U32);
    bool has_ids = perm.element_type() == ffi::DataType::S32 && first.back() == 0;
    if (!has_ids) checks.dtype("perm", perm, ffi::DataType::U32);
    if (checks.failed()) return;
    bool is_even = sources && !has_ids && first.back() == 0 && order.size() == first.size() && order.back() == 0;
    checks.require(has_ids || is_even || first.back() > 0, "offsets must have a column for each segment and one more")
        .require(y.size() == x.size(), y_name, " must have the rank of ", x_name, ", ", describe(x), ", got ",
                 describe(y));
    if (checks.failed()) return;
    int64_t rows = x[x.size() - 2], segments = has_ids || is_even ? y[y.size() - 2] : first.back() - 1, entries = rows;
    auto has_batches = [&](Dimensions dims) {
      return dims.size() == first.size() && std::equal(dims.begin(), dims.end() - 1, first.begin());
    };
    if (sources) {
      checks
          .require(is_row_number(*sources), "sources must be int32 or uint32, got type ", int(sources->element_type()))
          .require(has_batches(sources->dimensions()), "sources must have the batches of offsets, ", describe(first),
                   ", got ", describe(sources->dimensions()));
      if (checks.failed()) return;
      entries = sources->dimensions().back();
      bool repeats = has_ids && entries == 0;
      if (repeats) entries = order.back();
      checks.require(rows > 0 || entries == 0, x_name, " must have a row, where there are entries, got none");
      if (checks.failed()) return;
      if (repeats && entries > 0) {
        checks.require(entries % rows == 0, "without sources, ids must be a multiple of the ", rows, " rows of ",
                       x_name, ", got ", entries);
        index.repeats = uint32_t(entries / rows);
      } else if (is_even) {
        checks.require(segments > 0 && entries > 0 && entries % segments == 0, "without offsets, sources must be a ",
                       "multiple of the ", segments, " segments, got ", entries);
        if (checks.failed()) return;
        index.length = uint32_t(entries / segments);
      }
    }
    checks
        .require(has_batches(order) && (order.back() == entries || (!has_ids && order.back() == 0)),
                 "perm must have the batches of offsets and ", entries, " or 0 columns, got ", describe(order))
        .require(std::equal(x.begin(), x.end() - 2, y.begin()) && y[y.size() - 2] == segments && y.back() == x.back(),
                 y_name, " must be ", x_name, "'s ", describe(x), " with ", segments, " segments for rows, got ",
                 describe(y));
    if (checks.failed()) return;
    index.shape = shape_of(x, first, rows, segments);
    index.shape.entries = entries;
    index.source_rows = sources ? rows_below(*sources, rows) : uint32_t(rows);
    if (sources && !index.repeats) index.sources = static_cast<const uint32_t*>(sources->untyped_data());
    if (has_ids) {
      index.ids = static_cast<const int32_t*>(perm.untyped_data());
      return;
    }
    if (is_even) return;
    index.perm = order.back() == 0 ? nullptr : static_cast<const uint32_t*>(perm.untyped_data());
    index.offsets = static_cast<const uint32_t*>(offsets.untyped_data());
  }

  // The index of a broadcast that reads each row's id, where ids [batches of ids..., rows] came next to an index.
  SegmentIndex with_ids(const std::optional<ffi::AnyBuffer>& ids, const ffi::AnyBuffer& offsets) {
    SegmentIndex rows = index;
    if (!ids || checks.failed()) return rows;
    auto got = ids->dimensions(), first = offsets.dimensions();
    checks.dtype("ids", *ids, ffi::DataType::S32)
        .require(got.size() == first.size() && std::equal(got.begin(), got.end() - 1, first.begin()) &&
                     got.back() == index.shape.rows,
                 "ids must be the batches of offsets by ", index.shape.rows, " rows, got ", describe(got));
    if (!checks.failed()) rows.ids = static_cast<const int32_t*>(ids->untyped_data());
    return rows;
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

// Operands (data, perm, offsets, ...); the first result has data's dtype, or, where `may_widen`, float32 for 16-bit
// floats.
struct Reduction : Indexed {
  Reduction(const char* op, const ffi::AnyBuffer& data, const ffi::AnyBuffer& perm, const ffi::AnyBuffer& offsets,
            const ffi::AnyBuffer& y, const std::optional<ffi::AnyBuffer>& sources = {}, bool may_widen = false)
      : Indexed(op, perm, offsets, "data", data, "the result", y, sources) {
    ffi::DataType from = data.element_type();
    bool is_half = from == ffi::DataType::F16 || from == ffi::DataType::BF16;
    if (!(may_widen && is_half && y.element_type() == ffi::DataType::F32))
      checks.same_dtype("the result", y, "data", data);
  }

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
      : Indexed(op, perm, offsets, "the result", dx, "dy", dy) {
    checks.same_dtype("dy", dy, "the result", dx);
  }

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
