"""Trees as the search sees them: which of their providers can serve what, and how much room they have."""

from collections.abc import Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field

from placement.domain.places import NOWHERE, Places, upwards


@dataclass(slots=True)
class Tree:
    """The matching providers of one tree, and of those that share with it.

    Args:
        root: the id of the root provider, which identifies the tree in the search.
        options: for each demand of the plan, the ids of the providers that can serve it, in the order they are tried:
            ascending, or as ``lay_out`` sorts them.
        room: (provider, contended class) -> how much all slots together may take there.
        met: provider -> a bit mask of the plan's trait sets that it meets.
        parents: the parent of each provider, None for roots; filled only for requests with same_subtree.
        root_of: the root of each provider that shares with other trees, and so may not be of this one.
        sharing: all providers that share with other trees and can serve something of the request.
        places: the places that the providers lie in; none if levels do not matter.
    """

    root: int
    options: list[list[int]]
    room: MutableMapping[tuple[int, str], float] = field(default_factory=dict)
    met: Mapping[int, int] = field(default_factory=dict)
    parents: Mapping[int, int | None] = field(default_factory=dict)
    root_of: Mapping[int, int] = field(default_factory=dict)
    sharing: AbstractSet[int] = frozenset()
    places: Places = NOWHERE

    def lay_out(self, places: Places, around: Mapping[int, float]) -> None:
        """Set the places of the providers, and sort the options by fit.

        The fullest come first, ties by id. All slots then prefer the same NUMA node.

        Args:
            places: the places of all levels.
            around: option -> how much of the whole request fits where it lies (``domain.places``).
        """
        self.places = places
        for options in self.options:
            if len(options) > 1:
                options.sort(key=around.__getitem__)

    @property
    def gives_of_its_own(self) -> bool:
        """Whether any provider that can serve something of the request does not share with other trees."""
        return any(not self.sharing >= {*row} for row in self.options)

    def ancestry(self, provider: int) -> frozenset[int]:
        """Return a provider and all its ancestors."""
        return frozenset(upwards(provider, self.parents))
