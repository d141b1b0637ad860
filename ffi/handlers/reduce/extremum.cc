// FFI targets of maxima and minima.
#include "reduce.h"

#include "kernels/reduce/extremum.h"
#include "kernels/sort_key.h"

namespace baracuda {
namespace {

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

// The largest or the smallest, by the bits of magnitudes where these are asked for; as second result how many have it.
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

BARACUDA_TARGET(reduce_extremum, extremum_handler,
                reduced().RemainingRets().Attr<int64_t>("rank").Attr<bool>("is_max").Attr<bool>("magnitude"));

}  // namespace
}  // namespace baracuda
