"""PyTorch's programs of the same benchmarks, on the same inputs."""

from .times import Program


def program(benchmark, sets, with_backward):
    """As PyTorch runs it eagerly, where the backward pass is a step of its own by nature; None where PyTorch has no kernel
    of the dtype on the device, or no derivative."""
    import torch

    share = lambda x: None if x is None else torch.from_dlpack(x)
    sets = [tuple(map(share, arrays)) for arrays in sets]
    on_gpu = next(x for x in sets[0] if x is not None).is_cuda

    def call(i):
        dy, *arrays = sets[i % len(sets)]
        if not with_backward:
            return benchmark.torch(torch, *arrays)
        moving = [x.detach().requires_grad_() for x in arrays[: benchmark.moving]]
        y = benchmark.torch(torch, *moving, *arrays[benchmark.moving :])
        return torch.autograd.grad(y, moving, dy)

    try:
        call(0)
    except RuntimeError as error:
        if isinstance(error, NotImplementedError) or "is not implemented" in str(error):
            return None
        raise
    return Program(call, lambda out: torch.cuda.synchronize() if on_gpu else None)
