"""The directives `ops`, `reasons`, `plans`, `coming-from`, `mirrors` and `collectives`: tables of declared ops, of mirrors
and of CSV files."""

import catalog
from sphinx.util.docutils import SphinxDirective


class Table(SphinxDirective):
    optional_arguments = 1
    final_argument_whitespace = True

    def run(self):
        head, rows = self.table()
        lines = [head, ["---"] * len(head), *rows]
        text = "\n".join(f"| {' | '.join(cells)} |" for cells in lines)
        return self.parse_text_to_nodes(f":::{{div}} {self.name}\n\n{text}\n\n:::")


class Ops(Table):
    """Every op, or those of a family."""

    def table(self):
        family = self.arguments[0] if self.arguments else None
        rows = [(name, public, cells) for name, public, cells in catalog.ops() if family in (None, cells[0])]
        head = ["op", "family", "dtypes", "derivative", "kernels"]
        hidden = 1 if family else None  # the column that says the same in each row
        cut = lambda cells: [cell for i, cell in enumerate(cells) if i != hidden]
        return cut(head), [cut([link(public, name), *cells]) for name, public, cells in rows]


class Reasons(Table):
    """What ops have not, and why."""

    def table(self):
        rows = [[what, ", ".join(map("`{}`".format, ops)), reason] for (what, reason), ops in catalog.reasons().items()]
        return ["what is not there", "in", "why"], rows


class Plans(Table):
    """The plans of baracuda-kernels, those without an op here last in each category."""

    def table(self):
        rows = []
        for category in dict.fromkeys(plan[0] for plan in catalog.plans()):
            plans = [plan[1:] for plan in catalog.plans() if plan[0] == category]
            done = [plan for plan in plans if plan[1]]
            rows.append([f"**{category}**", f"**{len(done)} of {len(plans)}**", "", ""])
            for plan, names, has_gradient, note in sorted(plans, key=lambda plan: not plan[1]):
                here = ", ".join(map(link, names)) or "not here, on purpose"
                rows.append([f"`{plan}`", here, "yes" if has_gradient else "none", escaped(note)])
        return ["plan", "op", "gradient", "what differs"], rows


class ComingFrom(Table):
    required_arguments = 1
    optional_arguments = 0

    def table(self):
        rows = catalog.coming_from(self.arguments[0].split())
        cells = [
            [f"`{row['theirs']}`", ", ".join(map(link, row["here"].split())), escaped(row["differs"])] for row in rows
        ]
        return ["PyTorch, JAX, NumPy", "baracuda_jax", "what differs"], cells


class Mirrors(Table):
    """The mirrors in a namespace."""

    required_arguments = 1
    optional_arguments = 0

    def table(self):
        found = catalog.mirrors(self.arguments[0])
        cells = [[f"`jax.{name}`", escaped(native), escaped(differs) or "nothing"] for name, native, differs in found]
        return ["function", "what is native", "what differs"], cells


class Collectives(Table):
    """What each op communicates, ops that communicate alike in one row."""

    def table(self):
        alike = {}
        for row in catalog.collectives():
            alike.setdefault((row["sharded"], row["forward"], row["with gradient"]), []).append(row["op"])
        public = {name: public for name, public, _ in catalog.ops()}
        rows = [[", ".join(link(public[op], op) for op in ops), *cells] for cells, ops in alike.items()]
        return ["ops", "sharded", "forward", "forward and gradient"], rows


def link(public, shown=None):
    return f"{{py:func}}`{shown or public} <baracuda_jax.{public}>`"


def escaped(text):
    return text.replace("|", r"\|")


def setup(app):
    app.add_directive("ops", Ops)
    app.add_directive("reasons", Reasons)
    app.add_directive("plans", Plans)
    app.add_directive("coming-from", ComingFrom)
    app.add_directive("mirrors", Mirrors)
    app.add_directive("collectives", Collectives)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
