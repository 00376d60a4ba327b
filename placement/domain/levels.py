"""The places of levels that the providers of a tree lie in: which NUMA node, which PCIe switch, each as one bit.

A set of places is an integer, so that what a candidate touches is an OR over its providers.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Places:
    """Where the providers of one tree lie.

    Args:
        of: provider -> its places, of all levels; providers that lie in none may be missing.
        levels: for each level, outermost first, all its places.
    """

    of: Mapping[int, int]
    levels: tuple[int, ...]

    def counts(self, touched: int) -> tuple[int, ...]:
        """Return how many places of each level are touched, at least 1 (``allocators.compactness`` tells why).

        >>> Places({}, (0b0011, 0b1100)).counts(0b0111)
        (2, 1)
        """
        return tuple([max(1, (touched & places).bit_count()) for places in self.levels])


NOWHERE = Places({}, ())


def places_of(
    providers: Iterable[int], parents: Mapping[int, int | None], marks: Mapping[int, int], levels: Sequence[bool]
) -> Places:
    """Return the places of providers: for each level the nearest one, going up from the provider itself.

    O(providers x depth).

    Args:
        providers: those that are asked about, all of one tree.
        parents: the parent of each provider of the tree.
        marks: for each provider that is a place, of which levels: a mask with the outermost level as lowest bit.
        levels: for each level whether any provider at all stands for one of its places.

    >>> found = places_of([3, 4], {1: None, 2: 1, 3: 2, 4: 1}, {2: 0b1}, levels=[True])
    >>> found.of, found.levels
    ({3: 1}, (1,))
    """
    masks = [0] * len(levels)
    # The places of everybody from those who are asked about up to the root.
    known: dict[int | None, int] = {None: 0}
    of = {}
    for provider in providers:
        path = []
        above: int | None = provider
        while above is not None and above not in known:
            path.append(above)
            above = parents.get(above)
        own = known[above]
        for inner in reversed(path):
            if here := marks.get(inner):
                own = _entered(
                    own, [level for level, in_use in enumerate(levels) if in_use and here >> level & 1], masks
                )
            known[inner] = own
        if own:
            of[provider] = own
    return Places(of, tuple(masks))


def _entered(outside: int, levels: Iterable[int], masks: list[int]) -> int:
    """Return the places of a provider that is a new place of some levels; ``masks`` takes up its bits."""
    inside = outside
    for level in levels:
        bit = 1 << sum([mask.bit_count() for mask in masks])
        inside = inside & ~masks[level] | bit
        masks[level] |= bit
    return inside
