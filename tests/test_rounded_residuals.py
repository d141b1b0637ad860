"""What a gradient reads of a rounded result: in 16 bits it is within a few roundings of float64's, of the same operands, by the
kernel and by the definition alike."""

import functools
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import sent
from examples_of import forget_traces, has_derivative
from sampling import RUNS

import baracuda_jax as bj
from baracuda_jax._core.op import OPS
from baracuda_jax.reduce import _log_sum_exp

HALF_PRECISION = ("float16", "bfloat16")
MOST = 2.0  # units in the last place of the largest element
# Where the gradient reads a rounded result, as other libraries' do: another copy of it would be as large as all operands.
OF_ROUNDED = {"flash_sdpa_varlen": 4.0}


def _saves_floats(op):
    """Whether the gradient reads a float that is computed, such as the result."""
    if not has_derivative(op) or "bfloat16" not in op.dtypes or op.family in ("elementwise", "quantize"):
        return False
    return bool(set(op.residuals) & set(op.results) - {"index", "indices", "arg", "counts", "zeros"})


FAMILIES = {}
for _op in filter(_saves_floats, OPS.values()):
    FAMILIES.setdefault(_op.family, []).append(_op)


def _scaled(x, name, dtype):
    """Operands that are large, small, or large with small differences. float32 holds their cubes and those of their
    reciprocals, also of elements a thousand times smaller, as it must for what is computed in it."""
    large = float(jnp.finfo(dtype).max) * 0.9 if dtype == "float16" else 2.0**40
    return {
        "drawn": x,
        "around 60": x + 60,
        "around -3000": x - 3000,
        "large": x / np.abs(x).max() * large,
        "small": x / np.abs(x).max() * (2.0**-15 if dtype == "float16" else 2.0**-32),
    }[name]


def _products(x, name, dtype):
    """Factors whose products leave float16's range, and come back."""
    if name == "drawn":
        return x
    n = x.shape[-1]
    return x * 2.0 ** np.where((np.arange(n) < n // 2) == (name == "up and down"), 3, -3)


# Sums along paths whose logarithms are so large that float32 lacks the digits in which paths differ.
BEYOND_FLOAT32 = {("rnnt_loss", "large"), ("soft_dtw", "large"), ("soft_dtw", "around -3000")}
# Probabilities of which one is 1 in float32: what gradients of the others are made of is rounded to 0, or is not.
BEYOND_FLOAT32 |= {("batch_paged_decode", "around -3000"), ("batch_paged_decode", "around 60")}
# Matrices of almost equal elements: what is left of them after the first step, or the first vector, is rounding.
BEYOND_FLOAT32 |= {
    ("eigh", "around -3000"),
    ("lu_factor", "around -3000"),
    ("svd", "around 60"),
    ("svd", "around -3000"),
}
BEYOND_FLOAT32 |= {("qr", "around -3000"), ("geqrf", "around -3000"), ("triangular_solve", "large")}
BEYOND_FLOAT32 |= {("flash_sdpa_varlen", "around 60"), ("flash_sdpa_varlen", "around -3000")}

SCALES = {
    _scaled: ("drawn", "around 60", "around -3000", "large", "small"),
    _products: ("drawn", "down and up", "up and down"),
}


class Gradients:
    """The gradients and tangents of a case of some ops: in a dtype by kernel and definition, and in float64."""

    def __init__(self, calls, dtype):
        self.calls, self.dtype = calls, dtype
        self.run = jax.jit(lambda *given: [self._all(*call, *one) for call, one in zip(calls, given, strict=True)])

    def _all(self, op, case, args, tangents, cotangent):
        up = functools.partial(
            jax.tree.map, lambda x: x.astype("float64") if jnp.issubdtype(x.dtype, jnp.floating) else x
        )
        given = args, tangents, cotangent
        return [_gradient(op, case, implementation, *given) for implementation in ("native", "xla")], _gradient(
            op, case, "xla", *up(given)
        )

    def check(self, scale):
        given = [self._draw(op, case, scale) for op, case in self.calls]
        found = self.run(*given)
        for (op, case), (rounded, exact) in zip(self.calls, found, strict=True):
            if (op.name, scale) in BEYOND_FLOAT32:
                continue
            for implementation, got in zip(("native", "xla"), rounded, strict=True):
                for kind, a, b in zip(("tangent", *_moving(op, case)), got, exact, strict=True):
                    what = f"{op.name} {case.name} {implementation}, {scale}: {kind}"
                    most = OF_ROUNDED.get(op.name, MOST)
                    _within(a, b, self.dtype, what, most) if np.any(b) else _nearly_cancels(a, what)

    def _draw(self, op, case, scale):
        rng = np.random.default_rng(len(op.name))
        args = list(case.arguments(rng, "float64"))
        args[0] = _scale_of(op)(np.asarray(args[0]), scale, self.dtype)
        cast = lambda x: sent.asarray(x, self.dtype) if np.issubdtype(np.asarray(x).dtype, np.floating) else x
        args = [cast(x) for x in args]
        y = jax.eval_shape(lambda *args: _output(op, case, "xla", *args), *args)
        return (
            args,
            [cast(rng.standard_normal(args[i].shape)) for i in _moving(op, case).values()],
            sent.asarray(rng.standard_normal(y.shape), y.dtype),
        )


def _scale_of(op):
    return _products if "prod" in op.name or "linear" in op.name else _scaled


def _moving(op, case):
    """{name: position} of the arguments that have a derivative; a case may leave some out."""
    names = list(inspect.signature(op.public).parameters)
    found = {name: names.index(name) for name in op.differentiable}
    given = case.draw(np.random.default_rng(0))
    return {name: i for name, i in found.items() if i < len(given) and given[i] is not None}


def _output(op, case, implementation, *args):
    found = op.public(*args, **case.kwargs, implementation=implementation)
    return found[op.output] if isinstance(found, tuple) else found


def _gradient(op, case, implementation, args, tangents, cotangent):
    """The tangent, and the operands' cotangents."""

    def fun(*moving):
        known = dict(zip(_moving(op, case).values(), moving, strict=True))
        return _output(op, case, implementation, *(known.get(i, x) for i, x in enumerate(args)))

    primals = [args[i] for i in _moving(op, case).values()]
    return jax.jvp(fun, primals, tangents)[1], *jax.vjp(fun, *primals)[1](cotangent)


def _within(got, exact, dtype, what, most):
    """Where float64's are numbers that the dtype has."""
    got, exact, limits = np.asarray(got).astype(np.float64), np.asarray(exact), jnp.finfo(dtype)
    known = np.isfinite(exact) & (np.abs(exact) <= float(limits.max))
    size = max(np.abs(exact[known]).max(initial=0), float(limits.tiny))
    error = np.abs(got - exact)[known] / (float(limits.eps) * 2.0 ** np.floor(np.log2(size)))
    assert not (worst := error[~(error <= most)]).size, f"{what} is {worst.max():.3g} units in the last place off"


def _nearly_cancels(got, what):
    """Tangents and cotangents of size 1 that cancel in float64 leave what float32 rounds."""
    worst = np.abs(np.asarray(got).astype(np.float64)).max(initial=0)
    assert worst <= 8 * jnp.finfo("float32").eps, f"{what} is {worst:.3g}, and is to be 0"


def _calls(family, every):
    return [(op, case) for op in FAMILIES[family] for case in op.cases[: None if every else 1]]


@functools.cache
def _gradients(family, dtype, scale_of, every):
    calls = [(op, case) for op, case in _calls(family, every) if _scale_of(op) is scale_of]
    return calls and Gradients(calls, dtype)


PAIRS = [(family, dtype) for family in FAMILIES for dtype in HALF_PRECISION]


@pytest.mark.exhaustive
@pytest.mark.parametrize("family, dtype", PAIRS)
def test_gradients_are_within_a_few_roundings(request, family, dtype):
    tier, index = request.config.tier, PAIRS.index((family, dtype))
    every = any(op.name in tier.ops for op in FAMILIES[family])
    if not every and all((index - seed) % RUNS for seed in tier.seeds):
        pytest.skip("not in this sample")
    for scale_of, scales in SCALES.items():
        for scale in scales:
            if gradients := _gradients(family, dtype, scale_of, every):
                gradients.check(scale)


def test_a_rounded_residual_is_found(monkeypatch):
    """Weights e^(x - y) of a rounded y."""
    op = OPS["logsumexp"]
    exact = _log_sum_exp.with_rest
    monkeypatch.setattr(_log_sum_exp, "with_rest", lambda *sum: (exact(*sum)[0], sent.zeros_like(sum[0])))
    forget_traces()
    try:
        with pytest.raises(AssertionError, match="logsumexp rows xla, around 60: tangent is .* off"):
            Gradients([(op, op.cases[0])], "bfloat16").check("around 60")
    finally:
        forget_traces()


@pytest.mark.parametrize("implementation", ["native", "xla"])
def test_weights_of_a_log_sum_are_a_share_of_1(implementation):
    """Also where the logarithm is nothing compared with the largest, as in a row whose every element is masked by a large
    number, and in every float dtype."""
    rows = np.random.default_rng(0).standard_normal((4, 24))
    rows += [[0.0], [60.0], [-3e4], [0.0]]
    rows[3] = -3e38

    @jax.jit
    def sums(arrays):
        grad = lambda fun, x: jax.vjp(fun, x)[1](sent.ones_like(fun(x)))[0].astype(jnp.float64).sum(1)
        one = lambda x: bj.logsumexp(x, 1, implementation=implementation)
        last = lambda x: bj.logcumsumexp(x, 1, implementation=implementation)[:, -1]
        return [(grad(one, x), grad(last, x)) for x in arrays]

    arrays = [sent.asarray(rows, dtype) for dtype in ("bfloat16", "float32", "float64")]
    arrays.append(sent.asarray(rows[:3], "float16"))
    for x, found in zip(arrays, sums(arrays), strict=True):
        for total in found:
            np.testing.assert_allclose(total, 1, rtol=8 * float(jnp.finfo(x.dtype).eps))


@pytest.mark.parametrize(
    "fun, back, kwargs",
    [
        (bj.logsumexp, bj.logsumexp_backward, dict(axis=1)),
        (bj.vector_norm, bj.vector_norm_backward, dict(axis=1)),
        (bj.std, bj.std_backward, dict(axis=1)),
        (bj.logcumsumexp, bj.logcumsumexp_backward, dict(axis=1)),
        (bj.cumprod, bj.cumprod_backward, dict(axis=1)),
        (bj.lp_pool1d, bj.lp_pool1d_backward, dict(norm_type=2, window=2)),
    ],
)
def test_residuals_are_what_the_backward_function_takes(fun, back, kwargs):
    """In the dtype that they are computed in; others are refused. Of dtypes that are not rounded they are the result."""
    name = back.__name__
    for dtype in ("float16", "bfloat16", "float32", "float64"):
        x = jax.ShapeDtypeStruct((3, 8), dtype)
        y, *saved = jax.eval_shape(functools.partial(fun, return_residuals=True, **kwargs), x)
        assert y.dtype == x.dtype
        wide = jnp.float32 if dtype == "float16" or (dtype == "bfloat16" and fun is not bj.cumprod) else dtype
        assert all(s.dtype == wide and s.shape == y.shape for s in saved)
        read = [y, *saved] if "logsumexp" in name or "cumsumexp" in name else saved[::-1]
        take = functools.partial(back, **kwargs)
        assert jax.eval_shape(take, x, *read, y).dtype == x.dtype
        if wide != dtype:
            rounded = [*read[:-1], jax.ShapeDtypeStruct(y.shape, dtype)] if len(read) > 1 else [y]
            with pytest.raises(TypeError, match=f"^{name}: .* must have dtype float32, as return_residuals gives it"):
                jax.eval_shape(take, x, *rounded, y)


def test_a_plan_of_the_gradient_knows_what_is_saved():
    x = jax.ShapeDtypeStruct((4, 16), jnp.bfloat16)
    wide, row = jax.ShapeDtypeStruct((4,), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.bfloat16)
    inputs = lambda fun, *args: [aval for _, aval in bj.plan(fun, *args).backward.inputs]
    assert inputs(bj.logsumexp, x, 1) == [x, row, wide, row]
    assert inputs(bj.vector_norm, x, 2, 1) == [x, wide, row]
    assert inputs(bj.std, x, 1) == [x, wide, wide, row]
    half = jax.ShapeDtypeStruct((4, 16), jnp.float16)
    assert inputs(bj.cumprod, half) == [half, jax.ShapeDtypeStruct((4, 16), jnp.float32), half]
    assert inputs(bj.cumprod, x) == [x, x, x]


def test_integers_have_no_residuals():
    with pytest.raises(TypeError, match=r"^cumprod: x \(with return_residuals\) must have one of the dtypes.*int32"):
        bj.cumprod(sent.arange(3, dtype=jnp.int32), return_residuals=True)
