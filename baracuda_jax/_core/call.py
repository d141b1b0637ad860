"""One call of one of an op's primitives: what can be said of it before it runs."""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp

from . import compat
from .kernel import workspaces
from .library import PREFIX
from .names import has_star, spelled, spelled_as

UNORDERED = ("cuda", "rocm")  # where threads that scatter to one element do so in any order


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """`kind` is forward, tangent or backward; operands and results are types; params are the primitive's. `is_used` says
    which results somebody reads, by default all."""

    op: Any  # the declared Op
    kind: str
    operands: tuple
    results: tuple
    params: dict
    is_used: tuple | None = None

    @property
    def name(self):
        return self.op.name if self.kind == "forward" else f"{self.op.name}_{self.kind}"

    @property
    def is_differentiated(self):
        """Whether it is part of a derivative, or of a forward pass that saves for one."""
        return self.kind != "forward" or self.params["save"]

    @property
    def dtype(self):
        """The dtype of what is computed: the differentiable operand's, or the tangent's or cotangent's, which come last."""
        if self.kind != "forward":
            return self.operands[-1].dtype
        if self.op.operands[0] == "key":  # of which the result is drawn
            return self.results[0].dtype
        return self.operands[self.op.operands.index((*self.op.differentiable, *self.op.operands)[0])].dtype

    @property
    def aux_dtype(self):
        """That of the first operand that differs, such as the ids of segments; None where there is none."""
        return next((x.dtype for x in self.operands if x.dtype != self.dtype), None)

    @property
    def bytes(self):
        """Of operands and results."""
        return sum(map(_bytes, (*self.operands, *self.results)))

    @property
    def largest(self):
        """The type of the operand or result with the most bytes."""
        return max((*self.operands, *self.results), key=_bytes)

    def operand(self, name):
        """The type of an operand, or of a residual."""
        names = self.op.operands if self.kind == "forward" else self.op.residuals
        return self.operands[names.index(name)]

    @property
    def starred(self):
        """The number of operands that the star of an operand's name stands for."""
        names = self.op.operands if self.kind == "forward" else self.op.residuals
        linear = {"forward": 0, "tangent": len(self.op.differentiable)}.get(self.kind, 1)
        return len(self.operands) - linear - len(names) + 1 if has_star(names) else 0

    @property
    def regime(self):
        """The sizes on which the choice of backend depends, {name: size}; None where an export leaves them open. They are
        about the same of a call and of its derivative."""
        if not all(isinstance(n, int) for x in (*self.operands, *self.results) for n in x.shape):
            return None
        return {"bytes": _bytes(self.largest)} | self.op.regime(self)

    @property
    def targets(self):
        """The FFI targets that the native body calls, each once."""
        return tuple(dict.fromkeys(PREFIX + target for target, _ in self._kernels))

    @property
    def workspace_bytes(self):
        """The scratch memory of the native body's kernel calls, each its own, before XLA makes equal calls one."""
        return sum(workspace for _, workspace in self._kernels)

    @property
    def _kernels(self):
        native = self.op.bodies[self.kind].native
        if native is None:
            return []
        return workspaces(compat.without_dead_code(_trace(native, self.operands, self.params), self.is_used)[0])

    def is_deterministic(self, backend, platform):
        """Kernels are, and all of plain JAX but scatters of floats to elements that may be the same: on a GPU their order is
        that of the threads, and so the roundings of a sum, or the sign of a zero, differ from run to run."""
        if platform not in UNORDERED:
            return True
        body = self.op.bodies[self.kind]
        jaxpr = _trace(body.native if backend == "native" else body.reference, self.operands, self.params)
        return not any(map(is_unordered, compat.equations(jaxpr)))

    def vjp(self):
        """The call of the backward primitive that belongs to a forward call, for a cotangent of the first output; or None
        where there is no derivative."""
        if not self.op.differentiable or not jnp.issubdtype(self.dtype, jnp.inexact):
            return None
        params = {**self.params, "save": True}
        saved = _trace(self.op.bodies["forward"].typed, self.operands, params).out_avals
        names = spelled(self.op.operands, len(self.operands))
        known = dict(zip((*names, *self.op.results), (*self.operands, *saved), strict=True))
        dy = jax.ShapeDtypeStruct(saved[0].shape, self.dtype if self.op.quantized else saved[0].dtype)
        saved = spelled_as(self.op.residuals, self.op.operands, len(self.operands))
        operands = (*(known[name] for name in saved), dy)
        params = {name: value for name, value in self.params.items() if name != "save"}
        params |= {"outputs": self.op.outputs[:1]} if len(self.op.outputs) > 1 else {}
        results = _trace(self.op.bodies["backward"].typed, operands, params).out_avals
        return Call(self.op, "backward", operands, tuple(results), params)


def _bytes(x):
    return math.prod(x.shape) * x.dtype.itemsize


def untyped(fun, avals, params):
    """The results' shapes and dtypes."""
    return _trace(fun, avals, params).out_avals


def _trace(fun, avals, params):
    """Without mesh and sharding: they change nothing here, and some references can't be traced with them."""
    with compat.no_mesh():
        return compat.trace(fun, [jax.ShapeDtypeStruct(x.shape, x.dtype) for x in avals], params)


def is_unordered(equation):
    """Whether it scatters floats to elements that may be the same."""
    name = equation.primitive.name
    is_scatter = name.startswith("scatter") or name == "select_and_scatter_add"
    is_float = any(jnp.issubdtype(y.aval.dtype, jnp.inexact) for y in equation.outvars)
    return is_scatter and is_float and not equation.params.get("unique_indices", False)
