"""The places of levels that the providers of trees lie in: which NUMA node, which PCIe switch, each as one bit.

A set of places is an integer, so that what a candidate touches is an OR over its providers. Bits tell the places of one
tree apart, and are used again in the next.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Set
from typing import NamedTuple


class Places(NamedTuple):
    """Where the providers of one tree lie.

    ``of`` has the places of each provider, of all levels; those that lie in none may be missing, and others may be
    there. ``levels`` has for each level, outermost first, all its places.
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


class Layout:
    """The places in some trees. A provider lies in the nearest one of each level, going up from itself.

    Args:
        parents: the parent of each provider from those who are asked about, and from every place, up to the roots.
        places: for each provider that is a place: the root of its tree, and its levels as bits, the outermost lowest.
        levels: how many levels there are.

    >>> layout = Layout({1: None, 2: 1, 3: 2, 4: 1}, {2: (1, 0b1)}, levels=1)
    >>> layout.inside({2, 3, 4}), layout.masks, layout.levels
    ({3: 2}, {2: 1}, (1,))
    """

    def __init__(
        self, parents: Mapping[int, int | None], places: Mapping[int, tuple[int, int]], *, levels: int
    ) -> None:
        self._parents = parents
        self.places = places
        self._outer: dict[int, int] = {}
        roots = Counter([root for root, _mark in places.values()])
        # The n-th place of a tree has the n-th bit of each level.
        shifts = range(0, levels * max(roots.values(), default=0), levels)
        self.levels = tuple([sum([1 << shift + number for shift in shifts]) for number in range(levels)])
        """For each level all bits of its places, the same in all trees."""
        self._shifts = {root: iter(shifts) for root in roots}
        self._of_mark = {mark: self._all_of(mark) for mark in {mark for _root, mark in places.values()}}
        self.masks: dict[int, int] = {}
        """For each place the set of places that whatever is in it lies in."""
        waiting = sorted(places)
        while waiting:
            waiting = [place for place in waiting if not self._enter(place)]

    def _all_of(self, mark: int) -> int:
        """Return all bits of the levels in a mark."""
        return sum([bits for number, bits in enumerate(self.levels) if mark >> number & 1])

    def _enter(self, place: int) -> bool:
        """Give bits to a place, unless the one around it has none yet."""
        outer = self._nearest(self._parents.get(place))
        if outer is not None and outer not in self.masks:
            return False
        root, mark = self.places[place]
        mask = mark << next(self._shifts[root])
        if outer is not None:
            self._outer[place] = outer
            mask |= self.masks[outer] & ~self._of_mark[mark]
        self.masks[place] = mask
        return True

    def _nearest(self, provider: int | None) -> int | None:
        """Return the first place from a provider upwards."""
        while provider is not None and provider not in self.places:
            provider = self._parents.get(provider)
        return provider

    def inside(self, providers: Set[int]) -> dict[int, int]:
        """Return the innermost place around each provider that lies in one and is none. O(providers x depth)."""
        parents = self._parents
        found = {provider: self._nearest(parents.get(provider)) for provider in providers - self.places.keys()}
        return {provider: place for provider, place in found.items() if place is not None}

    def masks_of(self, inside: Mapping[int, int]) -> dict[int, int]:
        """Return the set of places that each place, and each provider inside of one, lies in."""
        return self.masks | {provider: self.masks[place] for provider, place in inside.items()}

    def around(self, fits: Iterable[tuple[int, float]], inside: Mapping[int, int]) -> dict[int, float]:
        """Return how much fits where each provider lies: in its innermost place and inside of it, or else on itself.

        Args:
            fits: (provider, how much); each may come several times.
            inside: the innermost place around those of them that lie in one and are none.
        """
        sums: dict[int, float] = defaultdict(float)
        for provider, much in fits:
            sums[provider] += much
        for provider, place in inside.items():
            sums[place] += sums[provider]
        if self._outer:
            sums = self._with_inner(sums)
        return sums | {provider: sums[place] for provider, place in inside.items()}

    def _with_inner(self, sums: Mapping[int, float]) -> dict[int, float]:
        found: dict[int, float] = defaultdict(float)
        for inner, much in sums.items():
            found[inner] += much
            outer = self._outer.get(inner)
            while outer is not None:
                # A place around it of the same level is another place than this one, and has no part of it.
                if not self.masks[outer] & ~self.masks[inner]:
                    found[outer] += much
                outer = self._outer.get(outer)
        return found
