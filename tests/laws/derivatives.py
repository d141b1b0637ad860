"""Laws of derivatives: they are the limits of differences, the kernels' are those of the definition, and all of JAX's ways to a
derivative agree."""

import jax
import jax.numpy as jnp
import numpy as np
from examples_of import close, loss_of

from .table import derivable, law, real, smooth


def _sharp(op, dtype):
    return None if dtype == "float64" else "differences are sharp in float64 alone"


def _bend(before, here, after):
    """How much the differences on both sides of a point differ, compared with the largest: little, unless there is a kink. It does
    not rest on a derivative."""
    left, right = (jnp.nan_to_num(d, nan=0, posinf=0, neginf=0) for d in (here - before, after - here))
    return jnp.max(jnp.abs(right - left), initial=0) / jnp.maximum(1e-5, jnp.max(jnp.abs(right), initial=0))


def _lines(e):
    """Points and directions: those of the example, and others near them."""
    return ((np.asarray(e.x) + 1e-3 * i * np.asarray(e.random(e.x, 100 + i)), e.random(e.x, 1 + i)) for i in range(8))


@law(derivable, smooth, _sharp, about="functor")
def limits_of_differences(e):
    """The first, forward and reverse; the second, forward over reverse and reverse over reverse, along two directions. Between
    the ends is no kink, or others are drawn."""
    loss, step = loss_of(e.fun), 1e-5
    gradient = jax.grad(loss)

    @jax.jit
    def pairs(x, v):
        values = jax.lax.map(lambda x: (e.fun(x), loss(x), gradient(x)), jnp.stack([x - step * v, x, x + step * v]))
        of_fun, of_loss, of_gradient = ((after - before) / (2 * step) for before, _, after in values)
        bend = [_bend(*points) for points in values]
        y, push = jax.jvp(e.fun, (x,), (v,))
        g, forward = jax.jvp(gradient, (x,), (v,))
        return jnp.max(jnp.stack(bend)), {
            # Segments without rows have infinite extremes.
            "jvp": (push, jnp.where(jnp.isfinite(y), of_fun, 0)),
            "grad": (jnp.vdot(g, v), of_loss),
            "jvp of grad": (forward, of_gradient),
            "grad of grad": (jax.grad(lambda x: jnp.vdot(gradient(x), v))(x), of_gradient),
        }

    for x, v in _lines(e):
        bend, compared = pairs(x, v)
        if bend < 1e-3:
            break
    assert bend < 1e-3, "there is a kink near each x"
    for name, (got, want) in compared.items():
        np.testing.assert_allclose(got, want, rtol=1e-6, atol=1e-6, err_msg=name)


@law(derivable, about="functor")
def derivatives_of_the_definition(e):
    fun = lambda implementation: lambda x: e.fun(x, implementation)
    both = lambda fun, x, v, w: (jax.vjp(fun, x)[1](w)[0], jax.jvp(fun, (x,), (v,))[1])
    each = jax.jit(lambda *args: [both(fun(implementation), *args) for implementation in ("native", "xla")])
    for native, reference in zip(*each(e.x, e.v, e.w), strict=True):
        close(native, reference, e.dtype, scale=4)


@law(derivable)
def grad(e):
    value, gradient = jax.jit(jax.value_and_grad(e.loss))(e.x)
    close(value, jax.jit(e.loss)(e.x), e.dtype, scale=4)
    close(gradient, e.gradient, e.dtype, scale=4)
    assert gradient.dtype == e.x.dtype
    e.same(e.slope(e.x), gradient)


@law(derivable)
def jvp(e):
    y, got = jax.jit(lambda x, v: jax.jvp(e.fun, (x,), (v,)))(e.x, e.v)
    e.same(y, e.y)
    close(got, e.push, e.dtype, scale=4)
    assert got.dtype == y.dtype


@law(derivable)
def vjp(e):
    """<Jv, w> = <v, J'w>, the real part where x or the result alone is complex"""
    wide = lambda a: np.asarray(a).astype(np.complex128 if a.dtype.kind == "c" else np.float64)
    y, jw = jax.jit(lambda x, w: (lambda y, pull: (y, pull(w)[0]))(*jax.vjp(e.fun, x)))(e.x, e.w)
    e.same(y, e.y)
    jv = e.push
    part = (lambda a: a) if e.x.dtype == y.dtype else np.real
    assert jv.dtype == y.dtype and jw.dtype == e.x.dtype
    jv, jw, v, w = map(wide, (jv, jw, e.v, e.w))
    size = np.abs(jv * w).sum() + np.abs(v * jw).sum() or 1
    close(part((jv * w).sum()) / size, part((v * jw).sum()) / size, e.dtype)


def _several(op, dtype):
    return None if len(op.differentiable) > 1 else "the op has a derivative in one argument alone"


@law(derivable, _several)
def derivative_in_one_argument(e):
    """Next to arguments that do not move, each is as it is next to those whose tangents are zeros."""
    moving = [e.args[i] for i in e.moving]
    fun = lambda *xs: e.call(*(xs[e.moving.index(i)] if i in e.moving else a for i, a in enumerate(e.args)))
    tangents = [e.random(x, i) for i, x in enumerate(moving)]

    def pair(i, *xs):
        zeros = (jnp.zeros_like(t) if k != i else t for k, t in enumerate(tangents))
        alone = jax.jvp(lambda x: fun(*xs[:i], x, *xs[i + 1 :]), xs[i : i + 1], (tangents[i],))[1]
        return alone, jax.jvp(fun, xs, tuple(zeros))[1]

    for got, want in jax.jit(lambda *xs: [pair(i, *xs) for i in range(len(xs))])(*moving):
        close(got, want, e.dtype, scale=4)


@law(derivable)
def linearize(e):
    y, push = jax.linearize(e.alone(e.fun), e.x)
    e.same(y, e.y)
    close(e.alone(push)(e.v), e.push, e.dtype, scale=4)
    close(e.alone(jax.linear_transpose(push, e.x))(e.w)[0], e.pull(e.w), e.dtype, scale=4)


def _linear(op, dtype):
    return None if op.is_linear else "the op is not linear"


@law(derivable, _linear)
def linear_transpose(e):
    close(e.alone(jax.linear_transpose(e.fun, e.x))(e.w)[0], e.pull(e.w), e.dtype)


def _of_few(e, count):
    """The op as a function of some elements of x, and these: some spread over it, some of steep gradients."""
    x = np.ravel(e.x)
    steep = np.argsort(-np.abs(np.nan_to_num(np.asarray(e.gradient).ravel().astype(complex))))[: count // 2]
    positions = np.union1d(np.linspace(0, x.size - 1, min(x.size, count // 2)).astype(int), steep)
    return lambda some: e.fun(jnp.asarray(x).at[positions].set(some).reshape(e.x.shape)), x[positions]


def _as_real(fun):
    """Of complex results, both parts."""
    return lambda x: jnp.stack([y.real, y.imag]) if jnp.iscomplexobj(y := fun(x)) else y


def _to_few(fun, count):
    """Some of fun's results, spread over them: a Jacobian in reverse takes a pass for each."""

    def some(x):
        y = jnp.ravel(fun(x))
        return y[np.linspace(0, y.size - 1, min(y.size, count)).astype(int)]

    return some


@law(derivable, real)
def jacobians(e):
    fun, some = _of_few(e, 8)
    fun = _to_few(_as_real(fun), 64)
    forward, reverse = jax.jit(lambda x: (jax.jacfwd(fun)(x), jax.jacrev(fun)(x)))(some)
    close(forward, reverse, e.dtype, scale=4)
    assert forward.shape == (*jax.eval_shape(fun, some).shape, *some.shape)


@law(derivable, real, smooth)
def hessian(e):
    fun, some = _of_few(e, 24)
    got = np.asarray(jax.jit(jax.hessian(loss_of(fun)))(some))
    close(got, got.T, e.dtype, scale=8)
    # Of what rounds even the first derivative is 0.
    assert np.any(np.asarray(got, np.float64)) or not np.any(np.asarray(e.gradient, np.float64))


@law(derivable, real, smooth)
def third_derivative(e):
    """Along a line: the limit of differences where float64 shows it, else that of the definition. This runs on a CPU: XLA's
    GPU program for the third derivative of a recurrence reads memory that is not its own."""
    along = lambda implementation: loss_of(lambda t: e.fun(e.x + t * e.v, implementation))
    third = lambda implementation: jax.jit(jax.grad(jax.grad(jax.grad(along(implementation)))))(jnp.zeros((), e.dtype))
    if e.dtype != "float64":
        with jax.default_device(jax.devices("cpu")[0]):
            want = third("xla")
        close(third("native"), want, e.dtype, scale=100)
        return
    step = 1e-5
    # The line and its origin are arguments, so that other lines, where this one has a kink, are of the same program.
    on_line = lambda t, x, v: loss_of(lambda t: e.fun(x + t * v))(t)
    second = jax.grad(jax.grad(on_line))
    both = jax.jit(lambda x, v: ([second(t, x, v) for t in (-step, 0.0, step)], jax.grad(second)(0.0, x, v)))
    for x, v in _lines(e):
        (before, here, after), got = both(x, v)
        if (bend := _bend(before, here, after)) < 1e-3:
            break
    assert bend < 1e-3, "there is a kink near each x"
    np.testing.assert_allclose(got, (after - before) / (2 * step), rtol=1e-5, atol=1e-5)


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
    e.same(y, e.y)
    assert pull(np.zeros(y.shape, jax.dtypes.float0))[0].dtype == jax.dtypes.float0
