"""ops NAME: what there is to know of one op: its function's documentation, and what its declaration says."""

import inspect

from .._core.op import OPS
from .._core.traced import public
from .ops import compact, kernels

KINDS = ("forward", "tangent", "backward")


def known():
    """The names of which there is a page: those of ops, and of functions, which may have several."""
    return [*OPS, *(name for name in public() if name not in OPS)]


def page(name):
    """Lines of text."""
    fun = OPS[name].public if name in OPS else public()[name]
    ops = [op for op in OPS.values() if op.public is fun]
    yield f"{fun.__name__}{_plain(inspect.signature(fun))}"
    yield from ("", *(f"    {line}".rstrip() for line in (inspect.getdoc(fun) or "").splitlines()))
    also = [other for other, value in public().items() if value is fun and other != fun.__name__]
    if also:
        yield from ("", f"It is also named {', '.join(also)}.")
    for op in ops:
        yield from ("", *_facts(op))


def _plain(signature):
    """Without types, which are long."""
    empty = inspect.Signature.empty
    return signature.replace(
        parameters=[p.replace(annotation=empty) for p in signature.parameters.values()], return_annotation=empty
    )


def _facts(op):
    yield f"op {op.name}, of the family {op.family}"
    yield _line("dtypes", compact(op.dtypes))
    names = ", ".join(name.removeprefix("*") for name in op.differentiable)
    yield _line("derivative", f"none: {op.no_derivative}" if op.no_derivative else f"in {names}, any order")
    for name, reason in op.constant.items():
        yield _line("", f"none in {name}: {reason}")
    if op.made_of:
        yield _line("made of", ", ".join(op.made_of))
    if not op.has_kernels:
        yield _line("kernels", f"none: {op.library} computes")
        return
    for kind in KINDS:
        if op.kernels.get(kind):
            yield _line(kind, ", ".join(op.kernels[kind]))
    for platform in ("cpu", "cuda"):
        yield _line(f"on {platform}", kernels(op, platform))


def _line(title, text):
    return f"    {title:<12}{text}"
