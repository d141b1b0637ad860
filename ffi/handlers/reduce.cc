// FFI targets of reductions. Operands are [batches..., n_1, k_1, n_2, ...], of whose last `rank` dimensions the first
// is reduced, the second kept, and so on; results are [batches..., k_1, ...]. Gradients are shaped like operands.
#include "../kernels/reduce.h"

#include "../kernels/reduce_backward.h"
#include "../kernels/sort_key.h"
#include "target.h"
#include BARACUDA_DRIVER(gather)
#include BARACUDA_DRIVER(reduce)

namespace baracuda {
namespace {

using Array = ffi::AnyBuffer;
using Output = ffi::Result<ffi::AnyBuffer>;

template <class T>
const T* in(const Array& array) {
  return static_cast<const T*>(array.untyped_data());
}
template <class T>
T* out(Output& array) {
  return static_cast<T*>(array->untyped_data());
}

// The shapes of what is reduced and what it comes to.
struct Reducing {
  const char* op;
  Checks checks;
  const char* names[2];
  const Array &x, &y;
  ReduceShape shape;

  Reducing(const char* op, const char* x_name, const Array& x, const char* y_name, const Array& y, int64_t rank)
      : op(op), checks(op), names{x_name, y_name}, x(x), y(y) {
    auto full = x.dimensions(), kept = y.dimensions();
    int64_t batches = int64_t(full.size()) - rank;
    checks
        .require(1 <= rank && rank <= CellDimensions::most, "rank must be in [1, ", CellDimensions::most, "], got ",
                 rank)
        .require(batches >= 0, x_name, " must have rank ", rank, " or more, got ", describe(full));
    if (checks.failed()) return;
    bool fits = int64_t(kept.size()) == batches + rank / 2;
    for (int64_t d = 0; fits && d < int64_t(kept.size()); ++d)
      fits = kept[d] == full[d < batches ? d : batches + 2 * (d - batches) + 1];
    checks.require(fits, y_name, " must have the dimensions of ", x_name, ", ", describe(full), ", that are kept, got ",
                   describe(kept));
    if (checks.failed()) return;
    shape = ReduceShape(product(full, 0, batches), full.begin() + batches, int(rank));
  }

  // Lines of another kind.
  Reducing(const char* op, const Array& x, const Array& y, const ReduceShape& shape)
      : op(op), checks(op), names{"operand", "the result"}, x(x), y(y), shape(shape) {}

  // Another array of which each line has a cell.
  Reducing& per_line(const char* name, const Array& array) {
    checks.same_shape(name, array, names[1], y);
    return *this;
  }
  template <class Reducer>
  ffi::Error reduce(Device& device, const Array& workspace, const Reducer& reducer) const {
    return to_error(op, reduce_lines(device.executor(workspace), reducer, shape, in<typename Reducer::Element>(x)));
  }
  // dx is x in this shape.
  template <class Spreader>
  ffi::Error spread(Device& device, const Spreader& spreader, const Array& from, Output& dx) const {
    using T = typename Spreader::Element;
    return to_error(op, spread_lines(device.executor(), spreader, shape, in<T>(from), out<T>(dx)));
  }
};

// The array that a target returns beside its first result when a gradient or the caller needs it, or null.
template <class T>
ffi::ErrorOr<T*> saved(Reducing& reducing, ffi::RemainingRets& more, size_t place, const char* name,
                       ffi::DataType dtype) {
  auto array = more.get<Array>(place);
  if (array.has_error()) return ffi::Unexpected(array.error());
  reducing.per_line(name, **array);
  reducing.checks.dtype(name, **array, dtype);
  if (reducing.checks.failed()) return ffi::Unexpected(reducing.checks.error());
  return out<T>(*array);
}

// What sums of this dtype are saved as.
ffi::DataType wide(ffi::DataType dtype) {
  return dtype == ffi::DataType::F16 || dtype == ffi::DataType::BF16 ? ffi::DataType::F32 : dtype;
}

int bytes_of(ffi::DataType dtype) { return int(ffi::ByteWidth(dtype)); }

// Integers and bool as cells of so many bytes.
template <class Body>
ffi::Error for_cell(int bytes, const Body& body) {
  if (bytes == 1) return body(uint8_t{});
  if (bytes == 2) return body(uint16_t{});
  if (bytes == 4) return body(uint32_t{});
  return body(uint64_t{});
}

bool is_inexact(ffi::DataType dtype) {
  switch (dtype) {
#define BARACUDA_FLOAT(NAME, TYPE) case ffi::DataType::NAME:
    BARACUDA_FLOATS(BARACUDA_FLOAT)
#undef BARACUDA_FLOAT
    case ffi::DataType::C64:
    case ffi::DataType::C128:
      return true;
    default:
      return false;
  }
}

bool is_signed(ffi::DataType dtype) {
  return dtype == ffi::DataType::S8 || dtype == ffi::DataType::S16 || dtype == ffi::DataType::S32 ||
         dtype == ffi::DataType::S64;
}

// ---------------------------------------------------------------------------------------------------------------------
// Sums, products and counts

// Of integers and bool, or of cells that are counted.
ffi::Error reduce_integers(const Reducing& reducing, Device& device, const Array& workspace, Output& y, Counting what) {
  ffi::DataType dtype = reducing.x.element_type();
  if (dtype == ffi::DataType::C64 || dtype == ffi::DataType::C128 || bytes_of(dtype) > 8)
    return invalid(reducing.op, "operand must be bool, a float or an integer of 8 to 64 bits, got type ", int(dtype));
  return for_cell(bytes_of(dtype), [&](auto cell) {
    using Cell = decltype(cell);
    Cell high = Cell(Cell(1) << (8 * sizeof(Cell) - 1)), all = Cell(~Cell(0));
    ReduceIntegers<Cell> reducer{y->untyped_data(),
                                 bytes_of(y->element_type()),
                                 what,
                                 is_signed(dtype) ? high : Cell(0),
                                 is_inexact(dtype) ? Cell(all ^ high) : all,
                                 uint64_t(reducing.shape.count)};
    return reducing.reduce(device, workspace, reducer);
  });
}

// Floats and complex numbers keep their dtype; integers and bool come to integers.
Reducing& check_result(Reducing& reducing) {
  ffi::DataType dtype = reducing.y.element_type();
  if (is_inexact(reducing.x.element_type()))
    reducing.checks.same_dtype("the result", reducing.y, "operand", reducing.x);
  else
    reducing.checks.require(!is_inexact(dtype) && dtype != ffi::DataType::PRED && bytes_of(dtype) > 0,
                            "the result must be an integer, got type ", int(dtype));
  return reducing;
}

ffi::Error sum(Reducing reducing, Device& device, const Array& workspace, Output& y, double divisor) {
  ffi::DataType dtype = reducing.x.element_type();
  if (check_result(reducing).checks.failed()) return reducing.checks.error();
  if (!is_inexact(dtype)) return reduce_integers(reducing, device, workspace, y, Counting::sum);
  return for_inexact(reducing.op, "operand", dtype, [&](auto type) {
    using Reducer = ReduceSum<typename decltype(type)::type>;
    using Bits = typename Reducer::Bits;
    return reducing.reduce(device, workspace,
                           Reducer{out<typename Reducer::Element>(y), typename Reducer::Real(divisor), Bits(~Bits(0))});
  });
}

ffi::Error sum_handler(Device device, Array x, Output workspace, Output y, int64_t rank, double divisor) {
  return sum(Reducing("reduce_sum", "operand", x, "the result", *y, rank), device, *workspace, y, divisor);
}

ffi::Error prod_handler(Device device, Array x, Output workspace, Output y, ffi::RemainingRets more, int64_t rank) {
  Reducing reducing("reduce_prod", "operand", x, "the result", *y, rank);
  check_result(reducing).checks.require(more.size() == 0 || more.size() == 2, "expected one or three results, got ",
                                        more.size() + 1);
  if (reducing.checks.failed()) return reducing.checks.error();
  if (!is_inexact(x.element_type())) return reduce_integers(reducing, device, *workspace, y, Counting::prod);
  return for_inexact(reducing.op, "operand", x.element_type(), [&](auto type) -> ffi::Error {
    using Reducer = ReduceProd<typename decltype(type)::type>;
    Reducer reducer{out<typename Reducer::Element>(y), nullptr, nullptr};
    if (more.size() == 2) {
      auto product = saved<typename Reducer::Wide>(reducing, more, 0, "product", wide(x.element_type()));
      if (product.has_error()) return product.error();
      auto zeros = saved<uint8_t>(reducing, more, 1, "zeros", ffi::DataType::U8);
      if (zeros.has_error()) return zeros.error();
      reducer.product = *product, reducer.zeros = *zeros;
    }
    return reducing.reduce(device, *workspace, reducer);
  });
}

// How many cells are not zero, whether any is, or all are.
ffi::Error count_handler(Device device, Array x, Output workspace, Output y, int64_t rank, std::string_view what) {
  Reducing reducing("reduce_count", "operand", x, "the result", *y, rank);
  reducing.checks
      .require(what == "count" || what == "any" || what == "all", "what must be count, any or all, got ", what)
      .require(what == "count" ? !is_inexact(y->element_type()) : y->element_type() == ffi::DataType::PRED,
               "the result must be an integer for count and bool for any and all, got type ", int(y->element_type()));
  if (reducing.checks.failed()) return reducing.checks.error();
  Counting counting = what == "count" ? Counting::count : what == "any" ? Counting::any : Counting::all;
  return reduce_integers(reducing, device, *workspace, y, counting);
}

// ---------------------------------------------------------------------------------------------------------------------
// Extrema

template <class T>
auto extreme_order(bool is_max, bool magnitude) {
  using Key = typename SortKey<T>::Key;
  auto like = SortKey<T>::order(!is_max);
  Key high = SortKey<T>::high, all = SortKey<T>::all;
  ExtremeOrder<Key> order{like.infinity, like.flipped, like.inverted, magnitude ? Key(all ^ high) : all, 0};
  if constexpr (is_float<T>) {
    Key infinity = is_max ? Key(like.infinity | high) : like.infinity;
    order.weakest = Key((infinity & high ? Key(~infinity) : Key(infinity | high)) ^ like.inverted);
  }
  return order;
}

// The greatest or the least, by the bits of magnitudes where these are asked for; as second result how many have it.
ffi::Error extremum_handler(Device device, Array x, Output workspace, Output y, ffi::RemainingRets more, int64_t rank,
                            bool is_max, bool magnitude) {
  Reducing reducing("reduce_extremum", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x)
      .require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_key(reducing.op, "operand", x.element_type(), [&](auto type) -> ffi::Error {
    using T = typename decltype(type)::type;
    using Key = typename SortKey<T>::Key;
    ExtremeOrder<Key> order = extreme_order<T>(is_max, magnitude);
    if (more.size() == 0) return reducing.reduce(device, *workspace, ReduceExtremum<Key>{order, out<Key>(y)});
    if constexpr (is_float<T>) {
      auto ties = saved<float>(reducing, more, 0, "ties", ffi::DataType::F32);
      if (ties.has_error()) return ties.error();
      return reducing.reduce(device, *workspace, ReduceTies<Key>{order, out<Key>(y), *ties});
    } else {
      return invalid(reducing.op, "ties are those of floats, got type ", int(x.element_type()));
    }
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Floats alone

ffi::Error log_sum_exp_handler(Device device, Array x, Output workspace, Output y, int64_t rank) {
  Reducing reducing("reduce_logsumexp", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reducing.reduce(device, *workspace, ReduceLogSumExp<T>{out<T>(y)});
  });
}

ffi::Error norm_handler(Device device, Array x, Output workspace, Output y, int64_t rank, double p) {
  Reducing reducing("reduce_norm", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x)
      .require(p != 0 && std::isfinite(p), "p must be finite and not 0, got ", p);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Sum = ReduceSum<T>;
    if (p == 1) {
      typename Sum::Bits magnitude = typename Sum::Bits(~typename Sum::Bits(0)) >> 1;
      return reducing.reduce(device, *workspace, Sum{out<T>(y), 1, magnitude});
    }
    if (p == 2) return reducing.reduce(device, *workspace, ReduceNormTwo<T>{out<T>(y)});
    return reducing.reduce(device, *workspace, ReduceNorm<T>{out<T>(y), p});
  });
}

ffi::Error variance_handler(Device device, Array x, Output workspace, Output y, ffi::RemainingRets more, int64_t rank,
                            double divisor, bool root) {
  Reducing reducing("reduce_variance", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x)
      .require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) -> ffi::Error {
    using Reducer = ReduceVariance<typename decltype(type)::type>;
    using Wide = typename Reducer::Wide;
    Reducer reducer{out<typename Reducer::Element>(y), nullptr, Wide(divisor), root};
    if (more.size() == 1) {
      auto mean = saved<Wide>(reducing, more, 0, "mean", wide(x.element_type()));
      if (mean.has_error()) return mean.error();
      reducer.mean = *mean;
    }
    return reducing.reduce(device, *workspace, reducer);
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Gradients

ffi::Error sum_backward_handler(Device device, Array dy, Output dx, int64_t rank, double divisor) {
  Reducing reducing("reduce_sum_backward", "the result", *dx, "dy", dy, rank);
  reducing.checks.same_dtype("the result", *dx, "dy", dy);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_inexact(reducing.op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reducing.spread(device, SpreadSum<T>{in<T>(dy), divisor}, *dx, dx);
  });
}

// The checks of a gradient that reads x.
Reducing gradient(const char* op, const Array& x, const Array& dy, Output& dx, int64_t rank) {
  Reducing reducing(op, "operand", x, "dy", dy, rank);
  reducing.checks.same_dtype("dy", dy, "operand", x)
      .same_shape("the result", *dx, "operand", x)
      .same_dtype("the result", *dx, "operand", x);
  return reducing;
}

ffi::Error extremum_backward_handler(Device device, Array x, Array y, Array ties, Array dy, Output dx, int64_t rank,
                                     bool magnitude) {
  Reducing reducing = gradient("reduce_extremum_backward", x, dy, dx, rank).per_line("y", y).per_line("ties", ties);
  reducing.checks.same_dtype("y", y, "operand", x).dtype("ties", ties, ffi::DataType::F32);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reducing.spread(device, SpreadExtremum<T>{in<T>(y), in<float>(ties), in<T>(dy), magnitude}, x, dx);
  });
}

ffi::Error prod_backward_handler(Device device, Array x, Array product, Array zeros, Array dy, Output dx,
                                 int64_t rank) {
  Reducing reducing =
      gradient("reduce_prod_backward", x, dy, dx, rank).per_line("product", product).per_line("zeros", zeros);
  reducing.checks.dtype("product", product, wide(x.element_type())).dtype("zeros", zeros, ffi::DataType::U8);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_inexact(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Spreader = SpreadProd<T>;
    return reducing.spread(device, Spreader{in<typename Spreader::Wide>(product), in<uint8_t>(zeros), in<T>(dy)}, x,
                           dx);
  });
}

ffi::Error log_sum_exp_backward_handler(Device device, Array x, Array y, Array dy, Output dx, int64_t rank) {
  Reducing reducing = gradient("reduce_logsumexp_backward", x, dy, dx, rank).per_line("y", y);
  reducing.checks.same_dtype("y", y, "operand", x);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reducing.spread(device, SpreadLogSumExp<T>{in<T>(y), in<T>(dy)}, x, dx);
  });
}

ffi::Error norm_backward_handler(Device device, Array x, Array y, Array dy, Output dx, int64_t rank, double p) {
  Reducing reducing = gradient("reduce_norm_backward", x, dy, dx, rank).per_line("y", y);
  reducing.checks.same_dtype("y", y, "operand", x);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    return reducing.spread(device, SpreadNorm<T>{in<T>(y), in<T>(dy), p}, x, dx);
  });
}

ffi::Error variance_backward_handler(Device device, Array x, Array y, Array mean, Array dy, Output dx, int64_t rank,
                                     double divisor, bool root) {
  Reducing reducing = gradient("reduce_variance_backward", x, dy, dx, rank).per_line("y", y).per_line("mean", mean);
  reducing.checks.same_dtype("y", y, "operand", x).dtype("mean", mean, wide(x.element_type()));
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    using Wide = Accumulator<T>;
    return reducing.spread(device, SpreadVariance<T>{in<Wide>(mean), in<T>(y), in<T>(dy), Wide(divisor), root}, x, dx);
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Traces: x [batches..., rows, middle, columns, inner], y [batches..., middle, inner]

struct Tracing {
  Checks checks;
  int64_t batches = 0, rows = 0, middle = 0, columns = 0, inner = 0;

  Tracing(const char* op, const char* x_name, const Array& x, const char* y_name, const Array& y) : checks(op) {
    auto full = x.dimensions(), kept = y.dimensions();
    size_t lead = full.size() - 4;
    checks.require(full.size() >= 4, x_name, " must have rank 4 or more, got ", describe(full));
    if (checks.failed()) return;
    bool fits = kept.size() == lead + 2 && std::equal(full.begin(), full.begin() + lead, kept.begin()) &&
                kept[lead] == full[lead + 1] && kept[lead + 1] == full[lead + 3];
    checks.require(fits, y_name, " must have the dimensions of ", x_name, ", ", describe(full),
                   ", but for the last and the third of the last four, got ", describe(kept));
    if (checks.failed()) return;
    batches = product(full, 0, lead), rows = full[lead], middle = full[lead + 1], columns = full[lead + 2];
    inner = full[lead + 3];
  }
  // The cells of a diagonal are lines.
  ReduceShape shape(int64_t offset) const {
    ReduceShape shape;
    int64_t row = middle * columns * inner, begin = offset < 0 ? -offset : 0, first = offset > 0 ? offset : 0;
    shape.count = std::max<int64_t>(0, std::min(rows - begin, columns - first));
    shape.first = begin * row + first * inner;
    shape.kept.push(batches, rows * row), shape.kept.push(middle, columns * inner);
    shape.reduced.push(shape.count, row + inner);
    shape.lines = batches * middle, shape.columns = inner;
    return shape;
  }
};

ffi::Error diagonal_handler(Device device, Array x, Output workspace, Output y, int64_t offset) {
  Tracing tracing("trace", "operand", x, "the result", *y);
  if (tracing.checks.failed()) return tracing.checks.error();
  return sum(Reducing("trace", x, *y, tracing.shape(offset)), device, *workspace, y, 1);
}

ffi::Error diagonal_backward_handler(Device device, Array dy, Output dx, int64_t offset) {
  constexpr const char* op = "trace_backward";
  Tracing tracing(op, "the result", *dx, "dy", dy);
  tracing.checks.same_dtype("the result", *dx, "dy", dy);
  if (tracing.checks.failed()) return tracing.checks.error();
  return for_inexact(op, "dy", dy.element_type(), [&](auto type) {
    using T = typename decltype(type)::type;
    SpreadTrace<T> cell{in<T>(dy), tracing.rows, tracing.middle, tracing.columns, tracing.inner, offset};
    return to_error(op, gather(device.executor(), cell, out<T>(dx), tracing.batches, tracing.rows,
                               tracing.middle * tracing.columns * tracing.inner));
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Targets

// The workspace and the first result.
auto reduced() { return operands<1>().Ret<Array>().Ret<Array>(); }
template <int count>
auto spread() {
  return operands<count>().template Ret<Array>().template Attr<int64_t>("rank");
}

BARACUDA_TARGET(reduce_sum, sum_handler, reduced().Attr<int64_t>("rank").Attr<double>("divisor"));
BARACUDA_TARGET(reduce_prod, prod_handler, reduced().RemainingRets().Attr<int64_t>("rank"));
BARACUDA_TARGET(reduce_count, count_handler, reduced().Attr<int64_t>("rank").Attr<std::string_view>("what"));
BARACUDA_TARGET(reduce_extremum, extremum_handler,
                reduced().RemainingRets().Attr<int64_t>("rank").Attr<bool>("is_max").Attr<bool>("magnitude"));
BARACUDA_TARGET(reduce_logsumexp, log_sum_exp_handler, reduced().Attr<int64_t>("rank"));
BARACUDA_TARGET(reduce_norm, norm_handler, reduced().Attr<int64_t>("rank").Attr<double>("p"));
BARACUDA_TARGET(reduce_variance, variance_handler,
                reduced().RemainingRets().Attr<int64_t>("rank").Attr<double>("divisor").Attr<bool>("root"));
BARACUDA_TARGET(trace, diagonal_handler, reduced().Attr<int64_t>("offset"));

BARACUDA_TARGET(reduce_sum_backward, sum_backward_handler, spread<1>().Attr<double>("divisor"));
BARACUDA_TARGET(reduce_prod_backward, prod_backward_handler, spread<4>());
BARACUDA_TARGET(reduce_extremum_backward, extremum_backward_handler, spread<4>().Attr<bool>("magnitude"));
BARACUDA_TARGET(reduce_logsumexp_backward, log_sum_exp_backward_handler, spread<3>());
BARACUDA_TARGET(reduce_norm_backward, norm_backward_handler, spread<3>().Attr<double>("p"));
BARACUDA_TARGET(reduce_variance_backward, variance_backward_handler,
                spread<4>().Attr<double>("divisor").Attr<bool>("root"));
BARACUDA_TARGET(trace_backward, diagonal_backward_handler, operands<1>().Ret<Array>().Attr<int64_t>("offset"));

}  // namespace
}  // namespace baracuda
