// What the family's handlers share. Their drivers are compiled in files of their own, by the dtype of the cache.
#pragma once

#include "handlers/target.h"
#include BARACUDA_DRIVER(attention)

#define BARACUDA_CACHES(CASE)       \
  CASE(F32, float, float)           \
  CASE(F64, double, double)         \
  CASE(F16, Half, float)            \
  CASE(BF16, BFloat16, float)       \
  CASE(F8E4M3FN, Float8E4M3, float) \
  CASE(F8E5M2, Float8E5M2, float)
