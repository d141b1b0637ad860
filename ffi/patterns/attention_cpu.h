// The attention pattern on CPU threads: a task has the queries that share a head of keys, and a chunk of these.
#pragma once

#include <vector>

#include "attention.h"

namespace baracuda {
namespace internal {

template <class Wide>
Wide dot(const Wide* a, const Wide* b, int64_t count) {
  constexpr int lanes = 16;
  Wide sums[lanes] = {}, total = 0;
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes)
    for (int k = 0; k < lanes; ++k) sums[k] += a[i + k] * b[i + k];
  for (; i < count; ++i) total += a[i] * b[i];
  for (int k = 0; k < lanes; ++k) total += sums[k];
  return total;
}

// The states of the queries of a group over some keys, and their sums of values [group, values]. `rows` and `weights`
// [group, keys] are scratch memory.
template <class Stored, class Wide>
void decode_chunk(const Decode<Stored, Wide>& work, int64_t sequence, int64_t kv_head, KeyRange keys, int32_t* rows,
                  Wide* weights, Wide* wide, SoftmaxState<Wide>* states, Wide* sums) {
  using State = SoftmaxState<Wide>;
  const DecodeShape& shape = work.shape;
  int64_t group = shape.group(), count = keys.end - keys.begin, first_head = kv_head * group;
  const Wide* q = work.q + (sequence * shape.heads + first_head) * shape.d;
  Wide at = Wide(work.length(sequence) - 1);
  for (int64_t g = 0; g < group; ++g) states[g] = State::empty();
  for (int64_t j = 0; j < count; ++j) {
    rows[j] = work.row(sequence, keys.begin + j);
    if (rows[j] < 0) {
      for (int64_t g = 0; g < group; ++g) weights[g * count + j] = State::nothing;
      continue;
    }
    const Stored* k = work.k + work.offset(sequence, rows[j], kv_head, shape.d);
    for (int64_t i = 0; i < shape.d; ++i) wide[i] = Wide(k[i]);
    for (int64_t g = 0; g < group; ++g) {
      Wide product = dot(q + g * shape.d, wide, shape.d);
      Wide s = work.score(product, work.slope(sequence, first_head + g), Wide(keys.begin + j) - at);
      weights[g * count + j] = s;
      states[g].largest = State::larger(states[g].largest, s);
    }
  }
  for (int64_t g = 0; g < group; ++g) {
    Wide* of_query = weights + g * count;
    for (int64_t j = 0; j < count; ++j) of_query[j] = State::weight(of_query[j], states[g].largest);
    for (int64_t j = 0; j < count; ++j) states[g].total += of_query[j];
  }
  std::fill(sums, sums + group * shape.values, Wide(0));
  for (int64_t j = 0; j < count; ++j) {
    if (rows[j] < 0) continue;
    const Stored* v = work.v + work.offset(sequence, rows[j], kv_head, shape.values);
    for (int64_t i = 0; i < shape.values; ++i) wide[i] = Wide(v[i]);
    for (int64_t g = 0; g < group; ++g) {
      Wide p = weights[g * count + j], *sum = sums + g * shape.values;
      for (int64_t i = 0; i < shape.values; ++i) sum[i] += p * wide[i];
    }
  }
}

}  // namespace internal

template <class Stored, class Wide>
Status decode(const Executor& executor, const Decode<Stored, Wide>& work) {
  using State = SoftmaxState<Wide>;
  const DecodeShape& shape = work.shape;
  int64_t chunks = work.chunks(), group = shape.group(), sequences = shape.all_sequences();
  std::vector<State> states(size_t(sequences * shape.heads * chunks), State::empty());
  std::vector<Wide> sums(size_t(sequences * shape.heads * chunks * shape.values));
  // Of each head of keys the chunks, of each chunk the queries.
  int64_t cost = std::min(work.chunk(), shape.capacity()) * (group * (shape.d + shape.values) + 32);
  parallel_for(executor, sequences * shape.kv_heads * chunks, cost, [&](int64_t task) {
    int64_t number = task % chunks, head = task / chunks % shape.kv_heads, sequence = task / chunks / shape.kv_heads;
    KeyRange keys = work.in_chunk(work.seen(sequence), number);
    int64_t count = keys.end - keys.begin;
    if (count <= 0) return;
    std::vector<int32_t> rows(static_cast<size_t>(count));
    std::vector<Wide> scratch(size_t(group * count + std::max(shape.d, shape.values)));
    internal::decode_chunk(work, sequence, head, keys, rows.data(), scratch.data(), scratch.data() + group * count,
                           states.data() + task * group, sums.data() + task * group * shape.values);
  });
  parallel_for(executor, sequences * shape.heads, chunks * (shape.values + 16), [&](int64_t query) {
    int64_t head = query % shape.heads, of_group = query / shape.heads * shape.kv_heads + head / group;
    int64_t first = of_group * chunks * group + head % group;
    State whole = State::empty();
    for (int64_t i = 0; i < chunks; ++i)
      whole.largest = State::larger(whole.largest, states[first + i * group].largest);
    Wide* y = work.y + query * shape.values;
    std::fill(y, y + shape.values, Wide(0));
    for (int64_t i = 0; i < chunks; ++i) {
      const State& state = states[first + i * group];
      if (state.is_empty()) continue;
      Wide weight = State::weight(state.largest, whole.largest);
      const Wide* sum = sums.data() + (first + i * group) * shape.values;
      whole.total += weight * state.total;
      for (int64_t column = 0; column < shape.values; ++column) y[column] += weight * sum[column];
    }
    if (!whole.is_empty())
      for (int64_t column = 0; column < shape.values; ++column) y[column] /= whole.total;
    work.lse[query] = whole.log_sum_exp();
  });
  return {};
}

}  // namespace baracuda
