"""Words that readers know from JAX, PyTorch, NumPy and CUB: the words that were replaced by these do not come back.

Whole words are looked for in all tracked text, in any case. Where a word has another sense, such as "in place", its context
or its file is allowed."""

import pathlib
import re
import subprocess
from typing import NamedTuple

import pytest

ROOT = pathlib.Path(__file__).parent.parent
SUFFIXES = {".cc", ".cmake", ".cu", ".csv", ".h", ".md", ".py", ".toml", ".txt"}
SKIPPED = re.compile(r"benchmarks/results/|tests/test_words\.py")


class Word(NamedTuple):
    pattern: str
    instead: str
    contexts: str = r"(?!)"  # text around the word in which it has another sense
    files: str = r"(?!)"  # files in which it has another sense


WORDS = (
    Word(
        r"cells?", "element",
        files=r"docs/_ext/|baracuda_jax/_cli/(check|ops)\.py|baracuda_jax/bench/table\.py|benchmarks/targets\.py|tests/test_readme\.py|examples/digits\.py",
    ),
    Word(
        r"places?", "index, position",
        contexts=r"\b(in|last|its|one|to|would|compiler)\s+places?\b",
        files=r"ffi/handlers/segment/segment\.h|ffi/kernels/(reduce/norm|scan)\.h|ffi/patterns/(scan_columns_cuda|slice)\.h",
    ),
    Word(r"stretch(es)?", "chunk, range", contexts=r'b"stretch"'),
    Word(r"pieces?", "chunk, part"),
    Word(r"beside", "next to, compared with, versus"),
    Word(r"behind", "after"),
    Word(r"winners?", "arg", contexts=r'"winner": \("arg",\)'),
    Word(r"codes", "quantized values, q", contexts=r'"codes": \("q",\)'),
    Word(r"greatest|strongest", "largest, extremum"),
    Word(r"least", "smallest", contexts=r"\bat\s+least\b|\bleast[\s-]squares\b", files=r"ffi/"),
    Word(r"rising|falling", "ascending, descending"),
    Word(r"verdicts?|contenders?", "decision, baseline"),
    Word(r"but\s+for", "except for", files=r"ffi/"),
    Word(r"lie|lies|lying", "is, is stored", files=r"ffi/"),
    Word(r"(\w*quanti|normali|vectori|regulari|initiali|materiali)s(e|es|ed|ing|ation)", "-ize"),
    Word(r"(neighb|col|flav|behavi)our\w*", "-or"),
    Word(r"(\w*_)?ours?", "baracuda_jax, this library's, the", files=r"ffi/"),
    Word(r"(the|a)\s+floors?(?!\()|floors|memory\s+is\s+(the\s+)?floor", "bandwidth bound"),
    Word(r"pick_\w+|put_(?!along_axis\b|nans_in_order\b)\w+", "take_, scatter_"),
    Word(r"shares?\s+of\s+(the\s+)?(work|rows|elements)", "chunk, part"),
)  # fmt: skip


ANY = re.compile("|".join(rf"\b(?:{word.pattern})\b" for word in WORDS), re.IGNORECASE)


def found(text, name="a.py"):
    """(line number, word, what to write instead) of each replaced word in a file's text."""
    there = {match[0] for match in ANY.finditer(text)}
    for word in WORDS:
        if re.match(word.files, name) or not any(re.fullmatch(word.pattern, some, re.IGNORECASE) for some in there):
            continue
        matches = list(re.finditer(rf"\b({word.pattern})\b", text, re.IGNORECASE))
        allowed = matches and [match.span() for match in re.finditer(word.contexts, text, re.IGNORECASE)]
        for match in matches:
            if not any(begin <= match.start() < end for begin, end in allowed):
                yield text.count("\n", 0, match.start()) + 1, match[0], word.instead


def test_replaced_words_are_nowhere():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("this is no checkout")
    names = [name for name in listed.stdout.splitlines() if pathlib.Path(name).suffix in SUFFIXES]
    assert "baracuda_jax/__init__.py" in names
    wrong = [
        f"{name}:{number}: {word!r}, write {instead}"
        for name in names
        if not SKIPPED.match(name) and (ROOT / name).exists()
        for number, word, instead in found((ROOT / name).read_text(encoding="utf-8"), name)
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    "text, words",
    [
        ("each cell of y, and its Winners", ["cell", "Winners"]),
        ("the places behind it\nlie beside the greatest", ["places", "lie", "beside", "behind", "greatest"]),
        ("quantisation of neighbouring colours", ["quantisation", "neighbouring", "colours"]),
        ("all but\nfor one", ["but\nfor"]),
        ("the least of them", ["least"]),
        ("our kernel, _ours, and what it computes over the floor", ["our", "_ours", "the floor"]),
        ('kernel("pick_rows"), put_along, a share of the work', ["pick_rows", "put_along", "share of the work"]),
    ],
)
def test_a_planted_word_is_found(text, words):
    assert sorted(word for _, word, _ in found(text)) == sorted(words)


@pytest.mark.parametrize(
    "text",
    [
        "written in place",
        "None in its place",
        "2 units in the last place",
        "at\nleast 1",
        "least squares, the least-squares solution",
        "cellular, displaced, barcodes",
        "jnp.floor(x), floor_divide, the floor(x) below, shared memory, shards, rows that share an id",
        "np.put_along_axis, jax.device_put, four hours of tours",
    ],
)
def test_other_senses_are_allowed(text):
    assert not list(found(text))


def test_only_the_named_files_have_their_own_sense():
    assert list(found("cell", "baracuda_jax/keys.py")) == [(1, "cell", "element")]
    assert not list(found("cell", "docs/_ext/tables.py"))
