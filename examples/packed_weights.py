"""Rounds the weights of a small language model to eight bits and to four, and puts them into `.gguf` files.

The model of `language_model.py`, with rows of 256 weights, learns Python's help texts. `pack_weight` rounds its matrices to
each format that it has, and the model runs with these as it did with floats, by the same code: `x @ w.T`. Weights of GGUF's
formats are written by `gguf.save`, with the model's sizes, and loaded again. Of the file of four bits `generate.py` writes
text.

Run: python examples/packed_weights.py, two minutes on two cores. Writes packed_weights.png, Q8_0.gguf and Q4_K.gguf into the
current folder; fails where a file is not what was saved, or where the perplexity of held-out text is more than 0.1 % above
that of floats with eight bits, or more than 4 % with four."""

import pathlib
import sys
import time

import jax
import matplotlib
import numpy as np
from generate import PAGES, POOL, PROMPTS, write
from language_model import HEADS, HIDDEN, KEY_HEADS, LAYERS, held_out_loss, load_text, train

from baracuda_jax import PackedWeight, gguf, pack_weight

matplotlib.use("Agg")
import matplotlib.pyplot as plt

WIDTH = 256  # blocks of Q4_K have so many weights of a row
FORMATS = {
    "Q8_0": 1.001,
    "Q4_0": 1.04,
    "Q4_K": 1.04,
    "nf4": 1.04,
    "fp4": 1.04,
    "int4": 1.04,
    "int8": 1.001,
}  # what perplexity may grow by
IN_FILES = ("Q8_0", "Q4_K")
SIZES = {"width": WIDTH, "layers": LAYERS, "heads": HEADS, "key_heads": KEY_HEADS, "hidden": HIDDEN}


def packed(params, format):
    """The parameters with all matrices rounded, except the embedding, of which rows are taken."""
    pack = lambda path, x: pack_weight(x, format) if x.ndim == 2 and path[0].key != "embedding" else x
    return jax.tree_util.tree_map_with_path(pack, params)


def is_packed(x):
    return isinstance(x, PackedWeight)


def named(params):
    """{name: array or PackedWeight}, such as "layers.0.query"."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(params, is_leaf=is_packed)
    return {jax.tree_util.keystr(path, simple=True, separator="."): x for path, x in leaves}


def from_file(file, params):
    """The parameters that are in a file, in the order of others."""
    tree = jax.tree.structure(params, is_leaf=is_packed)
    return jax.tree.unflatten(tree, [file[name] for name in named(params)])


def bits(params):
    """Of a weight of the matrices that are packed, on average."""
    matrices = [w for name, w in named(params).items() if w.ndim == 2 and name != "embedding"]
    return 8 * sum(w.nbytes for w in matrices) / sum(np.prod(w.shape) for w in matrices)


def plot(found, block, path):
    """What perplexities grow by; and the weights of a block, before and after they are rounded to Q4_0."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for i, format in enumerate(FORMATS):
        more = 100 * (found[format][1] / found["float32"][1] - 1)
        left.barh(i, more, color="tab:blue", height=0.6)
        left.text(more + 0.05, i, f"{more:.2f} %", va="center")
    left.set_yticks(range(len(FORMATS)), [f"{format}, {found[format][0]:g} bits" for format in FORMATS])
    left.set(xlim=(0, 2), xlabel="%", title=f"Perplexity above that of float32, {found['float32'][1]:.2f}")
    left.invert_yaxis()
    rounded = np.asarray(pack_weight(block, "Q4_0").dequantize())[0]
    scale = rounded[abs(block[0]).argmax()] / -8
    for level in np.arange(-8, 8) * scale:
        right.axhline(level, color="0.85", linewidth=0.8)
    right.plot(block[0], "o", color="tab:orange", label="float32")
    right.plot(rounded, "_", color="black", markersize=10, label="Q4_0")
    right.vlines(range(len(rounded)), block[0], rounded, color="black", linewidth=0.8)
    right.set(xlabel="weight of a block", ylabel="value", title="A block of Q4_0: 16 levels of one scale")
    right.legend(frameon=False, ncols=2, loc="upper right")
    for axes in (left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)


def main():
    begin = time.perf_counter()
    text, held_out = load_text()
    params = train(text, WIDTH)
    perplexity = lambda params: float(np.exp(held_out_loss(params, held_out)))
    models = {"float32": params} | {format: packed(params, format) for format in FORMATS}
    found = {name: (bits(model), perplexity(model)) for name, model in models.items()}
    for name, (size, value) in found.items():
        print(f"{name:8}{size:5.1f} bits of a weight, perplexity {value:.4f}")
    is_same = True
    for format in IN_FILES:
        gguf.save(f"{format}.gguf", named(models[format]), {"general.architecture": "example", **SIZES})
        file = gguf.load(f"{format}.gguf")
        loaded = from_file(file, params)
        is_same &= perplexity(loaded) == found[format][1] and all(file.metadata[key] == SIZES[key] for key in SIZES)
    table, keys = np.arange(POOL).reshape(-1, PAGES), jax.random.split(jax.random.key(0), len(PROMPTS))
    tokens, *_ = write(jax.devices()[:1], np.arange(len(PROMPTS)), loaded, table, keys)
    print(f"written from {format}.gguf: {PROMPTS[0] + bytes(tokens[0].tolist()).decode()!r}")
    path = pathlib.Path("packed_weights.png").resolve()
    plot(found, np.asarray(params["layers"][0]["query"][:1, :32]), path)
    print(f"{time.perf_counter() - begin:.0f} s")
    print(f"plot: {path}")
    worse = [name for name, most in FORMATS.items() if found[name][1] > most * found["float32"][1]]
    return f"perplexities of {', '.join(worse)}" if worse else 0 if is_same else "a file is not what was saved"


if __name__ == "__main__":
    sys.exit(main())
