"""Laws of derivatives: they are the limits of differences, and the kernels' are those of the definition."""

import jax
import jax.numpy as jnp
import numpy as np
from examples_of import close, loss_of


def test_derivatives_are_finite_differences(smooth):
    """The first, forward and reverse; the second, forward over reverse and reverse over reverse, along two directions."""
    fun, loss, step = smooth.fun, loss_of(smooth.fun), 1e-5
    gradient = jax.grad(loss)

    @jax.jit
    def pairs(x, v):
        ends = jax.lax.map(lambda x: (fun(x), loss(x), gradient(x)), jnp.stack([x + step * v, x - step * v]))
        of_fun, of_loss, of_gradient = ((after - before) / (2 * step) for after, before in ends)
        y, push = jax.jvp(fun, (x,), (v,))
        g, forward = jax.jvp(gradient, (x,), (v,))
        return {
            # Segments without rows have infinite extremes.
            "jvp": (push, jnp.where(jnp.isfinite(y), of_fun, 0)),
            "grad": (jnp.vdot(g, v), of_loss),
            "jvp of grad": (forward, of_gradient),
            "grad of grad": (jax.grad(lambda x: jnp.vdot(gradient(x), v))(x), of_gradient),
        }

    for name, (got, want) in pairs(smooth.x, smooth.v).items():
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=name)


def test_native_derivatives_are_the_references(float_example):
    e = float_example
    fun = lambda prefer: lambda x: e.fun(x, prefer)
    both = lambda fun, x, v, w: (jax.vjp(fun, x)[1](w)[0], jax.jvp(fun, (x,), (v,))[1])
    each = jax.jit(lambda *args: [both(fun(prefer), *args) for prefer in ("native", "xla")])
    for native, reference in zip(*each(e.x, e.v, e.w), strict=True):
        close(native, reference, e.dtype, scale=4)
