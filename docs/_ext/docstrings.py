"""Docstrings are plain text in sections, for help(); this makes reStructuredText of them."""

import enum
import re

from sphinx.util import logging

import baracuda_jax
from baracuda_jax._core import traced

logger = logging.getLogger(__name__)

SECTIONS = ("Formula", "Edges", "Args", "Attributes", "Returns", "Raises", "Precision", "Source")
TITLES = {"Args": "Arguments"}
ITEM = re.compile(r"(?P<names>\*{0,2}[A-Za-z_][\w ,*]*): (?P<text>.*)")
# Names in backticks, and dotted names of other libraries.
CODE = re.compile(r"`([^`]+)`|\b((?:torch|jax|jnp|numpy)(?:\.\w+)+)")


def prose(text):
    """Plain text as reStructuredText: names as code, public ones linked; everything else is literal."""
    out, end = [], 0
    for match in CODE.finditer(text):
        out.append(re.sub(r"([\\*_|`])", r"\\\1", text[end : match.start()]))
        name, end = (match[1] or match[2]).removeprefix("baracuda_jax."), match.end()
        link = getattr(baracuda_jax, name, None) if name in traced.names() else None
        role = "class" if isinstance(link, type) else "func"
        # The empty comments keep the markup apart from letters next to it.
        out.append(f"\\ :py:{role}:`~baracuda_jax.{name}`\\ " if link else f"\\ ``{name}``\\ ")
    out.append(re.sub(r"([\\*_|`])", r"\\\1", text[end:]))
    return "".join(out)


def sections(lines):
    """(section or None, its lines without indentation) in order. A section ends where the indentation does, or, if its
    text begins next to its name, at an empty line."""
    found = [(None, [])]
    for line in lines:
        name, colon, rest = line.partition(":")
        if colon and name in SECTIONS:
            found.append((name, [rest.strip()] if rest.strip() else []))
            inline = bool(rest.strip())
        elif found[-1][0] and line and not line.startswith(" ") and not inline:
            found.append((None, [line]))
        elif found[-1][0] and not line and inline:
            found.append((None, []))
        else:
            found[-1][1].append(line)
    for name, body in found:
        indent = min((len(x) - len(x.lstrip()) for x in body if x.strip()), default=0)
        body = (
            [x[indent:] for x in body] if name and not (body and body[0] and indent == 0) else [x.strip() for x in body]
        )
        if any(x.strip() for x in body):
            yield name, body


def items(body, where):
    """(names, text) of `name: text` lines, which are continued by indented ones."""
    found = []
    for line in filter(str.strip, body):
        match = ITEM.fullmatch(line)
        if line.startswith(" ") and found:
            found[-1][1].append(line.strip())
        elif match:
            found.append((match["names"], [match["text"]]))
        else:
            logger.warning("%s: neither `name: text` nor indented under one: %s", where, line)
    return [(names, " ".join(text)) for names, text in found]


def term(names):
    parts = names.split(", ")
    if all(re.fullmatch(r"\*{0,2}\w+", part) for part in parts):
        return ", ".join(f"``{part}``" for part in parts)
    return prose(names)


def render(lines, where):
    before, fields = [], []
    for name, body in sections(lines):
        title = TITLES.get(name, name)
        if name is None:
            before += [prose(line) for line in body] + [""]
        elif name == "Formula":
            formula = [f"        {line}" for line in "\n".join(body).strip().splitlines()]
            fields += [f":{title}:", "    .. code-block:: text", "        :class: formula", "", *formula, ""]
        elif name in ("Args", "Attributes", "Raises"):
            fields.append(f":{title}:")
            for names, text in items(body, where):
                fields += [f"    {term(names)}", f"        {prose(text)}", ""]
        else:
            fields += [f":{title}:", f"    {prose(' '.join(' '.join(body).split()))}", ""]
    return before + fields


def process(app, what, name, obj, options, lines):
    own = getattr(obj, "__name__", None)
    if what == "function" and own != name.rpartition(".")[2]:
        lines[:] = [f"Another name of :py:func:`~baracuda_jax.{own}`."]
    else:
        lines[:] = render(list(lines), name)
    if what == "class" and issubclass(obj, enum.Enum):
        lines += ["", ":Values:", "    " + ", ".join(f"``{member.value}``" for member in obj)]


def signature(app, what, name, obj, *_):
    """Only a PlanPreference is made by its class; of the others there is nothing to call."""
    return ("", None) if what == "class" and obj is not baracuda_jax.PlanPreference else None


def setup(app):
    app.connect("autodoc-process-docstring", process)
    app.connect("autodoc-process-signature", signature)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
