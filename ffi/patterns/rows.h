// What the rows pattern asks of its functors on both platforms.
#pragma once

#include "../kernels/number.h"

namespace baracuda {
namespace internal {

// The functor of one row: its `at(row)`, where it depends on the row.
template <class Functor>
BARACUDA_HD Functor at_row(const Functor& functor, int64_t row) {
  if constexpr (requires { functor.at(row); })
    return functor.at(row);
  else
    return functor;
}

}  // namespace internal
}  // namespace baracuda
