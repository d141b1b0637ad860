// FFI targets of products of grouped rows, for 16-bit floats: a is [rows, k], b [groups, k, n] or [groups, n, k], and
// `order` lists the rows by group, of which `edges` and `first` count the rows and tiles that precede each.
#include <limits>

#include "target.h"
#include BARACUDA_DRIVER(grouped)

namespace baracuda {
namespace {

constexpr int64_t chunk = 8;  // elements, of which lines have whole numbers

template <class Body>
ffi::Error for_half(const char* op, const ffi::AnyBuffer& a, const Body& body) {
  switch (a.element_type()) {
    BARACUDA_CASE(F16, Half)
    BARACUDA_CASE(BF16, BFloat16)
    default:
      return invalid(op, "a must be float16 or bfloat16, got type ", int(a.element_type()));
  }
}

// Numbers of rows, tiles and chunks of all lines fit in 32 bits.
bool fits(int64_t rows, int64_t columns) {
  constexpr int64_t most = std::numeric_limits<int32_t>::max();
  return rows < most && columns < most && rows * (columns / chunk) < most;
}

void check_rows(Checks& checks, const ffi::AnyBuffer& a, const ffi::AnyBuffer& order, const ffi::AnyBuffer& edges,
                int64_t groups) {
  auto d = a.dimensions(), o = order.dimensions(), e = edges.dimensions();
  checks.dtype("order", order, ffi::DataType::S32)
      .dtype("edges", edges, ffi::DataType::S32)
      .require(o.size() == 1 && o[0] == d[0], "order must have the rows of a, ", describe(d), ", got ", describe(o))
      .require(e.size() == 1 && e[0] == groups + 2, "edges must have two elements more than there are groups, ", groups,
               ", got ", describe(e));
}

ffi::Error products_handler(Device device, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::AnyBuffer order,
                            ffi::AnyBuffer edges, ffi::AnyBuffer first, ffi::Result<ffi::AnyBuffer> y, bool transposed,
                            int64_t tile) {
  constexpr const char* op = "grouped_products";
  Checks checks(op);
  auto d = a.dimensions(), of_b = b.dimensions(), of_y = y->dimensions();
  checks.same_dtype("b", b, "a", a)
      .same_dtype("y", *y, "a", a)
      .require(d.size() == 2, "a must have rank 2, got ", describe(d))
      .require(of_b.size() == 3, "b must have rank 3, got ", describe(of_b));
  if (checks.failed()) return checks.error();
  int64_t rows = d[0], inner = of_b[transposed ? 2 : 1], columns = of_b[transposed ? 1 : 2];
  check_rows(checks, a, order, edges, of_b[0]);
  checks.same_shape("first", first, "edges", edges)
      .dtype("first", first, ffi::DataType::S32)
      .require(d[1] == inner, "b must have the columns of a, ", describe(d), ", got ", describe(of_b))
      .require(of_y.size() == 2 && of_y[0] == rows && of_y[1] == columns, "y must have the rows of a, ", describe(d),
               ", and the columns of b, ", describe(of_b), ", got ", describe(of_y))
      .require(inner % chunk == 0 && columns % chunk == 0, "b must have multiples of 8 rows and columns, got ",
               describe(of_b))
      .require(fits(rows, inner) && fits(columns, inner), "a and b are too large, ", describe(d), " and ",
               describe(of_b))
      .require(tile == 32 || tile == 64 || tile == 128, "tile must be 32, 64 or 128, got ", tile);
  if (checks.failed()) return checks.error();
  return for_half(op, a, [&](auto type) {
    using T = typename decltype(type)::type;
    GroupedProducts<T> work{{rows, of_b[0], in<int32_t>(order), in<int32_t>(edges)},
                            inner,
                            columns,
                            transposed,
                            in<T>(a),
                            in<T>(b),
                            out<T>(y),
                            tile,
                            in<int32_t>(first)};
    return to_error(op, grouped_products(device.executor(), work));
  });
}

ffi::Error sums_handler(Device device, ffi::AnyBuffer a, ffi::AnyBuffer b, ffi::AnyBuffer order, ffi::AnyBuffer edges,
                        ffi::Result<ffi::AnyBuffer> sums) {
  constexpr const char* op = "grouped_sums";
  Checks checks(op);
  auto d = a.dimensions(), of_b = b.dimensions(), s = sums->dimensions();
  checks.same_dtype("b", b, "a", a)
      .same_dtype("the sums", *sums, "a", a)
      .require(d.size() == 2, "a must have rank 2, got ", describe(d))
      .require(of_b.size() == 2 && of_b[0] == d[0], "b must have the rows of a, ", describe(d), ", got ",
               describe(of_b))
      .require(s.size() == 3, "the sums must have rank 3, got ", describe(s));
  if (checks.failed()) return checks.error();
  check_rows(checks, a, order, edges, s[0]);
  checks
      .require(s[1] == d[1] && s[2] == of_b[1], "the sums must have the columns of a and b, ", describe(d), " and ",
               describe(of_b), ", got ", describe(s))
      .require(d[1] % chunk == 0 && of_b[1] % chunk == 0, "a and b must have multiples of 8 columns, got ", describe(d),
               " and ", describe(of_b))
      .require(fits(d[0], d[1]) && fits(d[0], of_b[1]), "a and b are too large, ", describe(d), " and ",
               describe(of_b));
  if (checks.failed()) return checks.error();
  return for_half(op, a, [&](auto type) {
    using T = typename decltype(type)::type;
    GroupedSums<T> work{
        {d[0], s[0], in<int32_t>(order), in<int32_t>(edges)}, d[1], of_b[1], in<T>(a), in<T>(b), out<T>(sums)};
    return to_error(op, grouped_sums(device.executor(), work));
  });
}

BARACUDA_TARGET(grouped_products, products_handler,
                operands<5>().Ret<ffi::AnyBuffer>().Attr<bool>("transposed").Attr<int64_t>("tile"));
BARACUDA_TARGET(grouped_sums, sums_handler, operands<4>().Ret<ffi::AnyBuffer>());

}  // namespace
}  // namespace baracuda
