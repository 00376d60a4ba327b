"""Whether a tree has anything left for who wants to be alone: told by what is in use, before its details are read.

In a cloud at work something is in use almost everywhere, and each host has something else in use.
"""

from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from placement.candidates.compose.device_parts import Part
from placement.domain.ancestry import Parents, upwards, with_all_above
from placement.domain.planner_request import THE_DEVICE
from placement.domain.tree import Tree


class WantedFree(NamedTuple):
    """So many providers of a demand are wanted of which certain places are not in use.

    Args:
        demand: the demand.
        number: how many different providers.
        levels: of which levels the places around each are, by their number.
        is_device: whether each is not to be in use itself.
        is_card: likewise what each is a virtual function of.
    """

    demand: int
    number: int
    levels: tuple[int, ...]
    is_device: bool
    is_card: bool


class PlacesInUse(NamedTuple):
    """Where something is in use in some trees.

    Args:
        parents: the parent of each provider.
        anchors: for each level the providers that stand for a place of it.
        in_use: the providers of which, or below which, anything is allocated.
    """

    parents: Parents
    anchors: Sequence[AbstractSet[int]]
    in_use: AbstractSet[int]

    def are_lacking(self, wanted: Iterable[WantedFree], tree: Tree) -> bool:
        """Tell whether a tree has certainly too few providers that are free. What others share counts as free."""
        return any([self._number_free(one, tree) < one.number for one in wanted])

    def _number_free(self, wanted: WantedFree, tree: Tree) -> int:
        options, foreign = tree.options[wanted.demand], tree.sharing
        return sum([provider in foreign or self._is_free(wanted, provider) for provider in options])

    def _is_free(self, wanted: WantedFree, provider: int) -> bool:
        if provider in self.in_use and (wanted.levels or wanted.is_device):
            return False
        if wanted.is_card and (self.parents.get(provider) or provider) in self.in_use:
            return False
        for level in wanted.levels:
            anchors = self.anchors[level]
            place = next((one for one in upwards(provider, self.parents) if one in anchors), None)
            if place is None or place in self.in_use:
                return False
        return True


def places_in_use(parents: Parents, anchors: Sequence[AbstractSet[int]], used: Iterable[int]) -> PlacesInUse:
    """Return where something is in use, given the providers of which something is."""
    return PlacesInUse(parents, anchors, with_all_above(used, parents))


def wanted_free(parts: Iterable[Part], levels: Sequence[str]) -> Iterator[WantedFree]:
    """Yield what the parts of a request want to be free, where they want to be alone."""
    for part in parts:
        if part.exclusive:
            is_device, is_function = THE_DEVICE in part.exclusive, part.group.device is not None
            yield WantedFree(
                part.slot.demand,
                1 if part.every is not None else part.group.count,
                tuple([levels.index(level) for level in part.exclusive if level != THE_DEVICE]),
                is_device and not is_function,
                is_device and is_function,
            )
