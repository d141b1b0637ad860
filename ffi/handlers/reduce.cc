// FFI targets of reductions.
#include "reduce.h"

#include "../kernels/reduce/extremum.h"
#include "../kernels/reduce/log_sum_exp.h"
#include "../kernels/reduce/norm.h"
#include "../kernels/reduce/sum.h"
#include "../kernels/reduce/variance.h"
#include "../kernels/sort_key.h"

namespace baracuda {
namespace {

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

}  // namespace

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

namespace {

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

// The only array that a target may return next to its first result, in the dtype that is computed in; or null.
template <class T>
ffi::ErrorOr<Comparable<T>*> saved_wide(Reducing& reducing, ffi::RemainingRets& more, const char* name) {
  reducing.checks.require(more.size() <= 1, "expected one or two results, got ", more.size() + 1);
  if (reducing.checks.failed()) return ffi::Unexpected(reducing.checks.error());
  if (more.size() == 0) return static_cast<Comparable<T>*>(nullptr);
  return saved<Comparable<T>>(reducing, more, 0, name, wide(reducing.x.element_type()));
}

ffi::Error log_sum_exp_handler(Device device, Array x, Output workspace, Output y, ffi::RemainingRets more,
                               int64_t rank) {
  Reducing reducing("reduce_logsumexp", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) -> ffi::Error {
    using T = typename decltype(type)::type;
    auto rest = saved_wide<T>(reducing, more, "rest");
    if (rest.has_error()) return rest.error();
    return reducing.reduce(device, *workspace, ReduceLogSumExp<T>{out<T>(y), *rest});
  });
}

ffi::Error norm_handler(Device device, Array x, Output workspace, Output y, ffi::RemainingRets more, int64_t rank,
                        double p) {
  Reducing reducing("reduce_norm", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x)
      .require(p != 0 && std::isfinite(p), "p must be finite and not 0, got ", p)
      .require(more.size() == 0 || (p != 1 && is_rounded(x.element_type())), "expected one result, got ",
               more.size() + 1);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) -> ffi::Error {
    using T = typename decltype(type)::type;
    using Sum = ReduceSum<T>;
    if (p == 1) {  // whose gradient reads no norm
      typename Sum::Bits magnitude = typename Sum::Bits(~typename Sum::Bits(0)) >> 1;
      return reducing.reduce(device, *workspace, Sum{out<T>(y), 1, magnitude});
    }
    auto unrounded = saved_wide<T>(reducing, more, "wide y");
    if (unrounded.has_error()) return unrounded.error();
    if (p == 2) return reducing.reduce(device, *workspace, ReduceNormTwo<T>{out<T>(y), *unrounded});
    return reducing.reduce(device, *workspace, ReduceNorm<T>{out<T>(y), *unrounded, p});
  });
}

ffi::Error variance_handler(Device device, Array x, Output workspace, Output y, ffi::RemainingRets more, int64_t rank,
                            double divisor, bool root) {
  Reducing reducing("reduce_variance", "operand", x, "the result", *y, rank);
  reducing.checks.same_dtype("the result", *y, "operand", x)
      .require(more.size() <= 1u + (root && is_rounded(x.element_type())), "expected fewer results, got ",
               more.size() + 1);
  if (reducing.checks.failed()) return reducing.checks.error();
  return for_float(reducing.op, "operand", x.element_type(), [&](auto type) -> ffi::Error {
    using Reducer = ReduceVariance<typename decltype(type)::type>;
    using Wide = typename Reducer::Wide;
    Reducer reducer{out<typename Reducer::Element>(y), nullptr, nullptr, Wide(divisor), root};
    if (more.size() > 0) {
      auto mean = saved<Wide>(reducing, more, 0, "mean", wide(x.element_type()));
      if (mean.has_error()) return mean.error();
      reducer.mean = *mean;
    }
    if (more.size() > 1) {
      auto unrounded = saved<Wide>(reducing, more, 1, "wide y", wide(x.element_type()));
      if (unrounded.has_error()) return unrounded.error();
      reducer.wide = *unrounded;
    }
    return reducing.reduce(device, *workspace, reducer);
  });
}

// ---------------------------------------------------------------------------------------------------------------------
// Targets

BARACUDA_TARGET(reduce_sum, sum_handler, reduced().Attr<int64_t>("rank").Attr<double>("divisor"));
BARACUDA_TARGET(reduce_prod, prod_handler, reduced().RemainingRets().Attr<int64_t>("rank"));
BARACUDA_TARGET(reduce_count, count_handler, reduced().Attr<int64_t>("rank").Attr<std::string_view>("what"));
BARACUDA_TARGET(reduce_extremum, extremum_handler,
                reduced().RemainingRets().Attr<int64_t>("rank").Attr<bool>("is_max").Attr<bool>("magnitude"));
BARACUDA_TARGET(reduce_logsumexp, log_sum_exp_handler, reduced().RemainingRets().Attr<int64_t>("rank"));
BARACUDA_TARGET(reduce_norm, norm_handler, reduced().RemainingRets().Attr<int64_t>("rank").Attr<double>("p"));
BARACUDA_TARGET(reduce_variance, variance_handler,
                reduced().RemainingRets().Attr<int64_t>("rank").Attr<double>("divisor").Attr<bool>("root"));

}  // namespace
}  // namespace baracuda
