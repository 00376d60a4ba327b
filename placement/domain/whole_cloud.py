"""A whole cloud as plain rows: everything that one or more requests name, for questions about all trees at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

PlainProvider = tuple[int, int | None, int]
"""A provider, its parent, the root of its tree."""

PlainHolding = tuple[int, int, int, int, int, int, int]
"""A provider, a class by id, its capacity and usage, min_unit, max_unit, step_size. Capacity is an integer."""

PROVIDER: Final = 0
"""The index of the provider in both."""

ROOT: Final = 2
"""The index of the root in a ``PlainProvider``."""


@dataclass(frozen=True, slots=True)
class WholeCloud:
    """Providers by id, with what requests name; other classes, traits and aggregates are left out.

    Args:
        providers: every provider.
        holdings: what providers have of the named classes.
        classes: class name -> id.
        marks: provider -> the bits of the named traits it has and the named aggregates it is in, if any.
        bits: named trait or aggregate -> its bit.
        roots: ``in_tree`` -> the root of that tree; unknown providers are absent.
        shares: sharing provider -> the roots of all trees that it serves.
        aggregates: aggregate -> the roots of the trees that have a provider in it, if that was read.
        like: the root of each hypothetical tree -> the root of the tree it copies.
    """

    providers: Sequence[PlainProvider] = ()
    holdings: Sequence[PlainHolding] = ()
    classes: Mapping[str, int] = field(default_factory=dict)
    marks: Mapping[int, int] = field(default_factory=dict)
    bits: Mapping[str, int] = field(default_factory=dict)
    roots: Mapping[str, int] = field(default_factory=dict)
    shares: Mapping[int, Sequence[int]] = field(default_factory=dict)
    aggregates: Mapping[str, frozenset[int]] = field(default_factory=dict)
    like: Mapping[int, int] = field(default_factory=dict)
