"""How pages write names that others gave: short inside a tree, and so that nothing in them hides or turns the text."""

import re
import unicodedata
from functools import lru_cache

from flask import Flask
from markupsafe import Markup, escape

BLANK = "(blank name)"

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that show nothing, or steer the direction of what is around them."""

_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that show nothing all the same."""

_BETWEEN_PARTS = re.compile(r"(?<=[0-9])[-_/]+(?=[A-Za-z]{2,}[0-9])")
"""Stands between numa0 and pcie1; not within an address as in pci_0000_ca_00_0, nor in gpu-a100."""


def visible(text: str) -> str:
    """Return a text in which what shows nothing, or turns what is around it, is told by its number: ``[U+202E]``."""
    if text.isascii() and text.isprintable() and text.strip():
        return text
    shown = "".join(f"[U+{ord(one):04X}]" if _hides(one) else one for one in text)
    return shown if shown.strip() else BLANK


def _hides(character: str) -> bool:
    return character in _FILLERS or unicodedata.category(character) in _INVISIBLE


@lru_cache(maxsize=4096)
def within(name: str, root: str) -> str:
    """Return what the name of a provider says that the name of its root does not, its parts apart: numa0 / pcie1.

    A child may repeat the root's whole name or only the first label of it: the host's name without its domain. One
    that repeats neither keeps its whole name.
    """
    if not root or name == root:
        return name
    for known, separators in ((root, " -_/:."), (root.partition(".")[0], " -_/:")):
        rest = name.removeprefix(known)
        part = rest.lstrip(separators)
        if part and part != rest != name:
            return _BETWEEN_PARTS.sub(" / ", part)
    return name


def named(name: str, root: str = "") -> Markup:
    """Return a name as pages show it: within its tree, if ``root`` is the name of the tree's root.

    What is left out is there for screen readers, and the whole name on hover; the name's direction stays its own.
    """
    short, whole = visible(within(name, root)), visible(name)
    if short == whole == name:
        return Markup("<bdi>") + name + Markup("</bdi>")
    hidden = Markup('<span class="hidden-text">{} </span>').format(visible(root)) if short != whole else ""
    return Markup('<bdi title="{}">{}{}</bdi>').format(whole, hidden, escape(short))


def install_names(app: Flask) -> None:
    """Make templates know these functions."""
    app.jinja_env.filters.update(named=named, visible=visible, within=within)
