"""PyTorch's programs of the same benchmarks, on the same inputs."""

import jax

from .times import Program


def program(benchmark, sets, with_backward):
    """As PyTorch runs it eagerly, where the backward pass is a step of its own by nature; None where this PyTorch lacks the
    function, a kernel of the dtype on the device, or the derivative."""
    import torch

    of_torch = benchmark.of_torch or (lambda *arrays: arrays)
    sets = jax.tree.map(torch.from_dlpack, [(dy, *of_torch(*arrays)) for dy, *arrays in sets])
    on_gpu = jax.tree.leaves(sets)[0].is_cuda

    def call(i):
        dy, *arrays = sets[i % len(sets)]
        if not with_backward:
            return benchmark.torch(torch, *arrays)
        moving = [x.detach().requires_grad_() for x in arrays[: benchmark.moving]]
        y = benchmark.torch(torch, *moving, *arrays[benchmark.moving :])
        return torch.autograd.grad(y, moving, dy)

    try:
        call(0)
    except AttributeError:
        return None
    except RuntimeError as error:
        if isinstance(error, NotImplementedError) or "is not implemented" in str(error):
            return None
        raise
    return Program(call, lambda out: torch.cuda.synchronize() if on_gpu else None)
