"""The arguments of image ops: images with channels first, sizes, scales and coordinates."""

import math

from .._core import checks
from .._core.data_format import FORMATS

FORMS = {3: "[N, C, L]", 4: "[N, C, H, W]", 5: "[N, C, D, H, W]"}
INDEX = "it is an index"


def images(op, x, ranks, data_format=None):
    """x, floats of one of these ranks, whose spatial sizes are static and at least 1: [N, C, *spatial], or as a layout of
    `FORMATS` says. And whether the channels are last."""
    x, channels_last = layout(op, x, ranks, data_format)
    size = spatial_size(x, channels_last)
    if not all(isinstance(n, int) and n > 0 for n in size):
        raise ValueError(f"{op}: x must have static spatial sizes of at least 1, got shape {x.shape}")
    checks.positions(op, "x", math.prod(size), "elements in an image")
    return x, channels_last


def layout(op, x, ranks, data_format, name="x"):
    """x, floats of one of these ranks, and whether its channels are last."""
    x = checks.floats(op, name, x)
    forms = " or ".join(FORMS[rank] for rank in ranks)
    if x.ndim not in ranks:
        raise ValueError(f"{op}: {name} must be {forms}, got shape {x.shape}")
    first, last = FORMATS[x.ndim - 2]
    if data_format is None:
        return x, False
    checks.choice(op, "data_format", data_format, (first, last))
    return x, data_format == last


def spatial_size(x, channels_last=False):
    return tuple(x.shape[1:-1] if channels_last else x.shape[2:])


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
