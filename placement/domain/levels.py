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
    every = sum([1 << level for level, in_use in enumerate(levels) if in_use])
    bits: dict[tuple[int, int], int] = {}
    of = {}
    masks = [0] * len(levels)
    for provider in providers:
        own, missing = 0, every
        above: int | None = provider
        while missing and above is not None:
            here = marks.get(above, 0) & missing
            if here:
                missing &= ~here
                for level in range(len(levels)):
                    if here >> level & 1:
                        bit = bits.setdefault((level, above), 1 << len(bits))
                        masks[level] |= bit
                        own |= bit
            above = parents.get(above)
        if own:
            of[provider] = own
    return Places(of, tuple(masks))
