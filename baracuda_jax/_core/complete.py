"""What a declaration must say. One that leaves a part out fails where it stands, and so does the import."""

import inspect
import re
import sys

SECTIONS = ("Formula", "Args", "Returns", "Raises", "Precision", "Source")


def check(op, **declared):
    """Raises a ValueError that says all that is missing."""
    missing = [*_documentation(declared["public"]), *_derivative(**declared), *_names(**declared), *_rest(**declared)]
    if missing:
        raise ValueError(f"{op}: the declaration is incomplete: {'; '.join(missing)}")


def _documentation(public):
    if sys.flags.optimize > 1:  # Python dropped the docstrings
        return
    text = inspect.getdoc(public) or ""
    for section in SECTIONS:
        if not re.search(rf"^{section}:", text, re.MULTILINE):
            yield f"the docstring of {public.__name__} has no section {section}"
    arguments = text.partition("Args:")[2].partition("Returns:")[0]
    for name in inspect.signature(public).parameters:
        if not re.search(rf"\b{name}\b", arguments):
            yield f"the docstring of {public.__name__} does not say what {name} is"


def _derivative(*, operands, differentiable, constant, tangent, backward, linear, **_):
    for name in operands:
        if (name in differentiable) == (name in constant):
            yield f"{name} must be differentiable, or constant for a stated reason, and not both"
    for name, reason in constant.items():
        if not isinstance(reason, str) or not reason.strip():
            yield f"no reason is stated why {name} is constant"
    if differentiable and not backward:
        yield "backward must be given, since something is differentiable"
    if backward and (tangent is None) == (linear is None):
        yield "either tangent must be given, or linear, for an op that is its own tangent"


def _names(*, operands, results, differentiable, constant, residuals, shared, follows, **_):
    """Those in one part are known from another."""
    for part, names, known in (
        ("differentiable", differentiable, operands),
        ("constant", constant, operands),
        ("residuals", residuals, (*operands, *results)),
        ("follows", follows, results),
        ("follows", follows.values(), shared),
    ):
        for name in names:
            if name not in known:
                yield f"{part} has {name}, which is none of {', '.join(known) or 'the declared ones'}"


def _rest(*, cases, dtypes, kernels, backward, linear, cut, **_):
    if not cut or (isinstance(cut, str) and not cut.strip()):
        yield "cut must be a sharding rule, or the reason why batches alone may be sharded"
    if not cases:
        yield "there are no cases to test it on"
    if not dtypes:
        yield "there are no dtypes"
    kinds = ("forward", *(("tangent",) if backward and not linear else ()), *(("backward",) if backward else ()))
    for kind in kinds:
        if not kernels.get(kind):
            yield f"kernels does not name the targets of {kind}"
