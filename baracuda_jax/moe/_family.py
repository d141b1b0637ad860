"""What the ops of the family share in their declarations."""

from .._core import checks
from .._core.regime import along_axes
from .._core.sku import OpCategory

MOST_SLOTS = checks.MOST_POSITIONS
FAMILY = dict(
    family="moe",
    category=OpCategory.MOE,
    regime=along_axes,
    dtypes=checks.FLOATS,
    batched=lambda params: {**params, "axis": params["axis"] + 1},
)
# Dimensions of each array after the batches; others have rows or tokens, and then features.
_BY_NAME = {"experts": "tk", "row_map": "tk", "weights": "tk", "group_sizes": "e"}


def labels(by_token):
    """The rule of an op whose arrays of these names have a row for each token; others are by row."""

    def of(name, rank, axis):
        rest = _BY_NAME.get(name, "t" if name in by_token else "r")
        lead = rank - len(rest) if name in _BY_NAME else axis
        features = (f"feature{i}" for i in range(rank - lead - len(rest)))
        return (*(f"batch{i}" for i in range(lead)), *rest, *features)

    return lambda names, types, params: [of(name, x.ndim, params["axis"]) for name, x in zip(names, types, strict=True)]
