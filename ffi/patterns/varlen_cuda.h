// The varlen pattern on a CUDA grid.
#pragma once

#include <algorithm>

#include "varlen_any_cuda.h"
#include "varlen_dot_cuda.h"
#include "varlen_mma_cuda.h"

namespace baracuda {

// Of listed keys. It is compiled in files of its own.
template <class T>
Status varlen_listed(const Executor& executor, const Varlen<T>& work, T* y, Accumulator<T>* lse) {
  if constexpr (sizeof(T) == 2)
    if (internal::has_mma<T>(work.shape))
      return internal::by_mma(work, [&](auto columns, auto plain) {
        using Sizes = typename internal::MmaSizes<columns(), plain()>::Listed;
        return internal::varlen_mma_of<T, columns(), plain(), true, Sizes>(executor, work, y, lse);
      });
  return internal::varlen_of_any(executor, work, y, lse);
}

template <class T>
Status varlen_listed_backward(const Executor& executor, const Varlen<T>& work, const VarlenGradient<T>& gradient) {
  if constexpr (sizeof(T) == 2)
    if (internal::has_mma<T>(work.shape))
      return internal::by_mma(work, [&](auto columns, auto plain) {
        return internal::varlen_mma_listed_backward_of<T, columns(), plain()>(executor, work, gradient);
      });
  return internal::varlen_backward_of_any(executor, work, gradient);
}

template <class T>
Status varlen(const Executor& executor, const Varlen<T>& work, T* y, Accumulator<T>* lse) {
  if (work.shape.batches * work.shape.heads == 0) return {};
  if (work.positions != nullptr) return varlen_listed(executor, work, y, lse);
  if constexpr (sizeof(T) == 2)
    if (internal::has_mma<T>(work.shape))
      return internal::by_mma(work, [&](auto columns, auto plain) {
        using Sizes = typename internal::MmaSizes<columns(), plain()>::Forward;
        return internal::varlen_mma_of<T, columns(), plain(), false, Sizes>(executor, work, y, lse);
      });
  return internal::varlen_of_any(executor, work, y, lse);
}

template <class T>
Status varlen_backward(const Executor& executor, const Varlen<T>& work, const VarlenGradient<T>& gradient) {
  if (work.shape.batches * work.shape.heads == 0) return {};
  if (Status status = internal::varlen_dots_of(executor, work.shape, gradient); !status.ok()) return status;
  if (work.positions != nullptr) return varlen_listed_backward(executor, work, gradient);
  if constexpr (sizeof(T) == 2)
    if (internal::has_mma<T>(work.shape))
      return internal::by_mma(work, [&](auto columns, auto plain) {
        return internal::varlen_mma_backward_of<T, columns(), plain()>(executor, work, gradient);
      });
  return internal::varlen_backward_of_any(executor, work, gradient);
}

}  // namespace baracuda
