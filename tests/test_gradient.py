"""Laws of derivatives: against finite differences, against each other, and of every order."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from examples_of import close

FLOATS = ("float64", "float32", "float16", "bfloat16")


def test_jvp_is_the_finite_difference(smooth):
    x, v, step = smooth.x, smooth.random(smooth.x), 1e-5
    got = jax.jvp(smooth.fun, (x,), (v,))[1]
    want = (smooth.fun(x + step * v) - smooth.fun(x - step * v)) / (2 * step)
    np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6)


def test_grad_is_the_finite_difference(smooth):
    x, v, step = smooth.x, smooth.random(smooth.x), 1e-5
    loss = lambda x: jnp.sum(jnp.sin(jnp.where(jnp.isfinite(y := smooth.fun(x)), y, 0)))
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
    for derivative in (
        lambda p: jax.vjp(lambda x: example.fun(x, p), example.x)[1](w)[0],
        lambda p: jax.jvp(lambda x: example.fun(x, p), (example.x,), (v,))[1],
    ):
        close(derivative("native"), derivative("xla"), example.dtype, scale=4)


def test_second_derivative_is_the_finite_difference(smooth):
    """Forward over reverse and reverse over reverse, along two directions."""
    x, v, step = smooth.x, smooth.random(smooth.x, 1), 1e-5
    loss = lambda x: jnp.sum(jnp.sin(jnp.where(jnp.isfinite(y := smooth.fun(x)), y, 0)))
    gradient = jax.grad(loss)
    want = (gradient(x + step * v) - gradient(x - step * v)) / (2 * step)
    np.testing.assert_allclose(jax.jvp(gradient, (x,), (v,))[1], want, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(jax.grad(lambda x: jnp.vdot(gradient(x), v))(x), want, rtol=1e-6, atol=1e-6)


def test_hessian_is_symmetric(op):
    from examples_of import Example

    example = Example(op, op.cases[0], "float64")
    size = min(example.x.size, 24)

    def loss(part):
        x = example.x.ravel().at[:size].set(part).reshape(example.x.shape)
        return jnp.sum(jnp.sin(jnp.where(jnp.isfinite(y := example.fun(x)), y, 0)))

    hessian = jax.hessian(loss)(example.x.ravel()[:size])
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12, atol=1e-12)
    assert np.abs(hessian).max() > 0


def test_third_derivative_is_the_finite_difference(op):
    from examples_of import Example

    example = Example(op, op.cases[0], "float64")
    v, step = example.random(example.x), 1e-5
    along = lambda t: jnp.sum(jnp.sin(jnp.where(jnp.isfinite(y := example.fun(example.x + t * v)), y, 0)))
    second = jax.grad(jax.grad(along))
    want = (second(step) - second(-step)) / (2 * step)
    np.testing.assert_allclose(jax.grad(second)(0.0), want, rtol=1e-5, atol=1e-5)


def test_vmap_of_grad_is_a_stack_of_gradients(smooth):
    loss = lambda x: jnp.sum(jnp.sin(jnp.where(jnp.isfinite(y := smooth.fun(x)), y, 0)))
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
    from examples_of import Example

    integer = [d for d in op.dtypes if d not in FLOATS]
    if not integer:
        pytest.skip("the op takes floats alone")
    example = Example(op, op.cases[0], integer[0])
    y, pull = jax.vjp(example.fun, example.x)
    assert pull(np.zeros(y.shape, jax.dtypes.float0))[0].dtype == jax.dtypes.float0
