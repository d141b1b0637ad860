// Where a pattern's driver runs: the threads of a CPU pool, or a CUDA stream. Neither knows XLA.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef BARACUDA_CUDA
#include <cuda_runtime.h>
#else
#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#endif

namespace baracuda {

// Empty when all is well; otherwise what went wrong, in static storage.
struct Status {
  const char* error = nullptr;
  bool ok() const { return error == nullptr; }
};

inline int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

#ifdef BARACUDA_CUDA

// Scratch memory comes with the call, as a buffer of the program. Memory of XLA's scratch allocator is given back when
// the handler returns, while a CUDA graph that recorded the handler goes on writing to it.
struct Executor {
  cudaStream_t stream;
  char* workspace = nullptr;
  size_t workspace_bytes = 0;

  // The next piece of the workspace, or null.
  template <class T>
  T* scratch(int64_t count) {
    size_t bytes = (size_t(count) * sizeof(T) + 255) / 256 * 256;
    if (bytes > workspace_bytes) return nullptr;
    T* piece = reinterpret_cast<T*>(workspace);
    workspace += bytes, workspace_bytes -= bytes;
    return piece;
  }
};

inline constexpr Status small_workspace{"the workspace is too small"};

inline Status launched() {
  cudaError_t error = cudaGetLastError();
  return {error == cudaSuccess ? nullptr : cudaGetErrorString(error)};
}

#else

// Its patterns take scratch memory from the heap.
struct Executor {
  int64_t threads;
  void* pool;
  void (*schedule)(void* pool, std::function<void()> task);
};

// Runs body(0) ... body(tasks - 1), each once, in any order. `cost` is a task's number of simple steps: work too small
// to pay for waking threads stays on the caller. The caller takes tasks too and waits only for tasks that have begun,
// so it may itself be the pool's last free thread.
template <class Body>
void parallel_for(const Executor& executor, int64_t tasks, int64_t cost, const Body& body) {
  constexpr int64_t grain = 1 << 16;
  int64_t helpers = std::min({executor.threads - 1, tasks - 1, tasks * cost / grain});
  if (helpers <= 0) {
    for (int64_t task = 0; task < tasks; ++task) body(task);
    return;
  }
  struct Shared {
    std::atomic<int64_t> next{0};
    int64_t done = 0;
    std::mutex mutex;
    std::condition_variable all_done;
  };
  auto shared = std::make_shared<Shared>();
  auto work = [shared, tasks, &body] {
    int64_t mine = 0;
    for (int64_t task; (task = shared->next.fetch_add(1)) < tasks; ++mine) body(task);
    std::lock_guard<std::mutex> lock(shared->mutex);
    if ((shared->done += mine) == tasks) shared->all_done.notify_all();
  };
  for (int64_t i = 0; i < helpers; ++i) executor.schedule(executor.pool, work);
  work();
  std::unique_lock<std::mutex> lock(shared->mutex);
  shared->all_done.wait(lock, [&] { return shared->done == tasks; });
}

#endif

}  // namespace baracuda
