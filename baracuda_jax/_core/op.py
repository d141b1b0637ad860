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
function that is made of other ops has no primitive of its own: `compose` puts it into the table; and what plain JAX computes
best has none either: `facade.py`.

Derivatives of any order follow: `derivatives.py`.
"""

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence

from . import compat, complete, partition
from . import prefer as preference
from .body import Body, all_results, linear_tangent, of_some_outputs
from .compat import ad
from .derivatives import differentiate, no_derivative, transpose
from .names import has_star
from .primitive import batch, bind, primitive
from .regime import by_size
from .sku import OpCategory


@dataclasses.dataclass(frozen=True, eq=False, kw_only=True)
class Op:
    """A declared op. Calling it binds the forward primitive; users call the public functions of the family's module."""

    name: str
    family: str
    category: OpCategory
    public: Callable
    cases: tuple
    dtypes: tuple[str, ...]
    operands: tuple[str, ...]
    results: tuple[str, ...] = ("y",)
    outputs: tuple[str, ...] = ("y",)
    aliases: Mapping[str, str] = dataclasses.field(default_factory=dict)  # operand: the result that takes its memory
    differentiable: tuple[str, ...] = ()
    constant: Mapping[str, str] = dataclasses.field(default_factory=dict)  # operand: why it has no derivative
    cut: partition.Partition | str  # or why batches alone may be sharded
    residuals: tuple[str, ...] = ()
    kernels: Mapping[str, tuple[str, ...]]  # of forward, tangent and backward; none where a library computes
    sometimes: tuple[str, ...] = ()  # kernels that some calls have besides
    library: str | None = None  # which one then
    made_of: tuple[str, ...] = ()  # the ops that a composed op calls
    also: tuple[str, ...] = ()  # other ops that the public function calls
    kin: str | None = None
    default: str = "native"
    regime: Callable = by_size
    weak: bool = False
    forward: compat.Primitive | None = None  # None where the op is made of other ops
    tangent: compat.Primitive | None = None  # as backward, None where there is no derivative
    backward: compat.Primitive | None = None
    bodies: Mapping[str, Body] = dataclasses.field(default_factory=dict)
    output: int = 0
    quantized: bool = False
    surrogate: bool = False
    is_linear: bool = False
    fused: bool = False  # whether XLA computes a part of it, also where kernels are called
    is_facade: bool = False  # the public function is plain JAX

    def __call__(self, *operands, implementation=None, save=False, **params):
        """The first output, or with `save` a tuple of all results."""
        outs = bind(
            self.forward, *operands, save=save, implementation=self._resolved(self.name, implementation), **params
        )
        return tuple(outs) if save else outs[0]

    @property
    def targets(self):
        """The FFI targets that calls may have."""
        return {*self.sometimes, *(target for of_kind in self.kernels.values() for target in of_kind)}

    @property
    def has_kernels(self):
        """Whether any of it is native."""
        return any(self.kernels.values())

    @property
    def no_derivative(self):
        """The reason why the op has none, or None where it has."""
        if self.quantized:
            return "the output is quantized"
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
    sometimes: Sequence[str] = (),
    tangent: Body | None = None,
    output: int = 0,
    quantized: bool = False,
    surrogate: bool = False,
    linear: Callable[[dict], dict] | None = None,
    multilinear: bool = False,
    shared: Mapping[str, int] | None = None,
    follows: Mapping[str, str] | None = None,
    also: Sequence[str] = (),
    kin: str | None = None,
    default: str = "native",
    regime: Callable = by_size,
    library: str | None = None,
    weak: bool = False,
    fused: bool = False,
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
    quantized       the output is quantized values, which carry no tangents: the derivatives are there for the public
                    backward
                    function alone
    surrogate       the derivatives are not the limits of differences but a convention, such as straight-through
    residuals       operands and results that the derivatives read
    tangent         may be left out where the op is its own tangent, under the parameters linear(params)
    multilinear     whether the op is linear in each of several operands, and its residuals have them: then derivatives of
                    any order are kernels
    kernels         the FFI targets that each native body calls: {"forward": (...), "tangent": ..., "backward": ...}. Kinds
                    are left out, or all of them, {}, where no kernel is better than a library
    sometimes       targets that some calls have besides, as those of many rows have an index
    library         which library that is on CUDA, a BackendKind: "xla", "cudnn", "cublaslt", ...
    shared          operand -> its rank without batches, for operands that need not be repeated for each batch under vmap.
                    Differentiable ones are repeated together or not at all, and always for `backward`, where each batch has
                    a cotangent of its own
    follows         result -> the shared operand from which alone it is computed
    batched         the batching rule: params -> params of the op with one more leading batch dimension, or `as_they_are`
    cut             the sharding rule: which dimensions besides batches may be sharded, and how shards are combined; or the
                    reason why none may
    also            other ops whose kernels the public function calls too
    kin             what ops that differ in their functors alone have in common; a sample of the laws takes some of them
    default         what automatic means for this op: "native", the kernel where there is one, or "xla"
    regime          the sizes besides bytes on which the choice of backend depends: a rule of `regime.py`
    weak            whether the output, of the operands' dtype, is weakly typed where they are, as Python numbers: so are the
                    results of JAX's elementwise functions and of those that move elements
    fused           whether plain JAX is around the kernels, which XLA fuses with what comes before and after: results
                    are the same numbers in all programs, and the same bits in two runs of one
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
        tangent = linear_tangent(all_results(forward), operands, residuals, differentiable, outputs, linear)
        kernels = {**kernels, "tangent": kernels["forward"]} if kernels else {}
    bodies = {"forward": all_results(forward)}
    if backward:
        bodies |= {"tangent": tangent, "backward": backward}
        if len(outputs) > 1:
            bodies |= of_some_outputs(tangent, backward, outputs)

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
    moving = [name for name in shared if name in differentiable]
    for kind, body in bodies.items():
        of_kind = functools.partial(names, kind)
        of_call = rule and functools.partial(partition.of_call, rule, kind, of_kind, follows)
        primitives[kind] = primitive(name, kind, body, of_call, primitives, weak, lambda: OPS[name])
        of_all = {name: rank for name, rank in shared.items() if kind != "backward" or name not in moving}
        batch(primitives[kind], of_kind, of_all, follows, batched, moving)
    if backward:
        named = map(tuple, (operands, differentiable, residuals, results, outputs))
        differentiate(primitives, bodies, *named, multilinear)
    if linear:
        transpose(primitives, tuple(operands), tuple(residuals), outputs, linear)
    if quantized or not backward:
        ad.primitive_jvps[primitives["forward"]] = functools.partial(no_derivative, primitives["forward"])
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
        sometimes=tuple(sometimes),
        library=library,
        made_of=(),
        dtypes=tuple(dtypes),
        public=public,
        cases=tuple(cases),
        also=tuple(also),
        kin=kin,
        default=default,
        regime=regime,
        weak=weak,
        bodies=bodies,
        output=output,
        quantized=quantized,
        surrogate=surrogate,
        is_linear=linear is not None,
        fused=fused,
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
    kernels: Mapping[str, Sequence[str]] | None = None,
    sometimes: Sequence[str] = (),
    outputs: Sequence[str] = ("y",),
    differentiable: Sequence[str] = (),
    constant: Mapping[str, str] | None = None,
    surrogate: bool = False,
    kin: str | None = None,
) -> Op:
    """Puts a public function that calls other ops, and nothing else that matters, into the table `OPS`.

    It has no primitive: JAX transforms the ops that it calls, and each has its own choice of backend. `made_of` names these,
    all of which every call calls, unless their targets are among those that `sometimes` has. `kernels` has the targets where
    these are not all of theirs. The other arguments are those of `declare`."""
    constant = constant or {}
    complete.check_composed(
        name, public=public, cases=cases, dtypes=dtypes, operands=operands, made_of=made_of, known=OPS,
        differentiable=differentiable, constant=constant,
    )  # fmt: skip
    parts = [OPS[part] for part in made_of]
    kinds = ("forward", "tangent", "backward") if differentiable else ("forward",)
    targets = {kind: dict.fromkeys(t for part in parts for t in part.kernels.get(kind, ())) for kind in kinds}
    targets = kernels or targets
    libraries = {part.library for part in parts if part.library}
    op = OPS[name] = Op(
        name=name,
        family=family,
        category=category,
        operands=tuple(operands),
        results=tuple(outputs),
        outputs=tuple(outputs),
        differentiable=tuple(differentiable),
        constant=dict(constant),
        cut="it is cut as the ops are that it is made of",
        kernels={kind: tuple(found) for kind, found in targets.items()},
        sometimes=tuple(dict.fromkeys((*sometimes, *(t for part in parts for t in part.sometimes)))),
        library=" ".join(sorted(libraries)) or None,
        made_of=tuple(made_of),
        dtypes=tuple(dtypes),
        public=public,
        cases=tuple(cases),
        kin=kin,
        default="xla" if all(part.default == "xla" for part in parts) else "native",
        surrogate=surrogate,
    )
    return op
