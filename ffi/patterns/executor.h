// Where a pattern's driver runs: the threads of a CPU pool, or a CUDA stream. Neither knows XLA.
#pragma once

#include <cstddef>
#include <cstdint>

#ifdef BARACUDA_CUDA
#include <cuda_runtime.h>
#else
#include <functional>
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

  // The next chunk of the workspace, or null.
  template <class T>
  T* scratch(int64_t count) {
    size_t bytes = (size_t(count) * sizeof(T) + 255) / 256 * 256;
    if (bytes > workspace_bytes) return nullptr;
    T* chunk = reinterpret_cast<T*>(workspace);
    workspace += bytes, workspace_bytes -= bytes;
    return chunk;
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

// Tasks of a body whose type is forgotten: tasks [begin, end) of it. Code that is compiled for each body would be most
// of what a build compiles.
struct TaskBody {
  const void* body;
  void (*run)(const void* body, int64_t begin, int64_t end);
};
void run_tasks(const Executor& executor, int64_t tasks, int64_t cost, TaskBody body);

// Runs body(0) ... body(tasks - 1), each once, in any order. `cost` is a task's number of simple steps: work too small
// to pay for waking threads stays on the caller. The caller takes tasks too and waits only for tasks that have begun,
// so it may itself be the pool's last free thread. It sleeps only if that takes longer than to be woken would.
//
// Each thread has a range of neighboring tasks, and helps others when it is through: so a thread finds in its cache
// what it wrote in the call before.
template <class Body>
void parallel_for(const Executor& executor, int64_t tasks, int64_t cost, const Body& body) {
  run_tasks(executor, tasks, cost, {&body, [](const void* body, int64_t begin, int64_t end) {
                                      for (int64_t task = begin; task < end; ++task)
                                        (*static_cast<const Body*>(body))(task);
                                    }});
}

#endif

}  // namespace baracuda
