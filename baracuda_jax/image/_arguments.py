"""The arguments of image ops: images with channels first, sizes, scales and coordinates."""

import math

from .._core import checks

FORMS = {3: "[N, C, L]", 4: "[N, C, H, W]", 5: "[N, C, D, H, W]"}
INDEX = "it is an index"


def images(op, x, ranks):
    """x, floats [N, C, *spatial] of one of these ranks, whose spatial sizes are static and at least 1."""
    x = checks.floats(op, "x", x)
    forms = " or ".join(FORMS[rank] for rank in ranks)
    if x.ndim not in ranks:
        raise ValueError(f"{op}: x must be {forms}, got shape {x.shape}")
    if not all(isinstance(n, int) and n > 0 for n in x.shape[2:]):
        raise ValueError(f"{op}: x must have static spatial sizes of at least 1, got shape {x.shape}")
    checks.positions(op, "x", math.prod(x.shape[2:]), "elements in an image")
    return x


def numbers(op, name, value, count):
    """`count` static finite numbers above 0; one number stands for all."""
    many = tuple(value) if isinstance(value, tuple | list) else (value,) * count
    if len(many) != count:
        raise ValueError(f"{op}: {name} must be a number or {count} numbers, got {value!r}")
    return tuple(number(op, name, v) for v in many)


def number(op, name, value):
    """A static finite number above 0."""
    if not checks.is_number(value) or not 0 < value < math.inf:
        raise ValueError(f"{op}: {name} must be a static number above 0, got {value!r}")
    return float(value)


def next_to(op, name, value, x, x_name="x"):
    """Floats of x's dtype, or of the one that x is computed in."""
    value = checks.floats(op, name, value)
    checks.dtype_or_wide(op, name, value, x_name, x)
    return value
