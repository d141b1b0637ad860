// Rows that are few and long, in one pass: a block has a part of one, in shared memory, where it waits for what comes
// before. Elements are copied there on their own: while a block waits, those of the others on its multiprocessor come.
#pragma once

#include <utility>

#include "look_back_cuda.h"
#include "scan_block_cuda.h"
#include "shared_memory_cuda.h"

namespace baracuda {
namespace internal {

template <int bytes>
__device__ void copy_to_shared(char* to, const char* from) {
  uint32_t at = uint32_t(__cvta_generic_to_shared(to));
  if constexpr (bytes > 16) {
    copy_to_shared<16>(to, from);
    copy_to_shared<bytes - 16>(to + 16, from + 16);
  } else if constexpr (bytes == 16) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
  } else if constexpr (bytes >= 4) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2;" ::"r"(at), "l"(from), "n"(bytes) : "memory");
  } else {
    memcpy(to, from, bytes);
  }
}
__device__ inline void wait_for_copies() { asm volatile("cp.async.wait_all;" ::: "memory"); }

// A thread's neighboring elements of each array that a functor reads, in shared memory. Those that are `asked` for are
// copied there; what is read of them means nothing.
template <int V, bool asked>
struct SharedRow : ScanRow<V> {
  mutable char* next;  // of the array that is read next

  __device__ SharedRow(const ScanRow<V>& row, char* elements) : ScanRow<V>(row), next(elements) {}

  template <class T>
  __device__ Vector<T, V> load(const T* x) const {
    constexpr int bytes = sizeof(Vector<T, V>);
    char* here = next + threadIdx.x * bytes;
    next += blockDim.x * bytes;
    if constexpr (asked) {
      copy_to_shared<bytes>(here, reinterpret_cast<const char*>(x + this->low()));
      return {};
    } else {
      return this->in_order(*reinterpret_cast<const Vector<T, V>*>(here));
    }
  }
  template <class T>
  __device__ Vector<T, V> before(const T* x) const {
    Vector<T, V> here = load(x);
    return asked ? here : this->moved_up(here, x);
  }
  template <class T>
  __device__ std::conditional_t<asked, Vector<T, V>, Pair<Vector<T, V>, Vector<T, V>>> with_before(const T* x) const {
    Vector<T, V> here = load(x);
    if constexpr (asked)
      return here;
    else
      return {this->moved_up(here, x), here};
  }
  template <class T>
  __device__ Vector<T, V> after(const T* x) const {
    Vector<T, V> here = load(x);
    return asked ? here : this->moved_down(here, x);
  }
};

// What a thread has there of its span.
template <int V, class Functor>
inline constexpr int span_bytes = sizeof(decltype(std::declval<Functor>().read(std::declval<SharedRow<V, true>>())));

template <int V, int K, class Functor>
__global__ void __launch_bounds__(scan_block, 3) scan_parts(Functor functor, ScanShape shape, LookBack<Functor> look) {
  using State = typename Functor::State;
  constexpr int span = scan_block * span_bytes<V, Functor>;
  extern __shared__ __align__(16) char elements[];
  __shared__ ScanBlock<K, Functor> block;
  int64_t row = blockIdx.x / look.parts, part = blockIdx.x - row * look.parts;
  int64_t first = (part * K * scan_block + threadIdx.x) * V;
  auto position = [&](int k) { return first + int64_t(k) * scan_block * V; };
  auto held = [&](int k) { return SharedRow<V, false>(shape.row<V>(row, position(k)), elements + k * span); };
#pragma unroll
  for (int k = 0; k < K; ++k)
    if (position(k) < shape.count)
      functor.read(SharedRow<V, true>(shape.row<V>(row, position(k)), elements + k * span));
  wait_for_copies();
  State spans[K];
#pragma unroll
  for (int k = 0; k < K; ++k)
    spans[k] = position(k) < shape.count ? total_of(functor, held(k), functor.read(held(k))) : Functor::none();
  block.scan(0, spans, [&](const State& total) { return look.before(row, part, total); });
#pragma unroll
  for (int k = 0; k < K; ++k)
    if (position(k) < shape.count) write_span(functor, held(k), functor.read(held(k)), spans[k], shape.exclusive);
}

// 256 bytes of a thread, but not so many states that they would not fit in its registers.
inline constexpr int spans_of_part(int bytes) { return bytes <= 16 ? 12 : bytes <= 128 ? 256 / bytes : 2; }

// False, and nothing is done, where rows would be parts by themselves or the workspace is too small.
template <int V, class Functor>
bool scans_in_parts(Executor executor, const Functor& functor, const ScanShape& shape, Status& status) {
  constexpr int K = spans_of_part(span_bytes<V, Functor>);
  constexpr int64_t bytes = K * scan_block * span_bytes<V, Functor>;
  LookBack<Functor> look{nullptr, shape.outer, ceil_div(shape.count, int64_t(K) * scan_block * V)};
  if (look.parts < 2 || !look.begin(executor)) return false;
  auto kernel = scan_parts<V, K, Functor>;
  status = allow_shared_memory(kernel, bytes);
  if (!status.ok()) return true;
  kernel<<<unsigned(shape.outer * look.parts), scan_block, bytes, executor.stream>>>(functor, shape, look);
  status = launched();
  return true;
}

}  // namespace internal
}  // namespace baracuda
