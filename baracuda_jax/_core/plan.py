"""Plans: what a call of an op will run, known and fixed before it runs."""

import dataclasses
import functools
import importlib
import inspect
from typing import Any

import jax
import numpy as np

from . import checks, choice, compat, library
from . import prefer as preference
from .call import Call
from .op import OPS
from .sku import ArchSku, BackendKind, ElementKind, KernelSku, PrecisionGuarantee, precision

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
Types = Any  # a ShapeDtypeStruct, or a tuple of them


@dataclasses.dataclass(frozen=True, repr=False)
class Plan:
    """A call of an op on arrays of known types, its backend chosen; `baracuda_jax.plan` makes it.

    Called with arrays it runs what it says, under any transformation. Plans of the same call are equal, and they may be
    static arguments of jit. A plan that is differentiated takes the backend of `backward` for its derivatives.

    Attributes:
        name: the public function.
        inputs: (argument, type) of its arrays.
        params: (argument, value) of its other arguments, the defaults too.
        platform: the platform planned for, on which the facts hold.
        backends: the chosen backends: `forward`, and `derivative`.
        reasons: why these were chosen.
        out_avals: the type of the result, or a tuple of types.
    """

    name: str
    inputs: tuple[tuple[str, jax.ShapeDtypeStruct], ...]
    params: tuple[tuple[str, Any], ...]
    platform: str
    backends: preference.Planned
    reasons: preference.Planned = dataclasses.field(compare=False)
    out_avals: Types = dataclasses.field(compare=False)
    _call: Call = dataclasses.field(compare=False)
    _beside: tuple[Call, ...] = dataclasses.field(compare=False, default=())  # calls of other ops, all of one backend

    def __call__(self, *arrays):
        """Runs the plan on arrays of the planned types, as many as `inputs` has."""
        self.can_implement(*arrays)
        names = (name for name, _ in self.inputs)
        return _function(self.name)(**dict(zip(names, arrays, strict=True)), **dict(self.params), prefer=self.backends)

    def can_implement(self, *args):
        """Checks that the plan can be called with such arguments.

        Args:
            *args: arrays, tracers or ShapeDtypeStructs.

        Raises:
            TypeError: for a wrong number of arguments, or one that is no array or has another dtype.
            ValueError: for another shape.
        """
        if len(args) != len(self.inputs):
            names = ", ".join(name for name, _ in self.inputs)
            raise TypeError(f"plan of {self.name}: expected {len(self.inputs)} arrays, {names}, got {len(args)}")
        for (name, expected), value in zip(self.inputs, args, strict=True):
            if not _is_array(value):
                raise TypeError(f"plan of {self.name}: {name} must be an array, got {type(value).__name__}")
            got = _type(value)
            if got.dtype != expected.dtype:
                raise TypeError(
                    f"plan of {self.name}: {name} must have the planned dtype {expected.dtype.name}, got {got.dtype.name}"
                )
            if got.shape != expected.shape:
                raise ValueError(
                    f"plan of {self.name}: {name} must have the planned shape {expected.shape}, got {got.shape}"
                )

    @property
    def backend(self):
        """ "native" or "xla"."""
        return self.backends.of(self._call.kind)

    @property
    def why(self):
        """Why this backend: what the caller asked for, the row of the table, or what overrode it."""
        return self.reasons.of(self._call.kind)

    @functools.cached_property
    def sku(self):
        """The identity of what runs, a KernelSku."""
        aux = self._call.aux_dtype
        return KernelSku(
            category=self._call.op.category,
            op=self._call.name,
            element=ElementKind.of(self._call.dtype),
            aux_element=None if aux is None else ElementKind.of(aux),
            layout=None,
            epilogue=None,
            arch=ArchSku.of(self.platform),
            backend=BackendKind(self.backend),
            precision=self.precision,
        )

    @functools.cached_property
    def precision(self) -> PrecisionGuarantee:
        """The numerical contract of what runs, a PrecisionGuarantee."""
        return precision(self._call.dtype, self._call.is_deterministic(self.backend, self.platform))

    @property
    def targets(self):
        """The FFI targets that the program calls; none where XLA computes."""
        calls = (self._call, *self._beside) if self.backend == "native" else ()
        return tuple(dict.fromkeys(target for call in calls for target in call.targets))

    @property
    def workspace_bytes(self):
        """Scratch memory of the program's kernel calls, as lowered; XLA makes equal calls one, and reuses memory. Its own
        temporary memory is not counted: where XLA computes, this is 0."""
        return sum(call.workspace_bytes for call in (self._call, *self._beside)) if self.backend == "native" else 0

    @functools.cached_property
    def backward(self):
        """The plan of the derivative: callable on (residuals..., dy), in the order of the public backward function.

        Raises:
            TypeError: where there is none: for integers, and for a plan that is a backward plan itself. That one is linear
                in dy, and JAX differentiates it.
        """
        if self._call.kind != "forward":
            raise TypeError(f"plan of {self.name}: a backward plan has no backward plan; differentiate a call of it")
        call = self._call.vjp()
        if call is None:
            raise TypeError(f"plan of {self.name}: there is no derivative for {self._call.dtype.name}")
        op = self._call.op
        name = f"{op.name}_backward"
        operands = dict(zip((*op.residuals, "dy"), map(_type, call.operands), strict=True))
        if name in _public():
            y = self.out_avals[0] if isinstance(self.out_avals, tuple) else self.out_avals
            known = (
                operands
                | call.params
                | dict(self.params)
                | dict(self.inputs)
                | {op.results[0]: y, "dy": operands["dy"], f"d{op.results[0]}": operands["dy"]}
            )
            parameters = inspect.signature(_function(name)).parameters.items()
            arguments = {p: known.get(p, parameter.default) for p, parameter in parameters if p != "prefer"}
        else:
            arguments = operands | call.params
        return _plan(name, arguments, self.backends, self.platform, self.reasons.derivative)

    def lower(self, platform=None):
        """The plan's program, lowered for its platform or another: a jax.stages.Lowered, which need not run here."""
        traced = jax.jit(self).trace(*(aval for _, aval in self.inputs))
        return traced.lower(lowering_platforms=(platform or self.platform,))

    def __repr__(self):
        parameters = inspect.signature(_function(self.name)).parameters
        arguments = [f"{name}: {_short(aval)}" for name, aval in self.inputs]
        arguments += [
            f"{name}={value!r}"
            for name, value in self.params
            if name not in parameters or value != parameters[name].default
        ]
        results = self.out_avals if isinstance(self.out_avals, tuple) else (self.out_avals,)
        facts = self.precision
        lines = {
            "runs": f"{self.backend} on {self.sku.arch} ({self.why})",
            "calls": ", ".join(self.targets) or "no kernel",
            "workspace": f"{self.workspace_bytes} bytes",
            "precision": f"{facts.math_precision} math, {facts.accumulator} accumulator, "
            + ("deterministic" if facts.deterministic else "not deterministic"),
        }
        head = f"Plan {self.name}({', '.join(arguments)}) -> {', '.join(map(_short, results))}"
        return "\n".join([head, *(f"  {title:<10} {text}" for title, text in lines.items())])


def plan(op, *args, prefer=None, platform=None, **params):
    """What a call of an op will run.

    Args:
        op: a public function of the package, such as `segment_max` or `segment_max_backward`, or its name.
        *args, **params: the function's arguments, positions and names as in a call. Arrays, tracers and ShapeDtypeStructs
            stand for their types; all other arguments are fixed by their values.
        prefer: "native", "xla", a PlanPreference, or None for what the context says, else automatic.
        platform: "cpu", "cuda", "rocm" or "tpu"; by default that of the default device. It need not be on this machine.

    Returns:
        A Plan.

    Raises:
        TypeError, ValueError: as the function itself, for arguments that it does not take.
    """
    name = _name(op)
    arguments = _arguments(name, args, params)
    platform = checks.choice("plan", "platform", platform or library.default_platform(), PLATFORMS)
    return _plan(name, arguments, preference.resolve(name, prefer), platform)


def _plan(name, arguments, prefer, platform, why=None):
    """`why` is the reason for the preference, where that is not the caller's."""
    inputs = tuple((key, _type(value)) for key, value in arguments.items() if _is_array(value))
    static = tuple((key, _hashable(name, key, value)) for key, value in arguments.items() if not _is_array(value))
    inputs, call, beside, out_avals = _trace(name, inputs, static)
    backend, reason = choice.choose(call, preference.for_kind(prefer, call.kind), (platform,))
    vjp = call.vjp() if call.kind == "forward" else None
    of_vjp = choice.choose(vjp, preference.for_kind(prefer, "backward"), (platform,)) if vjp else (backend, reason)
    backends, reasons = map(preference.Planned, (backend, why or reason), (of_vjp[0], why or of_vjp[1]))
    return Plan(name, inputs, static, platform, backends, reasons, out_avals, call, beside)


def _trace(name, inputs, static):
    """The inputs as JAX types them, the call of a primitive that the function makes, those beside it, and the types of its
    results."""
    names = [key for key, _ in inputs]
    fun = _function(name)
    whatever = preference.Planned("native", "native")  # types do not depend on it
    primitives = {getattr(op, kind): (op, kind) for op in OPS.values() for kind in ("forward", "tangent", "backward")}
    with compat.no_mesh():
        jaxpr, out = jax.make_jaxpr(
            lambda *arrays: fun(**dict(zip(names, arrays, strict=True)), **dict(static), prefer=whatever),
            return_shape=True,
        )(*(aval for _, aval in inputs))
    calls = [_call_of(*primitives[e.primitive], e) for e in compat.equations(jaxpr) if e.primitive in primitives]
    own = calls if len(calls) == 1 else [call for call in calls if call.op.public is fun or call.name == name]
    if len(own) != 1:
        raise ValueError(f"plan of {name}: expected a call of one op, got {len(own)}")
    beside = tuple(call for call in calls if call is not own[0])
    typed = tuple(zip(names, map(_type, jaxpr.in_avals), strict=True))
    return typed, own[0], beside, jax.tree.map(_type, out)


def _call_of(op, kind, equation):
    params = {key: value for key, value in equation.params.items() if key != "prefer"}
    return Call(op, kind, tuple(x.aval for x in equation.invars), tuple(y.aval for y in equation.outvars), params)


@functools.cache
def _public():
    """The public functions of ops, by name."""
    package = importlib.import_module(__package__.partition(".")[0])
    functions = {name: getattr(package, name) for name in package.__all__}
    return {name: fun for name, fun in functions.items() if _is_op_function(fun)}


def _is_op_function(fun):
    return inspect.isfunction(fun) and fun is not plan and "prefer" in inspect.signature(fun).parameters


def _name(op):
    public = _public()
    for name, fun in public.items():
        if op == name or op is fun:
            return name
    shown = op if isinstance(op, str) else getattr(op, "__name__", repr(op))
    raise ValueError(f"plan: op must be a public function or its name, one of {', '.join(public)}, got {shown}")


@functools.cache
def _function(name):
    """The public function; or, of an op without a public backward function, the backward primitive as one."""
    if name in (public := _public()):
        return public[name]
    op = OPS[name.removesuffix("_backward")]

    def backward(*, prefer, **arguments):
        operands = [arguments.pop(operand) for operand in (*op.residuals, "dy")]
        return op.vjp(*operands, prefer=prefer, **arguments)

    return backward


def _arguments(name, args, params):
    """The function's arguments by name, the defaults too."""
    try:
        bound = inspect.signature(_function(name)).bind(*args, **params)
    except TypeError as error:
        raise TypeError(f"plan of {name}: {error}") from None
    bound.apply_defaults()
    return {key: value for key, value in bound.arguments.items() if key != "prefer"}


def _hashable(name, key, value):
    value = tuple(value) if isinstance(value, list) else value
    try:
        hash(value)
    except TypeError:
        raise TypeError(f"plan of {name}: {key} must be an array or a hashable value, got {value!r}") from None
    return value


def _is_array(value):
    return hasattr(value, "shape") and hasattr(value, "dtype") and not isinstance(value, np.generic)


def _type(x):
    return jax.ShapeDtypeStruct(tuple(x.shape), jax.dtypes.canonicalize_dtype(x.dtype))


def _short(aval):
    return f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"
