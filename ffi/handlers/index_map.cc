// FFI targets that move elements by a map, and add what was moved: x [batches..., n] and y [batches..., m].
#include "target.h"
#include BARACUDA_DRIVER(index_map)
#include BARACUDA_DRIVER(index_map_adjoint)

#include "elements.h"

namespace baracuda {
namespace {

// The attributes, and the arrays that they are checked against. `axes` has (size, stride) of each axis of y, `terms`
// (fold, size, offset, stride, the step of each axis) of each term.
struct Mapping {
  IndexMap map;
  Checks checks;
  int64_t batches = 0, x_elements = 0;

  Mapping(const char* op, const ffi::AnyBuffer& x, const ffi::AnyBuffer& y, Dimensions axes, Dimensions terms,
          int64_t base)
      : checks(op) {
    auto in = x.dimensions(), out = y.dimensions();
    size_t rank = axes.size() / 2, numbers = 4 + rank;
    checks
        .require(axes.size() % 2 == 0 && 1 <= rank && rank < map_axes, "axes must be 1 to ", map_axes - 1,
                 " pairs, got ", describe(axes))
        .require(terms.size() % numbers == 0 && terms.size() / numbers <= map_terms, "terms must be at most ",
                 map_terms, " lists of ", numbers, " numbers, got ", describe(terms))
        .require(in.size() >= 1 && in.size() == out.size() && std::equal(in.begin(), in.end() - 1, out.begin()),
                 "the result must have the shape of x, ", describe(in), ", but for the last dimension, got ",
                 describe(out))
        .same_dtype("the result", y, "x", x);
    if (checks.failed()) return;
    map.axes = int(rank), map.terms = int(terms.size() / numbers), map.base = base;
    for (size_t k = 0; k < rank; ++k) map.size[k] = axes[2 * k], map.stride[k] = axes[2 * k + 1];
    for (int t = 0; t < map.terms; ++t) {
      const int64_t* term = terms.begin() + t * numbers;
      checks.require(0 <= term[0] && term[0] < folds && term[1] >= (term[0] > 0), "terms must have folds from 0 to ",
                     folds - 1, " of axes that are not empty, got ", describe(terms));
      map.term[t] = {Fold(term[0]), term[1], term[2], term[3]};
      for (size_t k = 0; k < rank; ++k) map.step[t][k] = term[4 + k];
    }
    x_elements = in.back(), batches = product(in, 0, in.size() - 1);
    checks.require(map.elements() == out.back(), "the last dimension of the result must be ", map.elements(),
                   ", the elements of the axes ", describe(axes), ", got ", describe(out));
    if (checks.failed() || map.elements() == 0) return;
    auto [first, last] = map.reach();
    bool is_filled = false;
    for (int t = 0; t < map.terms; ++t) is_filled |= map.term[t].size == 0;
    checks.require((0 <= first && last < x_elements) || is_filled, "the map must stay in the ", x_elements,
                   " elements of a batch of x, got positions from ", first, " to ", last);
  }
  bool is_empty() const { return batches == 0 || map.elements() == 0; }
};

// Of Wide elements, if the map is one of so many bytes at a time.
template <class Wide>
std::optional<Status> move_as(Device& device, IndexMap map, int64_t bytes, const void* x, void* y,
                              const int64_t* fill_bits) {
  int64_t width = int64_t(sizeof(Wide)) / bytes;
  if (width == 0 || (width > 1 && !map.widen(int(width)))) return std::nullopt;
  return map_elements(device.executor(), map, filled<Wide>(fill_bits, bytes), static_cast<const Wide*>(x),
                      static_cast<Wide*>(y));
}

ffi::Error elements_handler(Device device, ffi::AnyBuffer x, ffi::Result<ffi::AnyBuffer> y, Dimensions axes,
                            Dimensions terms, int64_t base, Dimensions fill) {
  constexpr const char* op = "move";
  Mapping mapping(op, x, *y, axes, terms, base);
  require_elements(mapping.checks, "x", x);
  mapping.checks.require(fill.size() == 2, "fill must be two numbers, got ", describe(fill));
  if (mapping.checks.failed()) return mapping.checks.error();
  if (mapping.is_empty()) return ffi::Error::Success();
  if (mapping.batches > 1) mapping.map.add_batches(mapping.batches, mapping.x_elements);
  auto as = [&](auto element) {
    return move_as<decltype(element)>(device, mapping.map, bytes_of(x.element_type()), x.untyped_data(),
                                      y->untyped_data(), fill.begin());
  };
  auto status = as(Vector<uint32_t, 4>{});
  if (!status) status = as(uint64_t{});
  if (!status) status = as(uint32_t{});
  if (!status) status = as(uint16_t{});
  if (!status) status = as(uint8_t{});
  return to_error(op, *status);
}

// `axes` has (size, stride, term or -1) of each axis of x, `terms` (fold, count, offset, stride, kernel, kernel stride,
// dilation, step) of each term.
ffi::Error add_handler(Device device, ffi::AnyBuffer dy, ffi::Result<ffi::AnyBuffer> dx, Dimensions axes,
                       Dimensions terms) {
  constexpr const char* op = "move_add";
  constexpr size_t numbers = 8;
  Checks checks(op);
  auto in = dy.dimensions(), out = dx->dimensions();
  size_t rank = axes.size() / 3;
  checks
      .require(axes.size() % 3 == 0 && 1 <= rank && rank + 1 < add_axes, "axes must be 1 to ", add_axes - 2,
               " times three numbers, got ", describe(axes))
      .require(terms.size() % numbers == 0 && terms.size() / numbers <= add_terms, "terms must be at most ", add_terms,
               " lists of ", numbers, " numbers, got ", describe(terms))
      .require(in.size() >= 1 && in.size() == out.size() && std::equal(in.begin(), in.end() - 1, out.begin()),
               "the result must have the shape of dy, ", describe(in), ", but for the last dimension, got ",
               describe(out))
      .same_dtype("the result", *dx, "dy", dy);
  if (checks.failed()) return checks.error();
  AddMap map;
  map.axes = int(rank), map.terms = int(terms.size() / numbers);
  int next = 0;
  for (size_t k = 0; k < rank; ++k) {
    map.size[k] = axes[3 * k], map.stride[k] = axes[3 * k + 1], map.term_of[k] = int(axes[3 * k + 2]);
    bool is_next = map.term_of[k] == next;
    next += is_next;
    checks.require((is_next || map.term_of[k] == -1) && map.stride[k] >= 0,
                   "axes must have the terms in their order, and "
                   "no stride below 0, got ",
                   describe(axes));
  }
  checks.require(next == map.terms, "axes must have each of ", map.terms, " terms, got ", describe(axes));
  for (int t = 0; t < map.terms; ++t) {
    const int64_t* term = terms.begin() + t * numbers;
    checks.require(0 <= term[0] && term[0] < folds && term[1] >= 0 && term[3] >= 0 && term[4] >= 1 && term[5] >= 0 &&
                       term[6] >= 1 && term[7] >= 1,
                   "terms must have folds from 0 to ", folds - 1,
                   ", counts and strides of 0 or more, and windows, got ", describe(terms));
    map.term[t] = {Fold(term[0]), term[1], term[2], term[3], term[4], term[5], term[6], term[7]};
  }
  checks.require(map.elements() == out.back(), "the last dimension of the result must be ", map.elements(),
                 ", the elements of the axes ", describe(axes), ", got ", describe(out));
  if (checks.failed()) return checks.error();
  int64_t batches = product(out, 0, out.size() - 1);
  if (batches == 0 || out.back() == 0) return ffi::Error::Success();
  bool is_empty = false;
  for (int t = 0; t < map.terms; ++t) is_empty |= map.term[t].count == 0;
  checks.require(is_empty || map.reach() < in.back(), "the map must stay in the ", in.back(),
                 " elements of a batch of dy, got positions up to ", map.reach());
  if (checks.failed()) return checks.error();
  if (batches > 1) map.add_batches(batches, in.back());
  ffi::DataType dtype = dy.element_type();
  // A complex number is two neighbors.
  if (dtype == ffi::DataType::C64 || dtype == ffi::DataType::C128) {
    for (int k = 0; k < map.axes; ++k) map.stride[k] *= 2;
    for (int t = 0; t < map.terms; ++t) map.term[t].stride *= 2, map.term[t].kernel_stride *= 2;
    int pair = map.axes++;
    map.size[pair] = 2, map.stride[pair] = 1, map.term_of[pair] = -1;
    dtype = dtype == ffi::DataType::C64 ? ffi::DataType::F32 : ffi::DataType::F64;
  }
  return for_float(op, "dy", dtype, [&](auto type) {
    using T = typename decltype(type)::type;
    return to_error(op, add_mapped(device.executor(), map, static_cast<const T*>(dy.untyped_data()),
                                   static_cast<T*>(dx->untyped_data())));
  });
}

BARACUDA_TARGET(move, elements_handler,
                operands<0>()
                    .Arg<ffi::AnyBuffer>()
                    .Ret<ffi::AnyBuffer>()
                    .Attr<Dimensions>("axes")
                    .Attr<Dimensions>("terms")
                    .Attr<int64_t>("base")
                    .Attr<Dimensions>("fill"));
BARACUDA_TARGET(
    move_add, add_handler,
    operands<0>().Arg<ffi::AnyBuffer>().Ret<ffi::AnyBuffer>().Attr<Dimensions>("axes").Attr<Dimensions>("terms"));

}  // namespace
}  // namespace baracuda
