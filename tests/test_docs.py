"""The pages in docs/ and the README: their code runs and prints what they say, every public name is documented, and the tables
name what exists."""

import contextlib
import io
import itertools
import pathlib
import pkgutil
import re
import runpy
import sys

import jax
import pytest

import baracuda_jax
from baracuda_jax._core import traced
from baracuda_jax._core.op import OPS

ROOT = pathlib.Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.glob("*.md"))]
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```$", re.M | re.S)

sys.path.insert(0, str(DOCS / "_ext"))
import catalog  # noqa: E402


def _with_code():
    return [page for page in PAGES if "```python" in page.read_text()]


def _steps(page):
    """(code, what it prints or None) of each Python block. A text block right after one is its output."""
    text, steps, end = page.read_text(), [], None
    for match in BLOCK.finditer(text):
        kind, body = match.groups()
        if kind == "python":
            steps.append((body, None))
        elif steps and not text[end : match.start()].strip():
            steps[-1] = steps[-1][0], body
        end = match.end()
    return steps


@pytest.mark.parametrize("page", _with_code(), ids=lambda page: page.name)
def test_code_runs_and_prints_what_the_page_says(page, platform):
    names = {}
    with jax.enable_x64(False):  # as in a fresh Python
        for code, want in _steps(page):
            out = io.StringIO()
            with contextlib.redirect_stdout(out):
                exec(compile(code, str(page), "exec"), names)
            if want is not None and platform == "cpu":
                assert out.getvalue() == want, code


def test_every_public_name_is_on_one_page():
    found = [name for page in PAGES for name in catalog.referenced(page)]
    assert sorted(found) == sorted(traced.names())


def test_every_page_is_in_the_index():
    index = (DOCS / "index.md").read_text()
    for page in DOCS.glob("*.md"):
        assert page.stem == "index" or re.search(rf"^{page.stem}$", index, re.M), page.name


def test_every_family_has_its_page_with_every_part():
    for family in {op.family for op in OPS.values()}:
        text = (DOCS / f"{family}.md").read_text()
        for part in (
            "## Example",
            "## Formula",
            "gradient",
            "hape",
            "## Precision",
            "## Where we differ",
            "<!-- differences -->",
        ):
            assert part in text, (family, part)
        assert f"{{include}} {family}.md" in (DOCS / "coming_from.md").read_text(), family


FIGURE = re.compile(
    r"\A# .+\n\n(?:(?!#).+\n)+\n```\{eval-rst\}\n\.\. plot:: figures/(\w+)\.py\n   :alt: ((?:.+\n)+?)```\n"
)
FAMILIES = sorted({op.family for op in OPS.values()})


@pytest.mark.parametrize("family", FAMILIES)
def test_a_page_of_ops_begins_with_a_figure(family):
    """After the title and one paragraph. Who cannot see it is told what it shows."""
    found = FIGURE.match((DOCS / f"{family}.md").read_text())
    assert found and found[1] == family
    assert len(found[2].split()) > 10, found[2]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_figure_is_legible(family, monkeypatch):
    """Its texts are in the figure, apart from each other, and not small: a phone shows a figure at half its size."""
    matplotlib = pytest.importorskip("matplotlib")
    monkeypatch.syspath_prepend(DOCS / "figures")
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    with plt.style.context(DOCS / "figures/figures.mplstyle"), jax.enable_x64(False):
        runpy.run_path(str(DOCS / f"figures/{family}.py"))
        figure = plt.gcf()
        figure.canvas.draw()
        texts = [
            text for text in figure.findobj(matplotlib.text.Text) if text.get_visible() and text.get_text().strip()
        ]
        boxes = [text.get_window_extent().padded(-1) for text in texts]
        page = figure.bbox.padded(2)
        plt.close(figure)
    texts, boxes = zip(*[pair for pair in zip(texts, boxes, strict=True) if pair[1].overlaps(page)], strict=True)
    for text, box in zip(texts, boxes, strict=True):
        assert text.get_fontsize() >= 12, text
        assert (
            page.containsx(box.x0) and page.containsx(box.x1) and page.containsy(box.y0) and page.containsy(box.y1)
        ), text
    for (a, box), (b, other) in itertools.combinations(zip(texts, boxes, strict=True), 2):
        assert not box.overlaps(other), (a, b)


def test_markup_that_is_left_as_text_is_found():
    pytest.importorskip("sphinx.addnodes")
    from raw_markup import RAW

    for text in ("| a | b |", "|---|---:|", "a | | b", "**open", "[a](b)", "```{ops}", "{py:func}`sum`"):
        assert RAW.search(text), text
    for text in ("a || b", "the sum of |x[i]|^p", "a | b", "x[i] (where it is)"):
        assert not RAW.search(text), text


def test_the_ops_in_the_readme_are_those_of_the_declarations():
    rows = re.findall(r"^\| (\w+) \| (`.*`) \|$", (ROOT / "README.md").read_text(), re.M)
    assert {family: re.findall(r"`(\w+)`", names) for family, names in rows} == catalog.families()


def test_plans_of_the_reference_system_have_ops_or_a_reason():
    plans = list(catalog.plans())
    assert len(plans) == len({(category, plan) for category, plan, *_ in plans})
    for _, plan, names, _, note in plans:
        assert set(names) <= set(traced.names()), plan
        assert names or note, plan


def _everything():
    graphs, packed = {"dgl", "torch_geometric", "jraph"}, {"gguf", "bitsandbytes"}
    sequences = {"torchaudio", "tslearn", "causal_conv1d", "mamba_ssm"}
    return catalog.coming_from(
        {"torch", "jax", "numpy", "torchvision", "transformer_engine"} | graphs | sequences | packed
    )


def test_names_of_ours_in_coming_from_exist():
    here = {name for row in _everything() for name in row["here"].split()}
    assert here <= set(traced.names())


def test_every_op_with_a_namesake_is_in_coming_from():
    """Of ops that others have under a name of their own; the rest are here alone."""
    here = {name for row in _everything() for name in row["here"].split()}
    alone = {
        "add_rms_norm",
        "affine",
        "soft_nms",
        "embedding_backward_rows",
        "embedding_sgd_step",
        "ctz",
        "fma",
        "geglu",
        "geglu_tanh",
        "lamb_step",
        "reglu",
        "swiglu",
        "quantize_per_token",
        "quantize_per_group",
        "alibi",
        "batch_paged_decode",
        "batch_paged_prefill",
        "flash_sdpa_varlen",
        "paged_attention",
        "sdpa_block_sparse",
        "batch_paged_decode_fp8",
        "flash_decoding",
        "cascade_attention",
        "cascade_merge_states",
        "hyper_connection",
        "paged_kv_append",
        "ring_attention",
        "rope",
        "rope_apply_table",
        "rope_scaled_table",
        "token_penalty",
        "top_k_sampling",
        "top_p_sampling",
        "min_p_sampling",
        "top_k_top_p_sampling",
        "speculative_sampling",
        "speculative_tree_sampling",
        "fp8_linear",
        "fp8_recipe_update",
        "segment_logsumexp",
        "segment_index",
        "moe_gating_topk",
        "entmax15",
        "gguf_mmvq",
        "gguf_mmvq_batched",
        "int4_awq_dequantize",
        "int4_awq_gemm",
        "int4_dequantize",
        "int4_gemm",
        "int4_marlin_gemm",
        "int4_mmvq",
        "bin_gemm",
        "moe_scalar_gguf",
        "moe_wmma",
        "quantize_q8_1",
        "quantized_linear",
        "smooth_quant_linear",
        "sparsemax",
        "cross_entropy_terms",
    }
    assert {op.public.__name__ for op in OPS.values()} - here <= alone


@pytest.mark.parametrize(
    "name, told",
    [
        ("negative", "jax.numpy.negative, numpy.negative is neg here"),
        ("clip", r"jax.numpy.clip is clamp here \(the gradient at a bound is dy"),
        ("remainder_", "no attribute 'remainder_'; did you mean remainder"),
    ],
)
def test_a_name_of_theirs_leads_to_the_name_here(name, told):
    with pytest.raises(AttributeError, match=told):
        getattr(baracuda_jax, name)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
@pytest.mark.parametrize("library", ["jax", "numpy", "torch"])
def test_names_of_theirs_in_coming_from_exist(library):
    pytest.importorskip(library)
    rows = catalog.coming_from({library})
    assert rows
    for row in rows:
        pkgutil.resolve_name(row["theirs"])  # which imports modules, as torch.distributed.optim
        assert row["differs"], row
