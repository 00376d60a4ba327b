"""Trees as the search sees them: which of their providers can serve what, and how much room they have."""

from collections.abc import Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import NamedTuple

from placement.domain.ancestry import upwards
from placement.domain.places import NOWHERE, Places


@dataclass(slots=True)
class Tree:
    """The fitting providers of one tree, with those that share with it.

    Args:
        root: id of the root provider, the tree's name in the search.
        options: for each demand of the plan the ids of the providers that can serve it, in the order in which they are
            tried: ascending, or as ``lay_out`` leaves them.
        room: for each (provider, contended class) how much the sum of all slots may take there.
        met: for each provider which of the plan's trait sets it meets, as a bit mask.
        parents: the parent of each provider, None for roots; filled only for requests with same_subtree.
        home: the root of each provider that is not of this tree.
        sharing: all providers that share with other trees and can serve something of the request.
        places: the places of levels that the providers lie in; none if levels do not matter.
    """

    root: int
    options: list[list[int]]
    room: MutableMapping[tuple[int, str], float] = field(default_factory=dict)
    met: Mapping[int, int] = field(default_factory=dict)
    parents: Mapping[int, int | None] = field(default_factory=dict)
    home: Mapping[int, int] = field(default_factory=dict)
    sharing: AbstractSet[int] = frozenset()
    places: Places = NOWHERE

    def lay_out(self, places: Places, around: Mapping[int, float]) -> None:
        """Note where the providers lie, and bring the options into the order of their fit.

        Those come first where least is left; equals stay as they are, by id. All slots then prefer the same NUMA node.

        Args:
            places: the places of levels.
            around: for each option how much of the whole request fits where it lies (``domain.places``).
        """
        self.places = places
        for options in self.options:
            if len(options) > 1:
                options.sort(key=around.__getitem__)

    @property
    def gives_of_its_own(self) -> bool:
        """Whether anybody who can serve something of the request does not share with other trees."""
        return any(not self.sharing >= {*row} for row in self.options)

    def ancestry(self, provider: int) -> frozenset[int]:
        """Return a provider and all its ancestors."""
        return frozenset(upwards(provider, self.parents))


class PlaceFacts(NamedTuple):
    """What tells where in some trees their providers lie, and how full it is there.

    Args:
        parents: the parent of each provider from those that can serve something, and from every place, up to the roots.
        level_bits: for each provider that stands for a place its levels as bits, the outermost lowest.
        homes: the root of the tree that each place is in.
        levels: how many levels there are.
        fit_counts: how many times what is asked of a provider fits on it: the sum over all demands that it can serve.
        shared_fit_counts: the same of providers that share with other trees.
    """

    parents: Mapping[int, int | None]
    level_bits: Mapping[int, int]
    homes: Mapping[int, int]
    levels: int
    fit_counts: Mapping[int, float]
    shared_fit_counts: Mapping[int, float]


class TreesRead(NamedTuple):
    """Trees that were read together, by root id.

    ``places`` tells where their providers lie; None where levels do not matter, or no tree has any.
    """

    trees: list[Tree]
    places: PlaceFacts | None = None
