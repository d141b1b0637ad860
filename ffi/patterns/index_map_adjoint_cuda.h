// The adjoint of the index_map pattern on a CUDA grid: a thread has an element of x, or V neighbors along an axis
// without a term.
#pragma once

#include "index_map_adjoint.h"

namespace baracuda {
namespace internal {

inline constexpr int add_block = 256;

template <class Index>
struct Adds {
  int axes, terms;
  Divisor<Index> size[add_axes];
  Index stride[add_axes];
  int term_of[add_axes];
  Origins<Index> term[add_terms];

  Adds(const AddMap& map, int width) : axes(map.axes), terms(map.terms) {
    for (int k = 0; k < axes; ++k) {
      int64_t step = k == map.last() ? width : 1;
      size[k] = Divisor<Index>(map.size[k] / step), stride[k] = Index(map.stride[k] * step);
      if ((term_of[k] = map.term_of[k]) >= 0) term[term_of[k]] = Origins<Index>(map.term[term_of[k]], map.size[k]);
    }
  }
};

template <int most, int V, class Index, class T>
__global__ void __launch_bounds__(add_block, 2)
    add_mapped_elements(const __grid_constant__ Adds<Index> map, int64_t items, const T* y, T* x) {
  using Wide = Accumulator<T>;
  int64_t item = int64_t(blockIdx.x) * add_block + threadIdx.x;
  if (item >= items) return;
  Index index = Index(item), position = 0, j[most];
#pragma unroll
  for (int k = add_axes - 1; k >= 0; --k) {
    if (k >= map.axes) continue;
    Index quotient = k == 0 ? 0 : map.size[k].quotient(index), i = index - quotient * map.size[k].value;
    index = quotient;
    if (map.term_of[k] < 0) {
      position += i * map.stride[k];
    } else {
#pragma unroll
      for (int t = 0; t < most; ++t)
        if (t == map.term_of[k]) j[t] = i;
    }
  }
  Wide sums[V];
#pragma unroll
  for (int v = 0; v < V; ++v) sums[v] = Wide(0);
  for_origins<most>(map.term, map.terms, j, position, [&](Index at) {
    auto values = load<V>(y + at);
#pragma unroll
    for (int v = 0; v < V; ++v) sums[v] += Wide(values.lane[v]);
  });
  Vector<T, V> result;
#pragma unroll
  for (int v = 0; v < V; ++v) result.lane[v] = T(sums[v]);
  store<V>(x + item * V, result);
}

template <int most, int V, class Index, class T>
Status add_mapped_by(const Executor& executor, const AddMap& map, const T* y, T* x) {
  int64_t items = map.elements() / V;
  add_mapped_elements<most, V>
      <<<unsigned(ceil_div(items, add_block)), add_block, 0, executor.stream>>>(Adds<Index>(map, V), items, y, x);
  return launched();
}

}  // namespace internal

// `map` has one axis at least, and no empty one.
template <class T>
Status add_mapped(const Executor& executor, const AddMap& map, const T* y, T* x) {
  constexpr int V = 16 / sizeof(T), few = 2;
  bool is_near = map.elements() < narrow_reach && map.reach() < narrow_reach && map.farthest() < narrow_reach;
  if (!is_near) return internal::add_mapped_by<add_terms, 1, int64_t>(executor, map, y, x);
  int last = map.last();
  bool is_wide = map.term_of[last] < 0 && map.stride[last] == 1 && map.size[last] % V == 0;
  for (int k = 0; k < last; ++k) is_wide = is_wide && (map.term_of[k] >= 0 || map.stride[k] % V == 0);
  for (int t = 0; t < map.terms; ++t)
    is_wide = is_wide && map.term[t].stride % V == 0 && map.term[t].kernel_stride % V == 0;
  // Few terms, such as those of images, leave registers free.
  if (map.terms <= few)
    return is_wide ? internal::add_mapped_by<few, V, int32_t>(executor, map, y, x)
                   : internal::add_mapped_by<few, 1, int32_t>(executor, map, y, x);
  return internal::add_mapped_by<add_terms, 1, int32_t>(executor, map, y, x);
}

}  // namespace baracuda
