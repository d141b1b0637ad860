"""Laws of control: loops, branches, rematerialization and rules around an op change nothing."""

import jax
import jax.numpy as jnp
import numpy as np
from examples_of import close, stacked

from .table import derivable, law

POLICIES = ("nothing_saveable", "everything_saveable", "dots_saveable", "save_anything_except_these_names")


def _xs(e):
    return stacked([e.x, np.roll(e.x, 1)])


@law()
def scan(e):
    xs = _xs(e)
    single = jax.jit(e.fun)
    e.same(jax.lax.scan(lambda s, x: (s, e.fun(x)), 0, xs)[1], stacked([single(x) for x in np.asarray(xs)]))


@law(derivable)
def grad_of_scan(e):
    xs = _xs(e)
    zero = np.zeros((), jax.eval_shape(e.loss, e.x).dtype)
    total = lambda xs: jax.lax.scan(lambda s, x: (s + e.loss(x), None), zero, xs)[0]
    close(jax.jit(jax.grad(total))(xs), stacked([e.slope(x) for x in np.asarray(xs)]), e.dtype, scale=4)


@law()
def while_loop(e):
    """An index that is not static, and an end that is not known."""
    xs = _xs(e)
    step = lambda state: (state[0] + 1, e.fun(xs[state[0]]))
    loop = jax.jit(lambda n: jax.lax.while_loop(lambda state: state[0] < n, step, (0, np.zeros_like(e.y)))[1])
    e.same(loop(1), e.y)
    e.same(loop(2), e.alone(e.fun)(np.asarray(xs)[1]))


@law(derivable)
def jvp_of_while_loop(e):
    body = lambda x: jax.lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, e.fun(x)), (0, e.y))[1]
    y, got = jax.jit(lambda x, v: jax.jvp(body, (x,), (v,)))(e.x, e.v)
    e.same(y, e.y)
    close(got, e.push, e.dtype, scale=4)


@law()
def cond(e):
    """Also under vmap, where both branches run."""
    either = lambda yes, x: jax.lax.cond(yes, e.fun, lambda x: jnp.zeros_like(e.y), x)
    got = jax.jit(either)(True, e.x)
    e.same(got, e.y)
    both = jax.jit(jax.vmap(either))(np.array([True, False]), stacked([e.x, e.x]))
    e.same(both, stacked([e.y, np.zeros_like(e.y)]))


@law(derivable)
def grad_of_cond(e):
    either = lambda x, yes: jax.lax.cond(yes, e.loss, lambda x: 0 * e.loss(x), x)
    got = jax.jit(jax.grad(either))
    close(got(e.x, True), e.gradient, e.dtype, scale=4)
    close(got(e.x, False), np.zeros_like(e.x), e.dtype)


@law(derivable)
def checkpoint(e):
    """Under each policy; of complex numbers under those that keep none, since JAX's others round what they keep with
    `reduce_precision`, which takes floats alone."""
    of = lambda name: getattr(jax.checkpoint_policies, name)
    is_complex = e.op.library == "cufft" or jnp.iscomplexobj(e.x) or jnp.iscomplexobj(e.y)
    names = POLICIES[:1] if is_complex else POLICIES
    policies = [None, *(of(name) if "these" not in name else of(name)("y") for name in names)]
    gradients = jax.jit(lambda x: [jax.grad(jax.checkpoint(e.loss, policy=policy))(x) for policy in policies])
    for got in gradients(e.x):
        close(got, e.gradient, e.dtype, scale=4)


@law(derivable)
def custom_vjp(e):
    """A rule around the op that calls the op's own."""
    fun = jax.custom_vjp(lambda x: e.fun(x))
    fun.defvjp(lambda x: jax.vjp(e.fun, x), lambda pull, w: pull(2 * w))
    both = jax.jit(
        lambda x, w: [(y, pull(ct)[0]) for f, ct in ((fun, w), (e.fun, w + w)) for y, pull in [jax.vjp(f, x)]]
    )
    (y, got), (_, want) = both(e.x, e.w)
    e.same(y, e.y)
    close(got, want, e.dtype, scale=4)
