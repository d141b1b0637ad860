// FFI targets of products of grouped rows: a is [batches..., rows, k], b [batches..., groups, k, n] or [batches...,
// groups, n, k], and `order` [batches..., rows] lists the rows by group, of which `edges` and `first` [batches...,
// groups + 2] count the rows and tiles that precede each. Half precisions have multiples of 8 columns.
#include <limits>

#include "target.h"
#include BARACUDA_DRIVER(grouped)

namespace baracuda {
namespace {

constexpr int64_t chunk = 8;  // elements of a half precision, of which rows have whole numbers

bool is_whole(const ffi::AnyBuffer& a, int64_t columns) {
  return ffi::ByteWidth(a.element_type()) != 2 || columns % chunk == 0;
}

// Numbers of rows, tiles and chunks of a batch's rows fit in 32 bits.
bool fits(int64_t rows, int64_t columns) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  return rows < most && columns < most && rows * (columns / chunk) < most;
}

// Whether an array has the batches of a, and after them so many dimensions.
bool has_batches(Dimensions a, Dimensions other, size_t rank) {
  return other.size() == a.size() - 2 + rank && std::equal(a.begin(), a.end() - 2, other.begin());
}

void check_rows(Checks& checks, const ffi::AnyBuffer& a, const ffi::AnyBuffer& order, const ffi::AnyBuffer& edges,
                int64_t groups) {
  auto d = a.dimensions(), o = order.dimensions(), e = edges.dimensions();
  checks.dtype("order", order, ffi::DataType::U32)
      .dtype("edges", edges, ffi::DataType::S32)
      .require(has_batches(d, o, 1) && o.back() == d[d.size() - 2], "order must have the batches and rows of a, ",
               describe(d), ", got ", describe(o))
      .require(has_batches(d, e, 1) && e.back() == groups + 2,
               "edges must have the batches of a and two elements more than there are groups, ", groups, ", got ",
               describe(e));
}

ffi::Error products_handler(Device device, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::AnyBuffer order,
                            ffi::AnyBuffer edges, ffi::AnyBuffer first, ffi::Result<ffi::AnyBuffer> y, bool transposed,
                            int64_t tile) {
  constexpr const char* op = "grouped_products";
  Checks checks(op);
  auto d = a.dimensions(), of_b = b.dimensions(), of_y = y->dimensions();
  checks.same_dtype("b", b, "a", a)
      .same_dtype("y", *y, "a", a)
      .require(d.size() >= 2, "a must have rank 2 or more, got ", describe(d))
      .require(d.size() < 2 || has_batches(d, of_b, 3), "b must have the batches of a, ", describe(d),
               ", and three dimensions, got ", describe(of_b));
  if (checks.failed()) return checks.error();
  const size_t rank = of_b.size();
  const int64_t rows = d[d.size() - 2], groups = of_b[rank - 3];
  const int64_t inner = of_b[transposed ? rank - 1 : rank - 2], columns = of_b[transposed ? rank - 2 : rank - 1];
  check_rows(checks, a, order, edges, groups);
  checks.same_shape("first", first, "edges", edges)
      .dtype("first", first, ffi::DataType::S32)
      .require(d.back() == inner, "b must have the columns of a, ", describe(d), ", got ", describe(of_b))
      .require(has_batches(d, of_y, 2) && of_y[d.size() - 2] == rows && of_y.back() == columns,
               "y must have the batches and rows of a, ", describe(d), ", and the columns of b, ", describe(of_b),
               ", got ", describe(of_y))
      .require(is_whole(a, inner) && is_whole(a, columns), "b must have multiples of 8 rows and columns, got ",
               describe(of_b))
      .require(fits(rows, inner) && fits(columns, inner), "a and b are too large, ", describe(d), " and ",
               describe(of_b))
      .require(tile == 32 || tile == 64 || tile == 128, "tile must be 32, 64 or 128, got ", tile);
  if (checks.failed()) return checks.error();
  const GroupedRows by{product(d, 0, d.size() - 2), rows, groups, in<uint32_t>(order), in<int32_t>(edges)};
  return for_float(op, "a", a.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    GroupedProducts<T> work{by, inner, columns, transposed, in<T>(a), in<T>(b), out<T>(y), tile, in<int32_t>(first)};
    return to_error(op, grouped_products(device.executor(), work));
  });
}

ffi::Error sums_handler(Device device, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::AnyBuffer order, ffi::AnyBuffer edges,
                        ffi::Result<ffi::AnyBuffer> sums) {
  constexpr const char* op = "grouped_sums";
  Checks checks(op);
  auto d = a.dimensions(), of_b = b.dimensions(), s = sums->dimensions();
  checks.same_dtype("b", b, "a", a)
      .same_dtype("the result", *sums, "a", a)
      .require(d.size() >= 2, "a must have rank 2 or more, got ", describe(d))
      .require(d.size() < 2 || (has_batches(d, of_b, 2) && of_b[d.size() - 2] == d[d.size() - 2]),
               "b must have the batches and rows of a, ", describe(d), ", got ", describe(of_b))
      .require(d.size() < 2 || has_batches(d, s, 3), "the result must have the batches of a, ", describe(d),
               ", and three dimensions, got ", describe(s));
  if (checks.failed()) return checks.error();
  const int64_t rows = d[d.size() - 2], groups = s[s.size() - 3], left = d.back(), right = of_b.back();
  check_rows(checks, a, order, edges, groups);
  checks
      .require(s[s.size() - 2] == left && s.back() == right, "the result must have the columns of a and b, ",
               describe(d), " and ", describe(of_b), ", got ", describe(s))
      .require(is_whole(a, left) && is_whole(a, right), "a and b must have multiples of 8 columns, got ", describe(d),
               " and ", describe(of_b))
      .require(fits(rows, left) && fits(rows, right), "a and b are too large, ", describe(d), " and ", describe(of_b));
  if (checks.failed()) return checks.error();
  const GroupedRows by{product(d, 0, d.size() - 2), rows, groups, in<uint32_t>(order), in<int32_t>(edges)};
  return for_float(op, "a", a.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    GroupedSums<T> work{by, left, right, in<T>(a), in<T>(b), out<T>(sums)};
    return to_error(op, grouped_sums(device.executor(), work));
  });
}

BARACUDA_TARGET(grouped_products, products_handler,
                operands<5>().Ret<ffi::AnyBuffer>().Attr<bool>("transposed").Attr<int64_t>("tile"));
BARACUDA_TARGET(grouped_sums, sums_handler, operands<4>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
