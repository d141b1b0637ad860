// BARACUDA_INDEPENDENT before a loop: no iteration reads what another writes, so the loop is vectorized without a check
// of addresses. And how long vectors are.
#pragma once

#ifdef __clang__
#define BARACUDA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define BARACUDA_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace baracuda::internal {

#ifdef __AVX512F__
inline constexpr int vector_bytes = 64;
#else
inline constexpr int vector_bytes = 32;
#endif

}  // namespace baracuda::internal
