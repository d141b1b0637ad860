"""What the ops compute, written out in NumPy, in float64 or wrapping integers: a file a family.

A file has a function of each op's name, of float64 and integers; or, where ops are alike, `value`, of an op's name and of arrays as
they are."""

import importlib
import inspect

import jax
import jax.numpy as jnp
import numpy as np

from .wide import wide


def value(example):
    """The oracle's result for an example, as `Example.call` gives it: the first outputs, several as one vector."""
    of_family, kwargs = importlib.import_module(f"oracles.{example.op.family}"), dict(example.case.kwargs)
    if hasattr(of_family, "value"):
        return of_family.value(example.op.name, *map(np.asarray, example.args), **kwargs)
    args = [wide(x) if jnp.issubdtype(x.dtype, jnp.inexact) else np.asarray(x) for x in example.args]
    fun = getattr(of_family, example.op.name)
    if "dtype" in inspect.signature(fun).parameters:  # of what is drawn in it
        kwargs.setdefault("dtype", example.dtype)
    found = fun(*example.structured(args), **kwargs)
    outputs = jax.tree.leaves((found if isinstance(found, tuple) else (found,))[: len(example.op.outputs)])
    return outputs[0] if len(outputs) == 1 else np.concatenate([np.ravel(y) for y in outputs])
