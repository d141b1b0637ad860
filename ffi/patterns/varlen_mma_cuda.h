// The varlen pattern on tensor cores, for half precisions.
#pragma once

#include <type_traits>

#include "varlen_mma_backward_cuda.h"
#include "varlen_mma_forward_cuda.h"
#include "varlen_mma_pairs_cuda.h"

namespace baracuda {
namespace internal {

// Of so many columns, and of scores that are plain: the largest whose sums stay in registers. 32 rows of a warp halve
// what is read of shared memory for a product.
template <int columns, bool plain>
struct MmaSizes {
  static constexpr bool wide = columns > 64;
  using Forward = std::conditional_t<
      wide, std::conditional_t<plain, MmaForwardSizes<2, columns == 96 ? 48 : 64, 4, 2>, MmaForwardSizes<1, 64, 4, 2>>,
      MmaForwardSizes<2, 64, 4, 2, true>>;
  // Of listed keys, whose columns take registers.
  using Listed = std::conditional_t<wide || !plain, MmaForwardSizes<1, 64, 4, 2, !wide>, Forward>;
  using OfQueries = std::conditional_t<
      wide, std::conditional_t<plain && columns == 128, MmaBackwardSizes<2, 32, 4, 2>, MmaBackwardSizes<1, 64, 4, 2>>,
      MmaBackwardSizes<2, plain ? 64 : 32, 4, 2>>;
  using OfKeys =
      std::conditional_t<wide, MmaBackwardSizes<1, 32, 4, 2>,
                         std::conditional_t<plain, MmaBackwardSizes<2, 32, 4, 2>, MmaBackwardSizes<1, 64, 4, 2>>>;
};

template <class T, int columns, bool plain>
Status varlen_mma_backward_of(const Executor& executor, const Varlen<T>& work, const VarlenGradient<T>& gradient) {
  using Sizes = MmaSizes<columns, plain>;
  Status status = varlen_mma_queries_of<T, columns, plain, false, typename Sizes::OfQueries>(executor, work, gradient);
  if (!status.ok()) return status;
  if constexpr (Sizes::wide && plain)
    return varlen_mma_pairs_of<T, columns, plain, MmaPairSizes<4, 2>>(executor, work, gradient);
  else
    return varlen_mma_keys_of<T, columns, plain, false, typename Sizes::OfKeys>(executor, work, gradient);
}

template <class T, int columns, bool plain>
Status varlen_mma_listed_backward_of(const Executor& executor, const Varlen<T>& work,
                                     const VarlenGradient<T>& gradient) {
  using OfQueries = MmaBackwardSizes<1, 32, 4, 2>;
  using OfKeys = MmaBackwardSizes<1, columns == 128 && !plain ? 16 : 32, 4, 2>;
  Status status = varlen_mma_queries_of<T, columns, plain, true, OfQueries>(executor, work, gradient);
  return status.ok() ? varlen_mma_keys_of<T, columns, plain, true, OfKeys>(executor, work, gradient) : status;
}

// Whether tensor cores compute this: rows are of whole chunks, which begin at multiples of 16 bytes.
template <class T>
bool has_mma(const VarlenShape& shape) {
  return sizeof(T) == 2 && shape.d % 8 == 0 && shape.values % 8 == 0 && shape.d > 0 && shape.values > 0 &&
         shape.d <= 128 && shape.values <= 128;
}

// Calls run of the number of columns that are multiplied, and whether scores are products times a positive factor.
template <class T, class Run>
Status by_mma(const Varlen<T>& work, const Run& run) {
  bool plain = !work.biased && !(work.score.cap > 0) && work.score.factor > 0;
  int64_t columns = work.shape.d > work.shape.values ? work.shape.d : work.shape.values;
  auto of_columns = [&](auto number) { return plain ? run(number, std::true_type{}) : run(number, std::false_type{}); };
  if (columns <= 32) return of_columns(std::integral_constant<int, 32>{});
  if (columns <= 64) return of_columns(std::integral_constant<int, 64>{});
  if (columns <= 96) return of_columns(std::integral_constant<int, 96>{});
  return of_columns(std::integral_constant<int, 128>{});
}

}  // namespace internal
}  // namespace baracuda
