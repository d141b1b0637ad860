"""The directive `timings`: the times of all cases, of every such file in benchmarks/results, as plots and tables."""

import statistics

from measured import Measured, image, markdown, measured_on

from baracuda_jax.bench import plot, results, table
from baracuda_jax.bench.benchmark import PASSES


class Timings(Measured):
    """A section for each file, which has its own title."""

    required_arguments = 0
    has_content = False
    kind = ""

    def device(self, stem, found):
        sizes = " and ".join(size for (size,) in split(found["rows"], "size"))
        yield from ("", f"## {found['device']}, {sizes} arrays", "", measured_on(found), "")
        yield from (*summary(found["rows"]), "", SUMMARY)
        even = [row for row in found["rows"] if not row["even"]]
        for (family,), rows in split(even, "family").items():
            yield from ("", f"### {family.capitalize()}", "", ":::::{tab-set}")
            for (dtype,), some in split(rows, "dtype").items():
                image = self.image(f"{stem}-{family}-{dtype}.svg", found | {"rows": some})
                yield from (f"::::{{tab-item}} {dtype}", ":sync: " + dtype, *image, "", *numbers(some), "::::")
            yield ":::::"
        yield from skewed(found["rows"])

    def image(self, name, found):
        alt = f"Times over the floor, {name.removesuffix('.svg').replace('-', ', ')}: the table below has the numbers"
        return image(self.env, name, lambda file: plot.draw(found, file), alt)


def summary(rows):
    """Medians of each family and pass."""
    cells = []
    for (family,), some in split([row for row in rows if not row["even"]], "family").items():
        for title in PASSES:
            of_pass = [row for row in some if row["pass"] == title]
            if of_pass:
                over = statistics.median(row["native_ms"] / row["floor_ms"] for row in of_pass)
                cells.append(
                    (family, title, f"{over:.2f}", *(middle(of_pass, name) for name in ("xla_ms", "torch_ms")))
                )
    return markdown(("family", "pass", "/ floor", "XLA / native", "PyTorch / native"), cells, 2)


def middle(rows, name):
    """Median, lowest and highest ratio to native."""
    ratios = [row[name] / row["native_ms"] for row in rows if row[name]]
    return f"{statistics.median(ratios):.2f} ({min(ratios):.2f}–{max(ratios):.2f})" if ratios else ""


def numbers(rows):
    """The table under a plot: rows of a case share their name, the op next to the forward pass and the case under it."""
    cells = []
    for case in split(rows, "op", "case").values():
        names = [f"`{case[0]['op']}`", case[0]["case"]]
        names = names if len(case) > 1 else ["<br>".join(names)]
        cells += [
            (name, row["pass"].removeprefix("forward "), *table.cells(row)[table.TEXTS :])
            for name, row in zip(names, case, strict=True)
        ]
    return markdown(("op", "pass", *RATIOS), cells, 2)


RATIOS = [name.replace(" / ", " /<br>") for name in table.HEADER[table.TEXTS :]]


def skewed(rows):
    """Skewed cases compared with the even one."""
    cells = []
    for row, even in results.with_even(rows, rows):
        op, _, dtype, _, ms, over, *ratios = table.cells(row)
        of_even = f"{even['native_ms'] / even['floor_ms']:.2f}"
        cells.append((f"`{op}`<br>{row['variant']}", dtype, ms, over, of_even, *ratios))
    if not cells:
        return []
    head = "op", "dtype", *RATIOS[:2], "/ floor,<br>even ids", *RATIOS[2:]
    return ["", "### Skewed segments", "", SKEWED, "", *markdown(head, cells, 2)]


SUMMARY = "Medians over the cases in both dtypes, in brackets the lowest and the highest ratio."
SKEWED = "Forward and backward of ids that are not spread evenly, compared with ids that are."


def split(rows, *names):
    """{what stands under the names: the rows that have it}, in order."""
    found = {}
    for row in rows:
        found.setdefault(tuple(row[name] for name in names), []).append(row)
    return found


def setup(app):
    app.add_directive("timings", Timings)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
