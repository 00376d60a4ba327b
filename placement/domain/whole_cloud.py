"""A whole cloud as plain rows: all that one or many requests name of it, for what is asked of all trees at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

PlainProvider = tuple[int, int | None, int]
"""A provider, its parent, the root of its tree."""

PlainHolding = tuple[int, int, int, int, int, int, int]
"""A provider, a class by id, its capacity and use, min_unit, max_unit, step_size. Capacity is whole."""


@dataclass(frozen=True, slots=True)
class WholeCloud:
    """Providers by id, with what requests name: other classes, traits and aggregates are not there.

    Args:
        providers: every provider.
        holdings: what providers have of the named classes.
        classes: the ids of the classes, by name.
        marks: for each provider that has any of the named traits, or is in a named aggregate, their bits.
        bits: the bit of each named trait and of each named aggregate.
        roots: for each ``in_tree`` the root of that tree; unknown providers are absent.
        shares: for each provider that shares the roots of all trees it shares with.
        aggregates: by aggregate the roots of the trees that have a provider in it, where that was read.
        like: for each tree that is only supposed to be there the root of the one that it is like.
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
