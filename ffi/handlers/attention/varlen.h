// What the handlers of attention of sequences in one array share. Their drivers are compiled in files of their own, by
// dtype.
#pragma once

#include "handlers/target.h"
#include BARACUDA_DRIVER(varlen)

#define BARACUDA_VARLEN(CASE) \
  CASE(F32, float)            \
  CASE(F64, double)           \
  CASE(F16, Half)             \
  CASE(BF16, BFloat16)

// Those of listed keys are compiled by themselves, where they differ.
#ifdef BARACUDA_CUDA
#define BARACUDA_VARLEN_LISTED(PREFIX, T)                                                       \
  PREFIX template Status varlen_listed(const Executor&, const Varlen<T>&, T*, Accumulator<T>*); \
  PREFIX template Status varlen_listed_backward(const Executor&, const Varlen<T>&, const VarlenGradient<T>&);
#else
#define BARACUDA_VARLEN_LISTED(PREFIX, T)
#endif

#define BARACUDA_VARLEN_OF(PREFIX, T)                                                    \
  PREFIX template Status varlen(const Executor&, const Varlen<T>&, T*, Accumulator<T>*); \
  PREFIX template Status varlen_backward(const Executor&, const Varlen<T>&, const VarlenGradient<T>&);
