"""Files of the format GGUF, which have a model's metadata and tensors.

    baracuda_jax.gguf.save("model.gguf", {"output.weight": baracuda_jax.pack_weight(w)}, {"general.name": "a model"})
    file = baracuda_jax.gguf.load("model.gguf")
    file.metadata["general.name"], file.tensors["output.weight"].shape
    w = file["output.weight"]       # a PackedWeight, or an array where the tensor is one of plain numbers
    y = x @ w.T

A file is mapped into memory: what is not used is not read. What it says of itself is checked before it is believed: sizes
against what is left of the file, offsets against its end. Whatever is wrong is a GGUFError that says what and where.

Source: ggml's description of the format, versions 2 and 3.
"""

from ._load import GGUFFile, load
from ._save import save
from ._tensor import GGUFError, Tensor

__all__ = ["GGUFError", "GGUFFile", "Tensor", "load", "save"]
