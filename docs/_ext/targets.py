"""The directive `targets`: benchmarks/targets.csv compared with what was measured."""

from measured import KINDS, RESULTS, Measured, files, markdown

from baracuda_jax.bench import results, targets

TARGETS = RESULTS.parent / "targets.csv"


class Targets(Measured):
    kind = ""

    def text(self):
        found = {file.stem: results.read(file) for kind in ("", *KINDS) for file in files(kind)}
        rows = [cells(target, found.get(target["results"])) for target in targets.read(TARGETS)]
        return markdown(("what", "measure", "target", "measured", "met?", "worst case"), rows, 2)


def cells(target, found):
    """A row's. `found` is None where the device was not measured."""
    judged = targets.judge(target, found) if found else None
    words = target["what"], target["measure"], target["bound"]
    if judged is None:
        return *words, "not measured", "", ""
    value, case, is_met = judged
    return *words, f"{value:.2f}", "yes" if is_met else "**no**", case


def setup(app):
    app.add_directive("targets", Targets)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
