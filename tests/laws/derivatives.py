"""Laws of derivatives: JAX's ways to the same derivative agree. That it is the right one, test_gradient.py shows."""

import jax
import jax.numpy as jnp
import numpy as np
from examples_of import close, loss_of, same_bits

from .table import derivable, law, real, smooth


@law(derivable)
def grad(e):
    value, gradient = jax.jit(jax.value_and_grad(e.loss))(e.x)
    close(value, e.loss(e.x), e.dtype, scale=4)
    close(gradient, e.gradient, e.dtype, scale=4)
    assert gradient.dtype == e.x.dtype
    same_bits(jax.jit(jax.grad(e.loss))(e.x), gradient)


@law(derivable)
def jvp(e):
    y, got = jax.jit(lambda x, v: jax.jvp(e.fun, (x,), (v,)))(e.x, e.v)
    same_bits(y, e.y)
    close(got, e.push, e.dtype, scale=4)
    assert got.dtype == y.dtype


@law(derivable)
def vjp(e):
    """<Jv, w> = <v, J'w>"""
    wide = lambda a: np.asarray(a, np.complex128)
    y, pull = jax.vjp(e.fun, e.x)
    same_bits(y, e.y)
    jv, jw = e.push, pull(e.w)[0]
    assert jv.dtype == jw.dtype == e.x.dtype
    jv, jw, v, w = map(wide, (jv, jw, e.v, e.w))
    size = np.abs(jv * w).sum() + np.abs(v * jw).sum() or 1
    dtype = {"complex64": "float32", "complex128": "float64"}.get(e.dtype, e.dtype)
    close((jv * w).sum().real / size, (v * jw).sum().real / size, dtype)


@law(derivable)
def linearize(e):
    y, push = jax.linearize(e.fun, e.x)
    same_bits(y, e.y)
    close(push(e.v), e.push, e.dtype, scale=4)
    close(jax.linear_transpose(push, e.x)(e.w)[0], jax.vjp(e.fun, e.x)[1](e.w)[0], e.dtype, scale=4)


def _linear(op, dtype):
    return None if op.is_linear else "the op is not linear"


@law(derivable, _linear)
def linear_transpose(e):
    close(jax.linear_transpose(e.fun, e.x)(e.w)[0], jax.vjp(e.fun, e.x)[1](e.w)[0], e.dtype)


def _of_few(e, count):
    """The op as a function of some elements of x, and these."""
    x = e.x.ravel()
    count = min(x.size, count)
    return lambda some: e.fun(x.at[:count].set(some).reshape(e.x.shape)), x[:count]


@law(derivable, real)
def jacobians(e):
    fun, some = _of_few(e, 8)
    forward, reverse = jax.jit(lambda x: (jax.jacfwd(fun)(x), jax.jacrev(fun)(x)))(some)
    close(forward, reverse, e.dtype, scale=4)
    assert forward.shape == (*e.y.shape, *some.shape)


@law(derivable, real, smooth)
def hessian(e):
    fun, some = _of_few(e, 24)
    got = jax.jit(jax.hessian(loss_of(fun)))(some)
    close(got, got.T, e.dtype, scale=8)
    assert np.abs(np.asarray(got, np.float64)).max() > 0


@law(derivable, real, smooth)
def third_derivative(e):
    """Along a line: the limit of differences where float64 shows it, else that of the definition."""
    along = lambda prefer: loss_of(lambda t: e.fun(e.x + t * e.v, prefer))
    third = lambda prefer: jax.jit(jax.grad(jax.grad(jax.grad(along(prefer)))))(jnp.zeros((), e.dtype))
    if e.dtype != "float64":
        close(third("native"), third("xla"), e.dtype, scale=100)
        return
    second, step = jax.jit(jax.grad(jax.grad(along("native")))), 1e-5
    want = (second(step) - second(-step)) / (2 * step)
    np.testing.assert_allclose(third("native"), want, rtol=1e-5, atol=1e-5)


@law(derivable)
def derivative_of_the_backward_kernel(e):
    """<J'w, v> is linear in w, with gradient Jv."""
    pair = lambda w: jnp.sum(jax.vjp(e.fun, e.x)[1](w)[0] * e.v).real
    close(jax.jit(jax.grad(pair))(e.w), e.push, e.dtype, scale=8)


def _integer(op, dtype):
    if jnp.issubdtype(dtype, jnp.inexact):
        return "floats have a gradient"
    return None if op.differentiable else "the op has no derivative"


@law(_integer)
def integers_have_no_gradient(e):
    y, pull = jax.vjp(e.fun, e.x)
    same_bits(y, e.y)
    assert pull(np.zeros(y.shape, jax.dtypes.float0))[0].dtype == jax.dtypes.float0
