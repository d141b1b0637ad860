// Before a loop of few steps, whose arrays then are registers on CUDA. Elsewhere compilers know best.
#pragma once

#ifdef __CUDA_ARCH__
#define BARACUDA_UNROLL _Pragma("unroll")
#else
#define BARACUDA_UNROLL
#endif
