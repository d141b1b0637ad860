"""Plans: what a call of a public function will run, known and fixed before it runs."""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import jax

from . import checks, choice, hints, library, promote
from . import prefer as preference
from .call import UNORDERED, Call
from .names import spelled, unrounded
from .op import OPS
from .sku import ArchSku, BackendKind, ElementKind, KernelSku, PrecisionGuarantee, precision
from .traced import (
    VJP,
    Traced,
    cotangents_of,
    has_slot,
    is_array,
    is_inexact,
    of_arrays,
    public,
    split,
    trace,
    type_of,
)
from .types import Implementation

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
Types = Any  # a ShapeDtypeStruct, or a tree of them


@dataclasses.dataclass(frozen=True)
class PlannedCall:
    """One call of an op's primitive that a plan makes.

    Attributes:
        name: the primitive, such as segment_max or segment_max_backward.
        backend: "native" or "xla".
        why: what the choice rests on.
        targets: the FFI targets that it calls; none where XLA computes.
        workspace_bytes: scratch memory of these; 0 where XLA computes.
    """

    call: Call = dataclasses.field(repr=False)
    backend: str
    why: str

    @property
    def name(self) -> str:
        return self.call.name

    @property
    def targets(self) -> tuple[str, ...]:
        return self.call.targets if self.backend == "native" else ()

    @property
    def workspace_bytes(self) -> Any:
        return self.call.workspace_bytes if self.backend == "native" else 0


@dataclasses.dataclass(frozen=True, repr=False)
class Plan:
    """A call of a public function on arrays of known types, its backends chosen; `baracuda_jax.plan` makes it.

    Called with arrays it runs what it says, under any transformation. Plans of the same call are equal, and they may be
    static arguments of jit. A plan that is differentiated takes the backends of `backward` for its derivatives.

    A function may call one op, several, or none. Each op has its own backend. What a plan says of one call, as `sku`, is
    of the main one: that of the function's own op, or else the call with the most bytes.

    Attributes:
        name: the public function.
        inputs: (argument, type) of its arrays. An array in a sequence is named by its index, as xs[0].
        params: (argument, value) of its other arguments, the defaults too.
        platform: the platform planned for, on which the facts hold.
        backends: the chosen backends, of each op that is called.
        calls: each call of an op in the program, a tuple of PlannedCalls.
        out_avals: the type of the result, or a tree of types.
    """

    name: str
    inputs: tuple[tuple[str, jax.ShapeDtypeStruct], ...]
    params: tuple[tuple[str, Any], ...]
    platform: str
    backends: preference.Planned
    calls: tuple[PlannedCall, ...] = dataclasses.field(compare=False)
    out_avals: Types = dataclasses.field(compare=False)
    _traced: Traced = dataclasses.field(compare=False)
    _reasons: preference.Planned = dataclasses.field(compare=False)

    def __call__(self, *arrays: Any) -> Any:
        """Runs the plan on arrays of the planned types, as many as `inputs` has, one by one or in pytrees."""
        arrays = self._one_by_one(arrays)
        self.can_implement(*arrays)
        run = of_arrays(self.name, [name for name, _ in self.inputs], self.params)
        return run(*map(promote.strong, arrays), implementation=self.backends)

    def can_implement(self, *args: Any) -> bool:
        """Checks that the plan can be called with such arguments.

        Args:
            *args: arrays, tracers or ShapeDtypeStructs, one by one or in pytrees.

        Raises:
            TypeError: for a wrong number of arguments, or one that is no array or has another dtype.
            ValueError: for another shape.
        """
        args = self._one_by_one(args)
        if len(args) != len(self.inputs):
            names = ", ".join(name for name, _ in self.inputs)
            raise TypeError(f"plan of {self.name}: expected {len(self.inputs)} arrays, {names}, got {len(args)}")
        for (name, expected), value in zip(self.inputs, args, strict=True):
            if not is_array(value):
                raise TypeError(f"plan of {self.name}: {name} must be an array, got {type(value).__name__}")
            got = type_of(value)
            if got.dtype != expected.dtype:
                raise TypeError(
                    f"plan of {self.name}: {name} must have the planned dtype {expected.dtype.name}, got {got.dtype.name}"
                )
            if got.shape != expected.shape:
                raise ValueError(
                    f"plan of {self.name}: {name} must have the planned shape {expected.shape}, got {got.shape}"
                )

    def _one_by_one(self, args):
        return args if len(args) == len(self.inputs) else tuple(jax.tree.leaves(args))

    @property
    def _main(self):
        """The call that the plan is named after, or None where there is none."""
        calls = self.calls
        if self.name.startswith(VJP):
            calls = [planned for planned in calls if planned.call.kind != "forward"] or calls
        else:
            own = [planned for planned in calls if planned.call.op.public is public()[self.name]]
            calls = own or calls
        return max(calls, key=lambda planned: planned.call.bytes, default=None)

    @property
    def backend(self) -> str:
        """ "native" or "xla"."""
        return self._main.backend if self._main else "xla"

    @property
    def why(self) -> str:
        """Why this backend: what the caller asked for, the row of the table, or what overrode it."""
        if self._main:
            return self._main.why
        name = self.name.removeprefix(VJP)
        arguments = " for these arguments" if name in OPS and OPS[name].has_kernels else ""
        return f"there is no kernel{arguments}; {self._library} computes" if self._library else "no op is called"

    @property
    def _library(self):
        """That of a function in plain JAX."""
        return getattr(public()[self.name.removeprefix(VJP)], "library", None)

    @functools.cached_property
    def sku(self) -> KernelSku:
        """The identity of what runs, a KernelSku."""
        main = self._main and self._main.call
        aux = main and main.aux_dtype
        return KernelSku(
            category=main.op.category if main else _category(self.name),
            op=main.name if main else self.name,
            element=ElementKind.of(self._dtype),
            aux_element=None if aux is None else ElementKind.of(aux),
            layout=None,
            epilogue=None,
            arch=ArchSku.of(self.platform),
            backend=BackendKind.of(self.backend, main.op.library if main else self._library, self.platform),
            precision=self.precision,
        )

    @property
    def _dtype(self):
        """That of what is computed."""
        return self._main.call.dtype if self._main else jax.tree.leaves(self.out_avals)[0].dtype

    @functools.cached_property
    def precision(self) -> PrecisionGuarantee:
        """The numerical contract of what runs, a PrecisionGuarantee."""
        is_ordered = self._traced.is_ordered or self.platform not in UNORDERED
        return precision(
            self._dtype, is_ordered and all(p.call.is_deterministic(p.backend, self.platform) for p in self.calls)
        )

    @property
    def targets(self) -> tuple[str, ...]:
        """The FFI targets that the program calls; none where XLA computes."""
        return tuple(dict.fromkeys(target for planned in self.calls for target in planned.targets))

    @property
    def workspace_bytes(self) -> Any:
        """Scratch memory of the program's kernel calls, as lowered; XLA makes equal calls one, and reuses memory. Its own
        temporary memory is not counted: where XLA computes, this is 0."""
        return sum(planned.workspace_bytes for planned in self.calls)

    @functools.cached_property
    def backward(self) -> "Plan":
        """The plan of the derivative. Where the function is one op's call and nothing else, and the op has a public backward
        function, it is that function's plan: callable on (residuals..., dy), in its order. Else it is called with all
        arrays of this plan and dy, the cotangents of the results that have one, and gives the cotangents of the arrays
        that have one. `inputs` says which of these.

        Raises:
            TypeError: where there is none: for integers, and for a plan that is a backward plan itself. That one is linear
                in dy, and JAX differentiates it.
        """
        if self.name.startswith(VJP) or any(planned.call.kind != "forward" for planned in self.calls):
            raise TypeError(f"plan of {self.name}: a backward plan has no backward plan; differentiate a call of it")
        if self._traced.is_one_call or self._is_quantized():
            call = self.calls[0].call.vjp()
            if call is None:
                raise TypeError(f"plan of {self.name}: there is no derivative for {self._dtype.name}")
            if (planned := self._of_public_backward(call)) is not None:
                return planned
        return self._of_vjp()

    def _of_public_backward(self, call):
        """The plan of the public backward function, or None where there is none that makes this call of the backward
        primitive."""
        name = f"{self.name}_backward"
        if name not in public():
            return None
        op, params = call.op, dict(self.params)
        names = spelled((*op.residuals, "dy"), len(call.operands))
        known = dict(zip(names, map(type_of, call.operands), strict=True)) | call.params
        known |= params | dict(self.inputs)
        y = jax.tree.leaves(self.out_avals)[op.output]
        dy = jax.ShapeDtypeStruct(y.shape, call.operands[-1].dtype)
        try:
            known |= self._residuals(op)
        except (TypeError, ValueError):  # its arguments mean something else for this call
            return None
        y = known.get(unrounded(op.results[0]), y)
        known |= {op.results[0]: y, "dy": dy, f"d{op.results[0]}": dy}
        parameters = inspect.signature(public()[name]).parameters.items()
        arguments = {p: known.get(p, parameter.default) for p, parameter in parameters if p != "implementation"}
        if inspect.Parameter.empty in arguments.values():
            return None
        try:
            inputs, params = split(name, arguments)
            planned = _plan(name, inputs, params, self.backends, self.platform, self._reasons)
        except (TypeError, ValueError):  # its arguments mean something else for this call
            return None
        return planned if [_signature(p.call) for p in planned.calls] == [_signature(call)] else None

    def _is_quantized(self):
        """Whether the results are quantized values, and not only what they are computed from."""
        op = OPS.get(self.name) or (self.calls[0].call.op if self.calls else None)
        return op is not None and op.quantized

    def _residuals(self, op):
        """The types of what the function returns with return_residuals, by the names of the op's results."""
        params = dict(self.params)
        if "return_residuals" not in params:
            return {}
        out = trace(self.name, self.inputs, tuple((params | {"return_residuals": True}).items())).out
        return dict(zip(op.results, out, strict=True))

    def _of_vjp(self):
        cotangents = cotangents_of(self.out_avals)
        is_gradient = any(name == "dy" for name, _ in self.inputs)  # a function of a gradient, such as an update
        if cotangents and not is_gradient and any(is_inexact(x) for _, x in self.inputs):
            inputs = (*self.inputs, *cotangents)
            planned = _plan(VJP + self.name, inputs, self.params, self.backends, self.platform, self._reasons)
            if any(planned._traced.is_used[len(self.inputs) :]):
                return planned
        raise TypeError(f"plan of {self.name}: there is no derivative for {self._dtype.name}")

    def lower(self, platform: str | None = None) -> jax.stages.Lowered:
        """The plan's program, lowered for its platform or another: a jax.stages.Lowered, which need not run here."""
        traced = jax.jit(self).trace(*(aval for _, aval in self.inputs))
        return traced.lower(lowering_platforms=(platform or self.platform,))

    def __repr__(self) -> str:
        parameters = inspect.signature(public()[self.name.removeprefix(VJP)]).parameters
        arguments = [f"{name}: {_short(aval)}" for name, aval in self.inputs]
        arguments += [
            f"{name}={value!r}"
            for name, value in self.params
            if not has_slot(value) and value != parameters[name].default
        ]
        facts = self.precision
        chosen = dict.fromkeys((planned.backend, planned.why) for planned in self.calls)
        if len(chosen) > 1:
            each = dict.fromkeys(f"{planned.name} {planned.backend} ({planned.why})" for planned in self.calls)
            runs = f"on {self.sku.arch}: {', '.join(each)}"
        else:
            runs = f"{self.backend} on {self.sku.arch} ({self.why})"
        lines = {
            "runs": runs,
            "calls": ", ".join(self.targets) or "no kernel",
            "workspace": f"{self.workspace_bytes} bytes",
            "precision": f"{facts.math_precision} math, {facts.accumulator} accumulator, "
            + ("deterministic" if facts.deterministic else "not deterministic"),
        }
        head = f"Plan {self.name}({', '.join(arguments)}) -> {', '.join(map(_short, jax.tree.leaves(self.out_avals)))}"
        return "\n".join([head, *(f"  {title:<10} {text}" for title, text in lines.items())])


def plan(
    op: str | Callable[..., object],
    *args: Any,
    implementation: Implementation = None,
    platform: str | None = None,
    **params: Any,
) -> Plan:
    """What a call of a public function will run.

    Args:
        op: a public function of the package, such as `segment_max` or `segment_max_backward`, or its name.
        *args, **params: the function's arguments, positions and names as in a call. Arrays, tracers and ShapeDtypeStructs
            stand for their types, also in a list or tuple; all other arguments are fixed by their values.
        implementation: "native", "xla", a PlanPreference, or None for what the context says, else automatic.
        platform: "cpu", "cuda", "rocm" or "tpu"; by default that of the default device. It need not be on this machine.

    Returns:
        A Plan.

    Raises:
        TypeError, ValueError: as the function itself, for arguments that it does not take.
    """
    name = _name(op)
    inputs, params = split(name, _arguments(name, args, params))
    platform = checks.choice("plan", "platform", platform or library.default_platform(), PLATFORMS)
    wanted = preference.resolve(name, implementation)
    if library_of := getattr(public()[name], "library", None):
        if name in OPS and OPS[name].has_kernels:  # for some arguments: the function says so where there is none
            run = functools.partial(of_arrays(name, [key for key, _ in inputs], params), implementation=implementation)
            jax.eval_shape(run, *(aval for _, aval in inputs))
        else:
            preference.refuse_native(name, implementation, library_of)
    return _plan(name, inputs, params, wanted, platform, of_context=implementation is None)


def _plan(name, inputs, params, implementation, platform, reasons=None, of_context=False):
    """`reasons` are those of the plan of whose derivative this is the plan; `implementation` is then what that one chose."""

    def choose(call):
        wanted = call.op.of_context(implementation) if of_context else implementation
        return choice.choose(call, preference.for_call(wanted, call), (platform,))

    found = trace(name, inputs, params)
    forward, derivative = {}, {}
    for call in sorted(found.calls, key=lambda call: call.bytes):  # of calls that are alike the largest says for all
        chosen = choose(call)
        key = call.op.name, call.dtype.name
        if call.kind == "forward":
            forward[key], vjp = chosen, call.vjp()
            if vjp:
                derivative[key] = choose(vjp)
        else:
            derivative[key] = chosen
    table = [(*key, forward.get(key) or derivative[key], derivative.get(key) or forward[key])
             for key in sorted({*forward, *derivative})]  # fmt: skip
    backends, whys = (preference.Planned(tuple((*row[:2], row[2][i], row[3][i]) for row in table)) for i in (0, 1))
    whys = reasons or whys
    calls = tuple(PlannedCall(call, backends.of(call), whys.of(call)) for call in found.calls)
    return Plan(name, inputs, params, platform, backends, calls, found.out, found, whys)


def _signature(call):
    types = lambda avals: [(x.shape, x.dtype) for x in avals]
    return call.name, types(call.operands), types(call.results)


def _category(name):
    """That of the family whose function it is."""
    family = public()[name.removeprefix(VJP)].__module__.split(".")[1]
    return next(op.category for op in OPS.values() if op.family == family)


def _name(op):
    own = getattr(op, "__name__", None)  # of several names for a function
    for name in (own, *public()):
        if name in public() and (op == name or op is public()[name]):
            return name
    shown = op if isinstance(op, str) else getattr(op, "__name__", repr(op))
    raise ValueError(f"plan: op must be a public function or its name, one of {', '.join(public())}, got {shown}")


def _arguments(name, args, params):
    """The function's arguments by name, the defaults too."""
    signature = inspect.signature(public()[name])
    for key in params:
        if key not in signature.parameters:
            told = hints.of_keyword(key, [*signature.parameters])
            raise TypeError(f"plan of {name}: got an unexpected keyword argument {key!r}; {told}")
    try:
        bound = signature.bind(*args, **params)
    except TypeError as error:
        raise TypeError(f"plan of {name}: {error}") from None
    bound.apply_defaults()
    return {key: value for key, value in bound.arguments.items() if key != "implementation"}


def _short(aval):
    return f"{aval.dtype.name}[{','.join(map(str, aval.shape))}]"
