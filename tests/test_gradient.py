"""Laws of derivatives: against finite differences, against each other, and of every order."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from examples_of import Example, close, loss_of

FLOATS = ("float64", "float32", "float16", "bfloat16")


def test_jvp_is_the_finite_difference(smooth):
    x, v, step = smooth.x, smooth.random(smooth.x), 1e-5
    got = jax.jvp(smooth.fun, (x,), (v,))[1]
    finite = jnp.isfinite(smooth.fun(x))  # segments without rows have infinite extremes
    want = jnp.where(finite, (smooth.fun(x + step * v) - smooth.fun(x - step * v)) / (2 * step), 0)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_grad_is_the_finite_difference(smooth):
    x, v, step = smooth.x, smooth.random(smooth.x), 1e-5
    loss = jax.jit(loss_of(smooth.fun))
    got = jnp.vdot(jax.grad(loss)(x), v)
    want = (loss(x + step * v) - loss(x - step * v)) / (2 * step)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_forward_and_backward_are_adjoint(float_example):
    """<Jv, w> = <v, J'w>"""
    example = float_example
    y, pull = jax.vjp(example.fun, example.x)
    v, w = example.random(example.x, 1), example.random(y, 2)
    wide = lambda a: np.asarray(a, np.float64)
    jv, jw = jax.jvp(example.fun, (example.x,), (v,))[1], pull(w)[0]
    assert jv.dtype == jw.dtype == example.x.dtype
    size = np.abs(wide(jv) * wide(w)).sum() + np.abs(wide(v) * wide(jw)).sum()
    close(np.vdot(wide(jv), wide(w)) / size, np.vdot(wide(v), wide(jw)) / size, example.dtype)


def test_native_derivatives_are_the_references(float_example):
    example = float_example
    w = example.random(example.fun(example.x))
    v = example.random(example.x)

    @functools.partial(jax.jit, static_argnums=0)
    def derivatives(prefer):
        fun = lambda x: example.fun(x, prefer)
        return jax.vjp(fun, example.x)[1](w)[0], jax.jvp(fun, (example.x,), (v,))[1]

    for native, reference in zip(derivatives("native"), derivatives("xla"), strict=True):
        close(native, reference, example.dtype, scale=4)


def test_second_derivative_is_the_finite_difference(smooth):
    """Forward over reverse and reverse over reverse, along two directions."""
    x, v, step = smooth.x, smooth.random(smooth.x, 1), 1e-5
    loss = jax.jit(loss_of(smooth.fun))
    gradient = jax.jit(jax.grad(loss))
    want = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
    np.testing.assert_allclose(jax.jit(lambda x: jax.jvp(gradient, (x,), (v,))[1])(x), want, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.grad(lambda x: jnp.vdot(gradient(x), v)))(x), want, rtol=1e-6, atol=1e-6)


def test_hessian_is_symmetric(smooth_op):
    example = Example(smooth_op, smooth_op.cases[0], "float64")
    size = min(example.x.size, 24)

    place = lambda part: example.x.ravel().at[:size].set(part).reshape(example.x.shape)
    loss = loss_of(lambda part: example.fun(place(part)))
    hessian = jax.jit(jax.hessian(loss))(example.x.ravel()[:size])
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12, atol=1e-12)
    assert np.abs(hessian).max() > 0


def test_third_derivative_is_the_finite_difference(smooth_op):
    example = Example(smooth_op, smooth_op.cases[0], "float64")
    v, step = example.random(example.x), 1e-5
    second = jax.jit(jax.grad(jax.grad(loss_of(lambda t: example.fun(example.x + t * v)))))
    want = (second(step) - second(-step)) / (2 * step)
    np.testing.assert_allclose(jax.jit(jax.grad(second))(0.0), want, rtol=1e-5, atol=1e-5)


def test_vmap_of_grad_is_a_stack_of_gradients(smooth):
    loss = jax.jit(loss_of(smooth.fun))
    xs = jnp.stack([smooth.x, smooth.x + 0.01 * smooth.random(smooth.x)])
    close(jax.vmap(jax.grad(loss))(xs), jnp.stack([jax.grad(loss)(x) for x in xs]), "float64")
    close(jax.grad(lambda xs: jax.vmap(loss)(xs).sum())(xs), jax.vmap(jax.grad(loss))(xs), "float64")


def test_linearize_and_transpose_agree_with_jvp_and_vjp(smooth):
    y, push = jax.linearize(smooth.fun, smooth.x)
    v, w = smooth.random(smooth.x, 1), smooth.random(y, 2)
    close(push(v), jax.jvp(smooth.fun, (smooth.x,), (v,))[1], "float64")
    close(jax.linear_transpose(push, smooth.x)(w)[0], jax.vjp(smooth.fun, smooth.x)[1](w)[0], "float64")


def test_the_backward_kernel_is_differentiable(smooth):
    """Its derivative in the cotangent is the tangent kernel, so <J'w, v> is linear in w with gradient Jv."""
    v = smooth.random(smooth.x, 1)
    y = smooth.fun(smooth.x)
    pair = lambda w: jnp.vdot(jax.vjp(smooth.fun, smooth.x)[1](w)[0], v)
    close(jax.grad(pair)(smooth.random(y, 2)), jax.jvp(smooth.fun, (smooth.x,), (v,))[1], "float64")


def test_integers_have_no_gradient(op):
    integer = [d for d in op.dtypes if d not in FLOATS]
    if not integer:
        pytest.skip("the op takes floats alone")
    example = Example(op, op.cases[0], integer[0])
    y, pull = jax.vjp(example.fun, example.x)
    assert pull(np.zeros(y.shape, jax.dtypes.float0))[0].dtype == jax.dtypes.float0
