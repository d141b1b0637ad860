// Dimensions after those of the batches.
#pragma once

#include <algorithm>

#include "handlers/checks.h"

namespace baracuda {

// Whether they are the batches and these sizes.
inline bool is(Dimensions got, Dimensions batches, std::initializer_list<int64_t> sizes) {
  return got.size() == batches.size() + sizes.size() && std::equal(batches.begin(), batches.end(), got.begin()) &&
         std::equal(sizes.begin(), sizes.end(), got.end() - sizes.size());
}

}  // namespace baracuda
