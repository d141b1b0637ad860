"""Layouts of images by their letters, as PyTorch and TensorFlow name them: the channels first or last."""

from typing import Literal, TypeAlias

from . import checks

DataFormat: TypeAlias = Literal["NCL", "NLC", "NCHW", "NHWC", "NCDHW", "NDHWC"]
FORMATS: dict[int, tuple[DataFormat, DataFormat]] = {1: ("NCL", "NLC"), 2: ("NCHW", "NHWC"), 3: ("NCDHW", "NDHWC")}


def image(op, x, rank, data_format, name="x"):
    """x, floats with `rank` spatial axes, with or without a batch; and whether its channels are last."""
    checks.choice(op, "data_format", data_format, FORMATS[rank])
    x = checks.floats(op, name, x)
    if x.ndim not in (rank + 1, rank + 2):
        raise ValueError(
            f"{op}: {name} must have rank {rank + 2}, {data_format}, or {rank + 1} without the batch, got shape {x.shape}"
        )
    return x, data_format == FORMATS[rank][1]
