"""Reductions of axes."""

import numpy as np

from .wide import wide


def _with_mean(fun, x, return_residuals=False, ddof=0, **k):
    """Of several outputs, as one vector."""
    y = fun(x, ddof=ddof, **k)
    return np.concatenate([y.ravel(), x.mean(**k).ravel()]) if return_residuals else y


_REDUCE = {
    "sum": lambda x, **k: x.sum(**k),
    "mean": lambda x, **k: x.mean(**k),
    "max": lambda x, **k: x.max(**k),
    "min": lambda x, **k: x.min(**k),
    "prod": lambda x, **k: x.prod(**k),
    "logsumexp": lambda x, **k: np.log(np.exp(x).sum(**k)),
    "vector_norm": lambda x, ord=2, **k: (np.abs(x) ** float(ord)).sum(**k) ** (1 / ord),
    "var": lambda x, **k: _with_mean(np.var, x, **k),
    "std": lambda x, **k: _with_mean(np.std, x, **k),
    "count_nonzero": lambda x, **k: (x != 0).sum(**k),
    "any": lambda x, **k: (x != 0).any(**k),
    "all": lambda x, **k: (x != 0).all(**k),
    "trace": lambda x, **k: np.trace(x, **k),
}


def reduction(name, x, **kwargs):
    """In float64, complex128, or the type that NumPy gives integers."""
    x = np.asarray(x)
    x = x if x.dtype.kind in "iub" else wide(x)
    with np.errstate(over="ignore"):
        return _REDUCE[name](x, **kwargs)


def value(name, *args, **kwargs):
    return reduction(name, *args, **kwargs)
