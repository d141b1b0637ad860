// The driver of sorts, which is compiled in two files, by the size of keys.
#pragma once

#include "handlers/target.h"
#include BARACUDA_DRIVER(sort)

#define BARACUDA_WIDE_KEYS(CASE) CASE(float) CASE(int32_t) CASE(uint32_t) CASE(double) CASE(int64_t) CASE(uint64_t)
#define BARACUDA_SORT(T) template Status sort_rows(Executor, const T*, T*, int32_t*, SortShape);
