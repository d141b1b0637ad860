"""Laws of export: a program that was stored gives the bits of one that was not."""

import functools

import jax
import numpy as np
import pytest
from examples_of import close, stacked

import baracuda_jax
from baracuda_jax._core.library import PREFIX

from .table import derivable, law

BOTH = "cpu", "cuda"


def stored(fun, *types, platforms=BOTH, vjp_order=0):
    exported = jax.export.export(jax.jit(fun), platforms=platforms, disabled_checks=baracuda_jax.export_checks)(*types)
    return exported.serialize(vjp_order=vjp_order)


def _again(*args, **options):
    return jax.export.deserialize(stored(*args, **options))


@law()
def export_for_cpu(e):
    x = jax.device_put(e.x, jax.devices("cpu")[0])
    e.same(_again(e.fun, e.x, platforms=("cpu",)).call(x), e.fun(x))


@law()
def export_for_cuda(e):
    """It holds the calls, and does not run elsewhere."""
    again = _again(e.fun, e.x, platforms=("cuda",))
    targets = e.op.kernels["forward"]
    missing = {target for target in targets if PREFIX + target not in again.mlir_module()}
    assert missing <= set(e.op.sometimes) and (not targets or missing < set(targets))
    with pytest.raises(ValueError, match="cuda"):
        again.call(jax.device_put(e.x, jax.devices("cpu")[0]))


@law()
def export_for_both(e):
    again = _again(e.fun, e.x)
    assert again.platforms == BOTH
    e.same(again.call(e.x), e.y)


@law(derivable)
def export_of_the_gradient(e):
    """As a program of its own, and as the derivative of an exported one. What XLA fuses may round otherwise there."""
    gradient = e.slope(e.x)
    again = _again(jax.grad(e.loss), e.x).call(e.x)
    e.same(again, gradient)
    again = _again(e.loss, e.x, vjp_order=1)
    close(jax.grad(again.call)(e.x), gradient, e.dtype)


def _batch_of_weights(op, dtype):
    return "JAX has no convolution by a symbolic number of weights" if op.library == "cudnn" else None


@law(_batch_of_weights)
def export_for_any_batch(e):
    (b,) = jax.export.symbolic_shape("b")
    types = [jax.ShapeDtypeStruct((b, *a.shape), a.dtype) for a in e.args]
    for implementation in ("native", None):
        again = _again(jax.vmap(functools.partial(e.call, implementation=implementation)), *types)
        many = [stacked([a] * 3) for a in e.args]
        if implementation:
            e.same(again.call(*many), stacked([e.y] * 3))


@law(derivable, _batch_of_weights)
def export_of_the_gradient_for_any_batch(e):
    (b,) = jax.export.symbolic_shape("b")
    gradient = jax.grad(e.loss)
    again = _again(jax.vmap(gradient), jax.ShapeDtypeStruct((b, *e.x.shape), e.x.dtype))
    xs = stacked([e.x, np.flip(e.x)])
    close(again.call(xs), jax.jit(jax.vmap(gradient))(xs), e.dtype)
