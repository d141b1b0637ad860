"""The declaration of an op, and what follows from it.

An op is three primitives. `forward` is the op; `tangent` is its derivative, linear in the tangents; `backward` is the
transpose of that, linear in the cotangents. Each has two bodies with one signature: the *reference*, plain JAX that defines
what is computed, and the *native* one, made of kernel calls. Their operands are

    forward   (*operands)                           -> results, the first of which are the outputs
    tangent   (*residuals, *tangents)               -> a tangent of each output
    backward  (*residuals, *cotangents of outputs)  -> cotangents of the differentiable operands

where residuals are operands and results by name. Outputs are the results that have derivatives: one, the first result,
unless `outputs` names more. Results after the first are computed only when a derivative is taken or when the caller binds
with `save=True`.

Where an op has several outputs, its tangent and backward primitives have a parameter `outputs`, the names of those that
take part. A cotangent that is a symbolic zero is no operand: the backward body gets None in its place. The tangent body
computes all tangents; those that do not take part are dead code.

An op without kernels (`kernels={}`) has bodies whose native part is None. Plans name the library that computes it. A public
function that is made of other ops has no primitive of its own: `compose` puts it into the table.

Derivatives of any order: the tangent and backward primitives are linear in their last operands, so there they serve as
their own derivatives and each other's transposes; with respect to the residuals, JAX differentiates their references. Among
these the output has the tangent that the operands give it, and so has the result wide_y of an output y, which is y before
it is rounded. Other results after it have none: references must either recompute them or not depend on them smoothly.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import jax

from . import choice, compat, complete, explicit, partition, promote
from . import prefer as preference
from .call import Call, untyped
from .compat import ad
from .compiled import full
from .names import has_star, spelled, unrounded
from .regime import by_size
from .sku import OpCategory


class Body(NamedTuple):
    """One computation, twice: in plain JAX, and by kernels; None where the op has no kernels."""

    reference: Callable
    native: Callable | None = None

    @property
    def typed(self):
        """The one that gives the results' types."""
        return self.native or self.reference


@dataclasses.dataclass(frozen=True, eq=False)
class Op:
    """A declared op. Calling it binds the forward primitive; users call the public functions of the family's module."""

    name: str
    family: str
    category: OpCategory
    operands: tuple[str, ...]
    results: tuple[str, ...]
    outputs: tuple[str, ...]
    aliases: Mapping[str, str]  # operand: the result that takes its memory
    differentiable: tuple[str, ...]
    constant: Mapping[str, str]  # operand: why it has no derivative
    cut: partition.Partition | str  # or why batches alone may be sharded
    residuals: tuple[str, ...]
    kernels: Mapping[str, tuple[str, ...]]  # of forward, tangent and backward; none where a library computes
    library: str | None  # which one then
    made_of: tuple[str, ...]  # the ops that a composed op calls
    dtypes: tuple[str, ...]
    public: Callable
    cases: tuple
    beside: tuple[str, ...]  # other ops that the public function calls
    kin: str | None
    default: str
    regime: Callable
    weak: bool
    forward: compat.Primitive | None  # None where the op is made of other ops
    tangent: compat.Primitive | None  # as backward, None where there is no derivative
    backward: compat.Primitive | None
    bodies: Mapping[str, Body]
    output: int
    codes: bool
    surrogate: bool
    is_linear: bool

    def __call__(self, *operands, implementation=None, save=False, **params):
        """The first output, or with `save` a tuple of all results."""
        outs = bind(
            self.forward, *operands, save=save, implementation=self._resolved(self.name, implementation), **params
        )
        return tuple(outs) if save else outs[0]

    @property
    def has_kernels(self):
        """Whether any of it is native."""
        return any(self.kernels.values())

    @property
    def no_derivative(self):
        """The reason why the op has none, or None where it has."""
        if self.codes:
            return "the output is made of codes"
        return None if self.differentiable else "; ".join(dict.fromkeys(self.constant.values()))

    def vjp(self, *operands, implementation=None, **params):
        """The backward primitive, on (*residuals, *cotangents of outputs): one cotangent, or a list of several. An output
        whose cotangent is None, or left out at the end, has none."""
        if len(self.outputs) > 1:
            n = len(self.residuals)
            given = [(name, ct) for name, ct in zip(self.outputs, operands[n:], strict=False) if ct is not None]
            operands = (*operands[:n], *(ct for _, ct in given))
            params |= {"outputs": tuple(name for name, _ in given)}
        outs = bind(
            self.backward, *operands, implementation=self._resolved(f"{self.name}_backward", implementation), **params
        )
        return outs if len(self.differentiable) > 1 or has_star(self.differentiable) else outs[0]

    def _resolved(self, name, implementation):
        found = preference.resolve(name, implementation)
        return self.of_context(found) if implementation is None else found

    def of_context(self, implementation):
        """A context that wants kernels wants those that there are: of an op without any it says nothing."""
        if self.has_kernels or not isinstance(implementation, preference.PlanPreference):
            return implementation
        return dataclasses.replace(implementation, backend=None)


OPS: dict[str, Op] = {}


def as_they_are(params):
    """Parameters that say nothing of how many batch dimensions there are."""
    return params


def declare(
    name: str,
    *,
    family: str,
    category: OpCategory,
    public: Callable,
    cases: Sequence,
    dtypes: Sequence[str],
    operands: Sequence[str],
    forward: Body,
    kernels: Mapping[str, Sequence[str]],
    batched: Callable[[dict], dict],
    cut: partition.Partition | str,
    differentiable: Sequence[str] = (),
    constant: Mapping[str, str] | None = None,
    residuals: Sequence[str] = (),
    backward: Body | None = None,
    results: Sequence[str] = ("y",),
    outputs: Sequence[str] | None = None,
    aliases: Mapping[str, str] | None = None,
    tangent: Body | None = None,
    output: int = 0,
    codes: bool = False,
    surrogate: bool = False,
    linear: Callable[[dict], dict] | None = None,
    shared: Mapping[str, int] | None = None,
    follows: Mapping[str, str] | None = None,
    beside: Sequence[str] = (),
    kin: str | None = None,
    default: str = "native",
    regime: Callable = by_size,
    library: str | None = None,
    weak: bool = False,
) -> Op:
    """Declares an op and puts it in the table `OPS`; `complete.py` says what must not be left out.

    category        the kind of op that a plan reports
    public          the function that users call; its docstring is the op's
    operands, ...   names, in order; `results` after the first are saved for the derivatives. A name with a star stands for
                    any number of operands, and so then may one of `differentiable`
    outputs         the results that have derivatives, which are the first ones; by default the first alone
    aliases         operand -> the result of its shape and dtype that takes its memory, where nobody reads the operand after;
                    the native body says so to the kernel call
    constant        operand -> the reason why it has no derivative, for each that is not `differentiable`
    output          which of the public function's results the output is, where others are of other calls
    codes           the output is made of codes, which carry no tangents: the derivatives are there for the public backward
                    function alone
    surrogate       the derivatives are not the limits of differences but a convention, such as straight-through
    residuals       operands and results that the derivatives read
    backward        may be left out, with tangent and residuals, where the op has no kernels: JAX differentiates the
                    reference
    tangent         may be left out where the op is its own tangent, under the parameters linear(params)
    kernels         the FFI targets that each native body calls: {"forward": (...), "tangent": ..., "backward": ...}; or {},
                    where no kernel is better than a library
    library         which library that is on CUDA, a BackendKind: "xla", "cudnn", "cublaslt", ...
    shared          operand -> its rank without batches, for operands that need not be repeated for each batch under vmap
    follows         result -> the shared operand from which alone it is computed
    batched         the batching rule: params -> params of the op with one more leading batch dimension, or `as_they_are`
    cut             the sharding rule: which dimensions besides batches may be sharded, and how shards are combined; or the
                    reason why none may
    beside          other ops whose kernels the public function calls too
    kin             what ops that differ in their functors alone have in common; a sample of the laws takes some of them
    default         what automatic means for this op: "native", the kernel where there is one, or "xla"
    regime          the sizes besides bytes on which the choice of backend depends: a rule of `regime.py`
    weak            whether the output, of the operands' dtype, is weakly typed where they are, as Python numbers: so are the
                    results of JAX's elementwise functions and of those that move elements
    """
    constant, shared, follows = constant or {}, shared or {}, follows or {}
    aliases, outputs = aliases or {}, tuple(outputs or results[:1])
    complete.check(
        name,
        public=public,
        cases=cases,
        dtypes=dtypes,
        operands=operands,
        results=results,
        outputs=outputs,
        aliases=aliases,
        differentiable=differentiable,
        constant=constant,
        residuals=residuals,
        forward=forward,
        tangent=tangent,
        backward=backward,
        linear=linear,
        kernels=kernels,
        library=library,
        shared=shared,
        follows=follows,
        cut=cut,
    )
    if linear:
        tangent = _linear_tangent(_all_results(forward), operands, residuals, differentiable, outputs, linear)
        kernels = {**kernels, "tangent": kernels["forward"]} if kernels else {}
    bodies = {"forward": _all_results(forward)}
    if differentiable and not backward:
        residuals = tuple(operands)
        tangent, backward = bodies["tangent"], bodies["backward"] = _derived(forward, operands, differentiable, outputs)
    elif backward:
        bodies |= {"tangent": tangent, "backward": backward}
        if len(outputs) > 1:
            bodies |= _of_some_outputs(tangent, backward, outputs)

    def names(kind, params):
        """Of operands and of results."""
        some = params.get("outputs", outputs) if len(outputs) > 1 else outputs
        return {
            "forward": (tuple(operands), tuple(results)),
            "tangent": ((*residuals, *differentiable), some),
            "backward": ((*residuals, *some), tuple(differentiable)),
        }[kind]

    rule = None if isinstance(cut, str) else cut
    primitives = {"tangent": None, "backward": None}
    for kind, body in bodies.items():
        of_kind = functools.partial(names, kind)
        of_call = rule and functools.partial(partition.of_call, rule, kind, of_kind, follows)
        primitives[kind] = _primitive(name, kind, body, of_call, primitives, weak)
        _batch(primitives[kind], of_kind, shared, follows, batched)
    if backward:
        _differentiate(primitives, bodies, *map(tuple, (operands, differentiable, residuals, results, outputs)))
    if linear:
        _transpose(primitives, tuple(operands), tuple(residuals), outputs, linear)
    if codes or not backward:
        ad.primitive_jvps[primitives["forward"]] = functools.partial(_no_derivative, primitives["forward"])
    op = OPS[name] = Op(
        name=name,
        family=family,
        category=category,
        operands=tuple(operands),
        results=tuple(results),
        outputs=outputs,
        aliases=dict(aliases),
        differentiable=tuple(differentiable),
        constant=dict(constant),
        cut=cut,
        residuals=tuple(residuals),
        kernels={kind: tuple(kernels.get(kind, ())) for kind in bodies},
        library=library,
        made_of=(),
        dtypes=tuple(dtypes),
        public=public,
        cases=tuple(cases),
        beside=tuple(beside),
        kin=kin,
        default=default,
        regime=regime,
        weak=weak,
        bodies=bodies,
        output=output,
        codes=codes,
        surrogate=surrogate,
        is_linear=linear is not None,
        **primitives,
    )
    return op


def compose(
    name: str,
    *,
    family: str,
    category: OpCategory,
    public: Callable,
    cases: Sequence,
    dtypes: Sequence[str],
    operands: Sequence[str],
    made_of: Sequence[str],
    differentiable: Sequence[str] = (),
    constant: Mapping[str, str] | None = None,
    surrogate: bool = False,
    kin: str | None = None,
) -> Op:
    """Puts a public function that calls other ops, and nothing else that matters, into the table `OPS`.

    It has no primitive: JAX transforms the ops that it calls, and each has its own choice of backend. `made_of` names these,
    all of which every call calls; the other arguments are those of `declare`."""
    constant = constant or {}
    complete.check_composed(
        name, public=public, cases=cases, dtypes=dtypes, operands=operands, made_of=made_of, known=OPS,
        differentiable=differentiable, constant=constant,
    )  # fmt: skip
    parts = [OPS[part] for part in made_of]
    kinds = ("forward", "tangent", "backward") if differentiable else ("forward",)
    targets = {kind: dict.fromkeys(t for part in parts for t in part.kernels.get(kind, ())) for kind in kinds}
    libraries = {part.library for part in parts if part.library}
    op = OPS[name] = Op(
        name=name,
        family=family,
        category=category,
        operands=tuple(operands),
        results=("y",),
        outputs=("y",),
        aliases={},
        differentiable=tuple(differentiable),
        constant=dict(constant),
        cut="it is cut as the ops are that it is made of",
        residuals=(),
        kernels={kind: tuple(found) for kind, found in targets.items()},
        library=" ".join(sorted(libraries)) or None,
        made_of=tuple(made_of),
        dtypes=tuple(dtypes),
        public=public,
        cases=tuple(cases),
        beside=(),
        kin=kin,
        default="native",
        regime=by_size,
        weak=False,
        bodies={},
        output=0,
        codes=False,
        surrogate=surrogate,
        is_linear=False,
        forward=None,
        tangent=None,
        backward=None,
    )
    return op


def _all_results(forward):
    """A forward reference computes all results; what nobody saves is cut off, and the compiler drops its computation."""

    def reference(*operands, save, **params):
        return tuple(forward.reference(*operands, **params))[: None if save else 1]

    return Body(reference, forward.native)


def _derived(forward, operands, differentiable, outputs):
    """The derivatives of an op without kernels: those of its reference, by JAX. Its operands are the residuals."""

    def at(values, some, params):
        """The outputs that take part as a function of the differentiable operands, and these."""
        names = spelled(operands, len(values))
        known = dict(zip(names, values, strict=True))
        moving = spelled(differentiable, len(values) - len(operands) + len(differentiable))

        def of_moving(*arrays):
            changed = known | dict(zip(moving, arrays, strict=True))
            found = dict(zip(outputs, forward.reference(*changed.values(), **params), strict=False))
            return tuple(found[name] for name in some)

        return of_moving, tuple(known[name] for name in moving)

    def split(values, count_of_linear):
        return values[: len(values) - count_of_linear], values[len(values) - count_of_linear :]

    def tangent(*values, outputs=outputs, **params):
        extra = (len(values) - len(operands) - len(differentiable)) // 2 if has_star(differentiable) else 0
        values, tangents = split(values, len(differentiable) + extra)
        return jax.jvp(*at(values, outputs, params), tangents)[1]

    def backward(*values, outputs=outputs, **params):
        values, cotangents = split(values, len(outputs))
        fun, moving = at(values, outputs, params)
        return jax.vjp(fun, *moving)[1](cotangents)

    return Body(tangent), Body(backward)


def _of_some_outputs(tangent, backward, every):
    """The bodies of an op with several outputs, of which some take part."""

    def selected(fun):
        def run(*values, outputs, **params):
            found = dict(zip(every, fun(*values, **params), strict=True))
            return tuple(found[name] for name in outputs)

        return fun and run

    def filled(fun):
        def run(*values, outputs, **params):
            count = len(values) - len(outputs)
            cotangents = dict(zip(outputs, values[count:], strict=True))
            return fun(*values[:count], *(cotangents.get(name) for name in every), **params)

        return fun and run

    return {"tangent": Body(*map(selected, tangent)), "backward": Body(*map(filled, backward))}


def bind(primitive, *operands, **params):
    """Binds a primitive, operands that vary over fewer axes of a shard_map made to vary over those of the others."""
    axes = frozenset().union(*(compat.manual_axes(jax.typeof(x)) for x in operands))
    missing = lambda x: tuple(axes - compat.manual_axes(jax.typeof(x)))
    operands = [jax.lax.pcast(x, missing(x), to="varying") if missing(x) else x for x in operands]
    return primitive.bind(*operands, **params)


def _primitive(name, kind, body, cut_of, primitives, weak):
    p = compat.Primitive(name if kind == "forward" else f"{name}_{kind}")
    p.multiple_results = True
    p.def_impl(compat.apply(p))

    def types(*avals, implementation, **params):
        if cut_of is None:
            outs = compat.trace(body.typed, avals, params).out_avals
            return [y.update(weak_type=is_weak) for y, is_weak in zip(outs, weakness(avals, outs), strict=True)]
        outs = untyped(body.typed, avals, params)
        specs = partition.result_specs(cut_of(params, avals, outs), avals)
        return [
            compat.with_type(avals, y.shape, y.dtype, spec, is_weak)
            for y, spec, is_weak in zip(outs, specs, weakness(avals, outs), strict=True)
        ]

    def weakness(avals, outs):
        """Of each result. Those of a forward call after the first are indices and the like."""
        may = [weak and (kind != "forward" or i == 0) for i in range(len(outs))]
        return [is_one and promote.follows(y, avals) for is_one, y in zip(may, outs, strict=True)]

    def lower(ctx, *operands, implementation, **params):
        backend, _ = chosen(ctx, implementation, params)
        cut = cut_of and cut_of(params, ctx.avals_in, ctx.avals_out)
        if cut and (backend == "native" or cut.partition.plain):
            run = {
                kind: functools.partial(bind, q, implementation=implementation) for kind, q in primitives.items() if q
            }
            outs = partition.lower(ctx, cut, run, params, operands)
            if outs is not None:
                return outs
        fun = body.native if backend == "native" else functools.partial(reference, types=ctx.avals_out)
        return compat.lower_fun(functools.partial(fun, **params), multiple_results=True)(ctx, *operands)

    def chosen(ctx, implementation, params):
        call = Call(OPS[name], kind, tuple(ctx.avals_in), tuple(ctx.avals_out), params)
        return choice.choose(call, preference.for_call(implementation, call), ctx.module_context.platforms)

    def reference(*operands, types, **params):
        return explicit.left_to_compiler(functools.partial(body.reference, **params), types)(*operands)

    p.def_abstract_eval(types)
    for platform in (None, "tpu", "rocm"):
        compat.register_lowering(p, lower, **({"platform": platform} if platform else {}))
    if cut_of:
        compat.partitioned(p)
    return p


def _linear_tangent(forward, operands, residuals, differentiable, outputs, linear):
    """A linear op's tangent: the op itself, with the tangents where its operands were."""

    def of(fun):
        def tangent(*values, **params):
            known = dict(zip(spelled((*residuals, *differentiable), len(values)), values, strict=True))
            moved = (known[name] for name in spelled(operands, len(values)))
            return tuple(fun(*moved, save=len(outputs) > 1, **linear(params)))[: len(outputs)]

        return fun and tangent

    return Body(of(forward.reference), of(forward.native))


def _batch(p, names_of, shared, follows, batched):
    """vmap: one more leading batch dimension, which the kernels have."""

    def rule(axis, args, dims, /, **params):
        if all(dim is None for dim in dims):
            return (outs := p.bind(*args, **params)), [None] * len(outs)
        names, results = names_of(params)
        known = spelled(names, len(args))
        kept = {
            name: dim is None and x.ndim == shared.get(name, -1) for name, x, dim in zip(known, args, dims, strict=True)
        }
        args = [
            x if kept[name] else compat.bdim_at_front(x, dim, axis.size, axis.explicit_mesh_axis)
            for name, x, dim in zip(known, args, dims, strict=True)
        ]
        outs = bind(p, *args, **{**batched(params), **{k: v for k, v in params.items() if k == "outputs"}})
        made = spelled(results, len(outs)) if has_star(results) else results
        return outs, [None if kept.get(follows.get(name)) else 0 for name, _ in zip(made, outs, strict=False)]

    compat.register_batcher(p, rule)


def _differentiate(primitives, bodies, operands, differentiable, residuals, results, outputs):
    forward, tangent, backward = (primitives[kind] for kind in ("forward", "tangent", "backward"))
    n = len(residuals)

    def forward_jvp(primals, tangents, *, save, **params):
        names = spelled(operands, len(primals))
        values, dots = dict(zip(names, primals, strict=True)), dict(zip(names, tangents, strict=True))
        dots = [dots[name] for name in spelled(differentiable, len(primals) - len(operands) + len(differentiable))]
        if all(type(t) is ad.Zero for t in dots):
            return _no_derivative(forward, primals, tangents, save=save, **params)
        outs = bind(forward, *primals, save=True, **params)
        values |= zip(results, outs, strict=True)
        dots = [_tangent(t, outs[0]) for t in dots]
        some = {"outputs": outputs if save else outputs[:1]} if len(outputs) > 1 else {}
        moved = bind(tangent, *(values[name] for name in residuals), *dots, **params, **some)
        outs = outs if save else outs[:1]
        same = {unrounded(name): dot for name, dot in zip(outputs, moved, strict=False)}
        more = list(zip(results, outs, strict=False))[len(moved) :]
        return outs, [*moved, *(same[name].astype(y.dtype) if name in same else _zero(y) for name, y in more)]

    ad.primitive_jvps[forward] = forward_jvp
    for p, kind in ((tangent, "tangent"), (backward, "backward")):
        ad.primitive_jvps[p] = functools.partial(_linear_jvp, p, bodies[kind], n, kind == "backward")
    ad.primitive_transposes[tangent] = functools.partial(_tangent_transpose, backward, n)
    ad.primitive_transposes[backward] = functools.partial(_linear_transpose, tangent, n)


def _transpose(primitives, operands, residuals, outputs, linear):
    """jax.linear_transpose of a linear op, all of whose residuals are operands."""

    def rule(cotangents, *values, save, **params):
        known = dict(zip(spelled(operands, len(values)), values, strict=True))
        inner = [known[name] for name in residuals]
        moved = [x for name, x in known.items() if name not in residuals]
        n = len(inner)
        some = {"outputs": outputs if save else outputs[:1]} if len(outputs) > 1 else {}
        cotangents = cotangents[: len(outputs)]
        cts = _tangent_transpose(primitives["backward"], n, cotangents, *inner, *moved, **linear(params), **some)
        known |= dict.fromkeys(residuals)
        known |= zip((name for name in known if name not in residuals), cts[n:], strict=True)
        return list(known.values())

    ad.primitive_transposes[primitives["forward"]] = rule


def _no_derivative(p, primals, tangents, **params):
    outs = bind(p, *primals, **params)
    return outs, [_zero(y) for y in outs]


def _tangent(t, output):
    """A tangent as an array. That of integers, which have none, is zeros of the output's dtype."""
    if type(t) is ad.Zero and t.aval.dtype == jax.dtypes.float0:
        return full(t.aval.shape, 0, output.dtype)
    return compat.instantiated(t)


def _linear_jvp(p, body, n, is_backward, primals, tangents, **params):
    """Linear operands: the kernel again. Residuals: the derivative of the reference."""
    outs = bind(p, *primals, **params)
    count, moving = len(primals), [i for i, t in enumerate(tangents[:n]) if type(t) is not ad.Zero]
    dots = [_zero(y) for y in outs]
    if any(type(t) is not ad.Zero for t in tangents[n:]):
        same, moved = params, tangents[n:]
        if is_backward and "outputs" in params:
            outputs, moved = _not_zero(params["outputs"], moved)
            same = params | {"outputs": outputs}
        dots = bind(p, *primals[:n], *map(compat.instantiated, moved), **same)
    if moving:

        def derivative(*operands):
            values, turns = operands[:count], operands[count:]

            def of_residuals(*some):
                known = dict(zip(moving, some, strict=True))
                values_ = (known.get(i, x) for i, x in enumerate(values))
                return tuple(body.reference(*values_, **{k: v for k, v in params.items() if k != "implementation"}))

            return jax.jvp(of_residuals, tuple(values[i] for i in moving), turns)[1]

        more = explicit.left_to_compiler(derivative, list(map(jax.typeof, outs)))(
            *primals, *(tangents[i] for i in moving)
        )
        dots = [ad.add_tangents(a, b) for a, b in zip(dots, more, strict=True)]
    return outs, dots


def _linear_transpose(transposed, n, cotangents, *operands, **params):
    nothing = [None] * n
    if all(type(ct) is ad.Zero for ct in cotangents):
        return [*nothing, *(ad.Zero(x.aval) if ad.is_undefined_primal(x) else None for x in operands[n:])]
    outs = bind(transposed, *operands[:n], *map(compat.instantiated, cotangents), **params)
    linear = zip(outs, operands[n:], strict=True)
    return [*nothing, *(compat.place_as(ct, x.aval) if ad.is_undefined_primal(x) else None for ct, x in linear)]


def _tangent_transpose(backward, n, cotangents, *operands, outputs=None, **params):
    """Of several outputs, those that have a cotangent take part."""
    if outputs is None:
        return _linear_transpose(backward, n, cotangents, *operands, **params)
    if not all(type(ct) is ad.Zero for ct in cotangents):
        outputs, cotangents = _not_zero(outputs, cotangents)
    return _linear_transpose(backward, n, cotangents, *operands, outputs=outputs, **params)


def _not_zero(outputs, values):
    """The outputs whose tangents or cotangents are not symbolic zeros, and these."""
    return tuple(
        zip(*((name, x) for name, x in zip(outputs, values, strict=True) if type(x) is not ad.Zero), strict=True)
    )


def _zero(x):
    return ad.Zero(jax.typeof(x).to_tangent_aval())
