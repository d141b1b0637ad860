"""The examples that the laws run on: every op, case and dtype."""

import dataclasses
import functools
import inspect
import zlib

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from sampling import pair, turn_of

from baracuda_jax._core import compat
from baracuda_jax._core.case import Case, cast
from baracuda_jax._core.op import OPS, Op

# Relative to the size of the result: about four roundings of the dtype.
TOLERANCE = {"float64": 1e-12, "float32": 4e-6, "float16": 4e-3, "bfloat16": 3e-2}
PARTS = {"complex64": "float32", "complex128": "float64"}


def _constant(fun):
    """A property that is computed once, and then also where a trace is what asks first."""

    def compute(self):
        with jax.core.eval_context():
            return fun(self)

    return functools.cached_property(functools.wraps(fun)(compute))


def kernels_of(op):
    """The preference of its kernels, or none where a library computes."""
    return "native" if op.has_kernels else None


@dataclasses.dataclass(frozen=True)
class Example:
    op: Op
    case: Case
    dtype: str

    def __str__(self):
        return f"{self.op.name}-{self.case.name.replace(' ', '_')}-{self.dtype}"

    @property
    def seed(self):
        return zlib.crc32(str(self).encode())

    @functools.cached_property
    def drawn(self):
        """The arguments of the public function: arrays and pytrees of them."""
        return self.case.arguments(np.random.default_rng(self.seed), self.dtype)

    @_constant
    def args(self):
        """The arrays among the arguments."""
        return tuple(map(jax.device_put, jax.tree.leaves(self.drawn)))

    def structured(self, args):
        """The arguments of the public function, of arrays."""
        return jax.tree.structure(self.drawn).unflatten(args)

    def public(self, *args, **options):
        """The public function, of arrays."""
        return self.op.public(*self.structured(args), **self.case.kwargs, **options)

    @functools.cached_property
    def moving(self):
        """The positions of the differentiable arguments, or of the first of the dtype where there is none, or of the first; a key
        is none that moves."""
        names = list(inspect.signature(self.op.public).parameters)
        arrays = [len(jax.tree.leaves(argument)) for argument in self.drawn]
        arguments = (names.index(name.removeprefix("*")) for name in self.op.differentiable)
        given = (i for i in arguments if i < len(arrays))  # a case may leave out the last ones
        positions = (sum(arrays[:i]) + k for i in given for k in range(arrays[i]))
        alike = [i for i, a in enumerate(self.args) if a.dtype == self.dtype]
        return tuple(i for i in positions if i in alike) or (*alike[:1],) or (int(names[0] == "key"),)

    @_constant
    def x(self):
        """The differentiable argument; several, as one vector."""
        moving = [self.args[i] for i in self.moving]
        return moving[0] if len(moving) == 1 else jax.device_put(np.concatenate([np.ravel(a) for a in moving]))

    def alone(self, fun):
        """fun, whose operations run one by one; compiled as one where the op is plain JAX, of which that would be many programs."""
        return jax.jit(fun) if self.op.is_facade else fun

    @_constant
    def y(self):
        """The output, of the op run alone."""
        return self.alone(self.fun)(self.x)

    @_constant
    def v(self):
        """A tangent of x."""
        return self.random(self.x, 1)

    @_constant
    def w(self):
        """A cotangent of the output."""
        return self.random(self.y, 2)

    @_constant
    def push(self):
        """The output's tangent, of a program of its own."""
        return jax.jit(lambda x, v: jax.jvp(self.fun, (x,), (v,))[1])(self.x, self.v)

    def loss(self, x, implementation="native"):
        """A real scalar function of x, linear in the finite results."""
        y = self.fun(x, implementation)
        return jnp.sum(jnp.where(jnp.isfinite(y), y, 0) * self.w).real

    @_constant
    def gradient(self):
        """That of the loss."""
        y, w = np.asarray(self.y), np.asarray(self.w)
        return self.pull(np.where(np.isfinite(y), w, np.zeros_like(w)))

    def pull(self, w):
        """The cotangent of x, of a program of its own."""
        return jax.jit(lambda x, w: jax.vjp(self.fun, x)[1](w)[0])(self.x, w)

    def with_arguments(self, args):
        other = dataclasses.replace(self)
        other.__dict__["args"] = tuple(args)
        return other

    def fun(self, x, implementation="native"):
        """The op as a function of its differentiable arguments."""
        return self.call(*self.arguments(x), implementation=implementation)

    def arguments(self, x):
        """The arguments, with x for the differentiable ones."""
        args = list(self.args)
        if len(self.moving) == 1:
            args[self.moving[0]] = x
            return args
        cuts = np.cumsum([self.args[i].size for i in self.moving])[:-1]
        is_traced = isinstance(x, jax.core.Tracer)
        parts = jnp.split(x, cuts) if is_traced else np.split(np.asarray(x), cuts)  # NumPy compiles nothing
        for i, part in zip(self.moving, parts, strict=True):
            part = part.reshape(self.args[i].shape)
            args[i] = (
                part if is_traced else jax.device_put(part, x.sharding if getattr(x, "committed", False) else None)
            )
        return args

    def call(self, *args, implementation="native"):
        """The op's output as a function of all its arguments; several, as one vector. An op without kernels has one
        backend."""
        implementation = kernels_of(self.op) if implementation == "native" else implementation
        return self.outputs(self.public(*args, implementation=implementation))

    @functools.cached_property
    def single(self):
        """`call` as a program, one for all laws that meet the example."""
        return jax.jit(self.call)

    @functools.cached_property
    def slope(self):
        """The gradient of the loss as a program, one for all laws that meet the example."""
        return jax.jit(jax.grad(self.loss))

    def outputs(self, results):
        """The output among the results; several, as one vector."""
        results = results if isinstance(results, tuple | list) else (results,)
        outputs = jax.tree.leaves(results[self.op.output :][: len(self.op.outputs)])
        if len(outputs) == 1:
            return outputs[0]
        if any(isinstance(y, jax.core.Tracer) for y in outputs):
            return ravel_pytree([y.astype(self.dtype) for y in outputs])[0]
        return jax.device_put(np.concatenate([np.ravel(y).astype(self.dtype) for y in outputs]))

    def random(self, like, seed=0):
        """A random array of `like`'s shape and dtype."""
        rng = np.random.default_rng((self.seed, seed))
        return jax.device_put(cast(rng.standard_normal(like.shape), like.dtype))

    @property
    def is_fused(self):
        """Whether it has plain JAX, also between ops, which XLA fuses with what is around it."""
        reduction = inspect.signature(self.op.public).parameters.get("reduction")
        is_reduced = reduction is not None and self.case.kwargs.get("reduction", reduction.default) != "none"
        return bool(self.op.is_facade or self.op.made_of or self.op.fused or is_reduced)

    def same(self, a, b, dtype=None):
        """The same bits from two programs, or the same numbers, as exact as what they are computed with: the example's dtype, or
        another."""
        close(a, b, dtype or self.dtype) if self.is_fused else same_bits(a, b)

    @property
    def is_float(self):
        return jnp.issubdtype(jnp.dtype(self.dtype), jnp.floating)

    @property
    def has_derivative(self):
        return self.is_float and has_derivative(self.op)


def usual_dtype(op):
    """float32, or int32 where the op takes no floats, or what it takes."""
    return next((dtype for dtype in ("float32", "int32") if dtype in op.dtypes), op.dtypes[0])


def has_derivative(op):
    return bool(op.differentiable) and not op.quantized


def examples(tier, name):
    """Every case in every dtype of the ops that are tested in full; of the others one for each seed, others for another test."""
    found = [
        Example(OPS[op], case, dtype) for op in sorted(tier.ops) for case in OPS[op].cases for dtype in OPS[op].dtypes
    ]
    for op in OPS.values():
        turns = (turn_of(seed, name) for seed in tier.seeds if op.name not in tier.ops)
        pairs = dict.fromkeys(pair(range(len(op.cases)), op.dtypes, turn) for turn in turns)
        found += [Example(op, op.cases[case], dtype) for case, dtype in pairs]
    return found


def stacked(arrays, axis=0):
    """A stack that is made without a compiler, which is what tests wait for."""
    return jax.device_put(np.stack([np.asarray(a) for a in arrays], axis))


def loss_of(fun):
    """A scalar function of fun's finite results, real where its arguments are."""

    def loss(*args):
        y = fun(*args)
        total = jnp.sum(jnp.sin(jnp.where(jnp.isfinite(y), y, 0)))
        return total if jnp.iscomplexobj(args[0]) else total.real

    return loss


def close(got, want, dtype, scale=1.0):
    """Equal to the dtype's tolerance, relative to the largest finite value; exactly, for integers."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    part = PARTS.get(dtype)
    if part or np.iscomplexobj(got):
        part = part or dtype
        for parts in ((got.real, want.real), (got.imag, want.imag)):
            close(*parts, part, scale)
        return
    if not jnp.issubdtype(jnp.dtype(dtype), jnp.floating):
        np.testing.assert_array_equal(got, want)
        return
    got, want = got.astype(np.float64), want.astype(np.float64)
    size = max(1.0, np.abs(want[np.isfinite(want)]).max(initial=0))
    np.testing.assert_allclose(got, want, rtol=scale * TOLERANCE[dtype], atol=scale * TOLERANCE[dtype] * size)


def same_bits(a, b):
    a, b = (np.asarray(jax.device_get(x)) for x in (a, b))
    assert a.dtype == b.dtype and a.shape == b.shape
    assert a.tobytes() == b.tobytes()


def forget_traces():
    """What was traced before is not used after, as when a rule is broken on purpose."""
    jax.clear_caches()
    compat._trace.cache_clear()
