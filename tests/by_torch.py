"""PyTorch's CPU as an oracle: values and gradients as NumPy arrays."""

import warnings

import numpy as np
import pytest

torch = pytest.importorskip("torch")
#: Older ones give 1 for lp_pool of p = inf.
has_infinite_norms = tuple(map(int, torch.__version__.split(".")[:2])) >= (2, 12)


def tensor(a, dtype=None):
    """A tensor of the same values and dtype."""
    a = np.asarray(a)
    name = dtype or a.dtype.name
    known = a if a.dtype.kind in "iubc" else a.astype(np.float64)
    return torch.tensor(known).to(getattr(torch, name))


def numbers(t):
    """Floats as float64, which holds them all."""
    t = t.detach()
    return (t.to(torch.float64) if t.is_floating_point() else t).numpy()


def vjp(fun, args, dy):
    """The value, in the first argument's dtype, and the gradients."""
    args = [tensor(a).requires_grad_() for a in args]
    y = fun(*args)
    grads = torch.autograd.grad(y, args, tensor(dy).to(y.dtype), allow_unused=True)
    grads = [torch.zeros_like(a) if g is None else g for a, g in zip(args, grads, strict=True)]
    return numbers(y.to(args[0].dtype)), [numbers(g) for g in grads]


def quantized(x, scale, zero, axis, dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # these functions are deprecated
        scale, zero = torch.tensor(np.asarray(scale, np.float64)), torch.tensor(np.asarray(zero))
        return torch.quantize_per_channel(tensor(x), scale, zero, axis, dtype)
