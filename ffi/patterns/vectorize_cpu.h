// BARACUDA_INDEPENDENT before a loop: no iteration reads what another writes, so the loop is vectorized without a check
// of addresses.
#pragma once

#ifdef __clang__
#define BARACUDA_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define BARACUDA_INDEPENDENT _Pragma("GCC ivdep")
#endif
