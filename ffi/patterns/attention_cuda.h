// The attention pattern on a CUDA grid.
#pragma once

#include "attention_any_cuda.h"
#include "attention_mma_cuda.h"

namespace baracuda {

template <class Stored, class Wide>
Status decode(const Executor& executor, const Decode<Stored, Wide>& work) {
  if (work.shape.all_sequences() * work.shape.heads == 0) return {};
  if constexpr (sizeof(Stored) < 4)
    if (Status status; internal::decode_by_mma(executor, work, status)) return status;
  return internal::decode_of_any(executor, work);
}

}  // namespace baracuda
