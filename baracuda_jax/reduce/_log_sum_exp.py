"""The logarithm of the sum of exponentials."""

import jax
import jax.numpy as jnp

from .._core import checks
from .._core.op import Body, declare
from .._core.wide import wide
from ._arguments import HALVES, array, axes_of, document, masked, per_line, with_axes
from ._family import AXES, cases, derivatives, lines
from ._kernels import reduce, spread
from ._partition import log_sum_exp_by_lines


@document(
    "y = log(sum of e^(x_i) over the cells of a line); dx_i = dy e^(x_i - y)",
    "jax.scipy.special.logsumexp; torch.logsumexp",
    "where",
    dtypes="a float type; integers and bool are cast to one",
    precision=f"{HALVES} Sums are kept beside their maximum: nothing overflows. -inf adds nothing and has gradient 0, +inf "
    "gives +inf, NaN gives NaN, and a line without cells -inf.",
)
def logsumexp(a, axis=None, *, keepdims=False, where=None, prefer=None):
    """Logarithm of the sum of exponentials of the cells along axes."""
    op = "logsumexp"
    a = array(op, "a", a, checks.FLOATS, to_float=True)
    axes = axes_of(op, "a", a, axis)
    a = masked(op, "a", a, where, -jnp.inf)
    return with_axes(op, _log_sum_exp(a, axes=axes, prefer=prefer), axes, keepdims)


def logsumexp_backward(a, y, dy, axis=None, *, keepdims=False, prefer=None):
    """The gradient of `logsumexp`: dx_i = dy e^(x_i - y).

    Args:
        a: floats, the exponents.
        y: the result of `logsumexp`.
        dy: its cotangent. All three have one dtype.
        axis, keepdims: as in `logsumexp`.
        prefer: "native", "xla" or None.

    Returns:
        The cotangent of a.
    """
    op = "logsumexp_backward"
    a = array(op, "a", a, checks.FLOATS)
    axes = axes_of(op, "a", a, axis)
    y, dy = per_line(op, "a", a, axes, keepdims, {"y": y, "dy": dy})
    return _log_sum_exp.vjp(a, y, dy, axes=axes, prefer=prefer)


def _reference(x, *, axes):
    return (jax.nn.logsumexp(wide(x), axes).astype(x.dtype),)


def _native(x, *, axes, save):
    return reduce("reduce_logsumexp", x, axes, [x.dtype])


def _slope(x, y, *, axes):
    """e^(x - y), 0 for -inf, 1 for equal infinities, which have no difference."""
    y = lines(y, axes)
    is_nothing, is_same = x == -jnp.inf, jnp.isinf(x) & (x == y)
    return jnp.where(is_nothing, 0, jnp.exp(jnp.where(is_nothing | is_same, 0, x - y)))


def _backward(x, y, dy, *, axes):
    return spread("reduce_logsumexp_backward", x.shape, axes, [x], [y, dy])


_log_sum_exp = declare(
    "logsumexp",
    **AXES,
    operands=("a",),
    differentiable=("a",),
    public=logsumexp,
    dtypes=checks.FLOATS,
    cases=cases(),
    residuals=("a", "y"),
    cut=log_sum_exp_by_lines,
    forward=Body(_reference, _native),
    **derivatives(_slope, _backward),
    kernels={
        "forward": ("reduce_logsumexp",),
        "tangent": ("reduce_logsumexp_backward", "reduce_sum"),
        "backward": ("reduce_logsumexp_backward",),
    },
)
