"""Draws the chart of the README: a dozen ops on an H200, from results/h200.json.

    python benchmarks/headline.py

Each bar is a program's time over the bandwidth bound. The SVG is written here, not by a plotting library: the same results
give the same bytes, which a test compares, and its colors follow the reader's theme.
"""

import math
import pathlib
from xml.sax.saxutils import escape

from baracuda_jax.bench import results
from baracuda_jax.bench.benchmark import PASSES

ROOT = pathlib.Path(__file__).parent.parent
RESULTS = ROOT / "benchmarks/results/h200.json"
CHART = ROOT / "docs/_static/h200.svg"

FORWARD, BOTH = PASSES
# (op, case in the results, pass, what the reader is told of the case)
BARS = (
    ("segment_sum", "[4194304, 64] into 262144, unsorted", BOTH, "4M rows of 64, random ids"),
    ("segment_max", "[4194304, 64] into 262144, unsorted", BOTH, "4M rows of 64, random ids"),
    ("cumsum", "[4096, 32768], axis 1", BOTH, "4096 rows of 32768"),
    ("linear_scan", "[4096, 32768], axis 1", BOTH, "4096 rows of 32768"),
    ("sort", "[4096, 32768]", BOTH, "4096 rows of 32768"),
    ("topk", "[4096, 32768], k=64", BOTH, "4096 rows of 32768, k=64"),
    ("unique", "[16777216] of 4096 values", FORWARD, "17M elements, 4096 values"),
    ("aggregate_sum", "4194304 edges of 262144 nodes [64], unsorted", BOTH, "4M edges, random, of 262k nodes"),
    ("selective_scan", "[4, 2048, 2048] of 16 states", BOTH, "4 x 2048 steps, 2048 channels"),
    ("ctc_loss", "[64, 1536, 256], 200 labels", FORWARD, "64 x 1536 frames, 200 labels"),
    ("sparsemax", "[16384, 4096]", BOTH, "16384 rows of 4096"),
    ("instance_norm", "[32, 256, 56, 56]", BOTH, "32 images, 256 channels"),
)
PROGRAMS = (("native_ms", "baracuda_jax", "a"), ("xla_ms", "XLA", "b"), ("torch_ms", "PyTorch", "c"))

# Narrow, with names above their bars, so that type stays legible on a phone.
LEFT, RIGHT, TOP, WIDTH = 16, 50, 76, 500
GROUP, BAR = 61, 11
SHOWN = 560  # the width on pages that have room
LOW, HIGH = 0.8, 1000
TICKS = (1, 3, 10, 30, 100, 300, 1000)
# Blue, orange and grey differ in brightness too.
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.op { font: 600 14px ui-monospace, monospace }
.note { font-size: 11.5px; fill: #59636e }
.head { paint-order: stroke; stroke: #ffffff; stroke-width: 5px }
.ground { fill: #ffffff }
.grid { stroke: #d9dce1 }
.bound { stroke: #1f2328 }
.a { fill: #1f5fa8 } .b { fill: #e8a33d } .c { fill: #a9adb3 }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3 } .note { fill: #9198a1 } .head { stroke: #0d1117 }
.ground { fill: #0d1117 } .grid { stroke: #30363d } .bound { stroke: #e6edf3 }
.a { fill: #58a6ff } .b { fill: #d29922 } .c { fill: #6e7681 }
}
"""


def rows(found):
    """(op, case in words, {program: time over the bound, or None}) of each group of bars."""
    for op, case, title, words in BARS:
        (row,) = [
            row
            for row in found["rows"]
            if (row["op"], row["case"], row["pass"], row["dtype"]) == (op, case, title, "float32")
        ]
        bound = row["floor_ms"]
        yield op, f"{words}, {title}", {name: row[key] and row[key] / bound for key, name, _ in PROGRAMS}


def draw(found):
    """The SVG's text."""
    groups = list(rows(found))
    bottom = TOP + GROUP * len(groups)
    alt = "; ".join(
        f"{op} " + ", ".join(f"{name} {value:.2f}" for name, value in times.items() if value) for op, _, times in groups
    )
    height = bottom + 44
    size = f'viewBox="0 0 {WIDTH} {height}" width="{SHOWN}" height="{round(height * SHOWN / WIDTH)}"'
    title = f"Time over the bandwidth bound, one {found['device']}, float32"
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
        f"<title>Times over the bandwidth bound on one {found['device']}</title>",
        f"<desc>{escape(alt)}</desc>",
        f"<style>{STYLE}</style>",
        f'<rect class="ground" width="{WIDTH}" height="{height}" rx="6"/>',
        f'<text x="{LEFT}" y="26" font-size="14" font-weight="600">{title}</text>',
    ]
    x = LEFT
    for _, name, kind in PROGRAMS:
        lines += [f'<rect class="{kind}" x="{x}" y="38" width="12" height="12"/>', text(x + 17, 49, name)]
        x += 38 + 8 * len(name)
    lines.append(text(WIDTH - 16, 49, "shorter is faster, logarithmic", "note", "end"))
    for tick in TICKS:
        kind, at = "bound" if tick == 1 else "grid", position(tick)
        lines.append(f'<line class="{kind}" x1="{at}" x2="{at}" y1="{TOP - 4}" y2="{bottom}"/>')
        lines.append(text(at, bottom + 16, f"{tick}", "note", "middle"))
    lines.append(text(LEFT, bottom + 32, "1 is the bandwidth bound", "note"))
    for i, (op, words, times) in enumerate(groups):
        y = TOP + GROUP * i + 4
        lines += [text(LEFT, y + 13, op, "op head"), text(LEFT + 10 + 8.6 * len(op), y + 13, words, "note head")]
        for j, (_, name, kind) in enumerate(PROGRAMS):
            y_bar, value = y + 19 + j * (BAR + 1), times[name]
            if value:
                width = position(value) - LEFT
                lines.append(f'<rect class="{kind}" x="{LEFT}" y="{y_bar}" width="{width:.1f}" height="{BAR}"/>')
            told = shown(value) if value else f"{name}: not timed"
            lines.append(text((position(value) if value else position(1)) + 5, y_bar + 10, told, "note"))
    return "\n".join([*lines, "</svg>", ""])


def position(value):
    """Horizontal position of a ratio."""
    share = math.log(value / LOW) / math.log(HIGH / LOW)
    return round(LEFT + share * (WIDTH - LEFT - RIGHT), 1)


def shown(value):
    """A ratio to three digits."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def text(x, y, words, kind="", anchor="start"):
    """A text element."""
    return f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{escape(words)}</text>'


if __name__ == "__main__":
    CHART.write_text(draw(results.read(RESULTS)))
    print(CHART.relative_to(ROOT))
