// FFI targets of the histogram family. Arrays are [batches..., elements]; a sequence, or edges, may have fewer batches
// than what is looked up in them: each of theirs then serves several of the others.
#include "target.h"
#include BARACUDA_DRIVER(histogram)
#include BARACUDA_DRIVER(search)

namespace baracuda {
namespace {

constexpr int64_t most_elements = std::numeric_limits<int32_t>::max();

// Whether the batches of `few` are the first ones of `many`. Both end with elements.
bool begins_with(Dimensions many, Dimensions few) {
  return few.size() >= 1 && few.size() <= many.size() && std::equal(few.begin(), few.end() - 1, many.begin());
}
int64_t rows_of(Dimensions dims) { return product(dims, 0, dims.size() - 1); }

ffi::Error search_handler(Device device, ffi::AnyBuffer sequence, ffi::AnyBuffer values,
                          ffi::Result<ffi::AnyBuffer> index, bool right) {
  constexpr const char* op = "searchsorted";
  auto elements = sequence.dimensions(), many = values.dimensions();
  Checks checks(op);
  checks
      .require(begins_with(many, elements), "sorted_sequence must be elements, or dimensions that values begins with, ",
               describe(many), ", and elements, got ", describe(elements))
      .same_dtype("values", values, "sorted_sequence", sequence)
      .dtype("the result", *index, ffi::DataType::S32)
      .same_shape("the result", *index, "values", values);
  if (checks.failed()) return checks.error();
  checks.require(elements.back() <= most_elements, "sorted_sequence may have at most 2^31 - 1 elements, got ",
                 elements.back());
  if (checks.failed()) return checks.error();
  return for_number(op, "sorted_sequence", sequence.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SearchShape shape{rows_of(many), elements.back(), many.back(), rows_of(elements)};
    return to_error(op, search_rows(device.executor(), static_cast<const T*>(sequence.untyped_data()),
                                    static_cast<const T*>(values.untyped_data()),
                                    static_cast<int32_t*>(index->untyped_data()), right, shape));
  });
}

// What both kinds of counts share: elements x [batches..., n], and counts [batches..., bins].
struct Counting {
  const char* op;
  Checks checks;
  CountShape shape{};

  Counting(const char* op, const char* name, const ffi::AnyBuffer& x, const ffi::AnyBuffer& counts)
      : op(op), checks(op) {
    auto elements = x.dimensions(), bins = counts.dimensions();
    checks.require(elements.size() >= 1, name, " must have rank 1 or more, got ", describe(elements))
        .dtype("the result", counts, ffi::DataType::S32);
    if (checks.failed()) return;
    checks
        .require(bins.size() == elements.size() && begins_with(elements, bins), "the result must be the batches of ",
                 name, " by bins, of ", describe(elements), ", got ", describe(bins))
        .require(elements.back() <= most_elements, name, " may have at most 2^31 - 1 elements, got ", elements.back());
    if (checks.failed()) return;
    shape = {rows_of(elements), elements.back(), bins.back()};
  }

  template <class Functor>
  ffi::Error run(Device& device, const Functor& functor, ffi::Result<ffi::AnyBuffer>& counts) const {
    return to_error(op, count_bins(device.executor(), functor, static_cast<int32_t*>(counts->untyped_data()), shape));
  }
};

ffi::Error ids_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> counts) {
  Counting counting("bincount", "x", x, *counts);
  if (counting.checks.failed()) return counting.checks.error();
  return for_index(counting.op, "x", x.element_type(), [&](auto type) {
    using I = typename decltype(type)::type;
    BinOfId<I> functor{static_cast<const I*>(x.untyped_data()), counting.shape.count, counting.shape.bins};
    return counting.run(device, functor, counts);
  });
}

ffi::Error edges_handler(Device device, ffi::AnyBuffer x, ffi::AnyBuffer edges, ffi::Result<ffi::AnyBuffer> counts,
                         bool uniform) {
  Counting counting("histogram", "a", x, *counts);
  Checks& checks = counting.checks;
  auto elements = x.dimensions(), ends = edges.dimensions();
  int64_t bins = counting.shape.bins;
  checks.same_dtype("edges", edges, "a", x)
      .require(begins_with(elements, ends), "edges must be numbers, or dimensions that a begins with, ",
               describe(elements), ", and numbers, got ", describe(ends));
  if (checks.failed()) return checks.error();
  checks.require(bins >= 1 && ends.back() == bins + 1, "edges must be one more than the bins, ", bins, ", got ",
                 ends.back());
  if (checks.failed()) return checks.error();
  return for_float(counting.op, "a", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    int64_t rows = rows_of(ends);
    BinOfEdges<T> functor{static_cast<const T*>(x.untyped_data()),
                          static_cast<const T*>(edges.untyped_data()),
                          counting.shape.count,
                          bins,
                          rows > 0 ? counting.shape.rows / rows : 1,
                          uniform};
    return counting.run(device, functor, counts);
  });
}

BARACUDA_TARGET(searchsorted, search_handler, operands<2>().Ret<ffi::AnyBuffer>().Attr<bool>("right"));
BARACUDA_TARGET(bincount, ids_handler, operands<1>().Ret<ffi::AnyBuffer>());
BARACUDA_TARGET(histogram, edges_handler, operands<2>().Ret<ffi::AnyBuffer>().Attr<bool>("uniform"));

}  // namespace
}  // namespace baracuda
