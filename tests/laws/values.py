"""Laws of values: however a program is traced, compiled and run, it gives the bits of the op run alone."""

import functools
import re
import warnings

import jax
import jax.extend
import jax.numpy as jnp
import numpy as np
import pytest
from examples_of import same_bits, stacked

from baracuda_jax._core import compat

from .table import derivable, law


@law()
def jit(e):
    e.same(jax.jit(e.fun)(e.x), e.y)


@law()
def eval_shape(e):
    y = jax.eval_shape(e.fun, e.x)
    assert (y.shape, y.dtype) == (e.y.shape, e.y.dtype)


@law()
def make_jaxpr(e):
    again = jax.extend.core.jaxpr_as_fun(jax.make_jaxpr(e.fun)(e.x))
    e.same(e.alone(again)(e.x)[0], e.y)


@law()
def compiled_ahead_of_time(e):
    compiled = jax.jit(e.fun).trace(e.x).lower().compile()
    assert compiled.out_info.dtype == e.y.dtype
    e.same(compiled(e.x), e.y)


@law()
def donated_arguments(e):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Some donated buffers were not usable")
        y = jax.jit(e.call, donate_argnums=tuple(range(len(e.args))))(*map(jnp.copy, e.args))
    e.same(y, e.y)


def _aliases(op, dtype):
    return (
        None
        if len(op.aliases) == 1
        else "the op writes nothing in place, or several arrays, which its own test donates"
    )


def in_place(text, x):
    """Whether a compiled program's result takes the memory of its first argument of x's type, and no such array is copied."""
    dims = ",".join(map(str, x.shape))
    return "input_output_alias={ {}: (0, {}," in text and not re.search(rf"\[{dims}\]\S* copy(-start)?\(", text)


@law(_aliases)
def operands_updated_in_place(e):
    """Alone and in a batch: where the operand is donated, nothing is copied; where it is kept, it stays as it was."""
    assert list(e.op.operands).index(*e.op.aliases) == 0
    batch = [stacked([a, np.flip(a, 0) if a.ndim else a]) for a in e.args]
    for fun, args in ((e.call, e.args), (jax.vmap(e.call), batch)):
        assert in_place(jax.jit(fun, donate_argnums=0).lower(*args).compile().as_text(), args[0])
        before = np.array(args[0])
        y = jax.jit(fun)(*args)
        same_bits(args[0], before)
        assert np.asarray(y).tobytes() != before.tobytes()


@law()
def same_bits_in_ten_runs(e):
    run, args = jax.jit(e.fun), (e.x,)
    if derivable(e.op, e.x.dtype) is None:
        run, args = jax.jit(lambda x, w: (e.fun(x), jax.vjp(e.fun, x)[1](w)[0])), (e.x, e.w)
    first = run(*args)
    for _ in range(9):
        jax.tree.map(same_bits, first, run(*args))


@law()
def debug_nans(e):
    """No NaN where there is none in the operands; where there is one, it is seen."""
    if np.isnan(np.abs(np.asarray(e.y)).astype(np.float64)).any():  # as a variance of one row, by rows less one
        return
    with jax.debug_nans(True):
        e.same(jax.jit(e.fun)(e.x), e.y)
        if derivable(e.op, e.x.dtype) is None:
            jax.jit(jax.grad(e.loss))(e.x)
    if not e.is_float:
        return
    spoilt = np.array(e.x)
    spoilt[(0,) * e.x.ndim] = np.nan
    spoilt = jax.device_put(spoilt)
    if np.isnan(np.abs(np.asarray(e.fun(spoilt))).astype(np.float64)).any():
        with jax.debug_nans(True), pytest.raises(FloatingPointError):
            jax.jit(e.fun)(spoilt)


@law()
def x64_off(e):
    """Types of 64 bits become those of 32."""
    narrow = {"float64": "float32", "int64": "int32", "uint64": "uint32", "complex128": "complex64"}
    as_narrow = lambda a: a.astype(narrow.get(a.dtype.name, a.dtype.name))
    want = e.alone(lambda *args: as_narrow(e.call(*map(as_narrow, args))))(*e.args)
    with jax.enable_x64(False):
        e.same(jax.jit(e.call)(*map(np.asarray, e.args)), want, narrow.get(e.dtype, e.dtype))


def _default_type(op, dtype):
    names = "float64", "int64", "float32", "int32"
    return None if dtype.name in names else "numbers become arrays of the default types alone"


def _filled(e):
    return jnp.full(e.x.shape, 0.7 if e.is_float else 2)


@law(_default_type)
def weak_types(e):
    """An array whose type is weak, since it was made of a number, is one of its type; of a facade JAX says what is weak."""
    with jax.enable_x64(e.dtype.endswith("64")):
        weak = _filled(e)
        assert weak.weak_type and weak.dtype == e.x.dtype
        assert e.op.weak or e.op.is_facade or not jax.eval_shape(e.fun, weak).weak_type
        e = e.with_arguments(jax.device_put(np.asarray(a)) for a in e.args)

        @jax.jit
        def everything(x):
            y = e.fun(x)
            if derivable(e.op, x.dtype) is not None:
                return y
            v, w = (jnp.ones(a.shape, a.dtype) for a in (x, y))
            loss = jax.lax.scan(lambda s, _: (s + e.fun(x).sum().real, None), 0.0, None, 2)[0]
            return y, jax.jvp(e.fun, (x,), (v,))[1], jax.vjp(e.fun, x)[1](w)[0], loss

        jax.tree.map(e.same, everything(weak), everything(weak.astype(e.dtype)))


def _takes_numbers(op, dtype):
    return None if any(_has_number(case, dtype) for case in op.cases) else "none of its arguments is a number"


def _has_number(case, dtype):
    return any(a.ndim == 0 for a in jax.tree.leaves(case.arguments(np.random.default_rng(0), dtype)))


@law(_takes_numbers)
def python_numbers(e):
    case = next(case for case in e.op.cases if _has_number(case, e.dtype))
    e = type(e)(e.op, case, e.dtype)
    e.same(e.call(*(a.item() if a.ndim == 0 else a for a in e.args)), e.y)


@law()
def strict_promotion(e):
    """Kernels and reference, forward and backward, mix no dtypes."""
    compat._trace.cache_clear()
    with jax.numpy_dtype_promotion("strict"):
        e.same(jax.jit(e.fun)(e.x), e.y)
        for implementation in ("native", "xla"):
            fun = functools.partial(e.fun, implementation=implementation)
            jax.jit(fun).lower(e.x)
            if derivable(e.op, e.x.dtype) is None:
                jax.jit(lambda x, w: jax.vjp(fun, x)[1](w)).lower(e.x, e.w)
                jax.jit(lambda x, v: jax.jvp(fun, (x,), (v,))).lower(e.x, e.v)
    compat._trace.cache_clear()
