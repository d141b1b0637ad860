"""What a declaration must say. One that leaves a part out fails where it stands, and so does the import."""

import inspect
import re
import sys

from .sku import BackendKind

SECTIONS = ("Formula", "Args", "Returns", "Raises", "Precision", "Source")


def check(op, **declared):
    """Raises a ValueError that says all that is missing."""
    parts = _documentation, _constant, _derivative, _names, _cut, _tried, _kernels
    _raise(op, [missing for part in parts for missing in part(**declared)])


def check_composed(op, **declared):
    """The same, of an op that is made of others."""
    parts = _documentation, _constant, _tried, _parts
    _raise(op, [missing for part in parts for missing in part(**declared)])


def check_facade(op, **declared):
    """The same, of an op that is plain JAX."""
    parts = _documentation, _constant, _tried, _library
    _raise(op, [missing for part in parts for missing in part(**declared)])


def _raise(op, missing):
    if missing:
        raise ValueError(f"{op}: the declaration is incomplete: {'; '.join(missing)}")


def _documentation(*, public, **_):
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


def _constant(*, operands, differentiable, constant, **_):
    for name in operands:
        if (name in differentiable) == (name in constant):
            yield f"{name} must be differentiable, or constant for a stated reason, and not both"
    for name, reason in constant.items():
        if not isinstance(reason, str) or not reason.strip():
            yield f"no reason is stated why {name} is constant"


def _derivative(*, differentiable, tangent, backward, linear, **_):
    if differentiable and not backward:
        yield "backward must be given, since something is differentiable"
    if backward and (tangent is None) == (linear is None):
        yield "either tangent must be given, or linear, for an op that is its own tangent"


def _names(*, operands, results, outputs, aliases, differentiable, constant, residuals, shared, follows, **_):
    """Those in one part are known from another."""
    for part, names, known in (
        ("differentiable", differentiable, operands),
        ("constant", constant, operands),
        ("residuals", residuals, (*operands, *results)),
        ("follows", follows, results),
        ("aliases", aliases, operands),
        ("aliases", aliases.values(), results),
        ("follows", follows.values(), shared),
    ):
        for name in names:
            if name not in known:
                yield f"{part} has {name}, which is none of {', '.join(known) or 'the declared ones'}"
    if outputs != tuple(results[: len(outputs)]):
        yield f"outputs must be the first of the results {', '.join(results)}, got {', '.join(outputs)}"


def _cut(*, cut, **_):
    if not cut or (isinstance(cut, str) and not cut.strip()):
        yield "cut must be a sharding rule, or the reason why batches alone may be sharded"


def _tried(*, cases, dtypes, **_):
    if not cases:
        yield "there are no cases to test it on"
    if not dtypes:
        yield "there are no dtypes"


def _kernels(*, kernels, library, forward, tangent, backward, linear, **_):
    bodies = {"forward": forward, "tangent": None if linear else tangent, "backward": backward}
    if not kernels and not library:
        yield "kernels has no targets, and library does not name who computes it"
    if library and library not in set(BackendKind):
        yield f"library must be one of {', '.join(BackendKind)}, got {library}"
    for kind, body in bodies.items():
        if body is None or (library and body.native is None and kind not in kernels):
            continue
        if not kernels.get(kind):
            yield f"kernels does not name the targets of {kind}"
        elif body.native is None:
            yield f"kernels names targets of {kind}, which has no native body"
    if not kernels and any(body and body.native for body in bodies.values()):
        yield "kernels is empty, but there are native bodies"


def _library(*, public, **_):
    library = getattr(public, "library", None)
    if library not in set(BackendKind):
        yield f"its public function must have facade_api(library) with one of {', '.join(BackendKind)}, got {library}"


def _parts(*, made_of, known, **_):
    if not made_of:
        yield "made_of does not name the ops that it is made of"
    for name in made_of:
        if name not in known:
            yield f"made_of has {name}, which is no declared op"
