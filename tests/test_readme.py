"""The README's chart, the version, and the tables of all pages."""

import importlib.util
import pathlib
import re
import tomllib
import xml.etree.ElementTree as xml

import pytest

import baracuda_jax

ROOT = pathlib.Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("benchmarks/**/*.md")])


@pytest.fixture(scope="module")
def headline():
    spec = importlib.util.spec_from_file_location("headline", ROOT / "benchmarks/headline.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_chart_is_that_of_the_results(headline):
    assert headline.CHART.read_text() == headline.draw(headline.results.read(headline.RESULTS)), (
        "run benchmarks/headline.py"
    )


def test_the_chart_has_a_labeled_bar_for_each_time(headline):
    found = headline.results.read(headline.RESULTS)
    drawn = xml.fromstring(headline.draw(found))
    of = lambda tag: drawn.iter(f"{{http://www.w3.org/2000/svg}}{tag}")
    times = [value for _, _, by_program in headline.rows(found) for value in by_program.values()]
    bars = [bar for bar in of("rect") if bar.get("height") == str(headline.BAR) and int(bar.get("y")) > headline.TOP]
    assert len(bars) == len([value for value in times if value]) > 30
    texts = {text.text for text in of("text")}
    assert {headline.shown(value) for value in times if value} <= texts
    assert {op for op, *_ in headline.BARS} | {"baracuda_jax", "XLA", "PyTorch"} <= texts
    for bar, value in zip(bars, filter(None, times), strict=True):
        assert float(bar.get("x")) + float(bar.get("width")) == pytest.approx(headline.position(value), abs=0.2)


def test_the_chart_is_on_both_first_screens():
    for page, image in (("README.md", "docs/_static/h200.svg"), ("docs/benchmarks.md", "_static/h200.svg")):
        assert f"]({image})" in "\n".join((ROOT / page).read_text().splitlines()[:12]), page


def test_times_in_the_readme_are_those_of_the_results(headline):
    """Of `segment_sum` in bfloat16, next to the issue that they answer."""
    over = {
        row["variant"]: f"{row['native_ms'] / row['floor_ms']:.2f}"
        for row in headline.results.read(headline.RESULTS)["rows"]
        if (row["op"], row["pass"], row["dtype"]) == ("segment_sum", "forward", "bfloat16") and not row["even"]
    }
    text = " ".join((ROOT / "README.md").read_text().split())
    assert f"takes {over['sorted']} times the bandwidth bound with sorted ids, and {over['unsorted']} times" in text


def test_versions_agree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["version"] == baracuda_jax.__version__
    assert f"Version {project['version']} ·" in (ROOT / "README.md").read_text()
    assert f"## {project['version']}," in (ROOT / "CHANGELOG.md").read_text()


def broken(lines):
    """Numbers of lines that Markdown does not take for the table that they look like: rows under no header, or of another
    number of cells."""
    width, fenced = None, False
    for i, line in enumerate(lines):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if fenced or not line.startswith(("| ", "|-")):
            width = None
            continue
        cells = len(re.findall(r"(?<!\\)\|", line)) - 1
        if width is None:
            rule = lines[i + 1] if i + 1 < len(lines) else ""
            if not re.fullmatch(r"\|( ?:?-+:? ?\|)+", rule) or rule.count("|") - 1 != cells:
                yield i + 1
            width = cells
        elif cells != width:
            yield i + 1


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_are_whole(page):
    assert list(broken(page.read_text().splitlines())) == []


def test_what_a_broken_table_is():
    assert list(broken(["| a | b |", "|---|---|", "| 1 | 2 |", "", "| 3 | 4 |"])) == [5]
    assert list(broken(["| a | b |", "|---|---|", "| 1 | 2 | 3 |"])) == [3]
    assert list(broken(["| a | b |", "|---|", "| 1 |"])) == [1, 2, 3]
    assert (
        list(broken(["|x| is prose", "| a | `x \\| y` |", "|---|---:|", "| 1 | 2 |", "```", "| no table |", "```"]))
        == []
    )
