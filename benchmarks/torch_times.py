"""PyTorch's times of the same benchmarks, on the same inputs."""

import statistics
import time


def measure(benchmark, sets, with_backward, repeats):
    """The median time of a call in seconds."""
    import torch

    share = lambda x: None if x is None else torch.from_dlpack(x)
    sets = [tuple(map(share, arrays)) for arrays in sets]
    on_gpu = next(x for x in sets[0] if x is not None).is_cuda
    wait = torch.cuda.synchronize if on_gpu else lambda: None

    def call(dy, *arrays):
        if not with_backward:
            return benchmark.torch(torch, *arrays)
        moving = [x.detach().requires_grad_() for x in arrays[: benchmark.moving]]
        y = benchmark.torch(torch, *moving, *arrays[benchmark.moving :])
        return torch.autograd.grad(y, moving, dy)

    def seconds(calls):
        begin = time.perf_counter()
        for i in range(calls):
            call(*sets[i % len(sets)])
        wait()
        return (time.perf_counter() - begin) / calls

    seconds(3), wait()
    calls = max(1, min(1000, int(0.03 / seconds(3)))) if on_gpu else 1
    return statistics.median(seconds(calls) for _ in range(repeats))
