"""Ops that XLA, or a library that it calls, computes best: public functions in plain JAX, which JAX transforms.

They have no primitive. XLA fuses them with what is around them, and shards them."""

import functools
from collections.abc import Callable, Mapping, Sequence

from . import complete
from . import prefer as preference
from .api import api
from .op import OPS, Op
from .sku import OpCategory
from .types import F


def facade_api(library: str, *, has_kernels: bool = False) -> Callable[[F], F]:
    """The decorator of a facade's public function, whose body need not read `implementation`: there is one. Where the op has
    kernels for some arguments, and is declared with `declare`, the body gets it, and refuses what they do not compute."""

    def decorate(fun: F) -> F:
        @functools.wraps(fun)
        def call(*args, implementation=None, **kwargs):
            if has_kernels:
                kwargs["implementation"] = implementation
            else:
                preference.refuse_native(call.__name__, implementation, library)
            return fun(*args, **kwargs)

        call.library = library
        return api(call)

    return decorate


def facade(
    name: str,
    *,
    family: str,
    category: OpCategory,
    public: Callable,
    cases: Sequence,
    dtypes: Sequence[str],
    operands: Sequence[str],
    differentiable: Sequence[str] = (),
    constant: Mapping[str, str] | None = None,
    outputs: Sequence[str] = ("y",),
    surrogate: bool = False,
    own_rules: bool = False,
) -> Op:
    """Puts a public function, decorated by `facade_api`, into the table `OPS`.

    outputs     the results that have derivatives, which are the first ones
    own_rules   whether a derivative is a rule of this package instead of JAX's, and so the law of differences is about it
    The other arguments are those of `declare`."""
    complete.check_facade(
        name, public=public, cases=cases, dtypes=dtypes, operands=operands, differentiable=differentiable,
        constant=constant or {},
    )  # fmt: skip
    op = OPS[name] = Op(
        name=name,
        family=family,
        category=category,
        public=public,
        cases=tuple(cases),
        dtypes=tuple(dtypes),
        operands=tuple(operands),
        results=tuple(outputs),
        outputs=tuple(outputs),
        differentiable=tuple(differentiable),
        constant=dict(constant or {}),
        cut="XLA shards it",
        kernels={kind: () for kind in (("forward", "tangent", "backward") if differentiable else ("forward",))},
        library=public.library,
        kin=None if own_rules else f"{family}, {len(operands)} operands, {len(outputs)} outputs",
        surrogate=surrogate,
        is_facade=True,
    )
    return op
