// The resample pattern on a CUDA grid. Lanes that are neighbors write neighbors. Which kernel an array takes depends on
// the number of its taps, on whether rows of y share rows of x, and on whether both axes are of twice or half the size.
#pragma once

#include "resample_axis_cuda.h"
#include "resample_half_cuda.h"
#include "resample_rows_cuda.h"
#include "resample_strips_cuda.h"
#include "resample_tiles_cuda.h"
#include "resample_twice_cuda.h"

namespace baracuda {

template <class Sum, class T, class U>
Status resample(const Executor& executor, const ResampleAxis<Sum>& shape, const T* x, U* y) {
  constexpr int V = internal::resample_lanes<16, T, U>;
  if (shape.inner % V == 0) return internal::resample_by<V>(executor, shape, x, y);
  return internal::resample_by<1>(executor, shape, x, y);
}

template <class Sum, class T, class U>
Status resample(const Executor& executor, const ResamplePlane<Sum>& shape, const T* x, U* y) {
  constexpr int along = internal::resample_lanes<16, T, U>, across = internal::resample_lanes<8, T, U>;
  return for_taps(shape, [&](auto count) {
    constexpr int K = count.value, run = along / K > 0 ? along / K : 1;
    if (internal::has_separate_rows<K>(shape) && shape.columns.out % run == 0) {
      if constexpr (K == 1) {
        constexpr int R = internal::resample_rows_each;
        int64_t threads = shape.outer * ceil_div(shape.rows.out, R) * (shape.columns.out / run);
        if (threads >= internal::enough_resampled) return internal::resample_in_rows<1, R, run>(executor, shape, x, y);
      }
      return internal::resample_in_rows<K, 1, run>(executor, shape, x, y);
    }
    if constexpr (K == 2) {
      constexpr int R = 4, V = std::max(along, K);
      if (internal::has_tiles<true, R, V>(shape))
        return internal::resample_in_tiles<K, R, V, true>(executor, shape, x, y);
    }
    if constexpr (K == 4) {
      constexpr int V = std::max(along, K);  // a lane has what the lanes next to it need
      if (internal::has_tiles<true, 1, V>(shape))
        return internal::resample_in_steps<V>(executor, internal::resample_twice<K, V, Sum, T, U>, shape,
                                              shape.rows.in + 1, 4, sizeof(T) == 2 ? internal::longest_twice : 7, x, y);
      if (internal::has_tiles<false, 4, across>(shape))
        return internal::resample_in_tiles<K, 4, across, false>(executor, shape, x, y);
      if (internal::has_tiles<false, 1, across>(shape))
        return internal::resample_in_tiles<K, 1, across, false>(executor, shape, x, y);
    }
    if constexpr (K == 8) {
      constexpr int V = std::max(across, 2);
      if (internal::has_tiles<false, 1, V>(shape))
        return internal::resample_in_steps<V>(executor, internal::resample_half<K, V, Sum, T, U>, shape, shape.rows.out,
                                              2, sizeof(T) == 2 ? internal::longest_half : 10, x, y);
    }
    if constexpr (K < 8) {  // taps of each of a few columns are loads of their own
      constexpr int V = std::min(across, 8 / K);
      if (shape.inner == 1 && shape.columns.out % V == 0)
        return internal::resample_in_strips<K, V, true>(executor, shape, x, y);
    }
    constexpr int V = K < 8 ? along : across;
    if (shape.inner % V == 0) return internal::resample_in_strips<K, V, false>(executor, shape, x, y);
    return internal::resample_in_strips<K, 1, false>(executor, shape, x, y);
  });
}

}  // namespace baracuda
