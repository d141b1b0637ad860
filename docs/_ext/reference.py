"""The directive `reference`: what docstrings say, of a family's functions or of the names listed in its body. The build
fails if a public name is on no page."""

import inspect

import catalog
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

import baracuda_jax
from baracuda_jax._core import traced

logger = logging.getLogger(__name__)


class Reference(SphinxDirective):
    has_content = True
    optional_arguments = 1

    def run(self):
        names = catalog.names_of(self.arguments[0]) if self.arguments else " ".join(self.content).split()
        if not names:
            raise self.error(f"no public functions: {' '.join(self.arguments)}")
        return self.parse_text_to_nodes("\n".join(line for name in names for line in documented(name)))


def documented(name):
    """MyST text that documents a public name."""
    value = getattr(baracuda_jax, name)
    if not callable(value):  # a constant, which has no docstring: the page says what it is
        return ["```{eval-rst}", f".. py:data:: baracuda_jax.{name}", "```", ""]
    kind = "autoclass" if inspect.isclass(value) else "autofunction"
    members = ["   :members:"] if kind == "autoclass" else []
    return ["```{eval-rst}", f".. {kind}:: baracuda_jax.{name}", *members, "```", ""]


def check(app, env):
    have = env.get_domain("py").objects
    for name in traced.names():
        if f"baracuda_jax.{name}" not in have:
            logger.warning("baracuda_jax.%s is on no page: its family's page needs a `reference` directive", name)


def setup(app):
    app.add_directive("reference", Reference)
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
