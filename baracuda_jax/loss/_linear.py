"""Cross entropy of a linear layer's results, of which never more than a chunk of rows is there.

The sum of a chunk's terms is computed together with its gradients, whose logits then need not be computed again: three
products for each chunk instead of four. That is a rule for JVPs, which JAX transposes and differentiates further. Terms of
rows, whose cotangents are not known before, are computed again chunk by chunk for their gradients."""

import functools
import typing

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.typing import ArrayLike

from .._core import checks, explicit
from .._core.case import Case
from .._core.compiled import compiled
from .._core.types import Implementation
from .._core.wide import wide, wide_dtype
from ..gemm._arguments import known_precision
from ..gemm._product import product
from ._arguments import INDEX, Reduction, class_index, loss, next_to, number, reductions
from ._scores import at_class, counted, dot, from_peak, is_class, limit, limited, share, weights_of


def _case(name, shape, classes, **kwargs):
    """Random classes, some of which are to be ignored."""

    def draw(rng):
        target = rng.integers(0, classes, shape[:-1]).astype(np.int32)
        target[rng.random(shape[:-1]) < 0.2] = -100
        layer = rng.standard_normal((classes, shape[-1])) / 2, target, rng.standard_normal(classes)
        return rng.standard_normal(shape), *layer, rng.uniform(0.2, 2, classes)

    return Case(name, draw, kwargs)


@loss(
    "With logits z = x linear_weight^T + linear_bias, or softcap tanh(z / softcap) of these, and p = log_softmax(z),\n"
    "l = -(1 - e) weight[t] p[t] - e sum(weight p) / C + z_loss lse^2 for the class t of a row, e being label_smoothing\n"
    "and lse the logarithm of the sum of exponentials of z. dz = (softmax(z) - q) dl for weights 1, where q is 1 at t;\n"
    "dx = dz linear_weight, dlinear_weight = dz^T x, dlinear_bias = sum(dz). Rows that are ignored have no term. A mean is\n"
    "sum(l) / sum(weight[t]) over the rows that are not, NaN where there is none.",
    "torch.nn.functional.linear_cross_entropy; P. Hsu et al., Liger Kernel, arXiv:2410.10989, for gradients that are\n"
    "computed with the loss",
    (
        _case("rows", (7, 6), 5, chunk_rows=3),
        _case("sequences", (2, 4, 5), 9, reduction="none", chunk_rows=4, softcap=3.0),
        _case("smoothed", (9, 4), 6, label_smoothing=0.1, z_loss=0.01, reduction="sum"),
    ),
    constant={"target": INDEX},
    own_rules=True,
    args={
        "x": "floats [..., H].",
        "linear_weight": "array [C, H] of x's dtype.",
        "target": "integers [...], the class of each row. Rows with a class outside [0, C) are ignored.",
        "linear_bias": "floats [C]; None for 0.",
        "weight": "floats [C], a factor for each class; None for 1.",
        "z_loss": "static number of at least 0, the factor of lse^2.",
        "chunk_rows": "static integer, of how many rows logits are computed at a time, on all devices that share the rows.\n"
        "    By default as many as half of H, from 256 to 4096: their logits take half of the memory of linear_weight's\n"
        "    gradient in float32.",
        "precision": "that of jax.lax.dot_general.",
    },
    returns='Array of x\'s dtype: a number, or, with reduction "none", [...].',
    precision="Products are accumulated in float32 or wider, and so is the gradient of linear_weight over all chunks. The\n"
    "    gradient of the logits is rounded to x's dtype before it is multiplied.",
)
def linear_cross_entropy(
    x: ArrayLike, linear_weight: ArrayLike, target: ArrayLike, linear_bias: ArrayLike | None = None,
    weight: ArrayLike | None = None, *, ignore_index: int = -100, label_smoothing: float = 0.0, z_loss: float = 0.0,
    softcap: float | None = None, reduction: Reduction = "mean", chunk_rows: int | None = None,
    precision: jax.lax.PrecisionLike = None, implementation: Implementation = None,
) -> Array:  # fmt: skip
    """Cross entropy of a linear layer's results with classes, without the memory of all logits."""
    op = "linear_cross_entropy"
    x = checks.floats(op, "x", x)
    if x.ndim < 1:
        raise ValueError(f"{op}: x must have at least one dimension, got a scalar")
    kernel = checks.floats(op, "linear_weight", linear_weight)
    checks.same_dtype(op, "linear_weight", kernel, "x", x)
    if kernel.ndim != 2 or kernel.shape[1] != x.shape[-1]:
        raise ValueError(
            f"{op}: linear_weight must have shape (C, {x.shape[-1]}) for x of shape {x.shape}, got {kernel.shape}"
        )
    target = class_index(op, target, x, x.ndim - 1, "that of x without its last axis")
    of_classes = lambda name, value: None if value is None else _of_classes(op, name, value, x, kernel.shape[0])
    how = _How(
        chunk=_chunk(x.shape[-1]) if chunk_rows is None else checks.integer(op, "chunk_rows", chunk_rows, 1),
        softcap=limit(op, softcap),
        precision=known_precision(op, precision),
    )
    options = dict(
        how=how, smoothing=share(op, label_smoothing), z_loss=number(op, "z_loss", z_loss, 0),
        ignore_index=checks.integer(op, "ignore_index", ignore_index, -(2**63)), reduction=reductions(op, reduction),
    )  # fmt: skip
    return _placed(x, kernel, target, of_classes("linear_bias", linear_bias), of_classes("weight", weight), **options)


fused_linear_cross_entropy = linear_cross_entropy


class _How(typing.NamedTuple):
    chunk: int
    softcap: float | None
    precision: jax.lax.PrecisionLike


def _chunk(width):
    rows = 256
    while rows < min(width // 2, 4096):
        rows *= 2
    return rows


def _of_classes(op, name, value, x, classes):
    value = next_to(op, name, value, x)
    checks.shape(op, name, value, (classes,), "one for each row of linear_weight")
    return value


def _placed(*operands, **options):
    """On explicit axes of a mesh the compiler places what is computed: shards of classes exchange a few numbers of each row,
    and the layer is gathered nowhere."""
    given = [x for x in operands if x is not None]
    x, _, target, *_ = map(jax.typeof, given)
    shape = target.shape if options["reduction"] == "none" else ()
    y = target.update(shape=shape, sharding=None)
    y = explicit.on_mesh(y, given, explicit.first_dimensions([x, target], y))

    def entropy(*arrays):
        rest = iter(arrays)
        return (_entropy(*(None if x is None else next(rest) for x in operands), **options),)

    return explicit.left_to_compiler(entropy, [y])(*given)[0]


@compiled("how", "smoothing", "ignore_index", "z_loss", "reduction")
def _entropy(x, kernel, target, bias, weight, *, how, smoothing, ignore_index, z_loss, reduction):
    classes, shape, dtype = kernel.shape[0], target.shape, wide_dtype(x.dtype)
    x, target = explicit.reshape(x, target.size, x.shape[-1]), explicit.reshape(target, -1)
    counts, along, index = counted(target, classes, 1, ignore_index)
    ones = counts.astype(dtype)
    weights = weights_of(None if weight is None else weight[None], counts, index, 1, dtype)
    even = (jnp.ones(classes, dtype) if weight is None else wide(weight)) if smoothing else None
    factors = _Values(
        (1 - smoothing) * weights,
        ones * (smoothing / max(classes, 1)) if smoothing else None,
        ones * z_loss if z_loss else None,
    )
    # What is in an ignored row is in no gradient.
    rows = _Rows(jnp.where(along, x, 0), index[:, 0], factors)
    arrays = _Layer(kernel, None if bias is None else wide(bias), even)
    if reduction == "none":
        return explicit.reshape(_terms(how, rows, arrays), *shape).astype(x.dtype)
    total = _total(how, rows, arrays)
    if reduction == "mean":
        count = weights.sum()
        # Scaled after the gradients' products, whose operands of 16 bits would be too small otherwise.
        total = jnp.where(count == 0, jnp.nan, total / jnp.where(count == 0, 1, count))
    return total.astype(x.dtype)


class _Values(typing.NamedTuple):
    """What the terms of rows are made of, or its factors, [N]; None of what there is not.

    nll     -p[t]
    even    -sum(even p)
    square  lse^2"""

    nll: Array
    even: Array | None
    square: Array | None

    def dot(self, factors):
        return sum(a * b for a, b in zip(self, factors, strict=True) if b is not None)


class _Rows(typing.NamedTuple):
    x: Array  # [N, H]
    index: Array  # [N], -1 of rows that do not count
    factors: _Values


class _Layer(typing.NamedTuple):
    kernel: Array  # [C, H]
    bias: Array | None  # [C]
    even: Array | None  # [C], the factors of classes that a target is smoothed over


class _Logits(typing.NamedTuple):
    """Those of some rows, [n, C], and what softmax and its logarithm are made of."""

    slope: Array | None  # of the limited logits in those before
    shifted: Array
    log_sum: Array
    lse: Array

    @classmethod
    def of(cls, how, x, layer):
        z = product(x, layer.kernel, (((1,), (1,)), ((), ())), how.precision)
        z = limited(z if layer.bias is None else z + layer.bias[None], how.softcap)
        slope = None if how.softcap is None else 1 - jnp.square(z / how.softcap)
        shifted, log_sum, peak = from_peak(z, 1)
        return cls(slope, shifted, log_sum, log_sum + peak)

    def values(self, rows, layer):
        counts = rows.index >= 0
        of_counted = lambda value: jnp.where(counts, value, 0)
        return _Values(
            of_counted(self.log_sum - at_class(rows.index[:, None], self.shifted, 1)),
            None if layer.even is None else of_counted(-dot(layer.even[None], self.shifted, self.log_sum, 1)),
            None if rows.factors.square is None else of_counted(self.lse * self.lse),
        )

    def gradient(self, rows, layer):
        """That of the sum of all terms, in the logits before they are limited."""
        nll, even, square = rows.factors
        shares = nll if even is None else nll + even * layer.even.sum()
        shares = shares if square is None else shares + 2 * square * self.lse
        dz = jnp.exp(self.shifted - self.log_sum[:, None]) * shares[:, None]
        dz = jnp.where(is_class(rows.index[:, None], dz.shape[1], 1), dz - nll[:, None], dz)
        dz = dz if even is None else dz - even[:, None] * layer.even[None]
        dz = dz if self.slope is None else dz * self.slope
        # Zeros of constants XLA would write once, and read in each chunk.
        return jnp.where((rows.index >= 0)[:, None], dz, (rows.index[:, None] + 1).astype(dz.dtype))


@functools.partial(jax.custom_jvp, nondiff_argnums=(0,))
def _total(how, rows, layer):
    """The sum of the rows' terms."""
    return _over_chunks(how, lambda carry, rows: (carry, _terms_of(how, rows, layer)), rows)[1].sum()


def _terms(how, rows, layer):
    """Each row's term, whose logits are computed again for gradients."""
    kernel = wide(layer.kernel)  # in whose dtype gradients of chunks are added up

    @jax.checkpoint
    def step(carry, rows):
        return carry, _terms_of(how, rows, layer._replace(kernel=kernel.astype(layer.kernel.dtype)))

    return _over_chunks(how, step, rows)[1]


def _terms_of(how, rows, layer):
    """Those of a chunk."""
    return _Logits.of(how, rows.x, layer).values(rows, layer).dot(rows.factors)


def _total_and_gradients(how, rows, layer, wanted):
    """(the values of rows, the gradients of the sum of terms in x and in the layer's arrays, of those that are `wanted`)"""

    def step(sums, rows):
        logits = _Logits.of(how, rows.x, layer)
        dz = logits.gradient(rows, layer)
        low = dz.astype(rows.x.dtype)
        of_x = product(low, layer.kernel, (((1,), (0,)), ((), ())), how.precision) if wanted[0] else None
        kernel = product(low, rows.x, (((0,), (0,)), ((), ())), how.precision) if wanted[1] else None
        bias = dz.sum(0) if wanted[2] else None
        even = None
        if wanted[3]:
            log_p = logits.shifted - logits.log_sum[:, None]
            even = -jnp.where((rows.index >= 0)[:, None], rows.factors.even[:, None] * log_p, 0).sum(0)
        found = _Layer(kernel, bias, even)
        sums = found if sums is None else jax.tree.map(jnp.add, sums, found)
        return sums, (logits.values(rows, layer), of_x)

    sums, (values, of_x) = _over_chunks(how, step, rows)
    return values, of_x, sums


@functools.partial(_total.defjvp, symbolic_zeros=True)
def _total_tangent(how, primals, tangents):
    rows, layer = primals
    of_rows, of_layer = tangents
    is_wanted = lambda t: t is not None and type(t) is not jax.custom_derivatives.SymbolicZero
    wanted = [is_wanted(t) for t in (of_rows.x, *of_layer)]
    values, of_x, sums = _total_and_gradients(how, rows, layer, wanted)
    pairs = [(of_x, of_rows.x), *zip(sums, of_layer, strict=True), *zip(values, of_rows.factors, strict=True)]
    total = values.dot(rows.factors).sum()
    return total, sum(((wide(a) * wide(t)).sum() for a, t in pairs if is_wanted(t)), jnp.zeros_like(total))


def _over_chunks(how, step, rows):
    """jax.lax.scan of `step` over chunks of rows; rows that fill the last ones up do not count. The first step gets None
    instead of sums, which it makes, if there are any. A chunk has rows from all over the array, so that each of the devices
    that share the rows has its part of every chunk."""
    n, chunk = rows.index.shape[0], how.chunk
    if not isinstance(n, int) or n <= chunk:
        return step(None, rows)
    chunks = -(-n // chunk)

    def cut(a, fill=0):
        a = jnp.pad(a, [(0, chunks * chunk - n)] + [(0, 0)] * (a.ndim - 1), constant_values=fill)
        return jnp.moveaxis(a.reshape(chunk, chunks, *a.shape[1:]), 1, 0)

    rows = _Rows(cut(rows.x), cut(rows.index, -1), jax.tree.map(cut, rows.factors))
    first = jax.tree.map(lambda a: a[0], rows)
    none = jax.eval_shape(step, None, first)[0]
    if not jax.tree.leaves(none):
        carry, results = jax.lax.scan(step, none, rows)
    else:  # the first chunk's sums are where the others begin: zeros would be written and read
        carry, results = step(None, first)
        carry, others = jax.lax.scan(step, carry, jax.tree.map(lambda a: a[1:], rows))
        results = jax.tree.map(lambda a, b: jnp.concatenate([a[None], b]), results, others)
    return carry, jax.tree.map(lambda y: jnp.moveaxis(y, 0, 1).reshape(chunks * chunk, *y.shape[2:])[:n], results)
