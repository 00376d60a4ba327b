"""How pages display names given by others: abbreviated within a tree, and with invisible characters made visible."""

import re
import unicodedata
from collections.abc import Mapping
from functools import lru_cache

from markupsafe import Markup, escape

BLANK = "(blank name)"

_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
"""Categories of characters that are invisible or control the direction of text."""

_FILLERS = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0")
"""Letters and marks that are invisible nevertheless."""

_BETWEEN_PARTS = re.compile(r"(?<=[0-9])[-_/]+(?=[A-Za-z]{2,}[0-9])")
"""The separator between numa0 and pcie1; not within an address such as pci_0000_ca_00_0, nor in gpu-a100."""


def visible(text: str) -> str:
    """Return a text with each invisible or direction-changing character replaced by its code point: ``[U+202E]``."""
    if text.isascii() and text.isprintable() and text.strip():
        return text
    shown = "".join(f"[U+{ord(letter):04X}]" if _hides(letter) else letter for letter in text)
    return shown if shown.strip() else BLANK


def _hides(character: str) -> bool:
    return character in _FILLERS or unicodedata.category(character) in _INVISIBLE


@lru_cache(maxsize=4096)
def within(name: str, root: str) -> str:
    """Return the part of a provider's name that its root's name does not contain, split into parts: numa0 / pcie1.

    A child may repeat the root's whole name, or only its first label: the host's name without domain. A name that
    repeats neither is returned unchanged.
    """
    if not root or name == root:
        return name
    for prefix, separators in ((root, " -_/:."), (root.partition(".")[0], " -_/:")):
        remainder = name.removeprefix(prefix)
        part = remainder.lstrip(separators)
        if part and part != remainder != name:
            return _BETWEEN_PARTS.sub(" / ", part)
    return name


def named(name: str, root: str = "") -> Markup:
    """Return a name as pages show it, relative to its tree if ``root``, the name of the tree's root, is given.

    Screen readers get the omitted part, and hovering shows the whole name; ``bdi`` isolates the name's direction.
    """
    short, whole = visible(within(name, root)), visible(name)
    if short == whole == name:
        return Markup("<bdi>") + name + Markup("</bdi>")
    hidden = Markup('<span class="hidden-text">{} </span>').format(visible(root)) if short != whole else ""
    return Markup('<bdi title="{}">{}{}</bdi>').format(whole, hidden, escape(short))


def owner_named(names: Mapping[str, str], id_: str) -> Markup:
    """Return what a project or user is called, with the id on hover; the id if it has no name."""
    if id_ not in names:
        return named(id_)
    return Markup('<bdi title="{}">{}</bdi>').format(visible(id_), visible(names[id_]))
